"""The tutorial's benchmark: forward and backward of Swish in three ways, with the bytes each must move.

    python bench/tutorial.py [--device cpu|cuda] [--elements 50000000,67108864] [--rounds 21] [--json FILE]

Measured is f(x).sum().backward() in float32, as in the tutorial, with x.grad dropped before each call, as zero_grad()
does. All variants run in one process, in rounds, in an order that changes from round to round; the figure is the
median. On a GPU the time is taken between two events on the stream, on the CPU by the clock.

What must be moved is counted in passes over the elements: reading or writing each of them once is one pass. The
gradient of sum() is one value with stride 0, and all three read it in place, which costs nothing.

    x*sigmoid(x)                   forward: sigmoid reads x, writes s                         2
                                   product reads x and s, writes y                            3
                                   sum reads y                                                1
                                   backward of the product: reads s, writes; reads x, writes  4
                                   of sigmoid: reads its gradient and s, writes               3
                                   sum of x's two gradients: reads both, writes               3    16 in all
    F.silu and fuseline.swish      forward reads x, writes y                                  2
                                   sum reads y                                                1
                                   backward reads x, writes                                   2     5 in all

"copy" (reads and writes, 2 passes) shows what the memory can do; caches may beat it at small sizes.
"""

import argparse
import json
import statistics
import sys
import time

import torch

import fuseline

BYTES_PER_ELEMENT = 4
PASSES = {"x*sigmoid(x)": 16, "F.silu": 5, "fuseline.swish": 5, "copy": 2}
SIZES = {"cuda": (50_000_000, 67_108_864), "cpu": (1 << 22,)}  # the tutorial's two; seconds on a CPU


def make_variants(elements, device):
    """One function per variant, each with data of its own: {name: function}."""
    torch.manual_seed(0)
    x = torch.randn(elements, device=device)

    def training(activation):
        leaf = x.clone().requires_grad_()

        def call():
            leaf.grad = None
            activation(leaf).sum().backward()

        return call

    target = torch.empty_like(x)
    return {
        "x*sigmoid(x)": training(lambda x: x * torch.sigmoid(x)),
        "F.silu": training(torch.nn.functional.silu),
        "fuseline.swish": training(fuseline.swish),
        "copy": lambda: target.copy_(x),
    }


def seconds_on_gpu(function, calls):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / calls


def seconds_on_cpu(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def measure(elements, device, rounds):
    """Median seconds of one call of each variant."""
    variants = make_variants(elements, device)
    seconds, calls = (seconds_on_gpu, 5) if device.startswith("cuda") else (seconds_on_cpu, 1)
    for function in variants.values():
        seconds(function, 2)  # first calls load code and fill the allocator
    times = {name: [] for name in variants}
    names = list(variants)
    for index in range(rounds):
        for name in names[index % len(names) :] + names[: index % len(names)]:
            times[name].append(seconds(variants[name], calls))
    return {name: statistics.median(values) for name, values in times.items()}


def report(elements, times):
    print(f"  {elements / 1e6:.1f}M float32 elements, forward + sum + backward")
    print(f"    {'':<16} {'ms':>9} {'MB moved':>10} {'GB/s':>8} {'speed':>7}")
    for name, value in times.items():
        moved = PASSES[name] * BYTES_PER_ELEMENT * elements
        speed = "" if name == "copy" else f"{times['x*sigmoid(x)'] / value:>6.2f}x"
        print(f"    {name:<16} {value * 1e3:>9.3f} {moved / 1e6:>10.0f} {moved / value / 1e9:>8.1f} {speed:>7}")


def run(device, sizes=None, rounds=21):
    """Measures and prints every size; returns {elements: {variant: seconds}}."""
    results = {}
    for elements in sizes or SIZES[torch.device(device).type]:
        results[elements] = measure(elements, device, rounds)
        report(elements, results[elements])
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--elements", help="sizes, separated by commas")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", help="write the medians, in seconds, to this file")
    options = parser.parse_args()
    sizes = [int(size) for size in options.elements.split(",")] if options.elements else None
    print(torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else "the CPU", end=", ")
    print(f"PyTorch {torch.__version__}, fuseline {fuseline.__version__}")
    results = run(options.device, sizes, options.rounds)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
