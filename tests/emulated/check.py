#!/usr/bin/env python3
"""Runs the AMD code of a built library in an emulator of instructions, through the tests of right values.

    check.py --build FOLDER --tinygrad FOLDER [options]          what "make check-emulated TINYGRAD=FOLDER" calls

The library under test is the one that was built, and loads, chooses and launches its kernels as ever: its runtime is
the stand-in of tests/standin, which hands every launch, with the code object that it picked out of the library's own
bundles, to machine.py. The tests are those of the CPU and of the stand-in, with their bounds: tests/test_*.c, built as
libraries for this process, and the tables in tests/python.

Needs a checkout of tinygrad's repository (its package has no emulator; tried: a9069c177a9d), Python 3.11 or newer,
clang in PATH, which tinygrad compiles instructions with, and the llvm-objdump that scripts/codegen.py looks for. Fails
where a test fails, where a kernel of the library was not run, and where the library has no code for a target.
"""

import argparse
import atexit
import collections
import concurrent.futures
import ctypes
import datetime
import functools
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import machine  # noqa: E402
from machine import codegen  # noqa: E402

TRIED = "a9069c177a9d"
TARGETS = "gfx1100,gfx1151"
C_TESTS = ("column_sum", "copy", "double_backward", "gated", "gated_double_backward", "variants")
THIN = ("variants",)  # takes fewer inputs unless it is told to take all
FIGURES = "65536"  # of how many pairs of inputs errors of gated units are told
PYTHON_TESTS = ("test_activation_forms.py", "test_activation_values.py", "test_layouts.py", "test_values.py")
LOGS = os.path.join("tests", "emulated", "logs")
LIBRARY = os.path.join(".libs", "libfuseline.so")
ENVIRONMENT = "FUSELINE_EMULATED"  # what a worker is told, as JSON
FAULT = 70  # its exit status where the emulator cannot go on; its report is then the reason


# --- in a process that runs tests ---


def operands_most():
    """How many operands a kernel has at most, as lib/arguments.h states it."""
    with open(os.path.join(ROOT, "lib", "arguments.h"), encoding="utf-8") as file:
        inputs, outputs = re.findall(r"^#define FL_(?:INPUTS|OUTPUTS)_MOST +(\d+)$", file.read(), re.MULTILINE)
    return int(inputs) + int(outputs)


class Arguments(ctypes.Structure):
    """What a kernel is given first, before the division and the operator's parameters: lib/arguments.h."""

    _fields_ = (
        ("data", ctypes.c_void_p * operands_most()),
        ("row_stride", ctypes.c_longlong * operands_most()),
        ("column_stride", ctypes.c_int * operands_most()),
        ("rows", ctypes.c_longlong),
        ("columns", ctypes.c_longlong),
        ("plain", ctypes.c_int),
    )


class Division(ctypes.Structure):
    """lib/gpu/walk.h."""

    _fields_ = ("multiplier", ctypes.c_uint32), ("shift", ctypes.c_int)


RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p
)


