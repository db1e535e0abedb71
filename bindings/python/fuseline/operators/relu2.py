"""relu2(x) = max(x, 0)^2."""

from .._call import function_of
from .._kernels import KERNELS

_forward = function_of(KERNELS["relu2_forward"])
_backward = function_of(KERNELS["relu2_backward"])


def relu2(x, *, out=None, dtype=None):
    """Computes ``max(x, 0)**2`` for each element, in one pass over memory.

    Source of the formula: So, Manke, Liu, Dai, Shazeer, Le, "Primer: Searching for Efficient Transformers for Language
    Modeling" (arXiv 2109.08668).

    Args:
        x: a ``torch.Tensor``, ``numpy.ndarray``, ``jax.Array``, ``cupy.ndarray``, any object with ``__dlpack__``, or a
            DLPack capsule that nobody has used. Any shape, zero elements included. float16, bfloat16, float32 or
            float64; 16-bit types are computed in float and rounded once.
        out: where to put the result: an array of x's library, shape and device. It may be x itself, and must not
            overlap x in another way. Its dtype may differ from x's where one of the two is float32 and the other a
            16-bit type. None makes a new array. Not for ``jax.Array``, which cannot be written to.
        dtype: of the new result, as the library's own object or by name; None for x's. float32 for a 16-bit x, or a
            16-bit type for float32.

    Returns:
        ``out``, or a new array of x's library, shape and device, in x's dimension order where x has one; never x
        itself. For a mere ``__dlpack__`` object or a capsule, on the CPU, a ``fuseline.Tensor``; on a GPU those need
        ``out``.

        PyTorch: differentiable twice with respect to x; only x is kept for it. The work is queued on the current stream
        of x's device. JAX: concrete arrays only, outside ``jit``, ``grad`` and ``vmap``. NumPy: always an array, for
        0-dim x too.

    Strides are read and written in place for dense arrays in any dimension order, for rows with a contiguous last
    dimension, and for broadcast values; others are copied first.

    Special values: nan gives nan, +inf gives +inf; -inf and zeros of either sign give +0.

    Raises:
        TypeError: an argument of the wrong type, or an element type that is not supported.
        ValueError: a shape that differs, overlapping memory, a read-only output.
        BufferError: an array that its library does not let out.
        fuseline.DeviceError: a device that is not supported, or two devices. It is both a NotImplementedError and a
            BufferError.
        RuntimeError: an error of the GPU's runtime; or ``out`` with tensors that require a gradient.

    All of fuseline's own exceptions are also ``fuseline.Error``.
    """
    return _forward(x, out, dtype)


def relu2_backward(dy, x, *, out=None):
    """Computes the gradient of ``relu2`` with respect to x: ``dy * 2 * max(x, 0)``.

    For libraries without automatic differentiation; PyTorch's calls it by itself.

    Args:
        dy: the gradient of the result, an array of x's library, shape and device, and of the result's dtype. May be
            broadcast (stride 0), which is read in place.
        x: what was given to ``relu2``.
        out: as for ``relu2``, of x's dtype; may be dy or x itself.

    Returns:
        ``out``, or a new array like x.

        PyTorch: differentiable once with respect to dy and x, which is the second derivative; the third raises
        NotImplementedError.

    Special values: nan gives nan; the derivative is +inf at +inf; where x is 0 or below the result is 0, whatever dy
    is.

    Raises:
        As ``relu2``.
    """
    return _backward(dy, x, out, None)
