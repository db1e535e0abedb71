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

if [ -z "$HIP_TARGETS" ]; then
    reason="no AMD code is built"
elif [ -z "$python" ]; then
    reason="no Python"
else
    reason=
fi
if [ -n "$reason" ]; then
    skip "the library has code for the targets that were configured" "$reason"
    skip "every kernel is within kernels/codegen-limits.txt" "$reason"
else
    check "the library has code for the targets that were configured" same_targets
    codegen check --limits "$srcdir/kernels/codegen-limits.txt" >/dev/null 2>&1
    if [ $? -eq 77 ]; then
        skip "every kernel is within kernels/codegen-limits.txt" "$(codegen check 2>&1)"
    else
        check "every kernel is within kernels/codegen-limits.txt" codegen check --limits "$srcdir/kernels/codegen-limits.txt"
    fi
fi
plan
