"""column_sum(x): the sum of each column over all rows; the gradient of a bias."""

from .._call import function_of
from .._kernels import COLUMN_SUM

_column_sum = function_of(COLUMN_SUM)


def column_sum(x, *, out=None):
    """Sums over all axes but the last: the gradient of a bias that was added to every row, from that of the rows.

    Args:
        x: a ``torch.Tensor``, ``numpy.ndarray``, ``jax.Array``, ``cupy.ndarray``, any object with ``__dlpack__``, or a
            DLPack capsule that nobody has used. At least one axis; extents may be zero. float16, bfloat16, float32 or
            float64.
        out: where to put the result: an array of x's library, dtype and device, of one dimension and x's last extent,
            that does not overlap x. None makes a new array. Not for ``jax.Array``, which cannot be written to.

    Returns:
        ``out``, or a new array of one dimension. Zeros where x has no rows.

        PyTorch: raises NotImplementedError when the result is differentiated; ``x.sum(...)`` can be.

    The sums are taken in a wider or compensated type, in an order that does not depend on the number of threads, and
    rounded once: the same bits at every call on the same device.

    Raises:
        As ``swish``; ValueError for x without an axis.
    """
    return _column_sum(x, out, None)
