"""The table that the tests of the activation family go through: every operator, what it stands for, its forms.

The expressions are what users write with torch.nn.functional. In float64, from which right values come, those that
cancel in their tails are written so that they do not.
"""

import math
from typing import Callable, NamedTuple

import torch
from torch.nn import functional

import fuseline
import reference

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

# (of the operands, of the result), where they differ.
PAIRS = [
    (torch.float16, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.float32, torch.float16),
    (torch.float32, torch.bfloat16),
]


class Operator(NamedTuple):
    """One operator with one set of options.

    Attributes:
        function: the name of fuseline's forward.
        forward, backward: fuseline's functions.
        options: keywords of both.
        eager: the same in torch's own functions, of x, or of gate and up.
        exact: eager, in a form that is accurate in float64, and gives what ours is to give for special values.
        slopes_at_infinity: the gradient of x, or of gate where up is 0.5, at +inf and at -inf.
        has_limits: True if these are the derivative's limits, where eager gives nan.
    """

    name: str
    function: str
    forward: Callable
    backward: Callable
    options: dict
    eager: Callable
    exact: Callable
    slopes_at_infinity: tuple
    has_limits: bool

    def __repr__(self):  # what pytest shows
        return self.name


def _swish(beta):
    return lambda x: x * torch.sigmoid(beta * x)


def _gelu_exact(x):
    return x * torch.erfc(-x / math.sqrt(2)) / 2


def _gelu_tanh_exact(x):
    y = x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return torch.where(x == -math.inf, math.nan, y)  # -inf * 0


def _times_up(activation):
    return lambda gate, up: activation(gate) * up


def gpt_oss(gate, up, alpha, limit):
    """The gated unit of the gpt-oss models, as its authors write it."""
    gate = gate.clamp(min=None, max=limit)
    up = up.clamp(min=-limit, max=limit)
    return (up + 1) * (gate * torch.sigmoid(gate * alpha))


def _of_fuseline(name):
    """fuseline's function of that name at the time of the call: standin.py replaces it while a test runs elsewhere."""
    return lambda *arguments, **keywords: getattr(fuseline, name)(*arguments, **keywords)


def _unary(name, function, options, eager, exact=None, slopes_at_infinity=(1, 0), has_limits=True):
    forward, backward = _of_fuseline(function), _of_fuseline(function + "_backward")
    return Operator(name, function, forward, backward, options, eager, exact or eager, slopes_at_infinity, has_limits)


def _gated(*row, slopes_at_infinity=(0.5, 0), **more):
    return _unary(*row, slopes_at_infinity=slopes_at_infinity, **more)


UNARY = [
    _unary("swish", "swish", {}, functional.silu, _swish(1)),
    _unary("quick gelu", "swish", {"beta": 1.702}, _swish(1.702)),
    _unary("gelu", "gelu", {}, functional.gelu, _gelu_exact),
    _unary(
        "gelu tanh",
        "gelu",
        {"approximate": "tanh"},
        lambda x: functional.gelu(x, approximate="tanh"),
        _gelu_tanh_exact,
    ),
    _unary(
        "relu2",
        "relu2",
        {},
        lambda x: functional.relu(x).square(),
        slopes_at_infinity=(math.inf, 0),
        has_limits=False,
    ),
]

_CLAMPED = {"beta": 1.702, "limit": 1.25, "offset": 1.0}

GATED = [
    _gated("swiglu", "swiglu", {}, _times_up(functional.silu), _times_up(_swish(1))),
    _gated("swiglu beta", "swiglu", {"beta": -0.7}, _times_up(_swish(-0.7)), slopes_at_infinity=(0, 0.5)),
    _gated(
        "swiglu clamped",
        "swiglu",
        _CLAMPED,
        lambda gate, up: gpt_oss(gate, up, 1.702, 1.25),
        slopes_at_infinity=(0, 0),
    ),
    _gated(
        "swiglu offset",
        "swiglu",
        {"offset": -0.5},
        lambda gate, up: functional.silu(gate) * (up - 0.5),
        slopes_at_infinity=(0, 0),
    ),
    _gated("geglu", "geglu", {}, _times_up(functional.gelu), _times_up(_gelu_exact)),
    _gated(
        "geglu tanh",
        "geglu",
        {"approximate": "tanh"},
        _times_up(lambda x: functional.gelu(x, approximate="tanh")),
        _times_up(_gelu_tanh_exact),
    ),
    _gated("reglu", "reglu", {}, _times_up(functional.relu), has_limits=False),
]


# --- forms of gate and up ---

