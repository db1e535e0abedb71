"""geglu(gate, up) = gelu(gate) * up; exact, or by tanh."""

from .._call import choose, function_of
from .._kernels import KERNELS
from ._gated import check_interleaved, documented

_FORWARD = {"none": function_of(KERNELS["geglu_forward"]), "tanh": function_of(KERNELS["geglu_tanh_forward"])}
_BACKWARD = {"none": function_of(KERNELS["geglu_backward"]), "tanh": function_of(KERNELS["geglu_tanh_backward"])}


@documented
def geglu(gate, up=None, *, approximate="none", bias=None, interleaved=False, out=None, dtype=None):
    """Computes ``gelu(gate) * up`` for each pair of elements, in one pass over memory.

    Source of the formula: Shazeer, "GLU Variants Improve Transformer" (arXiv 2002.05202); ``gelu`` has its own.

    Args:
        {gate_and_up}
        approximate: "none" for the exact GELU, "tanh" for its other form: see ``gelu``.
        {more_arguments}

    {result}

    The product is taken in float (float64: in double) and rounded once.

    {layouts}

    Special values: as the product of ``gelu``'s with up; 0 * inf gives nan.

    Raises:
        TypeError: an argument of the wrong type, an element type that is not supported, or dtypes that differ.
        ValueError: another ``approximate``, a shape that differs, an odd last extent of a packed gate,
            overlapping memory, a read-only output.
    {errors}
    """
    check_interleaved(interleaved, up)
    return choose("approximate", approximate, _FORWARD)(gate, up, bias, interleaved, out, dtype)


@documented
def geglu_backward(dy, gate, up=None, *, approximate="none", bias=None, interleaved=False, out=None):
    """Computes the gradients of ``geglu`` with respect to gate, up and bias, from the inputs alone.

    That of gate is ``dy * up`` times the derivative of ``gelu`` at gate, that of up ``dy * gelu(gate)``.

    For libraries without automatic differentiation; PyTorch's calls it by itself.

    Args:
        {dy}
        gate, up, approximate, bias, interleaved: what was given to ``geglu``.
    {out_and_gradients}

        PyTorch: differentiable once, which is the second derivative, in one pass; with a bias it is composed of the
            activation's own kernels.

    Special values: as the products say, with the derivative's limits at infinite gates, 1 and 0, where PyTorch has nan.

    Raises:
        As ``geglu``.
    """
    check_interleaved(interleaved, up)
    return choose("approximate", approximate, _BACKWARD)(dy, gate, up, bias, interleaved, out, None)
