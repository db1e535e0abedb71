"""Runs commands one after the other, each for a limited time, with a line of progress and its output in a log."""

import os
import shutil
import signal
import subprocess
import sys
import time

PASSED, FAILED, STOPPED, SKIPPED = "passed", "failed", "stopped", "skipped"
OVERTIME = "out of time"  # of tests that were stopped at their limit, while those that had ended had passed

_GRACE = ((signal.SIGINT, 8), (signal.SIGTERM, 3), (signal.SIGKILL, 3))  # seconds to end in, after each


class Result:
    """What became of a step.

    Attributes:
        status: one of the five above.
        reason: why it was not PASSED, in a sentence.
        seconds: how long it ran; limit: how long it might have.
        ended: when, by time.monotonic(), it ended or was to be ended.
        counts: (passed, failed, skipped) of the cases in it; None where there are none to count.
        log: the path of its output, or None.
    """

    def __init__(self, name, title, status, reason="", seconds=0.0, limit=0, log=None):
        self.name, self.title, self.status, self.reason = name, title, status, reason
        self.seconds, self.limit, self.log = seconds, limit, log
        self.exit_status = self.ended = None
        self.counts = None

    def as_json(self):
        counts = dict(zip(("passed", "failed", "skipped"), self.counts)) if self.counts else None
        return {
            "name": self.name,
            "title": self.title,
            "status": self.status,
            "reason": self.reason,
            "seconds": round(self.seconds, 1),
            "limit_seconds": round(self.limit),
            "exit_status": self.exit_status,
            "cases": counts,
            "log": f"logs/{os.path.basename(self.log)}" if self.log else None,
        }


def duration(seconds):
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02} s"


def end_of(path, lines=25):
    """The last lines of a log."""
    with open(path, encoding="utf-8", errors="replace") as log:
        return log.read()[-8000:].splitlines()[-lines:]


class Progress:
    """A line that is written over on a terminal; elsewhere one line when a step begins, and one when it ends."""

    def __init__(self):
        self._is_terminal = sys.stdout.isatty()

    def begin(self, title):
        if not self._is_terminal:
            print(f"  {title} ...", flush=True)

    def glance(self, text):
        """Says what is being done now, which is not worth a line elsewhere than on a terminal."""
        if self._is_terminal:
            print(f"\r  {text} ..."[: shutil.get_terminal_size().columns - 1] + "\033[K", end="", flush=True)

    def show(self, title, seconds, limit, log):
        if self._is_terminal:
            last = ([""] + end_of(log, 1))[-1]
            printable = "".join(letter for letter in last.split("\r")[-1] if letter.isprintable())
            line = f"  {title} ... {duration(seconds)} of at most {duration(limit)}  {printable}"
            print("\r" + line[: shutil.get_terminal_size().columns - 1] + "\033[K", end="", flush=True)

    def end(self, text):
        print(("\r\033[K" if self._is_terminal else "") + f"  {text}", flush=True)


def start(command, output, **keywords):
    """A command with what it says in a file, in a session of its own, which `stop` ends."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **keywords
    )


def stop(process, grace=None):
    """Ends a command and all that it started; returns whether it ended. Waits for a limited time in any case."""
    for number, seconds in grace or _GRACE:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        try:  # what it started may have outlived it
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return True
    return False  # waits for a driver that does not answer


def run(name, title, command, limit, log, environment, folder, progress):
    """Runs a command for at most `limit` seconds; returns its Result. KeyboardInterrupt ends it, and is passed on."""
    result = Result(name, title, PASSED, limit=limit, log=log)
    began = time.monotonic()
    progress.begin(title)
    with open(log, "wb") as output:
        try:
            process = start(command, output, env=environment, cwd=folder)
        except OSError as error:
            result.status, result.reason = FAILED, f"could not be started: {error}"
            progress.end(f"{title}: FAILED, {result.reason}")
            return result
        try:
            while process.poll() is None and time.monotonic() - began < limit:
                progress.show(title, time.monotonic() - began, limit, log)
                try:
                    process.wait(0.5)
                except subprocess.TimeoutExpired:
                    pass
        except KeyboardInterrupt:
            stop(process)
            raise
    result.ended = time.monotonic()
    result.seconds = result.ended - began
    if process.poll() is None:
        result.status, result.reason = STOPPED, f"stopped after {duration(limit)}, its limit"
        if not stop(process):
            result.reason += "; it could not be ended, which a GPU that hangs can cause"
    elif process.returncode:
        result.exit_status = process.returncode
        result.status, result.reason = FAILED, _exit_in_words(process.returncode)
    else:
        result.exit_status = 0
    return result


def _exit_in_words(status):
    if status > 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def tell(result, progress):
    """Says how a step ended; on failure with the end of its log."""
    counts = "" if result.counts is None else ", {} passed, {} failed, {} skipped".format(*result.counts)
    if result.status == PASSED:
        progress.end(f"{result.title}: done in {duration(result.seconds)}{counts}")
    elif result.status == SKIPPED:
        progress.end(f"{result.title}: left out, {result.reason}")
    else:
        progress.end(f"{result.title}: {result.status.upper()} ({result.reason}){counts}")
        if result.log:
            print("    The end of its output:")
            for line in end_of(result.log):
                print(f"    | {line}")
