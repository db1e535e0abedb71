"""A pytest plugin that writes JSON before and after each test, so that a run that is stopped, or dies, still tells.

The file is the one that FUSELINE_REPORT_OUTCOMES names.
"""

import json
import os
import time

import pytest

_FILE = os.environ["FUSELINE_REPORT_OUTCOMES"]


def _write(**line):
    with open(_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_runtest_logstart(nodeid, location):
    _write(test=nodeid, at=time.monotonic())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    # A failure of what a test stands on, or of what it leaves, is one of the test.
    if report.when == "call" or report.outcome != "passed":
        message = ""
        if report.failed:
            message = str(call.excinfo.value) if call.excinfo else ""
        elif report.skipped:
            message = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        # Whole: the report cuts it, when names have been taken out.
        _write(test=item.nodeid, outcome=report.outcome, seconds=round(report.duration, 3), message=message)
