"""scripts/amd-report: checks the machine, builds, tests and measures, and writes one archive.

Each step has a limit of its own, and all of them together have one; a step that overruns is stopped, one that fails is
told with the end of its output, and the others go on.
"""

import argparse
import glob
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from datetime import date

import checks
import figures
import steps
import summary
from archive import Archive
from scrub import Scrubber

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# All that is made and deleted lies in a folder of this name, with this file in it.
OWN_FOLDER, MARKER = "fuseline-report", ".made-by-amd-report"

EPILOG = """\
exit status:
  0  every step was run, and passed
  1  a step failed, hung or was stopped, or a test failed, or the report was ended; the archive says which
  2  the options are wrong
  3  nothing failed, but steps were left out, for want of what the checks name
  4  there is no archive
  5  nothing failed, but tests ran out of their time: those that had ended had passed

environment: FUSELINE_PYTHON is --python's default, CONFIGURE_OPTIONS replaces configure's options (the GPU's targets),
FUSELINE_GPU_RUNTIME names the file of the ROCm runtime, HIPCC the compiler.

Names of users and hosts, folders, network addresses and serial numbers are taken out of the archive, as far as they can
be known; look into it before you send it.
"""

# Names of the steps, and how many seconds each may take at most. LEAST is kept for a step whatever came before it.
LIMITS = {
    "environment": 120,
    "build": 260,
    "info": 30,
    "tutorial": 60,
    "bench": 75,
    "pictures": 30,
    "gpu-tests": 200,
    "c-tests": 120,
}
LEAST = {"info": 5, "tutorial": 15, "bench": 15, "gpu-tests": 60, "c-tests": 30}
# What the bench measures, in this order. Rivals that are not named take a compiler minutes.
BENCHES = {
    "tutorial": "--preset tutorial --against eager,builtin",
    "quick": "--preset quick",
    "feed-forward": "--preset feed-forward --against eager,builtin",
}

