"""reglu(gate, up) = max(gate, 0) * up."""

from .._call import function_of
from .._kernels import KERNELS
from ._gated import check_interleaved, documented

_forward = function_of(KERNELS["reglu_forward"])
_backward = function_of(KERNELS["reglu_backward"])


@documented
def reglu(gate, up=None, *, bias=None, interleaved=False, out=None, dtype=None):
    """Computes ``max(gate, 0) * up`` for each pair of elements, in one pass over memory.

    Source of the formula: Shazeer, "GLU Variants Improve Transformer" (arXiv 2002.05202).

    Args:
        {gate_and_up}
        {more_arguments}

    {result}

    The product is taken in float (float64: in double) and rounded once.

    {layouts}

    Special values: nan gives nan; 0 * inf gives nan, so a gate of 0 or below with an infinite up does. max(-0, 0) is
    -0, as PyTorch's relu has it.

    Raises:
        TypeError: an argument of the wrong type, an element type that is not supported, or dtypes that differ.
        ValueError: a shape that differs, an odd last extent of a packed gate, overlapping memory, a read-only output.
    {errors}
    """
    check_interleaved(interleaved, up)
    return _forward(gate, up, bias, interleaved, out, dtype)


@documented
def reglu_backward(dy, gate, up=None, *, bias=None, interleaved=False, out=None):
    """Computes the gradients of ``reglu`` with respect to gate, up and bias, from the inputs alone.

    That of gate is ``dy * up`` where gate is above 0, else 0; that of up is ``dy * max(gate, 0)``.

    For libraries without automatic differentiation; PyTorch's calls it by itself.

    Args:
        {dy}
        gate, up, bias, interleaved: what was given to ``reglu``.
    {out_and_gradients}

        PyTorch: differentiable once, which is the second derivative, in one pass; with a bias it is composed of
            PyTorch's functions.

    Special values: where gate is 0 or below its gradient is 0, whatever dy and up are; elsewhere as the products say,
    the derivative of max(gate, 0) being 1 at nan too. So PyTorch's relu has it.

    Raises:
        As ``reglu``.
    """
    check_interleaved(interleaved, up)
    return _backward(dy, gate, up, bias, interleaved, out, None)
