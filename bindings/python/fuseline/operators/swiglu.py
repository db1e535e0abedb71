"""swiglu(gate, up) = swish(gate; beta) * up, and its clamped form with an offset."""

from math import inf

from .._call import function_of
from .._kernels import KERNELS
from ._gated import check_interleaved, documented

_forward = function_of(KERNELS["swiglu_forward"])
_backward = function_of(KERNELS["swiglu_backward"])


@documented
def swiglu(gate, up=None, *, beta=1.0, limit=None, offset=0.0, bias=None, interleaved=False, out=None, dtype=None):
    """Computes ``swish(gate; beta) * up`` for each pair of elements, in one pass over memory.

    In full it is ``g * sigmoid(beta * g) * (u + offset)``, where ``g = min(gate, limit)`` and
    ``u = clamp(up, -limit, limit)``. Sources of the formulas: Shazeer, "GLU Variants Improve Transformer" (arXiv
    2002.05202); the form of the gpt-oss models is ``beta=1.702, limit=7.0, offset=1.0``, interleaved.

    Args:
        {gate_and_up}
        beta: a finite real number within +-1e38.
        limit: what gate is clamped to from above, and up from both sides: a positive real number, 2**-149 (float32's
            least) or more; None for no clamp. Beyond float32's range it clamps float64 alone.
        offset: what is added to up, after the clamp: a finite real number. No gradient is computed for these three
            numbers, so tensors are refused.
        {more_arguments}

    {result}

    The product is taken in float (float64: in double) and rounded once, where the eager expression rounds
    ``swish(gate)`` to 16 bits before it.

    {layouts}

    Special values: as the product of ``swish``'s with up; 0 * inf gives nan. nan passes the clamp.

    Raises:
        TypeError: an argument of the wrong type, an element type that is not supported, or dtypes that differ.
        ValueError: a shape that differs, an odd last extent of a packed gate, overlapping memory, a read-only output, a
            number out of range.
    {errors}
    """
    check_interleaved(interleaved, up)
    limit = inf if limit is None else limit
    return _forward(gate, up, bias, interleaved, beta, limit, offset, out, dtype)


@documented
def swiglu_backward(dy, gate, up=None, *, beta=1.0, limit=None, offset=0.0, bias=None, interleaved=False, out=None):
    """Computes the gradients of ``swiglu`` with respect to gate, up and bias, from the inputs alone.

    With g, u as in ``swiglu`` and ``s = sigmoid(beta * g)``, that of gate is
    ``dy * (u + offset) * s * (1 + beta * g * (1 - s))``, that of up ``dy * g * s``. Each is 0 where the clamp holds its
    argument back; at the bounds themselves it passes, as through ``torch.clamp``. For libraries without automatic
    differentiation; PyTorch's calls it by itself.

    Args:
        {dy}
        gate, up, beta, limit, offset, bias, interleaved: what was given to ``swiglu``.
    {out_and_gradients}

        PyTorch: differentiable once, which is the second derivative, in one pass; with a bias it is composed of the
            activation's own kernels.

    Special values: as the products say, with the derivative's limits at infinite gates, 1 and 0 (for beta > 0), where
    PyTorch has nan. Where a clamp holds gate or up back, or is given nan, the gradient of that one is 0.

    Raises:
        As ``swiglu``.
    """
    check_interleaved(interleaved, up)
    limit = inf if limit is None else limit
    return _backward(dy, gate, up, bias, interleaved, beta, limit, offset, out, None)
