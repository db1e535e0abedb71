"""What the gated units share: a check, and what their docstrings have in common."""

import re

from .. import _errors
from .._kernels import Boolean

# The conventions of all gated units, by the names under which their docstrings ask for them.
_CONVENTIONS = {
    "gate_and_up": """\
gate: a ``torch.Tensor``, ``numpy.ndarray``, ``jax.Array``, ``cupy.ndarray``, any object with ``__dlpack__``, or
    a DLPack capsule that nobody has used. Any shape, zero elements included; with no ``up`` at least one axis,
    the last of an even extent. float16, bfloat16, float32 or float64; 16-bit types are computed in float.
up: an array of gate's library, shape, dtype and device. None: gate holds both along its last axis, all of gate
    and then all of up, as ``gate, up = packed.chunk(2, -1)`` has them.""",
    "more_arguments": """\
bias: what is added to each row of gate and up before anything else: an array of one dimension, of gate's
    library, dtype and device, with an element for each column of gate, then for each of up; packed as gate
    where gate holds both. None adds nothing.
interleaved: True if a packed gate alternates: gate, up, gate, up, along its last axis. Only where up is None.
out: where to put the result: an array of gate's library and device and of the result's shape. It may be
    gate or up, or the half of a packed one, and must not overlap them in another way. Its dtype may differ from
    gate's where one of the two is float32 and the other a 16-bit type. None makes a new array. Not for
    ``jax.Array``, which cannot be written to.
dtype: of the new result, as the library's own object or by name; None for gate's. float32 for 16-bit inputs, or
    a 16-bit type for float32.""",
    "result": """\
Returns:
    ``out``, or a new array of gate's library and device, in gate's dimension order where gate has one: of gate's
    shape, or half the last extent for a packed gate. For a mere ``__dlpack__`` object or a capsule, on the CPU, a
    ``fuseline.Tensor``; on a GPU those need ``out``.

    PyTorch: differentiable twice with respect to gate, up and bias. Only these are kept for it; a packed gate gets
    one packed gradient, without a copy. The work is queued on the current stream of gate's device. JAX: concrete
    arrays only, outside ``jit``, ``grad`` and ``vmap``.""",
    "layouts": """\
Strides are read and written in place for dense arrays in any dimension order that all share, for rows with a
contiguous last dimension (what ``chunk(2, -1)`` gives), and for broadcast values; others are copied first.""",
    "errors": """\
    BufferError: an array that its library does not let out.
    fuseline.DeviceError: a device that is not supported, or two devices. It is both a NotImplementedError and a
        BufferError.
    RuntimeError: an error of the GPU's runtime; or ``out`` with tensors that require a gradient.

All of fuseline's own exceptions are also ``fuseline.Error``.""",
    "dy": """\
dy: the gradient of the result, an array of gate's library and device, and of the result's shape and dtype. May
    be broadcast (stride 0), which is read in place. It is never written to, unless it is ``out``.""",
    "out_and_gradients": """\
    out: where to put the gradients: one array, or a tuple of them, as is returned, of the dtype of what they are
        the gradients of. Those of gate and up may each be gate, up or dy, where these have its shape and dtype.

Returns:
    The gradients in the form of the inputs: a tuple (of gate, of up); or one packed array for a packed gate. With a
    bias, a tuple whose last item is the bias's gradient: (of gate, of up, of bias), or (of the packed gate, of
    bias). ``out``'s arrays, or new ones.

    The bias's gradient is the sum of the others over all rows, taken from them as they are rounded; it is the same
    at every call.""",
}


def documented(function):
    """Puts the conventions into a function's docstring: each in the place of a line that has its name in braces."""
    if function.__doc__ is not None:  # as python -OO leaves none

        def convention(found):
            return "\n".join(found[1] + line if line else "" for line in _CONVENTIONS[found[2]].splitlines())

        function.__doc__ = re.sub(r"^( *)\{(\w+)\}$", convention, function.__doc__, flags=re.MULTILINE)
    return function


def check_interleaved(interleaved, up):
    """Raises if two arrays are said to alternate in one."""
    if up is not None and interleaved is not False and isinstance(interleaved, Boolean) and interleaved:
        raise _errors.ArgumentError(
            "interleaved: is True, but up is given; accepted: False for two arrays, whose bias is gate's, then up's"
        )
