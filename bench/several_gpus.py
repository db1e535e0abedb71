"""Throughput of all GPUs of a machine at once, against the sum of what each reaches alone: does anything stand between?

    python bench/several_gpus.py [--gpus 0,1] [--op swish,...] [--rounds 3] [--seconds 0.6] [--json FILE]

Each operator, forward and backward, is called on every GPU alone, then on all at once: from one thread per GPU of one
process, and from one process per GPU. The share is the sum of the rates at once by the sum of the rates alone; the
median of the rounds counts, in each of which all of this is done by turns. Tensors are so large that the GPU is what
is measured, and never more than three series of calls are queued.

A rate is the number of calls by the host's clock, from when all are ready until the GPU is done; "by events" is the
same from the GPU's own. At the end, for information: small calls, which the host bounds. Threads of one process share
Python's lock then, so PyTorch's own operator is measured beside.

--cpu N plays N GPUs on the CPU, to try the program itself.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch

import fuseline
from fuseline.bench import _machine

TARGET = 0.97
SHAPE = 8192, 14_336
SMALL = 1 << 12  # elements
EACH = "calls_per_second"  # the figure that each GPU has
LIMIT = 120  # seconds to wait for another process


class Case(NamedTuple):
    """One function on tensors of one shape.

    Attributes:
        inputs: how many tensors the forward takes.
    """

    op: str
    function: object
    inputs: int
    direction: str
    dtype: str
    shape: tuple


OPERATORS = {"swish": 1, "gelu": 1, "swiglu": 2, "geglu": 2}  # how many tensors the forward takes


def cases(names, shape):
    """Every operator of these names, in both directions, in two dtypes."""
    return [
        Case(name, name + ("_backward" if direction == "backward" else ""), OPERATORS[name], direction, dtype, shape)
        for name in names
        for direction in ("forward", "backward")
        for dtype in ("bfloat16", "float32")
    ]


def small_cases():
    return [
        Case("swish", "swish", 1, "forward", "float32", (SMALL,)),
        Case("torch.nn.functional.silu", None, 1, "forward", "float32", (SMALL,)),
        Case("swiglu", "swiglu", 2, "forward", "float32", (SMALL,)),
    ]


class HostEvent:
    """In the place of a GPU's event, on the CPU."""

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return (other.time - self.time) * 1e3


class Work:
    """A case's tensors on one GPU, and its calls there."""

    def __init__(self, case, device):
        self.device = torch.device(device)
        function = torch.nn.functional.silu if case.function is None else getattr(fuseline, case.function)
        count = case.inputs + (case.direction == "backward")
        dtype = getattr(torch, case.dtype)
        with self._current():
            tensors = [torch.randn(case.shape, dtype=dtype, device=self.device) for _ in range(count)]
        self.call = lambda: function(*tensors)
        results = self.call()
        results = results if isinstance(results, tuple) else (results,)
        self.bytes = sum(tensor.numel() * tensor.element_size() for tensor in (*tensors, *results))

    def _current(self):
        return torch.cuda.device(self.device) if self.device.type == "cuda" else contextlib.nullcontext()

    def _event(self, timing=False):
        return torch.cuda.Event(enable_timing=timing) if self.device.type == "cuda" else HostEvent()

    def run(self, calls, series, wait=lambda: None):
        """Calls so often. Returns when it began and ended, by the host's clock, and the seconds between by events.

        Args:
            series: calls after which the host looks whether the GPU has done the series before the last.
            wait: is called when all is ready.
        """
        with self._current():
            first, last = self._event(True), self._event(True)
            marks = []
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            wait()
            began = time.monotonic()
            first.record()
            for number in range(1, calls + 1):
                self.call()
                if number % series == 0:
                    marks.append(self._event())
                    marks[-1].record()
                    if len(marks) > 2:
                        marks.pop(0).synchronize()
            last.record()
            last.synchronize()
            return began, time.monotonic(), first.elapsed_time(last) / 1e3

    def calls_in(self, seconds):
        """(calls that take about so long, calls in a series of them: about 10 ms)."""
        self.run(20, 20)
        began, ended, _ = self.run(50, 50)
        one = (ended - began) / 50
        series = min(max(1, round(0.01 / one)), 300)
        return max(2, round(seconds / one / series)) * series, series


