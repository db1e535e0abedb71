"""NumPy arrays."""

import sys

import ml_dtypes
import numpy as np
import pytest

import fuseline
from memory import resident_kilobytes


def right(x, beta=1.0):
    x = np.asarray(x, dtype=np.float64)
    return x / (1 + np.exp(-beta * x))


def right_backward(dy, x):
    dy, x = np.asarray(dy, dtype=np.float64), np.asarray(x, dtype=np.float64)
    s = 1 / (1 + np.exp(-x))
    return dy * s * (1 + x * (1 - s))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dtypes(kind):
    x = np.linspace(-6, 6, 301).astype(kind)
    y = fuseline.swish(x, 1.702)
    assert type(y) is np.ndarray and y.dtype == x.dtype and y is not x
    rtol = {2: 5e-3, 4: 3e-7, 8: 4e-16}[x.itemsize]
    np.testing.assert_allclose(y.astype(np.float64), right(x, 1.702), rtol=rtol, atol=1e-12)
    dx = fuseline.swish_backward(np.ones_like(x), x)
    np.testing.assert_allclose(dx.astype(np.float64), right_backward(1, x), rtol=2 * rtol, atol=rtol)


def layouts():
    base = np.random.default_rng(0).normal(size=(6, 8, 10)).astype(np.float32)
    yield "C", base
    yield "Fortran", np.asfortranarray(base[0])
    yield "permuted", base.transpose(2, 0, 1)
    yield "rows", base[0, :, 2:7]
    yield "step", base[::2, 1:, ::3]
    yield "reversed", base[::-1]
    yield "all reversed", base[::-1, ::-1, ::-1]
    yield "broadcast", np.broadcast_to(base[0, 0], (3, 10))
    yield "broadcast inside", np.broadcast_to(base[:, :1, :1], (6, 3, 4))
    yield "0-dim", np.array(1.5, dtype=np.float32)
    yield "one of three (C7)", base.ravel()[::3][:1]
    yield "empty (C10)", np.zeros((1, 8, 0, 128), np.float32)


@pytest.mark.parametrize(("name", "x"), list(layouts()), ids=lambda value: value if isinstance(value, str) else "")
def test_layouts(name, x):
    before = x.copy()
    y = fuseline.swish(x)
    assert type(y) is np.ndarray and y.shape == x.shape
    np.testing.assert_allclose(y, right(x), rtol=3e-7)
    np.testing.assert_allclose(fuseline.swish_backward(x, x), right_backward(x, x), rtol=3e-6, atol=1e-7)
    np.testing.assert_array_equal(x, before)
    out = np.zeros(x.shape[::-1], np.float32).T
    assert fuseline.swish(x, out=out) is out
    np.testing.assert_array_equal(out, y)


def test_order_is_kept():
    assert fuseline.swish(np.ones((3, 4), np.float32, order="F")).flags.f_contiguous
    assert fuseline.swish(np.ones((3, 4), np.float32)).flags.c_contiguous


def test_zero_dimensional_result_is_an_array():
    """C13"""
    y = fuseline.swish(np.array(1.5, np.float32))
    assert isinstance(y, np.ndarray) and y.shape == ()
    assert float(y) == pytest.approx(1.2263616, rel=1e-6)


@pytest.mark.parametrize("offset", range(17))
def test_bases_that_are_not_aligned(offset):
    """Every byte offset, so also addresses that are no multiple of the element."""
    for kind in (np.float16, np.float32, np.float64):
        buffer = np.zeros(64 * 8 + 17, np.uint8)
        x = buffer[offset : offset + 64 * np.dtype(kind).itemsize].view(kind)
        x[:] = np.linspace(-3, 3, 64)
        np.testing.assert_allclose(fuseline.swish(x), right(x).astype(kind), rtol=2e-3 if kind == np.float16 else 3e-7)
        fuseline.swish(x, out=x)
        assert not buffer[:offset].any()


