"""From a case to its figures: tensors, the ways that are compared, the check that they agree, and the times."""

import contextlib
import functools
import importlib
import math

import torch

from .._call import function_of
from .._kernels import COPIES
from . import _timing
from ._cases import ITEM_SIZES
from ._operators import OPERATORS, moved_bytes, result_shape

RIVALS = {
    "eager": "the expression in PyTorch's functions",
    "builtin": "PyTorch's own function, where there is one",
    "compile": "torch.compile of the expression",
    "liger": "Liger-Kernel, where it is installed",
    "aiter": "AITER, where it is installed",
    "contiguous": "for rows of a larger tensor: copied, then PyTorch's own function",
    "full_gradient": "for a gradient of one value: ours with a dense one",
}

# A rotation goes through several times the cache, in no more sets of tensors than this.
_TIMES_CACHE, _SETS_MOST = 3, 256

# The largest difference between two ways, relative to the largest value, or to 1. Some round 16-bit results often.
_TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10}
_COMPARED_MOST = 1 << 22

_copies = {streams: function_of(kernel) for streams, kernel in COPIES.items()}


class Disagreement(Exception):
    """A rival computes something else."""


class TooLarge(Exception):
    """A case that the memory has no room for."""


class Missing(Exception):
    """A rival that is not there; the message says why."""


class Inapplicable(Exception):
    """There is no such rival of this."""


class Tensors:
    """One set of a case's tensors."""

    def __init__(self, case, device, first=None):
        operator, dtype = OPERATORS[case.op], getattr(torch, case.dtype)
        shape = result_shape(case)

        def make(extents, of):
            tensor = torch.empty(extents, dtype=dtype, device=device)
            return tensor.normal_() if of is None else tensor.copy_(of)

        def extents(width):
            last = case.shape[-1] if case.shape else 1
            return (2 * last,) if width == "bias" else (*case.shape[:-1], width * last)[: max(len(case.shape), 1)]

        old = first.inputs if first else [None] * len(operator.widths)
        self.inputs = [make(extents(width), of) for width, of in zip(operator.widths, old)]
        self.dy, self.ddx = None, []
        if case.direction in ("backward", "both", "double_backward"):
            self.dy = make(shape, first and first.dy)
        if case.direction == "double_backward":
            self.ddx = [make(tensor.shape, of) for tensor, of in zip(self.inputs, first.ddx if first else old)]
        self.dy_of_one = torch.ones((), dtype=dtype, device=device).expand(shape)
        self.out = None
        if case.out:
            like = self.inputs if "backward" in case.direction else [self.dy_of_one]
            made = [torch.empty(tensor.shape, dtype=dtype, device=device) for tensor in like]
            self.out = made[0] if len(made) == 1 else tuple(made)
        self._leaves = None

    @property
    def leaves(self):
        """The inputs, to be differentiated by."""
        if self._leaves is None:
            self._leaves = [tensor.detach().requires_grad_() for tensor in self.inputs]
        return self._leaves

    def gradient(self, case):
        return self.dy_of_one if case.direction == "backward_broadcast" else self.dy

    def copied(self):
        """The same with inputs of its own, for what overwrites them."""
        other = Tensors.__new__(Tensors)
        other.__dict__.update(self.__dict__)
        other.inputs, other._leaves = [tensor.clone() for tensor in self.inputs], None
        return other


# --- the ways: each makes, of one set of tensors, a function without arguments that returns what it computed ---


def _through_autograd(function, case, tensors):
    """A direction by autograd: of the expression, of the compiled one, of fuseline's function where users do it so."""
    inputs, leaves, direction = tensors.inputs, tensors.leaves, case.direction
    if direction == "forward":
        return lambda: function(*inputs)
    if direction == "both":
        return lambda: torch.autograd.grad(function(*leaves), leaves, tensors.dy)
    if direction == "step":

        def step():
            for leaf in leaves:
                leaf.grad = None
            function(*leaves).sum().backward()
            return [leaf.grad for leaf in leaves]

        return step
    if direction in ("backward", "backward_broadcast"):
        result, dy = function(*leaves), tensors.gradient(case)
        return lambda: torch.autograd.grad(result, leaves, dy, retain_graph=True)
    dy = tensors.dy.detach().requires_grad_()
    gradients = torch.autograd.grad(function(*leaves), leaves, dy, create_graph=True)
    return lambda: torch.autograd.grad(gradients, (dy, *leaves), tensors.ddx, retain_graph=True)


