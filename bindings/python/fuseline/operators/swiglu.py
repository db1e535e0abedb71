"""swiglu(gate, up) = swish(gate; beta) * up, and its clamped form with an offset."""

from math import inf

from .._call import function_of
from .._kernels import KERNELS
from ._gated import check_interleaved

_forward = function_of(KERNELS["swiglu_forward"])
_backward = function_of(KERNELS["swiglu_backward"])


def swiglu(gate, up=None, *, beta=1.0, limit=None, offset=0.0, bias=None, interleaved=False, out=None, dtype=None):
    """Computes ``swish(gate; beta) * up`` for each pair of elements, in one pass over memory.

    In full it is ``g * sigmoid(beta * g) * (u + offset)``, where ``g = min(gate, limit)`` and
    ``u = clamp(up, -limit, limit)``. Sources of the formulas: Shazeer, "GLU Variants Improve Transformer" (arXiv
    2002.05202); the form of the gpt-oss models is ``beta=1.702, limit=7.0, offset=1.0``, interleaved.

    Args:
        gate: a ``torch.Tensor``, ``numpy.ndarray``, ``jax.Array``, ``cupy.ndarray``, any object with ``__dlpack__``, or
            a DLPack capsule that nobody has used. Any shape, zero elements included; with no ``up`` at least one axis,
            the last of an even extent. float16, bfloat16, float32 or float64; 16-bit types are computed in float.
        up: an array of gate's library, shape, dtype and device. None: gate holds both along its last axis, all of gate
            and then all of up, as ``gate, up = packed.chunk(2, -1)`` has them.
        beta: a finite real number within +-1e38.
        limit: what gate is clamped to from above, and up from both sides: a positive real number, 2**-149 (float32's
            least) or more; None for no clamp. Beyond float32's range it clamps float64 alone.
        offset: what is added to up, after the clamp: a finite real number. No gradient is computed for these three
            numbers, so tensors are refused.
        bias: what is added to each row of gate and up before anything else: an array of one dimension, of gate's
            library, dtype and device, with an element for each column of gate, then for each of up; packed as gate
            where gate holds both. None adds nothing.
        interleaved: True if a packed gate alternates: gate, up, gate, up, along its last axis. Only where up is None.
        out: where to put the result: an array of gate's library and device and of the result's shape. It may be
            gate or up, or the half of a packed one, and must not overlap them in another way. Its dtype may differ from
            gate's where one of the two is float32 and the other a 16-bit type. None makes a new array. Not for
            ``jax.Array``, which cannot be written to.
        dtype: of the new result, as the library's own object or by name; None for gate's. float32 for 16-bit inputs, or
            a 16-bit type for float32.

    Returns:
        ``out``, or a new array of gate's library and device, in gate's dimension order where gate has one: of gate's
        shape, or half the last extent for a packed gate. For a mere ``__dlpack__`` object or a capsule, on the CPU, a
        ``fuseline.Tensor``; on a GPU those need ``out``.

        PyTorch: differentiable twice with respect to gate, up and bias. Only these are kept for it; a packed gate gets
        one packed gradient, without a copy. The work is queued on the current stream of gate's device. JAX: concrete
        arrays only, outside ``jit``, ``grad`` and ``vmap``.

    The product is taken in float (float64: in double) and rounded once, where the eager expression rounds
    ``swish(gate)`` to 16 bits before it.

    Strides are read and written in place for dense arrays in any dimension order that all share, for rows with a
    contiguous last dimension (what ``chunk(2, -1)`` gives), and for broadcast values; others are copied first.

    Special values: as the product of ``swish``'s with up; 0 * inf gives nan. nan passes the clamp.

    Raises:
        TypeError: an argument of the wrong type, an element type that is not supported, or dtypes that differ.
        ValueError: a shape that differs, an odd last extent of a packed gate, overlapping memory, a read-only output, a
            number out of range.
        BufferError: an array that its library does not let out.
        fuseline.DeviceError: a device that is not supported, or two devices. It is both a NotImplementedError and a
            BufferError.
        RuntimeError: an error of the GPU's runtime; or ``out`` with tensors that require a gradient.

    All of fuseline's own exceptions are also ``fuseline.Error``.
    """
    check_interleaved(interleaved, up)
    limit = inf if limit is None else limit
    return _forward(gate, up, bias, interleaved, beta, limit, offset, out, dtype)


def swiglu_backward(dy, gate, up=None, *, beta=1.0, limit=None, offset=0.0, bias=None, interleaved=False, out=None):
    """Computes the gradients of ``swiglu`` with respect to gate, up and bias, from the inputs alone.

    With g, u as in ``swiglu`` and ``s = sigmoid(beta * g)``, that of gate is
    ``dy * (u + offset) * s * (1 + beta * g * (1 - s))``, that of up ``dy * g * s``. Each is 0 where the clamp holds its
    argument back; at the bounds themselves it passes, as through ``torch.clamp``. For libraries without automatic
    differentiation; PyTorch's calls it by itself.

    Args:
        dy: the gradient of the result, an array of gate's library and device, and of the result's shape and dtype. May
            be broadcast (stride 0), which is read in place. It is never written to, unless it is ``out``.
        gate, up, beta, limit, offset, bias, interleaved: what was given to ``swiglu``.
        out: where to put the gradients: one array, or a tuple of them, as is returned, of the dtype of what they are
            the gradients of. Those of gate and up may each be gate, up or dy, where these have its shape and dtype.

    Returns:
        The gradients in the form of the inputs: a tuple (of gate, of up); or one packed array for a packed gate. With a
        bias, a tuple whose last item is the bias's gradient: (of gate, of up, of bias), or (of the packed gate, of
        bias). ``out``'s arrays, or new ones.

        The bias's gradient is the sum of the others over all rows, taken from them as they are rounded; it is the same
        at every call.

        PyTorch: differentiable once, which is the second derivative, composed of the activation's own kernels.

    Special values: as the products say, with the derivative's limits at infinite gates, 1 and 0 (for beta > 0), where
    PyTorch has nan. Where a clamp holds gate or up back, or is given nan, the gradient of that one is 0.

    Raises:
        As ``swiglu``.
    """
    check_interleaved(interleaved, up)
    limit = inf if limit is None else limit
    return _backward(dy, gate, up, bias, interleaved, beta, limit, offset, out, None)
