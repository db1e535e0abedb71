"""What the gated units share."""

from .. import _errors
from .._kernels import Boolean


def check_interleaved(interleaved, up):
    """Raises if two arrays are said to alternate in one."""
    if up is not None and interleaved is not False and isinstance(interleaved, Boolean) and interleaved:
        raise _errors.ArgumentError(
            "interleaved: is True, but up is given; accepted: False for two arrays, whose bias is gate's, then up's"
        )
