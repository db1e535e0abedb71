"""Each operator against the expression in PyTorch's own functions that it stands for: time, and bytes that must move.

    python bench/eager.py [--preset feed-forward] [--operators swiglu,gelu] [--device cpu|cuda] [--shape 8192x14336]
                          [--dtype bfloat16] [--rounds 21] [--json FILE]

The shape is the result's; an operator's packed input is twice as wide. Measured are the forward pass, and forward and
backward with a gradient of the result in memory. All variants of a case run in one process, in rounds, in an order that
changes from round to round; the figure is the median. On a GPU the time is taken between two events on the stream, on
the CPU by the clock.

Bytes are counted in passes over the result's elements: reading or writing each of them once is one pass. The table
OPERATORS has these counts for both sides, so that a figure far below the copy's speed shows what was left in.
"""

import argparse
import json
import statistics
import sys
import time
from typing import Callable, NamedTuple

import torch
from torch.nn import functional

import fuseline

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


class Operator(NamedTuple):
    """Both expressions, each of the tensors that `widths` makes, and their passes: forward, forward and backward.

    Attributes:
        widths: of each input, in widths of the result; a bias is "bias".
    """

    widths: tuple
    ours: Callable
    eager: Callable
    passes: tuple
    eager_passes: tuple


def eager_packed(packed):
    gate, up = packed.chunk(2, -1)
    return functional.silu(gate) * up


def eager_clamped(packed):
    """As gpt-oss writes it."""
    gate, up = packed[..., ::2], packed[..., 1::2]
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    return (up + 1) * (gate * torch.sigmoid(gate * 1.702))


def ours_clamped(packed):
    return fuseline.swiglu(packed, beta=1.702, limit=7.0, offset=1.0, interleaved=True)


# One input: x in, y out; dy and x in, dx out. Two: gate and up in, y out; dy, gate, up in, dgate, dup out. Eager: two
# for each function of one tensor, three for each of two; its backward the same with the gradient; packed inputs cost a
# concatenation of the two gradients (4), and slices that overlap a zero fill and an addition each (4 and 6 for
# interleaved ones). A bias is added to both halves (4) and its gradient read off them (2; ours too). The gradient of a
# square is taken in three steps: a copy for x^1 (2), times 2 (2), times the gradient (3).
ONE, TWO = (2, 5), (3, 8)
OPERATORS = {
    "swish": Operator((1,), fuseline.swish, functional.silu, ONE, (2, 5)),
    "gelu": Operator((1,), fuseline.gelu, functional.gelu, ONE, (2, 5)),
    "gelu tanh": Operator(
        (1,), lambda x: fuseline.gelu(x, "tanh"), lambda x: functional.gelu(x, approximate="tanh"), ONE, (2, 5)
    ),
    "relu2": Operator((1,), fuseline.relu2, lambda x: functional.relu(x).square(), ONE, (4, 14)),
    "swiglu": Operator((1, 1), fuseline.swiglu, lambda g, u: functional.silu(g) * u, TWO, (5, 14)),
    "swiglu packed": Operator((2,), fuseline.swiglu, eager_packed, TWO, (5, 18)),
    "swiglu packed bias": Operator(
        (2, "bias"),
        lambda packed, bias: fuseline.swiglu(packed, bias=bias),
        lambda packed, bias: eager_packed(packed + bias),
        (3, 10),
        (9, 24),
    ),
    "swiglu clamped": Operator((2,), ours_clamped, eager_clamped, TWO, (16, 55)),
    "geglu": Operator((1, 1), fuseline.geglu, lambda g, u: functional.gelu(g) * u, TWO, (5, 14)),
    "geglu tanh": Operator(
        (1, 1),
        lambda g, u: fuseline.geglu(g, u, approximate="tanh"),
        lambda g, u: functional.gelu(g, approximate="tanh") * u,
        TWO,
        (5, 14),
    ),
    "reglu": Operator((1, 1), fuseline.reglu, lambda g, u: functional.relu(g) * u, TWO, (5, 14)),
}

# The feed-forward layers of models of 8 and 7 thousand million parameters, and what a CPU does in a second.
FEED_FORWARD = {
    "cuda": [("swiglu", (8192, 14336), "bfloat16"), ("swiglu packed", (4096, 11008), "bfloat16")],
    "cpu": [("swiglu", (4096, 11008), "float32"), ("swiglu packed", (4096, 11008), "float32")],
}
SHAPES = {"cuda": (8192, 14336), "cpu": (512, 11008)}


