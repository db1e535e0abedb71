"""Reads what a module computes: its forward is run once, on symbols in place of the module and its input.

What comes out is an expression: elementwise functions of a module's input, or of what its children make of it. Only
code that has this one meaning is run: no branches, no loops, no assignments to anything but local names, nothing
called but PyTorch's functions, Python's arithmetic, and the module's own methods and children. So what is read holds
for every input, and reading has no effects. All else raises Unreadable, with the reason.
"""

import dis
import functools
import inspect
import math
import operator
import types
from typing import Any, NamedTuple

import torch
from torch.nn import functional


class Unreadable(Exception):
    """A forward that is not such an expression. Its text is the reason."""


# --- what can be evaluated ---


def _sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _relu(x):
    return max(x, 0.0)


def _gelu(x, approximate="none"):
    if approximate == "tanh":
        return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return x * math.erfc(-x / math.sqrt(2)) / 2


def _clamp(x, min=None, max=None):
    x = x if min is None or x >= min else min
    return x if max is None or x <= max else max


# PyTorch's elementwise functions on one pair of numbers; evaluating so depends on no device and no mode of PyTorch.
FUNCTIONS = {
    torch.add: operator.add,
    torch.sub: operator.sub,
    torch.mul: operator.mul,
    torch.div: operator.truediv,
    torch.true_divide: operator.truediv,
    torch.neg: operator.neg,
    torch.pow: operator.pow,
    torch.square: lambda x: x * x,
    torch.tanh: math.tanh,
    torch.erf: math.erf,
    torch.sigmoid: _sigmoid,
    torch.relu: _relu,
    functional.relu: _relu,
    functional.silu: lambda x: x * _sigmoid(x),
    functional.gelu: _gelu,
    torch.clamp: _clamp,
    torch.clip: _clamp,
}

# What code may do with a tensor by its methods.
_METHODS = {"add", "sub", "mul", "div", "neg", "pow", "square", "tanh", "erf", "sigmoid", "relu", "clamp", "clip"}

_NUMBERS = (int, float)


# --- symbols ---


class Symbol:
    """A tensor that a forward has in its hands while it is read."""

    def __add__(self, other):
        return _apply(torch.add, self, other)

    def __radd__(self, other):
        return _apply(torch.add, other, self)

    def __sub__(self, other):
        return _apply(torch.sub, self, other)

    def __rsub__(self, other):
        return _apply(torch.sub, other, self)

    def __mul__(self, other):
        return _apply(torch.mul, self, other)

    def __rmul__(self, other):
        return _apply(torch.mul, other, self)

    def __truediv__(self, other):
        return _apply(torch.div, self, other)

    def __pow__(self, other):
        return _apply(torch.pow, self, other)

    def __neg__(self):
        return _apply(torch.neg, self)

    def __getitem__(self, key):
        for which, starts in ((0, (None, 0)), (1, (1,))):
            if any(key == (Ellipsis, slice(start, None, 2)) for start in starts):
                return self._part(which, True)
        raise Unreadable("it takes a part of a tensor that is neither a half nor every second element")

    def chunk(self, chunks, dim=0):
        if chunks != 2 or dim != -1:
            raise Unreadable("it chunks a tensor in another way than into two along the last dimension")
        return self._part(0, False), self._part(1, False)

    def _part(self, which, interleaved):
        # one object for each part, however often it is taken
        parts = vars(self).setdefault("_parts", {})
        return parts.setdefault((which, interleaved), Part(self, which, interleaved))

    def __getattr__(self, name):
        if name not in _METHODS:
            raise Unreadable(f"it uses a tensor's {name}")
        return functools.partial(_apply, getattr(torch, name), self)

    def _unknown(self, *arguments):
        raise Unreadable("it depends on a tensor's values or extents")

    def _in_place(self, other):
        raise Unreadable("it changes a tensor in place")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = _in_place
    __bool__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __eq__ = __contains__ = __format__ = _unknown
    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function in (torch.chunk, torch.Tensor.chunk):
            return arguments[0].chunk(*arguments[1:], **(keywords or {}))
        return _apply(function, *arguments, **(keywords or {}))


class Input(Symbol):
    """What the module is called with."""


class Called(Symbol):
    """What a child makes of a tensor."""

    def __init__(self, child, argument):
        self.child = child
        self.argument = argument


class Part(Symbol):
    """One of the two tensors that a packed one holds along its last dimension: the first or the second."""

    def __init__(self, packed, which, interleaved):
        self.packed = packed
        self.which = which
        self.interleaved = interleaved


class Applied(Symbol):
    """What one of FUNCTIONS makes of tensors and numbers; `in_place` if it is written over the first of them."""

    def __init__(self, function, arguments, keywords, in_place=False):
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.in_place = in_place

    @property
    def operands(self):
        return (*self.arguments, *self.keywords.values())


def _apply(function, *arguments, **keywords):
    in_place = keywords.pop("inplace", False)
    if function not in FUNCTIONS:
        raise Unreadable(f"it calls {getattr(function, '__name__', function)}")
    for value in (*arguments, *keywords.values()):
        if not (value is None or isinstance(value, (str, Symbol, *_NUMBERS))):
            raise Unreadable(f"it calls {function.__name__} on a {type(value).__name__}")
    return Applied(function, arguments, keywords, in_place)


def leaves(expression):
    """The tensors that an expression is an elementwise function of, in the order of their first use."""
    if not isinstance(expression, Applied):
        return [expression] if isinstance(expression, Symbol) else []
    found = {}
    for value in expression.operands:
        found.update(dict.fromkeys(leaves(value)))
    return list(found)


