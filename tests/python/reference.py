"""Right values, from the formulas in a higher precision, and distances from them in units in the last place."""

import mpmath
import torch

mpmath.mp.prec = 120

# Digits of the significand, with the implied one; the exponent of the smallest normal number.
PRECISION = {torch.float16: (11, -14), torch.bfloat16: (8, -126), torch.float32: (24, -126), torch.float64: (53, -1022)}


def swish(x, beta=1.0):
    """x * sigmoid(beta * x) in float64, for narrower x."""
    x = x.detach().cpu().double()
    return x * torch.sigmoid(beta * x)


def swish_backward(dy, x, beta=1.0):
    """dy * d swish / dx in float64, for narrower x."""
    dy, x = dy.detach().cpu().double(), x.detach().cpu().double()
    s = torch.sigmoid(beta * x)
    return dy * s * (1 + beta * x * torch.sigmoid(-beta * x))


def swish_exact(x, beta=1.0):
    """The same for one float, to 120 bits."""
    x, beta = mpmath.mpf(x), mpmath.mpf(beta)
    return x / (1 + mpmath.exp(-beta * x))


def is_normal(exact, dtype):
    """Where a float64 result is a finite, normal number of dtype."""
    info = torch.finfo(dtype)
    return (exact.abs() >= info.tiny) & (exact.abs() <= info.max)


def ulps(result, exact):
    """The distance of results from float64 values, in units of the result type's last place at that value."""
    digits, _ = PRECISION[result.dtype]
    _, exponent = torch.frexp(exact)  # |exact| = m * 2^exponent, 0.5 <= m < 1
    unit = torch.ldexp(torch.ones_like(exact), exponent - digits)
    return (result.detach().cpu().double() - exact).abs() / unit


def all_values(dtype, device="cpu"):
    """Every bit pattern of a 16-bit type."""
    return torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype).to(device)


def finite_bits_float32(count, seed=0):
    """float32 values drawn evenly from all finite bit patterns, so from all magnitudes."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(-(1 << 31), 1 << 31, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    values = bits.view(torch.float32)
    return values[values.isfinite()]