class Processes:
    """One process per GPU, each of which waits for cases and runs them when told to."""

    def __init__(self, devices):
        context = multiprocessing.get_context("spawn")
        barrier = self._barrier = context.Barrier(len(devices))  # kept, since processes find it by its name
        self._pipes, self._processes = [], []
        for device in devices:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(device, there, barrier), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def ask(self, *question):
        """Asks all, and returns their answers."""
        for pipe in self._pipes:
            pipe.send(question)
        answers = []
        for pipe in self._pipes:
            if not pipe.poll(LIMIT):
                raise RuntimeError(f"a process did not answer within {LIMIT} s")
            answer = pipe.recv()
            if isinstance(answer, str):
                raise RuntimeError(f"in a process of its own: {answer}")
            answers.append(answer)
        return answers

    def close(self):
        for pipe in self._pipes:
            pipe.close()  # at which its process ends
        for process in self._processes:
            process.join(20)
            process.kill()


def serve(device, pipe, barrier):
    """What such a process does."""
    work = None
    while True:
        try:
            what, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            if what == "prepare":
                work = None
                release_memory(device)
                work = Work(arguments[0], device)
                work.run(20, 20)
                pipe.send(None)
            else:
                pipe.send(work.run(*arguments, wait=lambda: barrier.wait(LIMIT)))
        except Exception as error:
            barrier.abort()
            pipe.send(repr(error))


def release_memory(device):
    if device != "cpu":
        torch.cuda.empty_cache()


def in_threads(works, calls, series):
    """The runs of all, at once."""
    barrier = threading.Barrier(len(works))
    with ThreadPoolExecutor(len(works)) as pool:
        runs = [pool.submit(work.run, calls, series, lambda: barrier.wait(LIMIT)) for work in works]
        return [run.result() for run in runs]


def rates(runs, calls):
    """Calls per second: (by the host's clock, by events), for each run."""
    return [calls / (ended - began) for began, ended, _ in runs], [calls / seconds for _, _, seconds in runs]


def overlap(runs):
    """The part of the time in which all ran, of that in which any did."""
    begins, ends, _ = zip(*runs)
    return max(0.0, min(ends) - max(begins)) / (max(ends) - min(begins))


def share(alone, at_once, calls):
    """How much of the sum of single runs all reach at once: by the host's clock and by events; and the overlap."""
    by_host, by_events = (sum(a) / sum(b) for a, b in zip(rates(at_once, calls), rates(alone, calls)))
    return {
        "share": by_host,
        "share_by_events": by_events,
        "overlap": overlap(at_once),
        EACH: rates(at_once, calls)[0],
    }


def measure(case, devices, processes, rounds, seconds):
    """The figures of one case, as a dict."""
    works = [Work(case, device) for device in devices]
    calls, series = works[0].calls_in(seconds)
    for work in works[1:]:
        work.run(20, 20)
    processes.ask("prepare", case)
    found = {"threads": [], "processes": []}
    rates_alone = []
    for number in range(rounds):
        order = works if number % 2 == 0 else works[::-1]
        alone = [work.run(calls, series) for work in order]
        rates_alone.append(rates(alone, calls)[0][:: 1 if order is works else -1])
        found["threads"].append(share(alone, in_threads(works, calls, series), calls))
        found["processes"].append(share(alone, processes.ask("run", calls, series), calls))
    figures = {
        "op": case.op,
        "direction": case.direction,
        "dtype": case.dtype,
        "shape": list(case.shape),
        "bytes": works[0].bytes,
        "calls": calls,
        "alone": [statistics.median(of_gpu) for of_gpu in zip(*rates_alone)],
    }
    return {**figures, **{way: median_of(of_rounds) for way, of_rounds in found.items()}}


