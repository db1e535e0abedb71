"""What is measured: cases, and the presets that name groups of them. Imports nothing of PyTorch's."""

from typing import NamedTuple, Optional

DTYPES = ("float16", "bfloat16", "float32", "float64")
DIRECTIONS = {
    "forward": "the result",
    "backward": "the inputs' gradients from a dense one of the result",
    "backward_broadcast": "the same from one value that stands for all, as sum() gives it",
    "both": "forward and backward through autograd, with a dense gradient",
    "step": "forward, sum() and backward() of it, as the tutorial has it",
    "double_backward": "the gradients of the gradient",
}
ITEM_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
LARGEST_SIZE = 30  # the exponent of the last of the sizes that are drawn
LARGEST_SIZE_ON_CPU = 26  # beyond it each takes minutes


class Case(NamedTuple):
    """One thing to measure.

    Attributes:
        op: a name of ``_operators.OPERATORS``.
        direction: one of DIRECTIONS.
        dtype: by name.
        shape: of the result; for column_sum of its input.
        device: "cpu", "cuda" or "cuda:1", as PyTorch has it, which calls ROCm's devices so too.
        out: True for results in memory that is there, where there is a form for that.
        is_cached: True to use the same tensors in each run, so that caches hold them where they fit.
        threads: of the CPU; None for what it is.
        against: names of rivals; None for all.
    """

    op: str
    direction: str
    dtype: str
    shape: tuple
    device: str
    out: bool = False
    is_cached: bool = False
    threads: Optional[int] = None
    against: Optional[tuple] = None

    @property
    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def __str__(self):
        words = [self.op, self.direction, self.dtype, "x".join(map(str, self.shape)), f"on {self.device}"]
        words += ["out="] * self.out + ["in cache"] * self.is_cached
        if self.threads is not None:
            words.append(f"{self.threads} thread{'s' * (self.threads > 1)}")
        return " ".join(words)


def sizes(op, direction, dtype, device, against=None):
    """The same from 2^10 elements to 2^30, in steps of 4."""
    last = min(LARGEST_SIZE, LARGEST_SIZE_ON_CPU) if device == "cpu" else LARGEST_SIZE
    return [Case(op, direction, dtype, (1 << k,), device, against=against) for k in range(10, last + 1, 2)]


def _tutorial(device):
    """On a CPU, for which the tutorial's sizes are minutes, a smaller one."""
    return [
        Case("swish", direction, "float32", (count,), device)
        for count in ((1 << 22,) if device == "cpu" else (50_000_000, 67_108_864))
        for direction in ("forward", "step")
    ]


# Feed-forward layers of models with 8, 7 and 7 thousand million parameters; on a CPU what takes a second.
_LAYERS = {"cuda": [(8192, 14336), (4096, 11008), (4096, 4096)], "cpu": [(512, 11008)]}


def _feed_forward(device):
    kind = device.split(":")[0]
    dtype = "bfloat16" if kind == "cuda" else "float32"
    return [
        Case(op, direction, dtype, shape, device)
        for shape in _LAYERS[kind]
        for op in ("swiglu", "swiglu_packed", "geglu", "geglu_tanh")
        for direction in ("forward", "backward", "both")
    ]


def _sizes(device):
    return [
        case
        for op, direction, dtype in (("swish", "forward", "float32"), ("swish", "forward", "bfloat16"))
        for case in sizes(op, direction, dtype, device)
    ]


def _quick(device):
    """Without torch.compile, which takes longer than all the rest."""
    is_gpu = device.startswith("cuda")
    against = ("eager", "builtin", "full_gradient")
    elements = (1 << (26 if is_gpu else 22),)
    rows = (4096, 11008) if is_gpu else (512, 11008)
    cases = [
        *(("swish", direction, "float32", elements) for direction in ("forward", "backward", "step")),
        ("swish", "backward_broadcast", "float32", elements),
        ("swish", "forward", "bfloat16", elements),
        ("gelu", "forward", "bfloat16", elements),
        ("gelu_tanh", "backward", "bfloat16", elements),
        *((op, direction, "bfloat16", rows) for op in ("swiglu", "swiglu_packed") for direction in ("forward", "both")),
        ("column_sum", "forward", "bfloat16", rows),
    ]
    return [Case(*case, device, against=against) for case in cases]


