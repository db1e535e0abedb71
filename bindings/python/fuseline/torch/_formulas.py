"""Which of fuseline's operators an expression is.

That is decided by numbers: the expression and the operators, with the numbers that stand in the expression as their
options, are evaluated in float64 at many points. An expression that is elementwise, made of the few functions that
`_expression` knows, and equal to an operator at all of them is that operator, however it is written.
"""

import math
from typing import NamedTuple

from ._expression import FUNCTIONS, evaluate, functional, numbers, torch

# Apart from rounding (x * (1 + erf(x)) loses digits that the better form keeps) and from constants that were written
# with ten digits, equal means equal; the forms of GELU differ by 1e-4.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-10

_GATES = [0.83 * k - 0.05 for k in range(-25, 26)]
_UPS = (-11.3, -0.6, 0.0, 1.7)

_sigmoid, _clamp = FUNCTIONS[torch.sigmoid], FUNCTIONS[torch.clamp]
_gelu, _relu = FUNCTIONS[functional.gelu], FUNCTIONS[torch.relu]


class Operation(NamedTuple):
    """One of fuseline's functions, with its options as a tuple of (name, value)."""

    function: str
    options: tuple = ()

    def describe(self, *arguments):
        return f"{self.function}({', '.join([*arguments, *[f'{name}={value!r}' for name, value in self.options]])})"


def _swish(x, beta=1.0):
    return x * _sigmoid(beta * x)


def _relu2(x):
    return _relu(x) ** 2


def _swiglu(gate, up, beta=1.0, limit=None, offset=0.0):
    if limit is not None:
        gate, up = _clamp(gate, max=limit), _clamp(up, -limit, limit)
    return _swish(gate, beta) * (up + offset)


def find_unary(expression, symbol):
    """The operation that an expression is of one tensor, or None."""
    betas = {1.0, *numbers(expression)}
    candidates = [(Operation("swish", () if beta == 1 else (("beta", beta),)), _with(_swish, beta)) for beta in betas]
    candidates += [
        (Operation("gelu"), _gelu),
        (Operation("gelu", (("approximate", "tanh"),)), lambda x: _gelu(x, "tanh")),
        (Operation("relu2"), _relu2),
    ]
    return _find(expression, (symbol,), [(x,) for x in _GATES], candidates)


def find_gated(expression, gate, up):
    """The operation that an expression is of two tensors, or None."""
    found = numbers(expression)
    candidates = [
        (Operation("geglu"), lambda g, u: _gelu(g) * u),
        (Operation("geglu", (("approximate", "tanh"),)), lambda g, u: _gelu(g, "tanh") * u),
        (Operation("reglu"), lambda g, u: _relu(g) * u),
    ]
    limits = [None, *sorted(value for value in found if value > 0)]
    for beta in sorted({1.0, *found}):
        for limit in limits:
            for offset in sorted({0.0, *found}):
                options = {"beta": beta, "limit": limit, "offset": offset}
                given = tuple((name, options[name]) for name in options if options[name] != _DEFAULTS[name])
                candidates.append((Operation("swiglu", given), _with(_swiglu, beta, limit, offset)))
    # on both sides of every bound that there may be
    edges = sorted({sign * factor * abs(value) for value in found for sign in (-1, 1) for factor in (0.99, 1.01, 2)})
    points = [(g, u) for g in (*_GATES, *edges) for u in (*_UPS, *edges)]
    return _find(expression, (gate, up), points, candidates)


_DEFAULTS = {"beta": 1.0, "limit": None, "offset": 0.0}


def _with(function, *options):
    return lambda *arguments: function(*arguments, *options)


def _find(expression, symbols, points, candidates):
    """The first operation that equals the expression at every point."""
    # Most fail at once, so the points that tell most come first: those in the middle.
    points = sorted(points, key=lambda point: abs(abs(point[0]) - 1.5))
    values = []
    for operation, function in candidates:
        for k, point in enumerate(points):
            if k == len(values):
                values.append(_value(expression, symbols, point))
            if not _are_equal(values[k], _value_of(function, point), point):
                break
        else:
            return operation
    return None


def _value(expression, symbols, point):
    return _value_of(lambda *numbers: evaluate(expression, dict(zip(symbols, numbers))), point)


def _value_of(function, point):
    try:
        value = function(*point)
        return value if isinstance(value, float) else math.nan
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def _are_equal(value, other, point):
    scale = math.prod([1 + abs(number) for number in point])
    return abs(value - other) <= _RELATIVE * max(abs(value), abs(other)) + _ABSOLUTE * scale
