"""What the gated units share."""

from .. import _errors


def check_interleaved(interleaved, up):
    """Raises if two arrays are said to alternate in one."""
    if interleaved is True and up is not None:
        raise _errors.ArgumentError(
            "interleaved: is True, but up is given; accepted: False for two arrays, whose bias is gate's, then up's"
        )