class Session:
    """What runs launches in this process, and its report."""

    def __init__(self, build, tinygrad, report, watched, trace):
        self._report = report
        with open(watched, "r+b") as file:
            self._watched = mmap.mmap(file.fileno(), machine.WATCHED)
        self._machine = machine.Machine(
            tinygrad, os.path.join(build, "tests/emulated/walk.so"), self._watched, trace and tuple(trace)
        )
        self._standin = ctypes.CDLL(os.path.join(build, "tests/standin/libamdhip64.so"))
        self._run = RUN(self._launch)
        self._reset = ctypes.CDLL(None).signal
        self._reset.argtypes = ctypes.c_int, ctypes.c_void_p
        self._elements = collections.Counter()
        self._count = 0

    @classmethod
    def from_environment(cls):
        return cls(**json.loads(os.environ[ENVIRONMENT]))

    def attach(self):
        """From now on launches are run here."""
        self._standin.standin_run_code_by(self._run)
        atexit.register(self._write)

    def _launch(self, name, code, size, blocks, threads, arguments):
        try:
            # A crash is to end the process, and not a test of it: who watches it says where it was.
            self._reset(signal.SIGSEGV, None)
            self._reset(signal.SIGBUS, None)
            name, code = name.decode(), self._machine.code_object(code, size)
            copy = bytearray(ctypes.string_at(arguments, code.kernels[name].kernarg))
            if not 0 < len(copy) - ctypes.sizeof(Arguments) - ctypes.sizeof(Division) <= 128:  # of parameters
                raise machine.Fault(f"{len(copy)} bytes of arguments: not those of lib/arguments.h")
            seen = Arguments.from_buffer_copy(copy)
            self._elements[name] += seen.rows * seen.columns
            self._count += 1
            if self._count % 3 == 0 and not name.endswith("_vector"):
                # As for indices beyond 32 bits: the kernel divides them itself.
                Division.from_buffer(copy, ctypes.sizeof(Arguments)).shift = -1
            self._machine.launch(name, code, blocks, threads, copy)
        except BaseException as error:  # nothing is above this that could raise it
            text = f"{name}: {error}" if isinstance(error, machine.Fault) else traceback.format_exc()
            with open(self._report, "w", encoding="utf-8") as file:
                file.write(text)
            os._exit(FAULT)

    def _write(self):
        kernels = {}
        for code in self._machine.objects:
            for kernel, (ran, every) in code.coverage().items():
                if kernel in self._machine.launches:
                    kernels[kernel] = {
                        "launches": self._machine.launches[kernel],
                        "elements": self._elements[kernel],
                        "ran": ran,
                        "instructions": every,
                    }
        with open(self._report, "w", encoding="utf-8") as file:
            json.dump(kernels, file)