# In this order, since time may run out: what only a GPU shows, right values, layouts, gradients; then all others.
FIRST_TESTS = ("test_gpu", "test_activation_gpu", "test_values", "test_activation_values", "test_layouts", "test_torch")
FIRST_TESTS += ("test_activation_forms", "test_activation_gradients")
LAST_TESTS = ("test_second_derivatives",)
# These take longer than all others together, or no device; --test-files names them.
NOT_RUN = ("test_compile", "test_bench", "test_builtin")
TEST_LIMIT = 30  # seconds for one test, by pytest-timeout, where that is installed
GPU_TESTS = "cuda or test_gpu or test_activation_gpu"


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/amd-report",
        description="What is missing on this machine, whether fuseline is right on its AMD GPU, and how fast: in one\n"
        "archive, in less than ten minutes, without root.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--python", help="a Python that has PyTorch for ROCm (default: FUSELINE_PYTHON, then python3); never changed"
    )
    parser.add_argument(
        "--installed", action="store_true", help="test the fuseline that this Python has; build nothing"
    )
    parser.add_argument(
        "--library", metavar="FILE", help="test this libfuseline.so, by the Python's fuseline; build nothing"
    )
    parser.add_argument(
        "--build", metavar="FOLDER", help="run the C tests of this build tree; for --installed and --library"
    )
    parser.add_argument(
        "--output", metavar="FOLDER", default=os.getcwd(), help="where the archive goes (default: here)"
    )
    parser.add_argument(
        "--work",
        metavar="FOLDER",
        help=f"where logs and the build go, in a folder {OWN_FOLDER} (default: build-report in the clone)",
    )
    parser.add_argument("--limit", type=float, default=570, metavar="SECONDS", help="for all steps (default: 570)")
    parser.add_argument("--step-limit", action="append", default=[], metavar="STEP=SECONDS", help="for one step")
    parser.add_argument("--skip", action="append", default=[], metavar="STEP", help=f"one of {', '.join(LIMITS)}")
    parser.add_argument(
        "--bench",
        action="append",
        metavar="NAME=OPTIONS",
        help=f"what to measure, as options of python -m fuseline bench (default: the presets {', '.join(BENCHES)})",
    )
    parser.add_argument("--device", default="cuda", help="the device, by PyTorch's name (default: cuda, for AMD too)")
    parser.add_argument(
        "--tests", default=GPU_TESTS, metavar="EXPRESSION", help=f"pytest's -k (default: {GPU_TESTS!r})"
    )
    parser.add_argument(
        "--test-files",
        default="",
        metavar="LIST",
        help=f"such as 'test_gpu test_values' (default: all but {', '.join(NOT_RUN)})",
    )
    parser.add_argument(
        "--c-tests", default="", metavar="LIST", help="such as 'tests/test_errors' (default: all in C alone)"
    )
    options = parser.parse_args(arguments)
    options.limits = dict(LIMITS)
    for text in options.step_limit:
        name, _, seconds = text.partition("=")
        if name not in LIMITS:
            parser.error(f"--step-limit {text}: there is no step {name}; there are {', '.join(LIMITS)}")
        try:
            options.limits[name] = float(seconds)
        except ValueError:
            parser.error(f"--step-limit {text}: {seconds!r} is no number of seconds")
    options.benches = dict(BENCHES)
    if options.bench:
        options.benches = {name: text for name, _, text in (text.partition("=") for text in options.bench)}
        for name in options.benches:
            if not re.fullmatch("[a-z0-9-]+", name):
                parser.error(f"--bench: {name!r} is no name of small letters, digits and -")
    for name in options.skip:
        if name not in LIMITS:
            parser.error(f"--skip {name}: there is no such step; there are {', '.join(LIMITS)}")
    options.python = options.python or os.environ.get("FUSELINE_PYTHON") or "python3"
    python = shutil.which(options.python)
    if python is None:
        parser.error(f"--python: {options.python} is not a program")
    options.python = os.path.abspath(python)  # as it is called: what a link points to may have other packages
    if options.library:
        options.library = os.path.abspath(options.library)
        if not os.path.exists(options.library):
            parser.error(f"--library: there is no {options.library}")
    options.work = os.path.join(os.path.abspath(options.work or os.path.join(ROOT, "build-report")), OWN_FOLDER)
    options.output = os.path.abspath(options.output)
    options.builds = not (options.installed or options.library)
    if options.build and options.builds:
        parser.error("--build goes with --installed or --library")
    options.folders = checks.ask_folders(options.python, dict(os.environ))
    if reason := why_not_there(options):
        parser.error(f"--work: {reason}; name another folder")
    return options


def why_not_there(options):
    """Why the report may not delete and write in its folder, or ""."""
    if os.path.lexists(options.work) and not os.path.isfile(os.path.join(options.work, MARKER)):
        if not os.path.isdir(options.work) or os.listdir(options.work):
            return f"{options.work} was not made by scripts/amd-report, and stays as it is"
    doomed = [os.path.join(options.work, name) for name in ("logs", "files", "venv", *["build"] * options.builds)]
    kept = {"the Python": os.path.dirname(options.python), "--output": options.output, "--library": options.library}
    kept.update({"--build": options.build, "PyTorch": options.folders["torch"]})
    kept.update({f"the Python's {prefix}": prefix for prefix in options.folders["prefixes"]})
    for name, path in kept.items():
        for folder in doomed:
            for inside in filter(None, (path and os.path.abspath(path), path and os.path.realpath(path))):
                if (inside + os.sep).startswith((folder + os.sep, os.path.realpath(folder) + os.sep)):
                    return f"{name} lies in {folder}, which is made anew for each report"
    return ""


def make_folders(report):
    """The report's own folder with its marker, and empty ones in it for logs and files."""
    os.makedirs(report.options.work, exist_ok=True)
    with open(os.path.join(report.options.work, MARKER), "w", encoding="utf-8") as marker:
        marker.write("scripts/amd-report deletes what lies in this folder, and makes it anew.\n")
    for folder in (report.logs, report.files):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)


def folders_of_python(python, folders):
    """{folder: what stands for it} of the Python that was chosen; what many systems have stays as it is."""
    found = {python: "[python]"}
    found.update({prefix: "[python]" for prefix in folders["prefixes"]})
    if folders["torch"]:
        found[os.path.dirname(folders["torch"])] = "[packages]"
        found[folders["torch"]] = "[torch]"
    for prefix in folders["prefixes"]:  # its own packages are known by its name
        found = {
            path: text for path, text in found.items() if text != "[packages]" or not path.startswith(prefix + os.sep)
        }
    return {path: text for path, text in found.items() if not re.match(r"/(usr|bin|opt/rocm[^/]*)?(/|$)", path)}


