# shellcheck shell=bash
# Counting test results, and the closing line.

passed=0
failed=0
skipped=0

# add_counts PASSED FAILED SKIPPED
add_counts() {
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# print_counts: the closing line.
print_counts() {
    if ((skipped)); then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
}

# counts_are_good: whether something passed and nothing failed.
counts_are_good() {
    ((failed == 0 && passed > 0))
}

# count_make_check BUILD STATUS LOG: adds the cases that "make check" left in BUILD's .trs files, shows the output of the tests that
# failed, and notes a death that no case tells of. STATUS is make's exit status and LOG its output.
count_make_check() {
    local build=$1 status=$2 log=$3 file good bad skip failures=0 found=0
    while IFS= read -r file; do
        found=1
        good=$(grep -cE '^:test-result: (PASS|XFAIL)' "$file" || true)
        bad=$(grep -cE '^:test-result: (FAIL|XPASS|ERROR)' "$file" || true)
        skip=$(grep -c '^:test-result: SKIP' "$file" || true)
        add_counts "$good" "$bad" "$skip"
        failures=$((failures + bad))
        printf '  %-40s %5d passed %5d failed %5d skipped\n' "$(basename "$file" .trs)" "$good" "$bad" "$skip"
        if ((bad)); then
            sed 's/^/    | /' "${file%.trs}.log"
        fi
    done < <(find "$build" -name '*.trs' | sort)
    if ((status != 0 && failures == 0)); then
        echo "  make check died with exit status $status. The end of $log:"
        tail -n 40 "$log" | sed 's/^/    | /'
        add_counts 0 1 0
    elif ((found == 0)); then
        echo "  make check ran no test (is cmocka missing?)"
        add_counts 0 1 0
    fi
}

# count_pytest PYTHON XML STATUS: adds the cases of pytest's report XML, and notes a death that no case tells of.
count_pytest() {
    local python=$1 xml=$2 status=$3 counts
    if counts=$("$python" - "$xml" 2>/dev/null <<'END'
import sys
from xml.etree import ElementTree

passed = failed = skipped = 0
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    if case.find("failure") is not None or case.find("error") is not None:
        failed += 1
    elif case.find("skipped") is not None:
        skipped += 1
    else:
        passed += 1
print(passed, failed, skipped)
END
    ); then
        local good bad skip
        read -r good bad skip <<<"$counts"
        add_counts "$good" "$bad" "$skip"
        if ((status != 0 && bad == 0)); then
            echo "  pytest ended with exit status $status"
            add_counts 0 1 0
        elif ((good + bad == 0)); then
            echo "  pytest ran no test"
            add_counts 0 1 0
        fi
    else
        echo "  pytest died with exit status $status and left no report"
        add_counts 0 1 0
    fi
}
