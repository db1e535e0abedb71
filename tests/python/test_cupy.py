"""CuPy arrays: on the array's device and CuPy's current stream. Those on a second GPU are in test_several_gpus.py."""

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
try:
    DEVICES = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:
    DEVICES = 0
if DEVICES == 0:
    pytest.skip("no GPU that CuPy can use", allow_module_level=True)

import fuseline  # noqa: E402
from cupy_arrays import filled_late  # noqa: E402


def right(x):
    x = cupy.asnumpy(x).astype(np.float64)
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_values(kind):
    x = cupy.linspace(-6, 6, 301).astype(kind)
    y = fuseline.swish(x)
    assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype and y.device == x.device
    rtol = {2: 1e-3, 4: 3e-7, 8: 1e-15}[x.itemsize]
    np.testing.assert_allclose(cupy.asnumpy(y), right(x).astype(kind), rtol=rtol, atol=1e-6)
    dx = fuseline.swish_backward(cupy.ones_like(x), x)
    wide = cupy.asnumpy(x).astype(np.float64)
    s = 1 / (1 + np.exp(-wide))
    np.testing.assert_allclose(cupy.asnumpy(dx), s * (1 + wide * (1 - s)), rtol=2 * rtol, atol=2 * rtol)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[:, 2:7],
        lambda x: x[::2, ::3],
        lambda x: cupy.flip(x),
        lambda x: cupy.broadcast_to(x[0], (5, 10)),
        lambda x: x[0, 0],
        lambda x: x[:0],
    ],
    ids=["C", "F", "rows", "steps", "flipped (C15)", "broadcast", "0-dim", "empty"],
)
def test_layouts(view):
    x = view(cupy.random.default_rng(0).standard_normal((8, 10), dtype=cupy.float32))
    np.testing.assert_allclose(cupy.asnumpy(fuseline.swish(x)), right(x), rtol=3e-7)
    out = cupy.zeros(x.shape, cupy.float32)
    assert fuseline.swish(x, out=out) is out
    np.testing.assert_allclose(cupy.asnumpy(out), right(x), rtol=3e-7)


def test_current_stream():
    """F15, I1: on a stream of its own, right behind the fill."""
    x, stream = filled_late(cupy)
    with stream:
        y = fuseline.swish(x)
    stream.synchronize()
    assert float(cupy.abs(y - 1.2263616).max()) < 1e-6


def test_managed_memory():
    """F2"""
    previous = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    try:
        x = cupy.linspace(-3, 3, 100, dtype=cupy.float32)
        np.testing.assert_allclose(cupy.asnumpy(fuseline.swish(x)), right(x), rtol=3e-7)
    finally:
        cupy.cuda.set_allocator(previous)


def test_refusals():
    with pytest.raises(TypeError, match="x: dtype is int of 32 bits"):
        fuseline.swish(cupy.ones(3, cupy.int32))
    with pytest.raises(TypeError, match="dy: is numpy.ndarray; accepted: cupy.ndarray"):
        fuseline.swish_backward(np.ones(3, np.float32), cupy.ones(3, cupy.float32))
    with pytest.raises(ValueError, match="shape"):
        fuseline.swish_backward(cupy.ones(2, cupy.float32), cupy.ones(3, cupy.float32))