def _ours(case, tensors):
    operator, inputs = OPERATORS[case.op], tensors.inputs
    keywords = {"out": tensors.out} if case.out else {}
    if case.direction == "forward":
        return lambda: operator.forward(*inputs, **keywords)
    if case.direction in ("backward", "backward_broadcast"):
        dy = tensors.gradient(case)
        return lambda: operator.backward(dy, *inputs, **keywords)
    if case.direction == "double_backward":
        return lambda: operator.double_backward(*tensors.ddx, tensors.dy, *inputs)
    return _through_autograd(operator.forward, case, tensors)


def _eager(case, tensors):
    return _through_autograd(OPERATORS[case.op].eager, case, tensors)


def _builtin(case, tensors):
    builtin, inputs = OPERATORS[case.op].builtin, tensors.inputs
    if builtin is None:
        raise Inapplicable
    if case.direction == "forward" and case.out and builtin.forward_out:
        return lambda: builtin.forward_out(*inputs, tensors.out)
    if case.direction in ("backward", "backward_broadcast") and builtin.backward:
        dy = tensors.gradient(case)
        if case.out:
            return lambda: builtin.backward_out(dy, *inputs, tensors.out)
        return lambda: builtin.backward(dy, *inputs)
    return _through_autograd(builtin.forward, case, tensors)


@functools.lru_cache(maxsize=1)
def _compiled(case):
    """For one case at a time: no shape is to be generalised, and nothing of an earlier case to be kept."""
    if not hasattr(torch, "compile"):
        raise Missing("this PyTorch has no torch.compile")
    torch.compiler.reset()
    return torch.compile(OPERATORS[case.op].eager, dynamic=False)


def _compile(case, tensors):
    return _through_autograd(_compiled(case), case, tensors)


def _imported(name):
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a package that does not fit this machine raises
        raise Missing(f"{name.split('.')[0]} cannot be imported: {_first_line(error)}") from None


def _liger(case, tensors):
    name = OPERATORS[case.op].liger
    if name is None:
        raise Inapplicable
    if case.direction in ("backward", "backward_broadcast"):
        raise Inapplicable  # it overwrites what it needs, and so runs once
    module = _imported(f"liger_kernel.ops.{'geglu' if 'GELU' in name else 'swiglu'}")
    return _through_autograd(getattr(module, name).apply, case, tensors.copied())


def _aiter(case, tensors):
    name = OPERATORS[case.op].aiter
    if name is None or case.direction != "forward":
        raise Inapplicable
    function = getattr(_imported("aiter"), name)
    result = torch.empty_like(tensors.dy_of_one, memory_format=torch.contiguous_format)
    packed = tensors.inputs[0].view(-1, tensors.inputs[0].shape[-1])

    def call():
        function(result.view(packed.shape[0], -1), packed)
        return result

    return call


def _contiguous(case, tensors):
    operator = OPERATORS[case.op]
    if not operator.copies_rows:
        raise Inapplicable
    activation = OPERATORS[case.op.replace("_strided", "")].builtin.forward
    return lambda: activation(tensors.inputs[0].chunk(2, -1)[0].contiguous())


def _full_gradient(case, tensors):
    if case.direction != "backward_broadcast":
        raise Inapplicable
    dense = tensors.dy_of_one.contiguous()
    return lambda: OPERATORS[case.op].backward(dense, *tensors.inputs)