def numbers(expression):
    """The numbers that stand in an expression."""
    if isinstance(expression, _NUMBERS) and not isinstance(expression, bool):
        return {float(expression)}
    if not isinstance(expression, Applied):
        return set()
    return set().union(*[numbers(value) for value in expression.operands])


def is_in_place(expression):
    """Whether an expression overwrites a tensor on the way."""
    return isinstance(expression, Applied) and (
        expression.in_place or any(is_in_place(value) for value in expression.operands)
    )


def evaluate(expression, values):
    """An expression's value where its leaves have these values: a dict."""
    if not isinstance(expression, Symbol):
        return expression
    if expression in values:
        return values[expression]
    arguments = [evaluate(value, values) for value in expression.arguments]
    keywords = {name: evaluate(value, values) for name, value in expression.keywords.items()}
    return FUNCTIONS[expression.function](*arguments, **keywords)


# --- reading ---


class Reading(NamedTuple):
    """What a function computes.

    Attributes:
        input: the symbol of what it was called with.
        result: the expression.
        parameter: the name of its one argument.
        entered: the names of children whose own forward became a part of the expression.
    """

    input: Input
    result: Any
    parameter: str
    entered: tuple


def read(module, function, may_enter=True):
    """What a function of a module's class computes of its one argument. Raises Unreadable.

    may_enter: whether children that have no parameters and can be read become a part of the expression.
    """
    check_code(function)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) != 2 or parameters[1].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise Unreadable("it takes another number of arguments than one tensor")
    stand_in, symbol = _StandIn(module, may_enter), Input()
    try:
        result = function(stand_in, symbol)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"running it on a symbol raised {type(error).__name__}: {error}") from error
    if not isinstance(result, Symbol):
        raise Unreadable(f"it returns a {type(result).__name__}")
    return Reading(input=symbol, result=result, parameter=parameters[1].name, entered=tuple(stand_in._entered))


def forward_of(module):
    """The forward that a module has of its class, before any replacement. Raises Unreadable if it has another one."""
    if "forward" in vars(module):
        raise Unreadable("its forward was set on the module itself, by a hook or another patch")
    return original_class(module).forward


def original_class(module):
    """A module's class before any replacement."""
    return getattr(type(module), "fuseline_original", type(module))


class _StandIn:
    """Stands for a module while its forward is read."""

    def __init__(self, module, may_enter):
        vars(self).update(_module=module, _may_enter=may_enter, _entered={})

    def __getattr__(self, name):
        module = self._module
        if name in module._modules:
            return functools.partial(self._call_child, name)
        value = vars(module).get(name, inspect.getattr_static(type(module), name, None))
        if isinstance(value, types.MethodType) and value.__self__ is module:
            value = value.__func__
        if isinstance(value, types.FunctionType) and not _is_of_torch(value):
            check_code(value)
            return functools.partial(value, self)
        if value is None or isinstance(value, (str, *_NUMBERS)) or _is_of_torch(value):
            return value
        if isinstance(value, functools.partial) and _is_of_torch(value.func):
            return value
        raise Unreadable(f"it uses self.{name}")

    def _call_child(self, name, *arguments, **keywords):
        child = self._module._modules[name]
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], Symbol):
            raise Unreadable(f"it calls {name} on something else than one tensor")
        if self._may_enter and is_bare(child):
            try:
                reading = read(child, forward_of(child), may_enter=False)
            except Unreadable:
                pass
            else:
                self._entered[name] = None
                return _substitute(reading.result, reading.input, arguments[0])
        return Called(name, arguments[0])


def is_bare(module):
    """Whether a module has neither children nor parameters nor buffers."""
    return not (module._modules or module._parameters or module._buffers)


def _substitute(expression, symbol, value):
    if expression is symbol:
        return value
    if not isinstance(expression, Applied):
        return expression
    return Applied(
        expression.function,
        tuple(_substitute(item, symbol, value) for item in expression.arguments),
        {name: _substitute(item, symbol, value) for name, item in expression.keywords.items()},
        expression.in_place,
    )


def _is_of_torch(value):
    """Whether a value is a module or a function of PyTorch's."""
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] == "torch"
    if not callable(value) or isinstance(value, (type, torch.nn.Module)):
        return False
    return (getattr(value, "__module__", None) or "").split(".")[0] == "torch" or value in FUNCTIONS


# --- code ---


_REFUSED = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF", "DELETE", "IMPORT", "YIELD", "MAKE", "RAISE")


@functools.cache
def _problem_of(function):
    """Why a function's code is not one that `read` runs, or None."""
    if not isinstance(function, types.FunctionType):
        return f"it is a {type(function).__name__}, not written in Python"
    code = function.__code__
    if code.co_freevars:
        return "it is wrapped by another function, or calls super()"
    if getattr(code, "co_exceptiontable", b""):
        return "it has with or try"
    for instruction in dis.get_instructions(code):
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            return "it has branches or loops"
        if any(instruction.opname.startswith(name) for name in _REFUSED):
            return "it assigns to something else than local names, or has statements that are more than a formula"
        if instruction.opname == "LOAD_GLOBAL":
            name = instruction.argval
            value = function.__globals__.get(name)
            if not (value is math or isinstance(value, _NUMBERS) or (value is not None and _is_of_torch(value))):
                return f"it uses {name}"
    return None


def check_code(function):
    """Raises Unreadable unless a function's code is one that can be run on symbols."""
    problem = _problem_of(function)
    if problem:
        raise Unreadable(problem)
