#!/usr/bin/env bash
# C tests in a build tree. The last line counts their cases.
#
#     scripts/report/c_tests.sh BUILD [TEST...]         tests: such as tests/test_errors; all that need no C++ if none is named
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=scripts/lib/counts.sh
source "$root/scripts/lib/counts.sh"
build=$1
shift
tests=$*
if [[ -z $tests ]]; then
    # shellcheck disable=SC2016 # make's variable, not the shell's
    tests=$(printf 'include Makefile\nshow:\n\t@echo $(C_TESTS)\n' | make -s -C "$build" -f - show)
fi
if [[ -z $tests ]]; then
    echo "The build tree has no C tests: cmocka was missing when it was configured."
    exit 1
fi
find "$build" -name '*.trs' -delete
status=0
make -C "$build" -j"$(nproc)" check-TESTS TESTS="$tests" >"$build/report-check.log" 2>&1 || status=$?
count_make_check "$build" "$status" "$build/report-check.log"
print_counts
counts_are_good
