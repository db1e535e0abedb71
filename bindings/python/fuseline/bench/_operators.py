"""What is measured and by what: each operator's inputs, streams, calls and rivals."""

import math
from typing import Callable, NamedTuple, Optional

import torch
from torch.nn import functional

import fuseline

from .._call import call, function_of
from .._kernels import KERNELS

# A stage is one pass over memory: how many tensors it reads, and how many it writes.
_UNARY = {
    "forward": ((1, 1),),
    "backward": ((2, 1),),
    "backward_broadcast": ((1, 1),),
    "both": ((1, 1), (2, 1)),
    "step": ((1, 1), (1, 0), (1, 1)),
    "double_backward": ((3, 2),),
}
_GATED = {
    "forward": ((2, 1),),
    "backward": ((3, 2),),
    "backward_broadcast": ((2, 2),),
    "both": ((2, 1), (3, 2)),
    "step": ((2, 1), (1, 0), (2, 2)),
    "double_backward": ((5, 3),),
}
# The gradient of the bias is read off the others.
_BIASED = {"forward": ((2, 1),), "backward": ((3, 2), (2, 0)), "both": ((2, 1), (3, 2), (2, 0))}


class Builtin(NamedTuple):
    """PyTorch's own function for the same, and its forms with ``out``."""

    forward: Callable
    backward: Callable
    forward_out: Callable
    backward_out: Callable


class Operator(NamedTuple):
    """An operator in one form of its inputs.

    Attributes:
        widths: of each input, in widths of the result; a bias, one value per column, is "bias".
        stages: by direction, what has to go through memory. A tensor is one of the result's size.
        forward, backward: fuseline's functions of the inputs, and of dy and the inputs; both take ``out``.
        eager: the expression in PyTorch's functions, of the inputs.
        builtin: a Builtin, or None.
        double_backward: of the gradients of the inputs' gradients, dy and the inputs; or None.
        copies_rows: the input is the first half of each row of a tensor twice as wide, which others copy first.
        liger, aiter: the name of the function of Liger-Kernel, and of AITER, or None.
    """

    widths: tuple
    stages: dict
    forward: Callable
    backward: Optional[Callable]
    eager: Callable
    builtin: Optional[Builtin] = None
    double_backward: Optional[Callable] = None
    copies_rows: bool = False
    liger: Optional[str] = None
    aiter: Optional[str] = None


def _swish(x):
    return x * torch.sigmoid(x)


def _gelu(x):
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


def _gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _relu2(x):
    return functional.relu(x).square()


_aten = torch.ops.aten
_SILU = Builtin(
    functional.silu,
    _aten.silu_backward,
    lambda x, out: _aten.silu.out(x, out=out),
    lambda dy, x, out: _aten.silu_backward.grad_input(dy, x, grad_input=out),
)


def _gelu_builtin(approximate):
    return Builtin(
        lambda x: functional.gelu(x, approximate=approximate),
        lambda dy, x: _aten.gelu_backward(dy, x, approximate=approximate),
        lambda x, out: _aten.gelu.out(x, approximate=approximate, out=out),
        lambda dy, x, out: _aten.gelu_backward.grad_input(dy, x, approximate=approximate, grad_input=out),
    )


def _public(name, *scalars, **keywords):
    """fuseline's function of that name, looked up at each call."""
    return lambda *tensors, **out: getattr(fuseline, name)(*tensors, *scalars, **keywords, **out)


def _second(family, *scalars):
    function = function_of(KERNELS[f"{family}_double_backward"])
    return lambda *tensors: function(*tensors, *scalars, None, None)


def _second_gated(family, interleaved, scalars):
    kernel = KERNELS[f"{family}_double_backward"]

    def second(*tensors):
        if len(tensors) == 3:  # packed: no up, and no gradient of it
            tensors = tensors[0], None, *tensors[1:], None
        return call(kernel, tensors, (interleaved, *scalars), None)

    return second


def _unary(function, eager, builtin, family=None, scalars=(), values=()):
    return Operator(
        (1,),
        _UNARY,
        _public(function, *scalars),
        _public(f"{function}_backward", *scalars),
        eager,
        builtin,
        _second(family or function, *values),
    )


def _halves(activation):
    def eager(packed):
        gate, up = packed.chunk(2, -1)
        return activation(gate) * up

    return eager