def median_of(of_rounds):
    """The median of each figure of several rounds; and the shares of all of them."""
    figures = {name: statistics.median(one[name] for one in of_rounds) for name in of_rounds[0] if name != EACH}
    figures[EACH] = [statistics.median(of_gpu) for of_gpu in zip(*(one[EACH] for one in of_rounds))]
    return {**figures, "shares": [one["share"] for one in of_rounds]}


def line(figures):
    """One line of print about a case."""
    title = f"{figures['op']} {figures['direction']} {figures['dtype']} {'x'.join(map(str, figures['shape']))}"
    alone = ", ".join(f"{rate:.0f}" for rate in figures["alone"])
    gigabytes = sum(figures["alone"]) * figures["bytes"] / 1e9
    ways = "".join(
        f"   {way} {figures[way]['share']:.3f} (by events {figures[way]['share_by_events']:.3f},"
        f" together {figures[way]['overlap']:.0%})"
        for way in ("threads", "processes")
    )
    return f"{title:44} alone {alone} calls/s, {gigabytes:.0f} GB/s in sum{ways}"


def summary(found):
    """{way: {"lowest", "mean", "reached"}}."""
    shares = {way: [figures[way]["share"] for figures in found] for way in ("threads", "processes")}
    return {
        way: {"lowest": min(of_way), "mean": statistics.mean(of_way), "reached": min(of_way) >= TARGET}
        for way, of_way in shares.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", help="their numbers, separated by commas (default: all)")
    parser.add_argument("--op", default=",".join(OPERATORS), help="which operators (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=SHAPE[0], help=f"of {SHAPE[1]} columns (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each run (default: %(default)s)")
    parser.add_argument("--cpu", type=int, metavar="N", help="play N GPUs on the CPU, to try this program")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    names = options.op.split(",")
    for name in names:
        if name not in OPERATORS:
            parser.error(f"--op: {name!r} is none of {', '.join(OPERATORS)}")
    if options.cpu is not None:
        devices = ["cpu"] * options.cpu
        os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come
        torch.set_num_threads(1)
    else:
        numbers = options.gpus.split(",") if options.gpus else range(torch.cuda.device_count())
        devices = [f"cuda:{number}" for number in numbers] if torch.cuda.is_available() else []
    head = {
        **_machine.Machine(torch, devices[0] if devices else "cpu", fuseline.__version__).environment,
        "gpus": len(devices),
    }
    if len(devices) < 2:
        print(
            f"PyTorch finds {len(devices)} GPU(s) here; this compares two or more with each alone: nothing is measured"
        )
        write(options.json, {**head, "cases": [], "small": [], "summary": None})
        return 0
    print(f"{len(devices)} x {head['card'] or 'CPU'}; target: {TARGET} of the sum of single runs", flush=True)
    processes = Processes(devices)
    try:
        found, small = [], []
        for case in cases(names, (options.rows, SHAPE[1])):
            found.append(measure(case, devices, processes, options.rounds, options.seconds))
            release_memory(devices[0])
            print(line(found[-1]), flush=True)
        result = summary(found)
        for way, figures in result.items():
            print(
                f"{way}: lowest share {figures['lowest']:.3f}, mean {figures['mean']:.3f}; "
                f"{'reached' if figures['reached'] else 'MISSED'}"
            )
        print("for information, bounded by the host:")
        for case in small_cases():
            small.append(measure(case, devices, processes, options.rounds, options.seconds / 2))
            print(line(small[-1]), flush=True)
    finally:
        processes.close()
    write(options.json, {**head, "target": TARGET, "cases": found, "small": small, "summary": result})
    return 0


def write(file, figures):
    if file:
        with open(file, "w") as opened:
            json.dump(figures, opened, indent=1)
            opened.write("\n")


if __name__ == "__main__":
    sys.exit(main())