_WAYS = {
    "eager": _eager,
    "builtin": _builtin,
    "compile": _compile,
    "liger": _liger,
    "aiter": _aiter,
    "contiguous": _contiguous,
    "full_gradient": _full_gradient,
}

# --- the ruler ---


def copy_for(reads, writes):
    """(the streams of the copy that a stage is measured by, what share of its time the stage may take).

    Where there is no copy with as many, it is the one with most like it, at the same bytes a second.
    """
    if (reads, writes) in COPIES:
        return (reads, writes), 1.0
    nearest = (1, 1) if writes == 0 else (3, 2)
    return nearest, (reads + writes) / sum(nearest)


def streams_of(stages):
    """The copies that stages are measured by, each once."""
    return sorted({copy_for(*stage)[0] for stage in stages})


def _copy_sets(streams, case, device, count):
    """Copies of as many bytes as the case's tensors have, as float32: no conversion is part of moving memory.

    They write into memory that is there, or make it, as the case does.
    """
    reads, writes = streams
    elements = max(1, math.ceil(case.numel * ITEM_SIZES[case.dtype] / 4))
    sets = []
    for _ in range(count):
        inputs = [torch.ones(elements, dtype=torch.float32, device=device) for _ in range(reads)]
        out = None
        if case.out:
            outputs = tuple(torch.empty(elements, dtype=torch.float32, device=device) for _ in range(writes))
            out = outputs[0] if writes == 1 else outputs
        sets.append(functools.partial(_copies[streams], *inputs, out, None))
    return sets


# --- one case ---


def _first_line(error):
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}"[:200] if text else type(error).__name__


