"""From a call of the user's to the adapter for the arrays that it was given."""

import importlib
import numbers
import sys

from . import _builtin, _errors, _generic
from ._adapter import wrong_object
from ._kernels import Boolean

# type -> adapter, filled as types are met. Frameworks are looked up among the loaded modules, never imported:
# whoever holds an array has loaded its library.
_adapters = {}


# The module's name is also that of the adapter's, with an underscore.
_FRAMEWORKS = {
    "torch": lambda torch: torch.Tensor,
    "numpy": lambda numpy: numpy.ndarray,
    "jax": lambda jax: (jax.Array, jax.core.Tracer),
    "cupy": lambda cupy: cupy.ndarray,
}
_made = {"": _generic.make()}


def _adapter_of(framework):
    """The adapter for a framework that is loaded, by its name."""
    if framework not in _made:
        _made[framework] = importlib.import_module("._" + framework, __package__).make()
    return _made[framework]


def _find(name, array):
    """The adapter for an array's type; remembered. Raises ObjectError for what is no array."""
    chosen = ""
    for framework, types in _FRAMEWORKS.items():
        module = sys.modules.get(framework)
        try:
            if module is not None and isinstance(array, types(module)):
                chosen = framework
                break
        except AttributeError:  # a module that is still being imported has made no arrays yet
            pass
    adapter = _adapter_of(chosen)
    if not chosen:
        adapter.check_kind(name, array)
    _adapters[type(array)] = adapter
    return adapter


# What function_of has made: (kernel, function).
_functions = []


def tell_compiler():
    """Has PyTorch's compiler trace registered operators where these functions are called."""
    import torch

    substitute = getattr(torch.compiler, "substitute_in_graph", None)
    if substitute is not None:
        registered = _adapter_of("torch").registered
        for kernel, function in _functions:
            substitute(function, skip_signature_check=True)(registered.traced(kernel))


def function_of(kernel):
    """A function that runs a kernel on arrays of any library that an adapter is for.

    Its arguments, all by position: the kernel's inputs, None for an optional one that is absent; its scalars; ``out``
    and ``dtype``, as ``call`` has them.
    """
    inputs, scalars = len(kernel.inputs), len(kernel.scalars)

    def fallback(*arguments):
        taken = inputs + scalars
        return call(kernel, arguments[:inputs], arguments[inputs:taken], *arguments[taken:])

    function = _builtin.call_function(kernel, fallback)
    _functions.append((kernel, function))
    return function


def call(kernel, inputs, scalars, out, dtype=None):
    """Runs a kernel on arrays of any library that an adapter is for.

    Args:
        inputs: as the kernel has them, None for an optional one that is absent.
        out: where the results go: an array, a tuple of them where there are several, or None for new ones.
        dtype: of new results, if it is not that of the inputs.

    Returns: `out`, or what was made in its place; a tuple where the call has several results.
    """
    lead = inputs[kernel.lead]
    adapter = _adapters.get(type(lead)) or _find(kernel.inputs[kernel.lead].name, lead)
    for scalar, wanted in zip(scalars, kernel.scalars):
        if type(scalar) is not wanted.python_type:
            scalars = _converted(kernel, scalars)
            break
    return adapter.call(kernel, inputs, scalars, out, dtype)


def _converted(kernel, scalars):
    """The scalars in the types that C takes. Tensors are refused, since no gradient would reach them."""
    converted = []
    for wanted, scalar in zip(kernel.scalars, scalars):
        if not isinstance(scalar, wanted.accepted):
            raise wrong_object(wanted.name, scalar, _ACCEPTED[wanted.accepted])
        try:
            converted.append(wanted.python_type(scalar))
        except OverflowError:
            raise _errors.ArgumentError(f"{wanted.name}: is too large for a float") from None
    return tuple(converted)


_ACCEPTED = {numbers.Real: "a real number", Boolean: "True or False"}


def choose(name, value, choices):
    """What a dict has for a string that the user gave; raises a fuseline error that names the argument."""
    if not isinstance(value, str):
        raise wrong_object(name, value, " or ".join(map(repr, choices)))
    if value not in choices:
        raise _errors.ArgumentError(f"{name}: is {value!r}; accepted: {' or '.join(map(repr, choices))}")
    return choices[value]
