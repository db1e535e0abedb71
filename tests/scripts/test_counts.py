"""The closing line of scripts/test: every case counts, and a part that dies without a report counts as a failure."""

import pytest

TRS_GOOD = ":test-result: PASS a 1\n:test-result: PASS a 2\n:test-result: SKIP a 3\n:global-test-result: PASS\n"
TRS_BAD = ":test-result: PASS b 1\n:test-result: FAIL b 2\n:test-result: ERROR b 3\n:global-test-result: FAIL\n"

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><skipped/></testcase>
<testcase name="d"><error/></testcase></testsuite></testsuites>"""
GOOD_REPORT = '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>'


@pytest.fixture
def check(shell, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "check.log").write_text("make: the end of the log\n")

    def run(status, **results):
        for name, text in results.items():
            (tmp_path / "tests" / f"{name}.trs").write_text(text)
            (tmp_path / "tests" / f"{name}.log").write_text(f"the output of {name}\n")
        return shell(f"count_make_check tests {status} check.log; print_counts; counts_are_good", "counts")

    return run


def last_line(result):
    return result.stdout.splitlines()[-1]


def test_passed_and_skipped_cases_are_counted(check):
    result = check(0, good=TRS_GOOD)
    assert last_line(result) == "2 passed, 0 failed, 1 skipped"
    assert result.returncode == 0


def test_failed_cases_are_counted_and_shown(check):
    result = check(2, good=TRS_GOOD, bad=TRS_BAD)
    assert last_line(result) == "3 passed, 2 failed, 1 skipped"
    assert "the output of bad" in result.stdout
    assert "the output of good" not in result.stdout
    assert result.returncode != 0


def test_make_check_that_dies_counts_as_a_failure(check):
    result = check(2, good=TRS_GOOD)
    assert last_line(result) == "2 passed, 1 failed, 1 skipped"
    assert "the end of the log" in result.stdout


def test_make_check_without_a_test_counts_as_a_failure(check):
    assert last_line(check(0)) == "0 passed, 1 failed"


@pytest.mark.parametrize(
    ("report", "status", "expected"),
    [
        (REPORT, 1, "1 passed, 2 failed, 1 skipped"),
        (GOOD_REPORT, 0, "1 passed, 0 failed"),
        (GOOD_REPORT, 3, "1 passed, 1 failed"),  # every case passed, yet pytest did not end well
        ("<testsuites/>", 5, "0 passed, 1 failed"),  # no tests
        ("<testsuites/>", 0, "0 passed, 1 failed"),
        ("<testsuites><tests", 139, "0 passed, 1 failed"),  # died while writing
        (None, 139, "0 passed, 1 failed"),  # died before
    ],
)
def test_pytest_report(shell, tmp_path, report, status, expected):
    if report is not None:
        (tmp_path / "report.xml").write_text(report)
    result = shell(f"count_pytest python3 report.xml {status}; print_counts; counts_are_good", "counts")
    assert last_line(result) == expected
    assert (result.returncode == 0) == (", 0 failed" in expected)


def test_nothing_run_is_not_good(shell):
    assert shell("counts_are_good", "counts").returncode != 0
