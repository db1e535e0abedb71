#!/usr/bin/env bash
# C tests in a build tree, that on the GPU first. The last line counts their cases.
#
#     scripts/report/c_tests.sh BUILD [TEST...]         tests: such as tests/test_errors; if none is named, all but those on stand-ins
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=scripts/lib/counts.sh
source "$root/scripts/lib/counts.sh"
build=$1
shift
tests=$*
if [[ -z $tests ]]; then
    # shellcheck disable=SC2016 # make's variable, not the shell's
    tests=$(printf 'include Makefile\nshow:\n\t@echo $(filter tests/test_on_gpu,$(GPU_TESTS)) $(C_TESTS)\n' | make -s -C "$build" -f - show)
fi
if [[ -z $tests ]]; then
    echo "The build tree has no C tests: cmocka was missing when it was configured."
    exit 1
fi
find "$build" -name '*.trs' -delete
read -ra logs <<<"$tests"
logs=("${logs[@]/%/.log}") # by which make runs just these tests; its "check" would build all of them, and the stand-ins
(cd "$build" && rm -f "${logs[@]}")
status=0
make -C "$build" -j"$(nproc)" -k "${logs[@]}" 2>&1 | tee "$build/report-check.log" || status=$?
count_make_check "$build" "$status" "$build/report-check.log"
# What it ran on, and the errors that it measured.
if [[ -r $build/tests/test_on_gpu.log && " $tests " == *" tests/test_on_gpu "* ]]; then
    printf '\ntests/test_on_gpu\n'
    grep '^#' "$build/tests/test_on_gpu.log" || true
    echo
fi
print_counts
counts_are_good