def run_c_test(build, name):
    """A C test in this process."""
    Session.from_environment().attach()
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)  # by lines, since the process may end by abort
    ctypes.CDLL(os.path.join(build, LIBRARY), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(os.path.join(build, f"tests/emulated/test_{name}.so")).main()


# --- the process that starts them ---


class Failed(Exception):
    pass


class Target:
    """All tests on one target."""

    def __init__(self, options, name, folder):
        self._options, self.name, self._folder = options, name, folder
        self.kernels = {}
        self._ran = collections.defaultdict(set)
        self.figures = collections.defaultdict(float)

    def say(self, text):
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {self.name} {text}\n")
        sys.stdout.flush()

    def run(self):
        """Runs the tests one after the other. Returns the number that failed."""
        return sum(not self._one(name) for name in self._options.only)

    def _one(self, name):
        base = os.path.join(self._folder, f"{self.name}-{name}")
        log, report, watched = base + ".log", base + ".json", base + ".state"
        with open(watched, "wb") as file:
            file.write(bytes(machine.WATCHED))
        build = os.path.abspath(self._options.build)
        trace = self._options.trace
        told = {
            "build": build,
            "tinygrad": os.path.abspath(self._options.tinygrad),
            "report": report,
            "watched": watched,
            "trace": trace,
        }
        environment = {
            **os.environ,
            ENVIRONMENT: json.dumps(told),
            "FUSELINE_TEST_TARGETS": self.name + ",none,gfx803",
            "FUSELINE_STANDIN": os.path.join(build, "tests/standin"),
            "FUSELINE_LIBRARY": os.path.join(build, LIBRARY),
            "builddir": build,
            "CPU_COUNT": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                [HERE, os.path.join(ROOT, "bindings/python"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        if self._options.thin or (name in THIN and not self._options.whole):
            environment["FUSELINE_TEST_THIN"] = "1"
        else:
            environment.pop("FUSELINE_TEST_THIN", None)
        if name == "python":
            tests = [os.path.join(ROOT, "tests/python", file) for file in PYTHON_TESTS]
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "plugin",
                "-q",
                "-x",
                "-k",
                f"{self.name} and dlpack",
                *tests,
            ]
        else:
            environment["CMOCKA_TEST_ABORT"] = "1"  # at the first failure: the last kernel is then the one to look at
            environment["FUSELINE_TEST_FIGURES"] = "1" if self._options.whole else FIGURES
            command = [sys.executable, __file__, "--build", build, "--worker", name]
        begin = time.monotonic()
        self.say(f"{name}: begins")
        with open(log, "wb") as file:
            code = subprocess.run(
                command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=self._folder
            ).returncode
        took = time.monotonic() - begin
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if code != 0:
            self._explain(name, code, text, log, watched, report)
            return False
        with open(report, encoding="utf-8") as file:
            kernels = json.load(file)
        self._add(kernels, text)
        launches, elements = (sum(kernel[what] for kernel in kernels.values()) for what in ("launches", "elements"))
        self.say(f"{name}: passed, {len(kernels)} kernels, {launches} launches, {elements} elements, {took:.0f} s")
        return True

    def _explain(self, name, code, text, log, watched, report):
        """What a test that failed leaves to know."""
        with open(watched, "rb") as file:
            kernel, count, place = machine.last_launch(file.read())
        self.say(f"{name}: FAILED (exit status {code}); its output ends, all of it being in {log}:")
        print("\n".join(text.splitlines()[-30:]))
        if code == FAULT:
            with open(report, encoding="utf-8") as file:
                print(file.read())
        if kernel:
            print(f"The last kernel was {kernel}, launch {count}.")
            print(f"What its instructions did: --targets {self.name} --only {name} --trace {kernel}@{count}")
        if place is not None and code < 0:
            print(f"It ended by signal {-code} at this instruction:")
            for code_object in code_objects(self._options.build, self.name):
                if kernel in code_object.kernels:
                    print(code_object.around(code_object.base + place))

    def _add(self, kernels, text):
        for name, found in kernels.items():
            kept = self.kernels.setdefault(name, collections.Counter())
            kept["launches"] += found["launches"]
            kept["elements"] += found["elements"]
            kept["instructions"] = found["instructions"]
            self._ran[name].update(found["ran"])
            kept["ran"] = len(self._ran[name])
        for what, dtype, units in figures(text):
            self.figures[what, dtype] = max(self.figures[what, dtype], units)

    def missing(self):
        """The kernels of the library that did not run."""
        every = {name for code in code_objects(self._options.build, self.name) for name in code.kernels}
        return sorted(every - set(self.kernels))


@functools.cache
def code_objects(build, target):
    return [
        machine.CodeObject(code)
        for name, code in codegen.code_objects([os.path.join(build, LIBRARY)])
        if name == target
    ]


DEVICE = "a device with waves of 32 lanes "
UNARY = re.compile(r"^# (forward|backward) (\w+) (\w+) beta \S+: ([\d.e+-]+|inf|nan) ulp", re.MULTILINE)
GATED = re.compile(r"^# (\w+) (\w+) beta \S+ limit \S+ offset \S+: y (\S+), dgate (\S+), dup (\S+) ulp", re.MULTILINE)
SECOND = re.compile(r"^# (ddy|dx) (\w+) (\w+) beta (\S+): worst (\S+) ", re.MULTILINE)
SUM = re.compile(r"^# column_sum (\w+): (\S+) ulp", re.MULTILINE)
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def figures(text):
    """The errors that the C tests print: (what, dtype, units in the last place)."""
    text = text.replace(DEVICE, "")
    for way, name, dtype, units in UNARY.findall(text):
        yield f"{name}_{way}", dtype, float(units)
    for name, dtype, y, dgate, dup in GATED.findall(text):
        yield f"{name}_forward", dtype, float(y)
        yield f"{name}_backward, dgate", dtype, float(dgate)
        yield f"{name}_backward, dup", dtype, float(dup)
    for _, name, dtype, beta, worst in SECOND.findall(text):
        if name != "relu2" and abs(float(beta)) < 2:  # relu2's second derivatives have no bound
            yield f"{name}_double_backward", dtype, float(worst) * 2.0 ** (DIGITS[dtype] - 1)
    for dtype, units in SUM.findall(text):
        yield "column_sum", dtype, float(units)


def family(kernel):
    return codegen.parse_name(kernel)[0]


def record(target):
    """The table of a target, as it stands in docs/amd.md."""
    lines = collections.defaultdict(lambda: collections.Counter())
    for name, kernel in target.kernels.items():
        counter = lines[family(name)]
        counter.update({"kernels": 1, **kernel})
    yield "| kernel | variants | launches | elements | instructions that ran | float16 | bfloat16 | float32 | float64 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name in sorted(lines):
        counts = lines[name]
        what = [found for found, _ in target.figures if found.split(",")[0] == name]
        errors = []
        for dtype in DIGITS:
            found = [target.figures[key, dtype] for key in dict.fromkeys(what) if (key, dtype) in target.figures]
            errors.append(", ".join(f"{units:.3f}" if DIGITS[dtype] < 20 else f"{units:.2f}" for units in found) or "-")
        share = 100 * counts["ran"] / max(1, counts["instructions"])
        cells = [counts["kernels"], counts["launches"], counts["elements"], f"{share:.0f}%", *errors]
        yield f"| `{name}` | " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + " |"


def needs(options):
    """What is wanting, or None."""
    if sys.version_info < (3, 11):
        return "Python 3.11 or newer (PYTHON at configure)"
    if not options.tinygrad:
        return (
            "a checkout of tinygrad's repository, whose test folder has the emulator that its package lacks "
            f"(tried: commit {TRIED}): make check-emulated TINYGRAD=FOLDER"
        )
    if not os.path.exists(os.path.join(options.tinygrad, "test/mockgpu/amd/emu.py")):
        return f"tinygrad's repository (tried: commit {TRIED}); {options.tinygrad} has no test/mockgpu/amd/emu.py"
    if shutil.which("clang") is None:
        return "clang in PATH, for tinygrad"
    has = {name for name, _ in codegen.code_objects([os.path.join(options.build, LIBRARY)])}
    lacks = [target for target in options.targets if target not in has]
    if lacks:
        return (
            f"code for {', '.join(lacks)} in {os.path.join(options.build, LIBRARY)}, which has it for "
            f"{', '.join(codegen.in_order(has))}: configure --with-hip-targets={TARGETS}"
        )
    return None


def commit_of(folder):
    try:
        command = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def parse(arguments):
    parser = argparse.ArgumentParser(description="Runs AMD code in an emulator of instructions.")
    parser.add_argument("--build", required=True, help="the folder in which the library was built")
    parser.add_argument("--tinygrad", default="", help="a checkout of tinygrad's repository")
    parser.add_argument("--targets", default=TARGETS, type=lambda text: text.split(","), help=f"default: {TARGETS}")
    parser.add_argument(
        "--only", default=[*C_TESTS, "python"], type=lambda text: text.split(","), help="some of the tests"
    )
    parser.add_argument("--thin", action="store_true", help="fewer inputs")
    parser.add_argument("--whole", action="store_true", help="as many inputs as on the CPU, which takes hours")
    parser.add_argument("--trace", help="KERNEL@N: shows what each instruction does in the N-th launch of a kernel")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.trace:
        kernel, _, count = options.trace.partition("@")
        options.trace = kernel, int(count or 1)
    return options


def main(arguments=None):
    options = parse(arguments)
    if options.worker:
        return run_c_test(options.build, options.worker)
    want = needs(options)
    if want:
        print(f"check-emulated needs {want}", file=sys.stderr)
        return 2
    folder = os.path.join(os.path.abspath(options.build), LOGS)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    targets = [Target(options, name, folder) for name in options.targets]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        failed = sum(pool.map(Target.run, targets))
    whole = set(options.only) >= {*C_TESTS, "python"}
    print(f"\n{datetime.date.today()}, fuseline {commit_of(ROOT)}, tinygrad {commit_of(options.tinygrad)}")
    for target in targets:
        total = collections.Counter()
        for kernel in target.kernels.values():
            total.update(kernel)
        counts = f"{len(target.kernels)} kernels, {total['launches']:,} launches, {total['elements']:,} elements"
        print(f"\n{target.name}: {counts}\n")
        print("\n".join(record(target)))
        missing = target.missing()
        if missing and (whole and not failed):
            print(f"\n{target.name}: {len(missing)} kernels were not run: {', '.join(missing)}")
            failed += 1
    print(f"\n{failed} failed" if failed else "\nall passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