def _cpu(device):
    """Into memory that is there: in the cache on one thread, and 16M elements on one and two."""
    against = ("eager", "builtin")
    large = [
        Case(op, direction, dtype, (1 << 24,), device, out=True, threads=threads, against=against)
        for threads in (1, 2)
        for op, direction, dtypes in (
            ("swish", "forward", DTYPES),
            ("swish", "backward", DTYPES),
            ("swiglu", "forward", ("float32", "bfloat16")),
            ("geglu", "forward", ("float32", "bfloat16")),
        )
        for dtype in dtypes
    ]
    small = [
        Case("swish", direction, dtype, (1 << 14,), device, out=True, is_cached=True, threads=1, against=against)
        for direction in ("forward", "backward")
        for dtype in DTYPES
    ]
    return small + large


def _gpu(device):
    """torch.compile, which takes seconds a case, for the gated units alone, and there for forward with backward."""
    against = ("eager", "builtin", "full_gradient", "contiguous")
    large, unary = (1 << 26,), ("swish", "gelu", "gelu_tanh", "relu2")
    cases = [("swish", "forward", dtype, (1 << power,)) for dtype in DTYPES for power in (16, 20, 26)]
    cases += [(op, "forward", dtype, large) for op in unary[1:] for dtype in DTYPES]
    cases += [(op, "backward", dtype, large) for op in unary for dtype in DTYPES]
    cases += [("swish", "backward_broadcast", dtype, large) for dtype in DTYPES]
    cases += [("swish", direction, "float32", (50_000_000,)) for direction in ("forward", "step")]
    cases += [("swish_strided", "forward", dtype, (4096, 14336)) for dtype in ("bfloat16", "float32")]
    cases += [("swiglu_interleaved", direction, "bfloat16", (4096, 11008)) for direction in ("forward", "backward")]
    cases += [("column_sum", "forward", dtype, (4096, 11008)) for dtype in ("bfloat16", "float32")]
    gated = [
        (op, direction, "bfloat16", shape)
        for shape in ((8192, 14336), (4096, 22016), (4096, 11008), (4096, 4096))
        for op in ("swiglu", "swiglu_packed", "geglu", "geglu_packed")
        for direction in ("forward", "backward", "both")
    ]
    return [Case(*case, device, against=against) for case in cases] + [
        Case(*case, device, against=None if case[1] == "both" else ("eager", "liger")) for case in gated
    ]


PRESETS = {
    "tutorial": (
        _tutorial,
        "the tutorial's own: 50M and 67.1M float32 elements, forward, and forward + sum + backward",
    ),
    "feed-forward": (_feed_forward, "gated units in the shapes of language models"),
    "sizes": (_sizes, "swish from 2^10 elements to 2^30 (on a CPU 2^26)"),
    "quick": (_quick, "a little of everything, under a minute on a GPU"),
    "gpu": (_gpu, "what a GPU's memory allows, for every kind of call; torch.compile makes it minutes"),
    "cpu": (_cpu, "out= forms on the CPU, in the cache and beyond it, on one thread and two"),
}


def preset(name, device):
    """The cases of a preset on a device. Raises ValueError for the CPU's on another, and for the GPU's on a CPU."""
    if name == "gpu" and device == "cpu":
        raise ValueError(f"--preset: gpu is for GPUs, and --device is {device}")
    if name == "cpu" and device != "cpu":
        raise ValueError(f"--preset: cpu is for the CPU, and --device is {device}")
    return PRESETS[name][0](device)