def make_variants(operator, shape, dtype, device):
    """{(side, pass): function}, and a copy of the result's size."""
    generator = torch.Generator().manual_seed(0)

    def make(width):
        extents = (2 * shape[1],) if width == "bias" else (shape[0], width * shape[1])
        return torch.randn(extents, generator=generator).to(device, dtype)

    inputs = [make(width).requires_grad_() for width in operator.widths]
    dy, target = make(1), torch.empty(shape, dtype=dtype, device=device)

    def forward(function):
        with torch.no_grad():
            function(*inputs)

    def both(function):
        torch.autograd.grad(function(*inputs), inputs, dy)

    variants = {"copy": lambda: target.copy_(dy)}
    for side in ("eager", "ours"):
        function = getattr(operator, side)
        variants[side, "forward"] = lambda function=function: forward(function)
        variants[side, "forward and backward"] = lambda function=function: both(function)
    return variants


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


def measure(operator, shape, dtype, device, rounds):
    """Median seconds of one call of each variant."""
    variants = make_variants(operator, shape, dtype, device)
    seconds, calls = (seconds_on_gpu, 5) if device.startswith("cuda") else (seconds_on_cpu, 1)
    for function in variants.values():
        seconds(function, 2)  # first calls load code and fill the allocator
    times = {name: [] for name in variants}
    names = list(variants)
    for index in range(rounds):
        for name in names[index % len(names) :] + names[: index % len(names)]:
            times[name].append(seconds(variants[name], calls))
    return {name: statistics.median(values) for name, values in times.items()}


def run_case(name, shape, dtype, device, rounds):
    """Measures and prints one case; returns its figures: a list of one dict for each pass."""
    operator = OPERATORS[name]
    times = measure(operator, shape, DTYPES[dtype], device, rounds)
    size = shape[0] * shape[1] * DTYPES[dtype].itemsize
    print(f"{name}, {shape[0]} x {shape[1]} {dtype}; copy {2 * size / times['copy'] / 1e9:.0f} GB/s")
    figures = []
    for index, what in enumerate(("forward", "forward and backward")):
        figure = {"operator": name, "shape": shape, "dtype": dtype, "pass": what}
        for side, passes in (("eager", operator.eager_passes), ("ours", operator.passes)):
            seconds, moved = times[side, what], passes[index] * size
            figure[side] = {"us": seconds * 1e6, "bytes": moved, "GB/s": moved / seconds / 1e9}
            print(
                f"    {what:<21} {side:<6} {seconds * 1e6:>10.1f} us {moved / 1e6:>8.0f} MB in {passes[index]:>2} "
                f"passes {moved / seconds / 1e9:>7.0f} GB/s"
            )
        figure["ratio"] = times["eager", what] / times["ours", what]
        print(f"    {'':<21} {'ratio':<6} {figure['ratio']:>10.2f}")
        figures.append(figure)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=["feed-forward"], help="the layers of two models, in place of what follows")
    parser.add_argument("--operators", help=f"names, separated by commas: {', '.join(OPERATORS)}")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", help="of the result: rows x columns, such as 8192x14336")
    parser.add_argument("--dtype", choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    kind = torch.device(options.device).type
    names = options.operators.split(",") if options.operators else list(OPERATORS)
    for name in names:
        if name not in OPERATORS:
            parser.error(f"--operators: {name!r} is none of {', '.join(OPERATORS)}")
    if options.preset:
        cases = FEED_FORWARD[kind]
    else:
        shape = tuple(map(int, options.shape.split("x"))) if options.shape else SHAPES[kind]
        dtype = options.dtype or ("bfloat16" if kind == "cuda" else "float32")
        cases = [(name, shape, dtype) for name in names]
    print(torch.cuda.get_device_name(options.device) if kind == "cuda" else "the CPU", end=", ")
    print(f"PyTorch {torch.__version__}, fuseline {fuseline.__version__}")
    figures = [
        figure
        for name, shape, dtype in cases
        for figure in run_case(name, shape, dtype, options.device, options.rounds)
    ]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
