"""From a call of the user's to the adapter for the arrays that it was given."""

import importlib
import numbers
import sys

from . import _errors, _generic
from ._adapter import wrong_object

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
    if chosen not in _made:
        _made[chosen] = importlib.import_module("._" + chosen, __package__).make()
    adapter = _made[chosen]
    if not chosen:
        adapter.check_kind(name, array)
    _adapters[type(array)] = adapter
    return adapter


def call(kernel, inputs, scalars, out):
    """Runs a kernel on arrays of any library that an adapter is for.

    Returns: `out`, or what was made in its place; a tuple where the kernel has several outputs.
    """
    lead = inputs[kernel.like[0]]
    adapter = _adapters.get(type(lead)) or _find(kernel.inputs[kernel.like[0]], lead)
    for scalar in scalars:
        if type(scalar) is not float:
            scalars = _real(kernel, scalars)
            break
    return adapter.call(kernel, inputs, scalars, out)


def _real(kernel, scalars):
    """The scalars as floats. Tensors are refused, since no gradient would reach them."""
    for name, scalar in zip(kernel.scalars, scalars):
        if not isinstance(scalar, numbers.Real):
            raise wrong_object(name, scalar, "a real number")
    try:
        return tuple([float(scalar) for scalar in scalars])
    except OverflowError:
        raise _errors.ArgumentError(f"{' or '.join(kernel.scalars)}: is too large for a float") from None
