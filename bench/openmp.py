"""Do two users of OpenMP's threads in one process slow each other? PyTorch's operators, with a call of ours in between.

    python bench/openmp.py [--threads 2] [--rounds 40] [--calls 10] [--first torch,fuseline] [--json FILE]

What is timed is an operator of PyTorch's alone: `mul` of 2^22 elements and `mm` of 512 x 512, in float32, into memory
that is there. Before each call of it stands, by turns from round to round,

    nothing      the same operator just before
    silu         torch.nn.functional.silu of 2^22 elements, which leaves the caches as ours does
    fuseline     fuseline.swish of the same tensors

and the figure that matters is "fuseline" by "silu". All of it in one process for each library that may come first, and
with the waiting of threads (OMP_WAIT_POLICY, GOMP_SPINCOUNT) as the environment has it.
"""

import argparse
import json
import multiprocessing
import os
import re
import statistics
import sys
import time

ELEMENTS = 1 << 22
SIDE = 512
RUNTIMES = r"lib(?:gomp|iomp5|omp)(?:-[0-9a-f]+)?\.so"


def runtimes():
    """The names of the OpenMP runtimes that this process has loaded; None where the system does not tell."""
    try:
        with open("/proc/self/maps") as file:
            names = {line.rstrip().rpartition("/")[2] for line in file}
    except OSError:
        return None
    return sorted(name for name in names if re.match(RUNTIMES, name))


def timed_ways(torch, fuseline):
    """({operator: its call}, {what stands before it: a call, or None for the operator itself})."""
    x, y, product = torch.randn(ELEMENTS), torch.empty(ELEMENTS), torch.empty(ELEMENTS)
    a, b, c = (torch.randn(SIDE, SIDE) for _ in range(3))
    operators = {
        f"mul of {ELEMENTS}": lambda: torch.mul(x, x, out=product),
        f"mm of {SIDE} x {SIDE}": lambda: torch.mm(a, b, out=c),
    }
    before = {
        "nothing": None,
        "silu": lambda: torch.ops.aten.silu.out(x, out=y),
        "fuseline": lambda: fuseline.swish(x, out=y),
    }
    return operators, before


def time_calls(call, before, count):
    """Microseconds of each of `count` calls, without what stands before it."""
    found = []
    for _ in range(count):
        before()
        start = time.perf_counter()
        call()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def measure(first, threads, rounds, count):
    """In a process of its own: its environment, and a record for each operator and what stands before it."""
    if first == "torch":
        import torch

        torch.ones(ELEMENTS).mul_(2)
    import numpy

    import fuseline

    fuseline.swish(numpy.ones(ELEMENTS, numpy.float32))
    import torch

    from fuseline.bench import _machine

    torch.set_num_threads(threads)
    environment = _machine.Machine(torch, "cpu", fuseline.__version__).environment
    records = []
    operators, ways = timed_ways(torch, fuseline)
    for operator, call in operators.items():
        times = {name: [] for name in ways}
        for index in range(rounds + 2):
            for turn in range(len(ways)):
                name = list(ways)[(turn + index) % len(ways)]
                found = time_calls(call, ways[name] or call, count)
                times[name] += found if index >= 2 else []  # the first two warm up
        medians = {name: statistics.median(values) for name, values in times.items()}
        least = {name: min(values) for name, values in times.items()}
        for name in ways:
            records.append(
                {
                    "first": first,
                    "op": operator,
                    "before": name,
                    "us": medians[name],
                    "us_least": least[name],
                    "of_silu": medians[name] / medians["silu"],
                    "of_silu_least": least[name] / least["silu"],
                    "threads": threads,
                    "calls": len(times[name]),
                    "runtimes": runtimes(),
                }
            )
    return environment, records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=10, help="calls in a round")
    parser.add_argument("--first", default="torch,fuseline", help="which library comes first, one process for each")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    environment, records = {}, []
    for first in options.first.split(","):
        print(f"{first} first ...", file=sys.stderr, flush=True)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(measure, (first, options.threads, options.rounds, options.calls))
        environment = environment or found[0]
        records += found[1]
        print(f"{first} first, {options.threads} threads, {' and '.join(found[1][0]['runtimes'] or ['?'])}")
        for record in found[1]:
            what = f"{record['op']} after {record['before']}"
            print(
                f"    {what:32} {record['us']:7.1f} us, least {record['us_least']:7.1f};"
                f"   {record['of_silu']:.2f}, {record['of_silu_least']:.2f} of that after silu"
            )
    if options.json:
        waiting = {name: os.environ.get(name) for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        with open(options.json, "w") as file:
            json.dump({**environment, **waiting, "cases": records}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
