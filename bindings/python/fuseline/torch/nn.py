"""A module per operator, as ``torch.nn`` has them for the built-in ones.

None of them has parameters or buffers, so that they add no key to a state_dict; their numbers are plain attributes.
Shapes, dtypes, special values and errors are those of the functions that they call.
"""

import torch

from .. import geglu, gelu, reglu, relu2, swiglu, swish


class Swish(torch.nn.Module):
    """``x * sigmoid(beta * x)``: see ``fuseline.swish``.

    Args:
        beta: a finite real number; no gradient is computed for it.

    Shape: any; the result has the input's.
    """

    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, input):
        return swish(input, self.beta)

    def extra_repr(self):
        return f"beta={self.beta}"


class SiLU(torch.nn.Module):
    """``x * sigmoid(x)``, as ``torch.nn.SiLU``; never in place: see ``fuseline.swish``.

    Shape: any; the result has the input's.
    """

    def forward(self, input):
        return swish(input)


class GELU(torch.nn.Module):
    """The GELU, as ``torch.nn.GELU``: see ``fuseline.gelu``.

    Args:
        approximate: "none" for the exact form, "tanh" for the other one.

    Shape: any; the result has the input's.
    """

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return gelu(input, self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class ReLU2(torch.nn.Module):
    """``max(x, 0)**2``: see ``fuseline.relu2``.

    Shape: any; the result has the input's.
    """

    def forward(self, input):
        return relu2(input)


class _Gated(torch.nn.Module):
    """What the gated units share. Subclasses name their options, with defaults, in `defaults`."""

    defaults = {}

    def options(self):
        """The keywords of the function."""
        return {name: getattr(self, name) for name in self.defaults}

    def extra_repr(self):
        # what differs from the defaults, since there may be many
        return ", ".join(f"{name}={value!r}" for name, value in self.options().items() if value != self.defaults[name])


class SwiGLU(_Gated):
    """``swish(gate; beta) * (up + offset)``, with gate and up clamped where there is a limit: see ``fuseline.swiglu``.

    ``SwiGLU(beta=1.702, limit=7.0, offset=1.0, interleaved=True)`` is the unit of the gpt-oss models.

    Args:
        beta, limit, offset: real numbers; no gradient is computed for them. A limit of None clamps nothing.
        interleaved: True if a packed gate alternates: gate, up, gate, up. Only for calls without ``up``.

    The call takes ``(gate, up)``, two tensors of one shape, or ``(packed)``, one tensor that holds both along its last
    dimension; and ``bias``, of one dimension, which is added to both before anything else.

    Shape: of gate; for a packed one, half its last extent.
    """

    defaults = {"beta": 1.0, "limit": None, "offset": 0.0, "interleaved": False}

    def __init__(self, *, beta=1.0, limit=None, offset=0.0, interleaved=False):
        super().__init__()
        self.beta = beta
        self.limit = limit
        self.offset = offset
        self.interleaved = interleaved

    def forward(self, gate, up=None, bias=None):
        return swiglu(
            gate,
            up,
            beta=self.beta,
            limit=self.limit,
            offset=self.offset,
            bias=bias,
            interleaved=self.interleaved,
        )


class GEGLU(_Gated):
    """``gelu(gate) * up``: see ``fuseline.geglu``.

    Args:
        approximate: "none" for the exact GELU, "tanh" for its other form.
        interleaved: True if a packed gate alternates: gate, up, gate, up. Only for calls without ``up``.

    The call takes ``(gate, up)``, two tensors of one shape, or ``(packed)``, one tensor that holds both along its last
    dimension; and ``bias``, of one dimension, which is added to both before anything else.

    Shape: of gate; for a packed one, half its last extent.
    """

    defaults = {"approximate": "none", "interleaved": False}

    def __init__(self, approximate="none", *, interleaved=False):
        super().__init__()
        self.approximate = approximate
        self.interleaved = interleaved

    def forward(self, gate, up=None, bias=None):
        return geglu(gate, up, approximate=self.approximate, bias=bias, interleaved=self.interleaved)


class ReGLU(_Gated):
    """``max(gate, 0) * up``: see ``fuseline.reglu``.

    Args:
        interleaved: True if a packed gate alternates: gate, up, gate, up. Only for calls without ``up``.

    The call takes ``(gate, up)``, two tensors of one shape, or ``(packed)``, one tensor that holds both along its last
    dimension; and ``bias``, of one dimension, which is added to both before anything else.

    Shape: of gate; for a packed one, half its last extent.
    """

    defaults = {"interleaved": False}

    def __init__(self, *, interleaved=False):
        super().__init__()
        self.interleaved = interleaved

    def forward(self, gate, up=None, bias=None):
        return reglu(gate, up, bias=bias, interleaved=self.interleaved)


__all__ = ["GEGLU", "GELU", "ReGLU", "ReLU2", "SiLU", "SwiGLU", "Swish"]
