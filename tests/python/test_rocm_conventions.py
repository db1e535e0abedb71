"""What DLPack and the array API standard say of ROCm: device type 10, and which number means which stream.

Without a device: producers record what they are asked for, and refuse what a framework's build for ROCm refuses.
"""

import contextlib
import enum
import types

import numpy as np
import pytest
import torch

import fuseline
import standin
from fuseline import _call, _cupy, _dlpack, _jax, _kernels, _torch
from producers import Memory, Producer

RUNTIME, _REASON = standin.find()
_REASON = standin.why_not(0) if _REASON is None else _REASON
on_standin = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))

ROCM = (_dlpack.ROCM, 0)
VALUES = [1.5] * 8


class Strict(Producer):
    """Refuses what PyTorch's and CuPy's builds for ROCm refuse."""

    def __dlpack__(self, *, stream=None, **keywords):
        assert isinstance(stream, int) and stream not in (1, 2) and stream >= -1, "a stream that ROCm does not have"
        return super().__dlpack__(stream=stream, **keywords)


def strict(device=ROCM):
    return Strict(Memory(VALUES, device=device), device=device)


@on_standin
def test_producers_are_told_the_default_stream():
    """F12: 0 on ROCm, where 1 and 2 are refused; for inputs and outputs alike."""
    x, out = standin.Array(RUNTIME, torch.ones(100), 0, True), standin.Array(RUNTIME, torch.ones(100), 0, True)
    fuseline.swish(x, out=out)
    assert x.streams == out.streams == [0]
    out.read()
    x.release()
    out.release()


def test_producer_that_refuses_other_numbers():
    """F12"""
    producer = strict()
    with pytest.raises(fuseline.DeviceError, match="DLPack device type 10"):
        fuseline.swish(producer)
    assert producer.calls == [{"stream": 0, "max_version": (1, 0)}]
    assert producer.memory.deleted == 1


def test_device_type_as_an_enumeration():
    """NumPy and others return the members of one."""

    class Kind(enum.IntEnum):
        ROCM = 10

    producer = strict((Kind.ROCM, 0))
    with pytest.raises(fuseline.DeviceError, match="out: is None, and the data is on a GPU"):
        fuseline.swish(producer)
    assert [call["stream"] for call in producer.calls] == [0]


def test_host_memory_of_rocm_has_no_stream():
    """F4, F17: type 11 is the CPU's to read."""
    device = (_dlpack.ROCM_HOST, 3)
    producer = Producer(Memory(VALUES, device=device), device=device)
    y = np.from_dlpack(fuseline.swish(producer))
    np.testing.assert_allclose(y, 1.2263616, rtol=1e-6)
    assert producer.calls == [{"max_version": (1, 0)}]


@on_standin
def test_structure_that_is_labelled_otherwise_than_its_object():
    """F1: what came back counts: a ROCm object whose structure says CUDA is not run by ROCm's runtime."""
    before = RUNTIME.kernels_run()
    x = Producer(Memory(VALUES, device=(_dlpack.CUDA, 0)), device=ROCM)
    out = Producer(Memory(VALUES, device=ROCM), device=ROCM)
    with pytest.raises(fuseline.DeviceError, match="CUDA device 0.*ROCm device 0|ROCm device 0.*CUDA device 0"):
        fuseline.swish(x, out=out)
    assert RUNTIME.kernels_run() == before


# --- PyTorch ---


@pytest.mark.parametrize(("hip", "expected"), [("7.0", _dlpack.ROCM), (None, _dlpack.CUDA)])
def test_pytorch_calls_both_cuda(monkeypatch, hip, expected):
    """F1: a tensor on "cuda" is described as type 10 where PyTorch is built for ROCm, and as 2 where it is not."""
    made = _call._made.get("torch")
    monkeypatch.setattr(torch.version, "hip", hip)
    adapter = _torch.TorchAdapter(torch)
    try:
        on_gpu = types.SimpleNamespace(
            **{name: False for name in ("is_nested", "is_quantized")},
            layout=torch.strided,
            dtype=torch.float32,
            device=types.SimpleNamespace(type="cuda", index=1),
            shape=(2,),
            data_ptr=lambda: 256,
            stride=lambda: (1,),
        )
        monkeypatch.setattr(adapter, "_check_type", lambda name, tensor: None)
        monkeypatch.setattr(adapter, "_is_wrapped", lambda tensor: False)
        monkeypatch.setattr(adapter, "_is_batched", lambda tensor: False)
        described = adapter.describe("x", on_gpu)
        assert (described.device.device_type, described.device.device_id) == (expected, 1)
    finally:
        monkeypatch.undo()
        if made is not None:
            made.serve_by_c(True)


# --- CuPy ---


class CupyArray:
    """What is asked of cupy.ndarray, over a device's memory."""

    def __init__(self, runtime, values, device=0):
        values = np.ascontiguousarray(values)
        self._runtime, self._size, self._id = runtime, values.nbytes, device
        self.shape, self.strides, self.ndim = values.shape, values.strides, values.ndim
        self.dtype, self.itemsize = values.dtype, values.itemsize
        self.data = types.SimpleNamespace(ptr=runtime.allocate(device, values.nbytes, True))
        self.copy_from(values)

    @property
    def device(self):
        made = contextlib.nullcontext()
        made.id = self._id
        return made

    def copy_from(self, values):
        stream = self._runtime.default_stream(self._id)
        self._runtime.copy(stream, self.data.ptr, values.ctypes.data, self._size)
        self._runtime.wait(stream)

    def read(self, stream):
        values = np.empty(self.shape, self.dtype)
        self._runtime.copy(stream, values.ctypes.data, self.data.ptr, self._size)
        self._runtime.wait(stream)
        return values


