"""Reads what the steps wrote: counts of cases, tests that failed, and the bench's figures."""

import json
import os
import re
import subprocess

_COUNTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib", "counts.sh")

# What the tutorial prints for 67.1M elements, forward and backward, in float32. Its listing measures 50M.
TUTORIAL_CARD = "Radeon 8060S (gfx1151)"
TUTORIAL_MS = {"x*sigmoid(x)": 14.52, "fused": 6.88}


def tutorial_counts(log):
    """(passed, failed, skipped) of examples/tutorial_checks.py."""
    lines = _read(log).splitlines()
    return sum(line.endswith("   ok") for line in lines), sum(line.endswith("   DIFFERS") for line in lines), 0


class Outcomes:
    """What scripts/report/pytest_outcomes.py wrote.

    Attributes:
        counts: (passed, failed, skipped).
        unfinished: the test that was running when the run died or was stopped, or None.
        begun: when the last test began, by time.monotonic().
        failed: [{"test", "message"}], first of them one that never ended, if the run died or was stopped in it.
        reasons: [{"reason", "count"}], why tests were skipped.
    """

    def __init__(self, path):
        outcomes, messages, started = {}, {}, None
        self.begun = 0.0
        for line in _read(path).splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue  # the last one, cut
            test = found["test"]
            if "outcome" not in found:
                started, self.begun = test, found.get("at", 0.0)
            else:  # the last one counts: a test may pass and its clearing up fail
                outcomes[test], messages[test] = found["outcome"], found["message"]
        self.unfinished = started if started is not None and started not in outcomes else None
        kinds = list(outcomes.values())
        self.counts = kinds.count("passed"), kinds.count("failed"), kinds.count("skipped")
        self.failed = [{"test": test, "message": messages[test]} for test in outcomes if outcomes[test] == "failed"]
        reasons = {}
        for test, outcome in outcomes.items():
            if outcome == "skipped":
                reason = messages[test].replace("Skipped: ", "")
                reasons[reason] = reasons.get(reason, 0) + 1
        self.reasons = [{"reason": reason, "count": count} for reason, count in reasons.items()]


def make_check_counts(build, log):
    """(passed, failed, skipped) of the C tests that came to an end, by scripts/lib/counts.sh."""
    code = (
        f'source "{_COUNTS}"; [[ -n $(find "$1" -name "*.trs") ]] && count_make_check "$1" 0 "$2" >/dev/null; '
        "echo $passed $failed $skipped"
    )
    done = subprocess.run(["bash", "-c", code, "bash", build, log], stdout=subprocess.PIPE, text=True)
    return tuple(map(int, done.stdout.split()))


def device_of_c_tests(log):
    """What tests/test_on_gpu says of it; None if it was not run, or found none."""
    found = re.search(r"^# on (the first device of .*)", _read(log), re.MULTILINE)
    return found[1] if found else None


def bench_cases(path):
    """The list of cases that the bench wrote, or [] where there is none."""
    try:
        value = json.loads(_read(path))
    except ValueError:
        return []
    cases = value.get("cases", []) if isinstance(value, dict) else value
    return [case for case in cases if isinstance(case, dict) and "us" in case]


def elements_of(case):
    shape = case.get("shape") or []
    count = 1
    for extent in shape if isinstance(shape, list) else re.findall(r"\d+", str(shape)):
        count *= int(extent)
    return count


def of_copy_in_percent(case):
    share = case.get("of_copy")
    return None if share is None else 100 * share


def tutorial_times(cases):
    """[{"elements", "fused_ms", "eager_ms", "ratio"}] of the preset's training steps; the rival may be missing."""
    found = []
    for case in cases:
        if case.get("direction") != "step":
            continue
        speedup, fused = (case.get("against") or {}).get("eager"), case["us"] / 1e3
        found.append(
            {
                "elements": elements_of(case),
                "fused_ms": fused,
                "eager_ms": fused * speedup if speedup else None,
                "ratio": speedup,
            }
        )
    return found


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