# name -> (from gate and up to the arrays to pass, keywords, from such arrays' gradients to those of gate and up)
FORMS = {
    "two": (lambda gate, up: (gate, up), {}, lambda grads: grads),
    "chunks": (lambda gate, up: torch.cat((gate, up), -1).chunk(2, -1), {}, lambda grads: grads),
    "packed": (lambda gate, up: (torch.cat((gate, up), -1),), {}, lambda grads: grads[0].chunk(2, -1)),
    "interleaved": (
        lambda gate, up: (torch.stack((gate, up), -1).flatten(-2),),
        {"interleaved": True},
        lambda grads: (grads[0][..., ::2], grads[0][..., 1::2]),
    ),
}


def bias_in_form(form, gate_bias, up_bias):
    """A bias's two halves as the form wants them."""
    return FORMS["interleaved" if form == "interleaved" else "packed"][0](gate_bias, up_bias)[0]


def bias_from_form(form, bias):
    return FORMS["interleaved" if form == "interleaved" else "packed"][2]((bias,))


def gated_leaves(form, *shape, dtype=torch.float64, device="cpu", bias=False):
    """Leaves to pass to a gated unit in a form, the bias last, and the function's keywords."""
    gate, up = (values(*shape, seed=seed, dtype=dtype, device=device) for seed in (1, 2))
    to_form, keywords, _ = FORMS[form]
    arrays = [array.detach().clone().requires_grad_() for array in to_form(gate, up)]
    if bias:
        biases = (values(shape[-1], seed=seed, dtype=dtype, device=device) for seed in (3, 4))
        arrays.append(bias_in_form(form, *biases).requires_grad_())
    return arrays, keywords


def call_gated(operator, arrays, keywords, bias=False, **more):
    """A gated unit on what gated_leaves gives."""
    if bias:
        return operator.forward(*arrays[:-1], **keywords, **operator.options, bias=arrays[-1], **more)
    return operator.forward(*arrays, **keywords, **operator.options, **more)


# --- layouts: the same values with other strides ---


def _rows(t):
    """Rows inside of longer ones."""
    buffer = torch.zeros(*t.shape[:-1], t.shape[-1] + 3, dtype=t.dtype, device=t.device)
    return buffer[..., 2:-1].copy_(t)


def _permuted(t):
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def _stepped(t):
    """Every second element along every axis."""
    buffer = torch.zeros([2 * extent for extent in t.shape], dtype=t.dtype, device=t.device)
    return buffer[(slice(None, None, 2),) * t.ndim].copy_(t)


def _misaligned(t):
    """A base one element after a multiple of 16 bytes."""
    buffer = torch.zeros(t.numel() + 1, dtype=t.dtype, device=t.device)
    return buffer[1:].view(t.shape).copy_(t)


LAYOUTS = {
    "contiguous": lambda t: t.contiguous(),
    "rows": _rows,
    "permuted": _permuted,
    "stepped": _stepped,
    "misaligned": _misaligned,
}


# --- values ---


def operator_named(name):
    """The operator of UNARY or GATED that is called so."""
    return next(operator for operator in UNARY + GATED if operator.name == name)


def off_the_limit(operator, *tensors):
    """Values that are not at the operator's clamp limit itself, where rounding decides about the gradient."""
    limit = operator.options.get("limit")
    if limit is None:
        return tensors
    return [torch.where((t.abs() - limit).abs() < 0.02, t * 0.5, t) for t in tensors]


def values(*shape, seed, dtype=torch.float32, device="cpu", scale=2.0):
    """Normal values, which differ at every position, so that a mixed-up index shows."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype).to(device)


def wide(*tensors):
    """float64 copies on the CPU, as leaves."""
    return [tensor.detach().cpu().double().requires_grad_() for tensor in tensors]


def exact_gradients(operator, inputs, dy, biases=None):
    """The result, and the gradients of all inputs and biases, in float64."""
    leaves, biases = wide(*inputs), wide(*(biases or ()))
    sums = [leaf + bias for leaf, bias in zip(leaves, biases)] if biases else leaves
    y = operator.exact(*sums)
    grads = torch.autograd.grad(y, leaves + biases, dy.detach().cpu().double().expand(y.shape))
    return y.detach(), grads


# Relative and absolute errors of one result. The forward's own bounds in units of the last place are in
# test_activation_values.
TOLERANCE = {
    torch.float16: (6e-4, 1e-6),
    torch.bfloat16: (4.5e-3, 1e-6),
    torch.float32: (3e-6, 1e-6),
    torch.float64: (1e-14, 2e-15),
}


def assert_near(result, exact, dtype=None, scale=1.0, what=""):
    """A result is the float64 value, to the accuracy of a dtype: the result's own, or the least of those on the way."""
    rtol, atol = TOLERANCE[dtype or result.dtype]
    assert result.shape == exact.shape, what
    torch.testing.assert_close(
        result.detach().cpu().double(), exact, rtol=rtol * scale, atol=atol * scale, msg=lambda m: f"{what}: {m}"
    )


def ulps(result, exact):
    return reference.ulps(result, exact)