def _interleaved(activation):
    return lambda packed: activation(packed[..., ::2]) * packed[..., 1::2]


def _gated(name, function, activation, liger=None, aiter=None, scalars=(), **keywords):
    """The three forms of a gated unit."""
    forward, backward = _public(function, **keywords), _public(f"{function}_backward", **keywords)
    second = _second_gated(name, False, scalars)
    by_turns = {"interleaved": True, **keywords}
    yield name, Operator((1, 1), _GATED, forward, backward, lambda g, u: activation(g) * u, None, second, liger=liger)
    yield f"{name}_packed", Operator((2,), _GATED, forward, backward, _halves(activation), None, second, aiter=aiter)
    yield (
        f"{name}_interleaved",
        Operator(
            (2,),
            _GATED,
            _public(function, **by_turns),
            _public(f"{function}_backward", **by_turns),
            _interleaved(activation),
            None,
            _second_gated(name, True, scalars),
        ),
    )


def _clamped(packed):
    """As gpt-oss writes it."""
    gate, up = packed[..., ::2], packed[..., 1::2]
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    return (up + 1) * (gate * torch.sigmoid(gate * 1.702))


_CLAMP = {"beta": 1.702, "limit": 7.0, "offset": 1.0, "interleaved": True}


def _with_bias(function):
    return lambda *tensors, **out: function(*tensors[:-1], bias=tensors[-1], **out)


OPERATORS = {
    "swish": _unary("swish", _swish, _SILU, values=(1.0,)),
    "swish_strided": Operator(
        (2,),
        {"forward": ((1, 1),)},
        lambda packed, **out: fuseline.swish(packed.chunk(2, -1)[0], **out),
        None,
        lambda packed: _swish(packed.chunk(2, -1)[0]),
        Builtin(lambda packed: functional.silu(packed.chunk(2, -1)[0]), None, None, None),
        copies_rows=True,
    ),
    "gelu": _unary("gelu", _gelu, _gelu_builtin("none")),
    "gelu_tanh": _unary("gelu", _gelu_tanh, _gelu_builtin("tanh"), "gelu_tanh", ("tanh",)),
    "relu2": _unary("relu2", _relu2, None),
    **dict(_gated("swiglu", "swiglu", functional.silu, "LigerSiLUMulFunction", "silu_and_mul", (1.0, math.inf, 0.0))),
    "swiglu_bias": Operator(
        (2, "bias"),
        _BIASED,
        _with_bias(_public("swiglu")),
        _with_bias(_public("swiglu_backward")),
        lambda packed, bias: _halves(functional.silu)(packed + bias),
    ),
    "swiglu_clamped": Operator(
        (2,),
        _GATED,
        _public("swiglu", **_CLAMP),
        _public("swiglu_backward", **_CLAMP),
        _clamped,
        None,
        _second_gated("swiglu", True, (1.702, 7.0, 1.0)),
    ),
    **dict(_gated("geglu", "geglu", functional.gelu, aiter="gelu_and_mul")),
    **dict(
        _gated(
            "geglu_tanh",
            "geglu",
            lambda x: functional.gelu(x, approximate="tanh"),
            "LigerGELUMulFunction",
            "gelu_tanh_and_mul",
            approximate="tanh",
        )
    ),
    **dict(_gated("reglu", "reglu", functional.relu)),
    "column_sum": Operator(
        (1,),
        {"forward": ((1, 0),)},
        _public("column_sum"),
        None,
        lambda x: x.sum(tuple(range(x.dim() - 1))) if x.dim() > 1 else x.clone(),  # no dimension would mean all
    ),
}


def result_shape(case):
    """The shape of what an operator gives."""
    return case.shape[-1:] if case.op == "column_sum" else case.shape


def moved_bytes(case, item_size):
    """The bytes that have to go through memory: each operand read once, each result written once.

    One value that stands for a whole gradient is not counted; a bias and a column sum are.
    """
    operator = OPERATORS[case.op]
    tensors = sum(reads + writes for reads, writes in operator.stages[case.direction])
    columns = case.shape[-1] if case.shape else 1
    count = tensors * case.numel
    if case.op == "column_sum":
        count += columns
    if "bias" in operator.widths:
        # read by each pass, and its gradient written where there is one
        count += 2 * columns * {"forward": 1, "backward": 2, "both": 3}[case.direction]
    return count * item_size
