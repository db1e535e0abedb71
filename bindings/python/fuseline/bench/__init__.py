"""``python -m fuseline bench``: each operator measured by a copy of as many tensors, and by its rivals.

Imports PyTorch only when it runs.
"""

import argparse
import itertools
import json
import os
import sys

from . import _cases
from ._cases import DIRECTIONS, DTYPES, PRESETS, Case

_HELP = """\
For each case: bytes moved, the time of a call (median, and where the middle three fifths lie), GB/s, the share of
what a copy kernel reaches that reads and writes as many tensors, that of the memory's theoretical peak where it is
known, and how many times faster this is than each rival. All in one process, by turns, on tensors that no cache holds.
"""


class UsageError(Exception):
    """The options ask for what there is not; the message names the option."""


def add_arguments(parser):
    """Adds the options to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = _HELP
    kinds = "\n".join(f"  {name:20} {text}" for name, text in DIRECTIONS.items())
    presets = "\n".join(f"  {name:20} {text}" for name, (_, text) in PRESETS.items())
    parser.epilog = f"directions:\n{kinds}\n\npresets:\n{presets}\n"
    parser.add_argument("--preset", metavar="NAME", help="a group of cases, in place of --op and what belongs to it")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 ...; ROCm's are called so too (default: the GPU, if any)")
    parser.add_argument("--op", metavar="NAMES", help="operators, separated by commas (default: swish)")
    parser.add_argument("--direction", metavar="NAMES", help="see below (default: forward)")
    parser.add_argument("--dtype", metavar="NAMES", help=f"{', '.join(DTYPES)} (default: float32)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--numel", metavar="COUNTS", help="elements of the result, such as 50000000 or 2^20,2^24")
    size.add_argument("--shape", metavar="SHAPES", help="of the result, such as 8192x14336")
    parser.add_argument("--against", metavar="NAMES", help="rivals, or none (default: all that are there)")
    parser.add_argument("--runs", type=int, default=None, help="timed series of each (default: 50)")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument(
        "--out", action="store_true", help="results in memory that is there, where there is such a form"
    )
    parser.add_argument("--in-cache", action="store_true", help="the same tensors each time")
    parser.add_argument("--json", metavar="FILE", help="write the figures there: a list of cases")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw FILE-roofline.png, and FILE-sizes.png, for which the first case is measured from 2^10 elements on",
    )


def _names(option, text, accepted):
    """The names in a list, each one of those that are accepted."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in accepted:
            raise UsageError(f"{option}: {name!r} is none of {', '.join(accepted)}")
    return names


def _count(option, text):
    base, power, exponent = text.strip().partition("^")
    try:
        value = int(base) ** int(exponent) if power else int(base)
    except (ValueError, OverflowError):
        value = 0
    if not 1 <= value <= 1 << 40 or not isinstance(value, int):
        raise UsageError(f"{option}: {text!r} is no number of elements; accepted: such as 1000 or 2^20")
    return value


def _shapes(options, device):
    if options.numel:
        return [(_count("--numel", text),) for text in options.numel.split(",")]
    if options.shape:
        return [tuple(_count("--shape", extent) for extent in text.split("x")) for text in options.shape.split(",")]
    return [(1 << (26 if device != "cpu" else 22),)]


def _cases_of(options, device, operators, rivals):
    against = options.against
    if against is not None:
        against = () if against == "none" else _names("--against", against, rivals)
    if options.preset:
        _names("--preset", options.preset, tuple(PRESETS))
        for name in ("op", "direction", "dtype", "numel", "shape", "threads"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name}: is given, and --preset {options.preset} has cases of its own")
        try:
            cases = _cases.preset(options.preset, device)
        except ValueError as error:
            raise UsageError(str(error)) from None
    else:
        if options.threads is not None and not 1 <= options.threads <= 1024:
            raise UsageError(f"--threads: is {options.threads}; accepted: 1 to 1024")
        cases = []
        for op, direction, dtype, shape in itertools.product(
            _names("--op", options.op or "swish", tuple(operators)),
            _names("--direction", options.direction or "forward", tuple(DIRECTIONS)),
            _names("--dtype", options.dtype or "float32", DTYPES),
            _shapes(options, device),
        ):
            if direction not in operators[op].stages:
                accepted = ", ".join(operators[op].stages)
                raise UsageError(f"--direction: {op} has no {direction}; accepted: {accepted}")
            if options.out and (direction not in ("forward", "backward", "backward_broadcast")):
                raise UsageError(f"--out: {direction} has no such form")
            if options.out and "bias" in operators[op].widths:
                raise UsageError(f"--out: {op} is not measured so")
            cases.append(Case(op, direction, dtype, shape, device, options.out, options.in_cache, options.threads))
    return cases if against is None else [case._replace(against=against) for case in cases]


