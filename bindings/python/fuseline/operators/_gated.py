"""What the gated units share: the call, with gate and up in two arrays or in one."""

from .. import _errors
from .._call import call


def call_gated(kernel, inputs, interleaved, scalars, out, dtype=None):
    """Calls a kernel whose leading input holds two arrays in one where its second is None."""
    if interleaved is True and not kernel.is_packed(inputs):
        raise _errors.ArgumentError(
            "interleaved: is True, but up is given; accepted: False for two arrays, whose bias is gate's, then up's"
        )
    return call(kernel, inputs, (interleaved, *scalars), out, dtype)
