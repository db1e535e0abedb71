"""gelu(x) = x * Phi(x), Phi being the normal distribution function; exact, or by tanh."""

from .._call import choose, function_of
from .._kernels import KERNELS

_FORWARD = {"none": function_of(KERNELS["gelu_forward"]), "tanh": function_of(KERNELS["gelu_tanh_forward"])}
_BACKWARD = {"none": function_of(KERNELS["gelu_backward"]), "tanh": function_of(KERNELS["gelu_tanh_backward"])}


def gelu(x, approximate="none", *, out=None, dtype=None):
    """Computes the GELU of each element, in one pass over memory.

    The formula is ``x * (1 + erf(x / sqrt(2))) / 2``; with ``approximate="tanh"`` it is
    ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``. Source: Hendrycks, Gimpel, "Gaussian Error Linear
    Units" (arXiv 1606.08415). The quick GELU is ``swish`` with ``beta=1.702``.

    Args:
        x: a ``torch.Tensor``, ``numpy.ndarray``, ``jax.Array``, ``cupy.ndarray``, any object with ``__dlpack__``, or a
            DLPack capsule that nobody has used. Any shape, zero elements included. float16, bfloat16, float32 or
            float64; 16-bit types are computed in float and rounded once.
        approximate: "none" for the exact form, "tanh" for the other one, as in ``torch.nn.functional.gelu``.
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

    Special values: nan gives nan, +inf gives +inf, -inf gives nan (the product -inf * 0), a signed zero keeps its sign.

    Raises:
        TypeError: an argument of the wrong type, or an element type that is not supported.
        ValueError: another ``approximate``, a shape that differs, overlapping memory, a read-only output.
        BufferError: an array that its library does not let out.
        fuseline.DeviceError: a device that is not supported, or two devices. It is both a NotImplementedError and a
            BufferError.
        RuntimeError: an error of the GPU's runtime; or ``out`` with tensors that require a gradient.

    All of fuseline's own exceptions are also ``fuseline.Error``.
    """
    return choose("approximate", approximate, _FORWARD)(x, out, dtype)


def gelu_backward(dy, x, approximate="none", *, out=None):
    """Computes the gradient of ``gelu`` with respect to x: dy times the derivative at x.

    For libraries without automatic differentiation; PyTorch's calls it by itself.

    Args:
        dy: the gradient of the result, an array of x's library, shape and device, and of the result's dtype. May be
            broadcast (stride 0), which is read in place.
        x, approximate: what was given to ``gelu``.
        out: as for ``gelu``, of x's dtype; may be dy or x itself.

    Returns:
        ``out``, or a new array like x.

        PyTorch: differentiable once with respect to dy and x, which is the second derivative; the third raises
        NotImplementedError.

    Special values: nan gives nan; the derivative is 1 at +inf and 0 at -inf, its limits.

    Raises:
        As ``gelu``.
    """
    return choose("approximate", approximate, _BACKWARD)(dy, x, out, None)
