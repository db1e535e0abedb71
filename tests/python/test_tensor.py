"""fuseline.Tensor as a producer: what it exports, to whom, and when its memory goes."""

import ctypes
import gc
import threading

import numpy as np
import pytest
import torch

import fuseline
from fuseline import _dlpack
from memory import resident_kilobytes

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))


class Plain:
    """Hides an array's type: only __dlpack__ is left of it."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)


def make(*shape, dtype=np.float32):
    return fuseline.swish(Plain(np.ones(shape, dtype=dtype)))


def structure(capsule):
    name = _dlpack._get_name(capsule)
    return _dlpack._STRUCTURES[name].from_address(_dlpack._get_pointer(capsule, name))


@pytest.mark.parametrize(
    ("max_version", "versioned"), [(None, False), ((0, 8), False), ((1, 0), True), ((1, 3), True), ((2, 0), True)]
)
def test_version_that_consumers_ask_for(max_version, versioned):
    """B3, B5: None gives a legacy capsule; a versioned one says 1.0, whatever header the library was built with."""
    capsule = make(3).__dlpack__(max_version=max_version)
    assert _dlpack._get_name(capsule) == (_dlpack.VERSIONED if versioned else _dlpack.LEGACY)
    if versioned:
        exported = structure(capsule)
        assert (exported.version.major, exported.version.minor, exported.flags) == (1, 0, 0)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 4), ()])
def test_exported_structure(shape, max_version):
    """C3, C6: no byte offset, strides always there, 64-byte alignment, no data without elements."""
    tensor = make(*shape)
    capsule = tensor.__dlpack__(max_version=max_version)
    exported = structure(capsule).dl_tensor
    assert exported.byte_offset == 0
    assert exported.ndim == len(shape)
    assert tuple(exported.shape[: len(shape)]) == shape == tensor.shape
    if shape:
        assert exported.strides
        assert tuple(exported.strides[: len(shape)]) == tensor.strides
    assert (exported.data or 0) % 64 == 0
    assert (exported.data is None) == (0 in shape)
    assert (exported.device.device_type, exported.device.device_id) == (1, 0) == tensor.__dlpack_device__()


@pytest.mark.parametrize(
    ("kind", "code", "bits"), [("float16", 2, 16), ("bfloat16", 4, 16), ("float32", 2, 32), ("float64", 2, 64)]
)
def test_dtypes(kind, code, bits):
    """D2"""
    x = torch.linspace(-3, 3, 50).to(getattr(torch, kind))
    tensor = fuseline.swish(Plain(x))
    capsule = tensor.__dlpack__()
    dtype = structure(capsule).dl_tensor.dtype
    assert (dtype.code, dtype.bits, dtype.lanes) == (code, bits, 1)
    assert tensor.dtype == kind
    assert kind in repr(tensor)
    assert torch.equal(torch.from_dlpack(tensor), fuseline.swish(x))


@pytest.mark.skipif(NUMPY < (2, 2), reason="NumPy reads versioned capsules since 2.2")
def test_result_is_writable():
    """B8"""
    array = np.from_dlpack(make(3))
    array[0] = 1
    assert array[0] == 1
    copied = np.from_dlpack(make(3), copy=True)
    copied[0] = 2


def test_copy():
    tensor = make(2, 3)
    capsule = tensor.__dlpack__(copy=True, max_version=(1, 0))
    exported = structure(capsule)
    assert exported.flags == _dlpack.FLAG_IS_COPIED
    assert exported.dl_tensor.data != tensor.described.data
    shared = tensor.__dlpack__(copy=False)
    assert structure(shared).dl_tensor.data == tensor.described.data


@pytest.mark.parametrize("keywords", [{"dl_device": (2, 0)}, {"dl_device": (10, 1)}, {"stream": 1}, {"stream": 0}])
def test_what_cannot_be_exported(keywords):
    """B6: refusals are BufferErrors."""
    with pytest.raises(BufferError, match="accepted"):
        make(3).__dlpack__(**keywords)


@pytest.mark.parametrize("keywords", [{"dl_device": (1, 0)}, {"stream": None}, {"stream": -1}, {"copy": None}])
def test_what_can_be_exported(keywords):
    assert make(3).__dlpack__(**keywords) is not None


def test_order_of_dimensions_is_kept():
    assert fuseline.swish(Plain(np.ones((3, 4), np.float32, order="F"))).strides == (1, 3)
    assert fuseline.swish(Plain(np.ones((4, 6), np.float32)[:, ::2])).strides == (3, 1)
    assert fuseline.swish(Plain(np.ones((2, 3, 4), np.float32).transpose(1, 0, 2))).strides == (4, 12, 1)


# --- lifetime ---


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_consumed_capsule_does_not_free(max_version):
    """A4, A13: the consumer owns the memory; neither the capsule nor the tensor matter any more."""
    if max_version is not None and TORCH < (2, 9):
        pytest.skip("this PyTorch reads legacy capsules only")
    tensor = make(1000)
    capsule = tensor.__dlpack__(max_version=max_version)
    array = torch.utils.dlpack.from_dlpack(capsule)
    del capsule, tensor
    gc.collect()
    assert torch.equal(array, torch.nn.functional.silu(torch.ones(1000)))


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_dropped_capsules_do_not_leak(max_version):
    """A5, A17"""
    tensor = make(1000, 1000)

    def drop(count):
        for _ in range(count):
            tensor.__dlpack__(max_version=max_version)
            # an unconsumed copy holds 4 MB of its own
        for _ in range(count // 50):
            tensor.__dlpack__(max_version=max_version, copy=True)

    drop(500)
    before = resident_kilobytes()
    drop(10_000)
    assert resident_kilobytes() - before < 3000


def test_dropped_results_do_not_leak():
    source = Plain(np.ones((500, 500), np.float32))
    for _ in range(20):
        fuseline.swish(source)
    before = resident_kilobytes()
    for _ in range(500):
        np.from_dlpack(fuseline.swish(source))
    assert resident_kilobytes() - before < 3000


def test_failed_calls_do_not_leak():
    source = Plain(np.ones((500, 500), np.float32))
    wrong = Plain(np.ones((500, 499), np.float32))

    def fail(count):
        for _ in range(count):
            with pytest.raises(ValueError):
                fuseline.swish_backward(wrong, source)

    fail(20)
    before = resident_kilobytes()
    fail(500)
    assert resident_kilobytes() - before < 3000


def test_freed_in_other_threads():
    """A11, A12: by threads that are Python's, and by one that is not, without Python's lock."""
    tensors = [torch.from_dlpack(make(100)) for _ in range(1000)]
    threads = [threading.Thread(target=tensors.__delitem__, args=(slice(0, 100),)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not tensors
    # A thread of the C library's own making: it calls the deleter with no Python state at all.
    libc = ctypes.CDLL(None)
    create, join = libc.pthread_create, libc.pthread_join
    create.argtypes = (ctypes.POINTER(ctypes.c_ulong), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    join.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    for _ in range(1000):
        capsule = make(100).__dlpack__()
        taken = _dlpack.Import("x", capsule)
        deleter, taken._deleter = taken._deleter, None
        thread = ctypes.c_ulong()
        assert create(thread, None, deleter, taken._address) == 0
        assert join(thread, None) == 0


def test_freed_by_autograd():
    """A11: torch's own thread may drop the last reference."""
    for _ in range(50):
        x = torch.from_dlpack(make(10)).requires_grad_()
        (x * 2).sum().backward()
        del x