def test_fields_of_packed_records():
    """Strides that are no whole elements are copied; as an output they are refused."""
    records = np.zeros(5, dtype=np.dtype([("tag", "u1"), ("value", "f4")]))
    records["value"] = np.linspace(-2, 2, 5)
    np.testing.assert_allclose(fuseline.swish(records["value"]), right(records["value"]), rtol=3e-7)
    with pytest.raises(ValueError, match="out: strides are \\(5,\\) bytes; accepted: multiples"):
        fuseline.swish(np.ones(5, np.float32), out=records["value"])


def test_read_only():
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    x.flags.writeable = False
    y = fuseline.swish(x)
    assert y.flags.writeable
    before = x.copy()
    with pytest.raises(ValueError, match="out: is read-only"):
        fuseline.swish(y, out=x)
    np.testing.assert_array_equal(x, before)


def test_in_place_and_overlap():
    x = np.linspace(-1, 1, 20, dtype=np.float32)
    expected = right(x)
    assert fuseline.swish(x, out=x) is x
    np.testing.assert_allclose(x, expected, rtol=3e-7)
    with pytest.raises(fuseline.OverlapError, match="out: overlaps x"):
        fuseline.swish(x[:10], out=x[1:11])


def test_byte_order():
    x = np.ones(3, np.dtype(np.float32).newbyteorder("S"))
    with pytest.raises(TypeError, match="x: dtype is .*, not of this machine's byte order; accepted: native.*astype"):
        fuseline.swish(x)


@pytest.mark.parametrize(
    "kind", ["?", "i1", "u2", "i4", "i8", "c8", "c16", "g", "O", "S4", "U2", "M8[s]", "m8[s]", "V4"]
)
def test_dtypes_that_are_refused(kind):
    """D3, D4"""
    x = np.zeros(3, dtype=kind)
    if kind == "g" and x.itemsize == 8:
        pytest.skip("long double is double here")
    with pytest.raises(TypeError, match="x: dtype is .*accepted: float16, bfloat16, float32, float64"):
        fuseline.swish(x)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "int4"])
def test_small_types_of_ml_dtypes_are_refused(kind):
    """D5, D7"""
    with pytest.raises(TypeError, match="x: dtype is"):
        fuseline.swish(np.zeros(3, getattr(ml_dtypes, kind)))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses():
    """Results are plain arrays; a mask is not lost silently."""
    matrix = np.asmatrix(np.ones((2, 2), np.float32))
    assert type(fuseline.swish(matrix)) is np.ndarray
    masked = np.ma.masked_array(np.ones(3, np.float32), mask=[0, 1, 0])
    with pytest.raises(TypeError, match="x: is numpy.ma.*MaskedArray; accepted: arrays without a mask"):
        fuseline.swish(masked)
    with pytest.raises(TypeError, match="dy: is numpy.ma"):
        fuseline.swish_backward(masked, np.ones(3, np.float32))


def test_mixed_libraries_are_refused():
    import torch

    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="dy: is torch.Tensor; accepted: numpy.ndarray"):
        fuseline.swish_backward(torch.ones(3), x)
    with pytest.raises(TypeError, match="out: is torch.Tensor; accepted: numpy.ndarray"):
        fuseline.swish(x, out=torch.ones(3))
    with pytest.raises(TypeError, match="dy: is numpy.ndarray; accepted: torch.Tensor"):
        fuseline.swish_backward(x, torch.ones(3))
    with pytest.raises(TypeError, match="x: is numpy.float32"):
        fuseline.swish(np.float32(1))


def test_shapes_and_dtypes_must_agree():
    with pytest.raises(ValueError, match="x: shape is \\(3\\), but dy is \\(2\\)"):
        fuseline.swish_backward(np.ones(2, np.float32), np.ones(3, np.float32))
    with pytest.raises(TypeError, match="dy: dtype is float32, but x is float64; accepted: the same"):
        fuseline.swish_backward(np.ones(3, np.float32), np.ones(3))


def test_references_and_memory():
    """N5"""
    x = np.ones((300, 300), np.float32)
    for _ in range(20):
        fuseline.swish(x)
    counted, before = sys.getrefcount(x), resident_kilobytes()
    for _ in range(1000):
        fuseline.swish(x)
        fuseline.swish_backward(x, x)
    assert sys.getrefcount(x) == counted
    assert resident_kilobytes() - before < 3000