def cut(report):
    """Shortens what tests said; after names have been taken out, since a part of one would stay."""
    for test in report.get("failed_tests", []):
        test["message"] = test["message"][:2000]
    for reason in report.get("skipped_tests", []):
        reason["reason"] = reason["reason"][:300]


class Report:
    """The steps, in order, and what they found."""

    def __init__(self, options):
        self.options = options
        self.start = time.monotonic()
        self.progress = steps.Progress()
        self.results = []
        self.logs = os.path.join(options.work, "logs")
        self.files = os.path.join(options.work, "files")  # JSON and pictures of the steps
        self.venv = os.path.join(options.work, "venv")
        self.build = os.path.abspath(options.build) if options.build else os.path.join(options.work, "build")
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1", MPLBACKEND="Agg")
        self.environment.update(
            MPLCONFIGDIR=self.files, HYPOTHESIS_STORAGE_DIRECTORY=os.path.join(self.files, "hypothesis")
        )
        if options.library:
            self.environment["FUSELINE_LIBRARY"] = options.library
        self.python = options.python
        self.checks, self.torch, self.targets, self.outcomes = [], {}, [], None
        self.choice = checks.Choice(None, [], [], [])
        self.interrupted = False

    def left(self):
        return self.options.limit - (time.monotonic() - self.start)

    def limit_of(self, name, later):
        kept = sum(LEAST.get(step, 0) for step in later)
        return min(
            self.options.limits[name.partition(":")[0]], max(self.left() - kept, LEAST.get(name.partition(":")[0], 0))
        )

    def add(self, name, title, command, later, log_name=None, needs="", environment=None, count=None, judge=None):
        """Runs one step, unless it cannot be run; returns its Result.

        needs: why it cannot, or "". count: from the log to (passed, failed, skipped).
        judge: what else there is to say of the Result.
        """
        log = os.path.join(self.logs, (log_name or name.replace(":", "-")) + ".txt")
        reason = needs
        if name.partition(":")[0] in self.options.skip:
            reason = "as --skip asks"
        elif self.interrupted:
            reason = "since the report was interrupted"
        elif not reason and self.left() <= 0:
            reason = f"since the time for the report, {steps.duration(self.options.limit)}, was over"
        if reason:
            result = steps.Result(name, title, steps.SKIPPED, reason)
        else:
            try:
                environment = {**self.environment, **(environment or {})}
                limit = self.limit_of(name, later)
                result = steps.run(name, title, command, limit, log, environment, ROOT, self.progress)
                if count:
                    result.counts = count(log)
                    if result.status == steps.PASSED and result.counts[0] == 0:
                        result.status, result.reason = steps.FAILED, "no case of it passed"
                if judge:
                    judge(result)
            except KeyboardInterrupt:
                self.interrupted = True
                result = steps.Result(name, title, steps.STOPPED, "interrupted", log=log)
            except Exception as error:
                result = steps.Result(name, title, steps.FAILED, in_words(error), log=log)
        self.results.append(result)
        steps.tell(result, self.progress)
        return result

    # --- the steps ---

    def run(self):
        make_folders(self)
        self.look()
        benches = list(self.options.benches)
        later = ["info", "tutorial", *["bench"] * len(benches), "pictures", "gpu-tests", "c-tests"]
        self.prepare(later)
        self.say_what_it_is(later[1:])
        reason = self.why_no_gpu()
        self.add(
            "tutorial",
            "the tutorial's checks",
            [self.python, "examples/tutorial_checks.py", "--device", self.options.device],
            later[2:],
            needs=reason,
            count=figures.tutorial_counts,
        )
        for index, name in enumerate(benches):
            self.measure(name, later[3 + index :], reason)
        self.draw(later[3 + len(benches) :])
        self.test(["c-tests"], reason)
        self.test_c()

    def look(self):
        print("Looking at the machine", flush=True)

        def begin(name, seconds):
            if seconds:
                self.progress.begin(f"{name}, at most {steps.duration(seconds)}")
            self.progress.glance(name)

        self.checks, self.torch, self.targets, self.choice = checks.all_checks(
            self.options.python, self.environment, self.options.work, self.options.builds, begin=begin
        )
        self.progress.end("done")
        for check in self.checks:
            print(f"  {check.state:<8} {check.name}: {check.found}")
            if check.advice:
                print(f"  {'':<8} what to do: {check.advice}")
        print("\nBuilding, testing and measuring", flush=True)

    def prepare(self, later):
        command = [os.path.join(HERE, "environment.sh"), self.venv, self.options.python]
        made = self.add("environment", "a Python environment beside the owner's", command, ["build", *later])
        if os.path.exists(os.path.join(self.venv, "bin", "python")):
            self.python = os.path.join(
                self.venv, "bin", "python"
            )  # some packages may be missing; what needs them says so
        if not self.options.builds:
            return
        configure = os.environ.get("CONFIGURE_OPTIONS", "").split()
        environment = {}
        if not configure and self.choice.targets:
            configure = [f"--with-hip-targets={','.join(self.choice.targets)}", "--with-ptx=no"]
            environment["HIPCC"] = self.choice.compiler  # the one that was tried
        reason = "" if configure else "since no AMD GPU was found to build for"
        if not configure and self.targets:
            reason = f"since no compiler builds for {', '.join(self.targets)}: see the checks"
        if not reason and made.status != steps.PASSED and self.python != os.path.join(self.venv, "bin", "python"):
            reason = "since there is no Python environment"
        command = [os.path.join(HERE, "build.sh"), self.build, self.venv, *configure]
        self.add(
            "build",
            f"the library{', for ' + ', '.join(self.choice.targets) if self.choice.targets else ''}",
            command,
            later,
            needs=reason,
            environment=environment,
        )

    def library_is_missing(self):
        built = next((result for result in self.results if result.name == "build"), None)
        return "" if built is None or built.status == steps.PASSED else "since the library was not built"

    def say_what_it_is(self, later):
        # From a folder that has no "fuseline" in it, as for a user.
        command = [self.python, "-m", "fuseline", "info", "--json"]
        self.add("info", "python -m fuseline info", command, later, needs=self.library_is_missing())

    def why_no_gpu(self):
        reason = self.library_is_missing()
        if not reason and self.options.device.startswith("cuda") and not self.torch.get("available"):
            reason = "since PyTorch sees no GPU: see the checks"
        return reason

    def measure(self, name, later, reason):
        command = [self.python, "-m", "fuseline", "bench", "--device", self.options.device]
        command += ["--json", os.path.join(self.files, f"bench-{name}.json"), *shlex.split(self.options.benches[name])]
        self.add(f"bench:{name}", f"the bench: {name}", command, later, needs=reason)

    def draw(self, later):
        # Also of a bench that was stopped, as it writes down each case when it is done.
        found = sorted(glob.glob(os.path.join(self.files, "bench-*.json")))
        command = [self.python, os.path.join(HERE, "draw.py"), *found]
        self.add(
            "pictures", "the bench's pictures", command, later, needs="" if found else "since nothing was measured"
        )

    def test(self, later, reason):
        path = os.path.join(self.files, "outcomes.jsonl")
        names = self.options.test_files.split()
        if not names:
            paths = glob.glob(os.path.join(ROOT, "tests", "python", "test_*.py"))
            others = {os.path.basename(path)[: -len(".py")] for path in paths} - {*FIRST_TESTS, *LAST_TESTS, *NOT_RUN}
            names = [*FIRST_TESTS, *sorted(others), *LAST_TESTS]
        files = [f"tests/python/{name}.py" for name in names]
        command = [
            self.python,
            "-m",
            "pytest",
            "-q",
            "--color=no",
            "--tb=short",
            "-p",
            "no:cacheprovider",
            "-p",
            "pytest_outcomes",
        ]
        command += ["-k", self.options.tests, *files]
        search = os.pathsep.join(filter(None, [HERE, self.environment.get("PYTHONPATH")]))

        def count(log):
            self.outcomes = figures.Outcomes(path)
            return self.outcomes.counts

        self.add(
            "gpu-tests",
            "the tests on the GPU (pytest)",
            command,
            later,
            needs=reason,
            # The variable, not the option: without the plugin it does no harm.
            environment={"PYTHONPATH": search, "FUSELINE_REPORT_OUTCOMES": path, "PYTEST_TIMEOUT": str(TEST_LIMIT)},
            count=count,
            judge=lambda result: judge_tests(result, self.outcomes),
        )

    def test_c(self):
        reason = self.library_is_missing()
        if not reason and not os.path.exists(os.path.join(self.build, "Makefile")):
            reason = "since there is no build tree of an installed library; --build names one"
        command = [os.path.join(HERE, "c_tests.sh"), self.build, *self.options.c_tests.split()]
        # PyTorch's own runtime, where there may be no other.
        environment, runtimes = {}, self.torch.get("runtime")
        if runtimes and "FUSELINE_GPU_RUNTIME" not in os.environ:
            environment["FUSELINE_GPU_RUNTIME"] = runtimes[0]
        self.add(
            "c-tests",
            "the tests in C",
            command,
            [],
            needs=reason,
            environment=environment,
            count=lambda log: figures.make_check_counts(self.build, log),
            judge=lambda result: judge_c_tests(result, self.build),
        )

    # --- what comes of them ---

    def as_json(self):
        counts = [result.counts for result in self.results if result.counts]
        bench = {}
        for path in sorted(glob.glob(os.path.join(self.files, "bench-*.json"))):
            bench[os.path.basename(path)[len("bench-") : -len(".json")]] = figures.bench_cases(path)
        return {
            "format": 1,
            "date": date.today().isoformat(),
            "seconds": round(time.monotonic() - self.start, 1),
            "commit": self.commit(),
            "targets": self.targets,
            "tested": self.tested(),
            "variables": checks.variables(),
            "torch": self.torch,
            "info": self.info(),
            "checks": [check.as_json() for check in self.checks],
            "steps": [result.as_json() for result in self.results],
            "cases": dict(zip(("passed", "failed", "skipped"), map(sum, zip(*counts)) if counts else (0, 0, 0))),
            "failed_tests": self.outcomes.failed if self.outcomes else [],
            "unfinished_test": self.outcomes.unfinished if self.outcomes else None,
            "skipped_tests": self.outcomes.reasons if self.outcomes else [],
            "c_tests_ran_on": figures.device_of_c_tests(os.path.join(self.logs, "c-tests.txt")),
            "tutorial": figures.tutorial_times(bench.get("tutorial", [])),
            "bench": bench,
        }

    def info(self):
        result = next((result for result in self.results if result.name == "info"), None)
        if result is None or result.status != steps.PASSED:
            return None
        for line in steps.end_of(result.log):  # warnings may stand beside it
            try:
                return json.loads(line)
            except ValueError:
                pass
        return None

    def tested(self):
        """The architecture of the one device that is tested, by PyTorch's runtime; None if there is none."""
        number = self.options.device.partition(":")[2]
        names = [(device.get("architecture") or "").split(":")[0] for device in self.torch.get("devices") or []]
        return (names[int(number or 0) :] or [None])[0] if (number or "0").isdigit() else None

    def commit(self):
        """The clone's, whoever owns it; None for an unpacked tarball, which may lie in another project's."""
        with tempfile.NamedTemporaryFile("w", suffix=".gitconfig") as file:  # some versions read this from a file alone
            file.write(f'[safe]\n\tdirectory = "{ROOT}"\n')
            file.flush()
            environment = {**self.environment, "GIT_CEILING_DIRECTORIES": os.path.dirname(ROOT)}
            environment["GIT_CONFIG_GLOBAL"] = file.name
            command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "rev-parse", "--short=12", "HEAD"]
            status, output = checks.run(command, env=environment)
        return output.strip() if status == 0 else None

    def write(self):
        """Writes the archive; returns (its path, the summary)."""
        folders = {self.options.output: "[output]", self.options.work: "[work]", ROOT: "[fuseline]"}
        folders = {path: text for path, text in folders.items() if len(path) > 1}
        folders.update({os.path.realpath(path): text for path, text in list(folders.items())})
        folders = {**folders_of_python(self.options.python, self.options.folders), **folders}
        archive = Archive(Scrubber(folders))
        report, shown = self.told(archive)
        archive.add_text("summary.txt", shown)
        archive.add_json("report.json", report)
        for path in sorted(glob.glob(os.path.join(self.logs, "*.txt"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                archive.add_text(f"logs/{os.path.basename(path)}", file.read())
        for path in sorted(glob.glob(os.path.join(self.files, "*.png"))):
            archive.add_picture(f"pictures/{os.path.basename(path)}", path)
        targets = self.tested() or "-".join(sorted(set(self.targets))) or "no-gpu"
        name = f"fuseline-report-{targets}-{date.today().isoformat()}"
        os.makedirs(self.options.output, exist_ok=True)
        path = os.path.join(self.options.output, name + ".tar.gz")
        archive.write(path, name)
        for member in archive.left_out:
            print(f"Left out of the archive, since a name could not be taken out of it: {member}")
        return path, shown

    def told(self, archive):
        """(what report.json holds, the summary), scrubbed; what cannot be made is said in them."""
        try:
            report = archive.scrubbed(self.as_json())
            cut(report)
            return report, archive.scrubbed(summary.text(report))
        except Exception as error:
            self.fail(error)
            report = {"format": 1, "error": in_words(error), "steps": [result.as_json() for result in self.results]}
            report = archive.scrubbed({**report, "checks": [check.as_json() for check in self.checks]})
            lines = [f"The summary could not be made: {report['error']}", ""]
            lines += [f"{check['state']} {check['name']}: {check['found']}" for check in report["checks"]]
            lines += [f"{step['status']} {step['title']}: {step['reason']}" for step in report["steps"]]
            return report, "\n".join(lines) + "\n"

    def fail(self, error):
        """Adds an error of the report's own to the steps."""
        self.results.append(steps.Result("report", "the report itself", steps.FAILED, in_words(error)))
        traceback.print_exc()

    def exit_status(self):
        statuses = {result.status for result in self.results}
        if statuses & {steps.FAILED, steps.STOPPED} or any(
            result.counts and result.counts[1] for result in self.results
        ):
            return 1
        if steps.OVERTIME in statuses:
            return 5
        return 3 if steps.SKIPPED in statuses else 0


def judge_tests(result, outcomes):
    """Tests that were stopped at their limit: none failed, unless one of them hung."""
    hung = outcomes.unfinished is not None and result.ended - outcomes.begun > TEST_LIMIT
    _judge(result, outcomes.counts, hung)


def judge_c_tests(result, build):
    """The same; the one on the GPU, which may hang, has to have ended."""
    _judge(result, result.counts, not os.path.exists(os.path.join(build, "tests", "test_on_gpu.trs")))


def _judge(result, counts, hung):
    passed, failed, _ = counts
    if result.status == steps.STOPPED and passed and not failed and not hung:
        result.status = steps.OVERTIME
        result.reason = f"ran out of time: {passed} passed, {failed} failed; {result.reason}"


def end_on_signals():
    """Ends the running step and writes the archive, as Ctrl-C does, when the terminal is closed or the report ended."""

    def end(number, frame):
        for other in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)  # the archive is written now
        if number == signal.SIGHUP:  # what is printed would be an error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def in_words(error):
    return f"{type(error).__name__}: {error}"


def main(arguments=None):
    options = parse(arguments)
    report = Report(options)
    end_on_signals()
    try:
        report.run()
    except KeyboardInterrupt:
        report.results.append(steps.Result("report", "the report itself", steps.STOPPED, "interrupted"))
    except Exception as error:  # what was found until then is worth sending
        report.fail(error)
    try:
        path, shown = report.write()
    except Exception as error:
        print(f"scripts/amd-report: the archive could not be written: {error}", file=sys.stderr)
        return 4
    print(
        f"\n{shown}\nThe archive: {path}\n"
        "Please send it with a new issue on the project's tracker: docs/amd.md says how it is used."
    )
    return report.exit_status()


if __name__ == "__main__":
    sys.exit(main())