def _flat(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _compared(tensor):
    """What of a result is compared: all of it, or its first and last elements."""
    flat = tensor.detach().reshape(-1)
    if flat.numel() > _COMPARED_MOST:
        flat = torch.cat((flat[: _COMPARED_MOST // 2], flat[-_COMPARED_MOST // 2 :]))
    return flat.double()


def check_agreement(case, name, ours, theirs):
    """Raises Disagreement where results differ by more than roundings can."""
    ours, theirs = _flat(ours), _flat(theirs)
    tolerance = _TOLERANCES[case.dtype]
    if case.op == "column_sum":
        tolerance *= math.sqrt(max(case.numel // case.shape[-1], 1))  # of the rows
    if len(ours) != len(theirs):
        raise Disagreement(f"{case}: {name} gives {len(theirs)} results, fuseline {len(ours)}")
    for index, (mine, other) in enumerate(zip(ours, theirs)):
        if mine.shape != other.shape:
            raise Disagreement(f"{case}: {name}'s shape is {tuple(other.shape)}, fuseline's {tuple(mine.shape)}")
        mine, other = _compared(mine), _compared(other)
        if mine.numel() == 0:
            continue
        difference = (mine - other).abs()
        allowed = tolerance * max(1.0, mine.abs().max().item())
        if not bool((difference <= allowed).all()):
            at = int(difference.nan_to_num(nan=math.inf).argmax())
            raise Disagreement(
                f"{case}: {name} disagrees with fuseline in result {index}: {other[at].item():.9g}, and here "
                f"{mine[at].item():.9g}, at most {allowed:.2g} apart being accepted"
            )


def _numbers_of_sets(case, machine):
    """(sets of tensors to rotate, True if caches hold none of them). Raises TooLarge."""
    item = ITEM_SIZES[case.dtype]
    operator = OPERATORS[case.op]
    inputs = sum(0 if width == "bias" else width for width in operator.widths)
    gradients = {"backward": 1, "both": 1, "double_backward": 1 + inputs}.get(case.direction, 0)
    outputs = case.out * (1 if case.direction == "forward" else inputs)
    one = max(case.numel * item * (inputs + gradients + outputs), 1)
    wanted = _TIMES_CACHE * machine.cache
    count = 1 if case.is_cached else min(_SETS_MOST, max(1 if one > wanted else 2, math.ceil(wanted / one)))
    # Besides them what the expression keeps and computes, and the copies' own sets.
    free = machine.free_bytes()
    kept = {"forward": 6, "double_backward": 24}.get(case.direction, 12)
    needed = count * (one + 5 * case.numel * item) + kept * case.numel * item
    if free is not None and needed > 0.9 * free:
        raise TooLarge(f"{case}: needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free")
    return count, not case.is_cached and count * one >= 2 * machine.cache


@contextlib.contextmanager
def _graphs_are_kept():
    """While entered, compiled functions can be differentiated more than once."""
    try:
        from torch._functorch import config

        with config.patch(donated_buffer=False):
            yield
    except (ImportError, AttributeError):
        yield


def _current(machine):
    """While entered, the device is the one that streams and events are made on."""
    return torch.cuda.device(machine.device) if machine.is_gpu else contextlib.nullcontext()


@contextlib.contextmanager
def _threads(count):
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(case, machine, effort, on_run=lambda share: None):
    """Measures a case; returns its figures as a dict for JSON.

    Raises:
        Disagreement: a rival computes something else.
        TooLarge: the memory has no room for it.
    """
    with _threads(case.threads), _graphs_are_kept(), _current(machine):
        figures = _run(case, machine, effort, on_run)
    _compiled.cache_clear()
    return figures


def _all_of(times):
    return {"us": times.us, "us_p20": times.p20, "us_p80": times.p80, "us_least": times.least}


def _run(case, machine, effort, on_run):
    device = machine.device
    count, is_uncached = _numbers_of_sets(case, machine)
    first = Tensors(case, device)
    sets = [first, *(Tensors(case, device, first) for _ in range(count - 1))]
    ways = {"fuseline": [_ours(case, tensors) for tensors in sets]}
    right = [result.clone() for result in _flat(ways["fuseline"][0]())]
    missing = {}
    for name in case.against if case.against is not None else RIVALS:
        try:
            made = [_WAYS[name](case, tensors) for tensors in sets]
            theirs = made[0]()
        except Inapplicable:
            continue
        except Missing as error:
            missing[name] = str(error)
        except Exception as error:  # a compiler that is not there, a shape that a kernel does not take
            missing[name] = _first_line(error)
        else:
            check_agreement(case, name, right, theirs)
            ways[name] = made
    rivals = [name for name in ways if name != "fuseline"]
    stages = OPERATORS[case.op].stages[case.direction]
    for streams in streams_of(stages):
        ways[streams] = _copy_sets(streams, case, device, count)
    timer = _timing.EventTimer(torch, device) if machine.is_gpu else _timing.HostTimer()
    times = _timing.measure(ways, timer, effort, on_run)
    moved = moved_bytes(case, ITEM_SIZES[case.dtype])
    ours = times["fuseline"]
    limit = sum(times[streams].us * share for streams, share in map(lambda stage: copy_for(*stage), stages))
    gbps = moved / ours.us / 1e3
    return {
        "op": case.op,
        "direction": case.direction,
        "dtype": case.dtype,
        "shape": list(case.shape),
        "device": device,
        "us": ours.us,
        "us_p20": ours.p20,
        "us_p80": ours.p80,
        "us_least": ours.least,
        "bytes": moved,
        "gbps": gbps,
        "of_copy": limit / ours.us,
        "copy_us": limit,
        "copy_gbps": moved / limit / 1e3,
        "peak_gbps": machine.peak,
        "of_peak": gbps / machine.peak if machine.peak else None,
        "against": {name: times[name].us / ours.us for name in rivals},
        "rivals": {name: _all_of(times[name]) for name in rivals},
        "missing": missing,
        "copies": {"+".join(map(str, streams)): _all_of(times[streams]) for streams in streams_of(stages)},
        "runs": ours.runs,
        "calls_per_run": ours.calls,
        "sets": count,
        "beyond_cache": is_uncached,
        "out": case.out,
        "threads": None if machine.is_gpu else torch.get_num_threads(),
        "timing": timer.name,
        "environment": machine.environment,
    }
