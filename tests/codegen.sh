#!/bin/sh
# The AMD machine code in the library: what it was built for, and that no kernel leaves the limits. Needs Python, and the llvm-readelf and
# llvm-objdump of the LLVM that built it.
. "${srcdir:?is set by make check}/tests/tap.sh"

python=
# shellcheck disable=SC2153 # PYTHON comes from the Makefile
for candidate in "$PYTHON" python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        python=$candidate
        break
    fi
done

codegen() {
    action=$1
    shift
    "$python" "$srcdir/scripts/codegen.py" "$action" "$@" "$(library)"
}

# The targets whose code is in the library, and no others, are those that configure found.
same_targets() {
    found=$(codegen targets | sort) &&
        wanted=$(echo "$HIP_TARGETS" | tr ' ' '\n' | sort) &&
        { [ "$found" = "$wanted" ] || { printf 'found:\n%s\nconfigured:\n%s\n' "$found" "$wanted" && return 1; }; }
}

# Whether every kernel was within the limits, as the script said and ended, which has read everything once.
within_limits() {
    cat "$folder/said"
    return "$ended"
}

# The documents count as many kernels of each target as the library has.
documents_count_kernels() {
    count=$(sed -n 's/^\([0-9]*\) kernels of \([0-9]*\) targets are.*/\1 \/ \2/p' "$folder/said")
    count=$((${count:?no number of kernels in what scripts/codegen.py said}))
    for target in $HIP_TARGETS; do
        if ! grep -q "^| $target | $count | " "$srcdir/docs/amd-codegen.md" ||
            ! grep -q "^| $target | $count kernels | $count kernels | " "$srcdir/docs/amd.md"; then
            echo "$target has $count kernels; make the documents anew: docs/amd-codegen.md says how"
            return 1
        fi
    done
}

if [ -z "$HIP_TARGETS" ]; then
    reason="no AMD code is built"
elif [ -z "$python" ]; then
    reason="no Python"
else
    reason=
fi
scratch
ended=77
[ -n "$reason" ] || check "the library has code for the targets that were configured" same_targets
if [ -z "$reason" ]; then
    codegen check --limits "$srcdir/kernels/codegen-limits.txt" >"$folder/said" 2>&1
    ended=$?
    [ "$ended" -ne 77 ] || reason=$(cat "$folder/said")
else
    skip "the library has code for the targets that were configured" "$reason"
fi
if [ -n "$reason" ]; then
    skip "every kernel is within kernels/codegen-limits.txt" "$reason"
    skip "docs/amd.md and docs/amd-codegen.md count the kernels of each target" "$reason"
else
    check "every kernel is within kernels/codegen-limits.txt" within_limits
    if [ "$ended" -eq 0 ]; then
        check "docs/amd.md and docs/amd-codegen.md count the kernels of each target" documents_count_kernels
    fi
fi
plan