def _device(torch, name):
    """The device that is asked for, as PyTorch has it. Raises UsageError."""
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda") or (kind == "cpu" and index) or (":" in name and not index.isdigit()):
        raise UsageError(f"--device: {name!r} is none; accepted: cpu, cuda, cuda:0, cuda:1 ...")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise UsageError(f"--device: {name!r}, but PyTorch finds no GPU; accepted: cpu")
        if int(index or 0) >= torch.cuda.device_count():
            raise UsageError(f"--device: {name!r}, but PyTorch finds {torch.cuda.device_count()} GPUs")
    return name


def _check_files(options):
    if options.json and not os.path.isdir(os.path.dirname(os.path.abspath(options.json))):
        raise UsageError(f"--json: there is no folder for {options.json}")
    if options.plot:
        from . import _plot

        try:
            _plot.check(options.plot)
        except ImportError as error:
            raise UsageError(f"--plot: needs matplotlib, which cannot be imported: {error}") from None
        except ValueError as error:
            raise UsageError(f"--plot: {error}") from None


def run(options):
    """Runs the command on parsed options; returns its exit status. Raises UsageError for options that mean nothing."""
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"bench needs PyTorch, which cannot be imported: {error}") from None
    from .. import __version__
    from . import _machine, _operators, _report, _run, _timing

    device = _device(torch, options.device)
    if options.runs is not None and options.runs < 1:
        raise UsageError(f"--runs: is {options.runs}; accepted: 1 or more")
    cases = _cases_of(options, device, _operators.OPERATORS, tuple(_run.RIVALS))
    _check_files(options)
    swept = _sweep(options, cases)
    machine = _machine.Machine(torch, device, __version__)
    effort = _timing.GPU_EFFORT if machine.is_gpu else _timing.CPU_EFFORT
    if options.runs is not None:
        effort = effort._replace(runs=options.runs)

    print(_report.head(machine.environment, machine.device))
    torch.manual_seed(0)
    progress = _report.Progress(len(cases) + len(swept))
    measured, sweep, failed, missing = [], [], 0, {}
    for kept, case in [*((measured, case) for case in cases), *((sweep, case) for case in swept)]:
        progress.begin(str(case))
        figures, trouble = None, None
        try:
            figures = _run.run(case, machine, effort, progress.within)
        except _run.TooLarge as error:
            trouble = f"skipped: {error}"
        except _run.Disagreement as error:
            failed, trouble = failed + 1, f"error: {error}"
        progress.end()
        if trouble:
            print(f"fuseline bench: {trouble}", file=sys.stderr, flush=True)
            continue
        kept.append(figures)
        missing.update(figures["missing"])
        print("\n".join(_report.lines(case, figures)), flush=True)
        _write(options.json, measured + sweep)
    if not measured:
        print("fuseline bench: error: nothing was measured", file=sys.stderr)
        return 1
    for name in [name for name in missing if not any(name in case["rivals"] for case in measured + sweep)]:
        print(f"not measured: {name} ({missing[name]})")
    if options.plot:
        from . import _plot

        for file in _plot.draw(measured, sweep or measured, options.plot):
            print(f"drawn: {file}")
    return 1 if failed else 0


def _sweep(options, cases):
    """What is measured for the picture of sizes alone: nothing where the cases have many sizes already."""
    if not options.plot or options.preset == "sizes":
        return []
    first = cases[0]
    swept = _cases.sizes(first.op, first.direction, first.dtype, first.device, first.against)
    return [case for case in swept if case not in cases]


def _write(path, figures):
    """After each case, so that what was measured is there whatever happens next."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")