@on_standin
@pytest.mark.parametrize("own", [False, True], ids=["default stream", "stream of its own"])
def test_cupy_for_rocm(own):
    """I1, F1: its arrays are type 10; its current stream is a pointer, and 0 the default one."""
    default = RUNTIME.default_stream(0)
    current = RUNTIME.stream(0, 0) if own else None
    cupy = types.SimpleNamespace(
        ndarray=CupyArray,
        cuda=types.SimpleNamespace(
            runtime=types.SimpleNamespace(is_hip=True),
            get_current_stream=lambda: types.SimpleNamespace(ptr=current or 0),
        ),
        dtype=np.dtype,
        empty_like=lambda array, dtype, order: CupyArray(RUNTIME, np.zeros(array.shape, dtype or array.dtype)),
    )
    adapter = _cupy.CupyAdapter(cupy)
    x = CupyArray(RUNTIME, np.full(1000, 1.5, np.float32))
    assert adapter.device(x) == ROCM
    before = RUNTIME.kernels_run()
    kernel = _kernels.KERNELS["swish_forward"]
    y = adapter.call(kernel, (x,), (1.0,))
    assert RUNTIME.kernels_run() == before, "not queued"
    np.testing.assert_allclose(y.read(current or default), 1.2263616, rtol=1e-6)
    assert RUNTIME.kernels_run() == before + 1
    for array in (x, y):
        RUNTIME.release(array.data.ptr)


# --- what we export ---


@pytest.mark.parametrize("number", [1, 2, -2, 0, "0", True])
def test_host_results_take_no_stream(number):
    """F12, F17: results in host memory have no stream to be asked for."""
    y = fuseline.swish(Producer(Memory(VALUES)))
    with pytest.raises(BufferError, match=rf"stream: is {number!r}; accepted: None"):
        y.__dlpack__(stream=number)
    with pytest.raises(BufferError, match=r"dl_device: is \(10, 0\); accepted: \(1, 0\)"):
        y.__dlpack__(dl_device=ROCM)
    assert y.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(
    ("device_type", "number", "pointer"),
    [
        (_dlpack.ROCM, 0, None),
        (_dlpack.ROCM, 3, 3),
        (_dlpack.ROCM, 1 << 46, 1 << 46),
        (_dlpack.CUDA, 1, 1),
        (_dlpack.CUDA, 2, 2),
        (_dlpack.CUDA_MANAGED, 1, 1),
        (_dlpack.CUDA, 1 << 46, 1 << 46),
    ],
)
def test_streams_that_consumers_name(device_type, number, pointer):
    assert _dlpack.stream_pointer(device_type, number) == pointer


@pytest.mark.parametrize(
    ("device_type", "number"),
    [(_dlpack.ROCM, number) for number in (1, 2, -1, -2, None, True, "0")]
    + [(_dlpack.CUDA, number) for number in (0, -1, -2, None, True, "1")],
)
def test_streams_that_consumers_may_not_name(device_type, number):
    """F12: one clear error, a BufferError as the standard has it, and no launch on a stream that is none."""
    accepted = "0" if device_type == _dlpack.ROCM else "1, 2"
    with pytest.raises(BufferError, match=f"stream: is {number!r}; accepted: {accepted}, or a stream's pointer"):
        _dlpack.stream_pointer(device_type, number)


class _JaxArray:
    """What a result of JAX's is asked for on a GPU."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)


@on_standin
@pytest.mark.parametrize("own", [False, True], ids=["default stream", "stream of its own"])
def test_results_that_jax_imports(own):
    """F12, I1: the kernel runs on the stream that JAX names, by ROCm's numbers; at 1, 2 and -2 nothing runs."""
    x = standin.Array(RUNTIME, torch.full((100,), 1.5), 0, True)
    out = standin.Array(RUNTIME, torch.zeros(100), 0, True)
    kernel = _kernels.KERNELS["swish_forward"]
    launch = _jax._Launch(kernel, (x,), (1.0,), kernel.outputs, [_JaxArray(out)])
    result = _jax._Result(launch, _JaxArray(out))
    assert result.__dlpack_device__() == ROCM
    for number in (1, 2, -2):
        with pytest.raises(BufferError, match=f"stream: is {number}; accepted: 0, or a stream's pointer"):
            result.__dlpack__(stream=number)
    assert x.streams == out.streams == []
    stream = RUNTIME.stream(0, 0) if own else 0
    before = RUNTIME.kernels_run()
    result.__dlpack__(stream=stream)
    assert x.streams == [stream] and set(out.streams) == {stream}
    assert RUNTIME.kernels_run() == before
    if own:
        RUNTIME.wait(stream)
        assert RUNTIME.kernels_run() == before + 1
    torch.testing.assert_close(out.read(), torch.full((100,), 1.2263616))
    assert RUNTIME.kernels_run() == before + 1
    out.exported -= 1  # the capsule that nobody has taken
    x.release()
    out.release()
