"""A GPU for tests on machines without one: the stand-in ROCm runtime of tests/standin, and producers of its memory.

What is on it is labelled kDLROCM. It gets to fuseline in two ways: by objects that have ``__dlpack__``, over memory
between pages that nobody may touch, filled on a stream of their own; and by PyTorch's tensors, whose type has the C
exchange table, read through a table that labels them so.
"""

import contextlib
import ctypes
import functools
import os
import pathlib

import torch

import fuseline
from fuseline import _call, _dlpack, _kernels, _library, _torch

# What the devices are: waves of 32 lanes, waves of 64, and one that nothing is built for.
ARCHITECTURES = tuple(os.environ.get("FUSELINE_TEST_TARGETS", "gfx1151,gfx942,gfx803").split(","))

FOLDER_VARIABLE = "FUSELINE_STANDIN"


def _path():
    folder = os.environ.get(FOLDER_VARIABLE) or pathlib.Path(__file__).parents[2] / "build" / "tests" / "standin"
    return str(pathlib.Path(folder) / "libamdhip64.so")


class State(ctypes.Structure):
    """The beginning of struct standin, to its calls that fail on demand."""

    CALLS, _DEVICES = 11, 64
    _fields_ = (
        ("devices", ctypes.c_int),
        ("architecture", (ctypes.c_char * 32) * _DEVICES),
        ("old_properties", ctypes.c_int),
        ("old_loader", ctypes.c_int),
        ("count", ctypes.c_int * CALLS),
        ("fail", ctypes.c_int * CALLS),
        ("fail_only", ctypes.c_int * CALLS),
    )


class Runtime:
    """The runtime itself: what a framework would ask of it. Functions are those of standin.h."""

    def __init__(self, path):
        self.path = path
        os.environ["STANDIN_DEVICES"] = ",".join(ARCHITECTURES)
        library = self.library = ctypes.CDLL(path)
        del os.environ["STANDIN_DEVICES"]
        pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
        for name, result, arguments in (
            ("allocate", pointer, (integer, size, integer)),
            ("release", None, (pointer,)),
            ("device_of", integer, (pointer,)),
            ("stream", pointer, (integer, integer)),
            ("default_stream", pointer, (integer,)),
            ("wait", None, (pointer,)),
            ("follow", None, (pointer, pointer)),
            ("copy", None, (pointer, pointer, pointer, size)),
            ("begin_capture", None, (pointer,)),
            ("end_capture", pointer, (pointer,)),
            ("launch_graph", None, (pointer, pointer)),
            ("leaks", integer, ()),
            ("kernels_run", ctypes.c_ulonglong, ()),
        ):
            function = getattr(library, "standin_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.stream_of_producers = [self.stream(device, 0) for device in range(len(ARCHITECTURES))]


def _why_none(path):
    if torch.version.hip is not None and torch.cuda.is_available():
        return "there is a real GPU"
    if not os.path.exists(path):
        return (
            f"make check has built no stand-in runtime in {os.path.dirname(path)} ({FOLDER_VARIABLE} names its folder)"
        )
    return None


@functools.cache
def find():
    """(the runtime, None), in use by fuseline from now on; or (None, why there is none)."""
    path = _path()
    reason = _why_none(path)
    if reason is None:
        runtime = Runtime(path)
        _library.check(_library.functions["fuseline_set_gpu_runtime"](path.encode()))
        return runtime, None
    return None, reason


def why_not(device):
    """Why no test can run on a device of the runtime; None if one can."""
    _, reason = find()
    if reason is None and ARCHITECTURES[device] not in fuseline.info()["gpu"]["targets"]:
        return f"fuseline is built without code for {ARCHITECTURES[device]}"
    return reason


# --- memory ---


def _span(tensor):
    """The bytes from a tensor's first element to its last, as a flat tensor of bytes that shares the memory."""
    if tensor.numel() == 0:
        return torch.empty(0, dtype=torch.uint8)
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    return tensor.as_strided((last + 1,), (1,)).view(torch.uint8)


class Array:
    """A copy of a CPU tensor in a device's memory, with its strides. fuseline reads nothing of it but ``__dlpack__``.

    Attributes:
        deleted: how often the deleter of an exported structure was called.
        exported: how many structures were exported.
        streams: what ``__dlpack__`` was asked for.
    """

    def __init__(self, runtime, tensor, device, at_end):
        """
        Args:
            at_end: the memory ends at a page that nobody may touch; else it begins at one, as far from a multiple of 16
                bytes as the tensor's.
        """
        self._runtime, self._device, self._like = runtime, device, tensor
        self._stream = runtime.stream_of_producers[device]
        self._before = _span(tensor).clone()
        size = self._before.numel()
        shift = 0 if at_end else tensor.data_ptr() % 16
        self._memory = runtime.allocate(device, size + shift, at_end)
        self._data = self._memory + shift
        runtime.copy(self._stream, self._data, self._before.data_ptr(), size)
        self._structures = []
        self.deleted, self.exported, self.streams = 0, 0, []

    def __dlpack_device__(self):
        return _dlpack.ROCM, self._device

    def __dlpack__(self, *, stream=None, max_version=None):
        """A versioned capsule. The consumer's stream, 0 being the default one, waits for the copy."""
        assert max_version is not None and max_version[0] >= 1
        assert stream is not None and stream not in (1, 2), "CUDA's numbers for default streams mean nothing to ROCm"
        self.streams.append(stream)
        if stream != -1:
            self._runtime.follow(stream or self._runtime.default_stream(self._device), self._stream)
        structure = _dlpack.DLManagedTensorVersioned()
        structure.version = _dlpack.DLPackVersion(1, 0)
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._delete)
        structure.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        code = _dlpack.BFLOAT if self._like.dtype == torch.bfloat16 else _dlpack.FLOAT
        tensor = _dlpack.describe(
            self._data if self._like.numel() else None,
            tuple(self._like.shape),
            self._like.stride(),
            (code, 8 * self._like.element_size()),
            self.__dlpack_device__(),
        )
        structure.dl_tensor = tensor
        self._structures.append((structure, deleter, tensor))
        self.exported += 1
        return _dlpack.make_capsule(ctypes.addressof(structure), _dlpack.VERSIONED, None)

    def _delete(self, address):
        self.deleted += 1

    def read(self):
        """What the memory holds after all that is queued on the default stream, as a CPU tensor of the same strides.

        What lies between its elements has to be what was there.
        """
        runtime = self._runtime
        runtime.follow(self._stream, runtime.default_stream(self._device))
        after = torch.empty_like(self._before)
        runtime.copy(self._stream, after.data_ptr(), self._data, after.numel())
        runtime.wait(self._stream)
        like = self._like
        if like.numel() == 0:
            return torch.empty_like(like)
        result = after.view(like.dtype).as_strided(like.shape, like.stride())
        between = after.clone()
        elements = between.view(like.dtype).as_strided(like.shape, like.stride())
        elements.copy_(self._before.view(like.dtype).as_strided(like.shape, like.stride()))
        assert torch.equal(between, self._before), "written beside the elements"
        return result

    def release(self):
        self._runtime.wait(self._stream)
        self._runtime.wait(self._runtime.default_stream(self._device))
        self._runtime.release(self._memory)
        assert self.deleted == self.exported


# --- fuseline's functions, on the device by way of such arrays ---


class _Copies:
    """Whether PyTorch's adapter copies tensors, since their strides are walked by nothing, while this is entered."""

    _METHODS = "arrange", "assign"

    def __enter__(self):
        self.found = False
        self._kept = {name: getattr(_torch.TorchAdapter, name) for name in self._METHODS}
        for name, method in self._kept.items():
            setattr(_torch.TorchAdapter, name, self._watched(method))
        return self

    def _watched(self, method):
        def watched(*arguments):
            self.found = True
            return method(*arguments)

        return watched

    def __exit__(self, *_):
        for name, method in self._kept.items():
            setattr(_torch.TorchAdapter, name, method)


def _as_tuple(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def through_arrays(function, runtime, device, at_end):
    """A function of fuseline's on CPU tensors that computes on the device, into arrays like the results on the CPU."""

    def once(arguments, keywords, outputs):
        arrays = {}

        def send(value):
            if isinstance(value, torch.Tensor):
                return arrays.setdefault(id(value), Array(runtime, value, device, at_end))
            return value

        try:
            targets = tuple(map(send, outputs))
            before = runtime.kernels_run()
            given = targets if len(targets) > 1 else targets[0]
            results = function(
                *map(send, arguments), **{name: send(value) for name, value in keywords.items()}, out=given
            )
            assert results is given
            read = [target.read() for target in targets]
            assert runtime.kernels_run() > before or all(output.numel() == 0 for output in outputs)
            assert {stream for array in arrays.values() for stream in array.streams} == {0}
            return read
        finally:
            for array in arrays.values():
                array.release()

    @functools.wraps(function)
    def call(*arguments, out=None, dtype=None, **keywords):
        with _Copies() as copies:
            if out is None:
                expected = function(*arguments, **keywords, dtype=dtype) if dtype else function(*arguments, **keywords)
            else:
                expected = tuple(torch.empty_strided(o.shape, o.stride(), dtype=o.dtype) for o in _as_tuple(out))
                function(*arguments, **keywords, out=expected if len(expected) > 1 else expected[0])
        outputs = tuple(torch.empty_like(result) for result in _as_tuple(expected)) if out is None else _as_tuple(out)
        try:
            results = once(arguments, keywords, outputs)
        except fuseline.LayoutError as error:
            assert copies.found, error
            dense = [value.contiguous() if isinstance(value, torch.Tensor) else value for value in arguments]
            keywords = {k: v.contiguous() if isinstance(v, torch.Tensor) else v for k, v in keywords.items()}
            results = once(dense, keywords, [output.contiguous() for output in outputs])
        if out is not None:
            for output, result in zip(_as_tuple(out), results):
                output.copy_(result)
            return out
        return results[0] if len(results) == 1 else tuple(results)

    return call


# The public functions that run one kernel.
FUNCTIONS = sorted({kernel.function for kernel in _kernels.KERNELS.values()} & set(vars(fuseline)))


@contextlib.contextmanager
def arrays(device, at_end):
    """While entered, fuseline's functions take CPU tensors to the device and back: see `through_arrays`."""
    runtime, _ = find()
    kept = {name: getattr(fuseline, name) for name in FUNCTIONS}
    try:
        for name, function in kept.items():
            setattr(fuseline, name, through_arrays(function, runtime, device, at_end))
        yield
    finally:
        for name, function in kept.items():
            setattr(fuseline, name, function)


# --- PyTorch's tensors, by the C exchange table ---


class _Table:
    """A copy of PyTorch's exchange table, in its place, that can label tensors as the device's.

    Work on them is done at once, since PyTorch takes their memory for the CPU's and waits for nothing.
    """

    def __init__(self, runtime):
        original = _dlpack.DLPackExchangeAPI.from_address(_dlpack.exchange_table(torch.Tensor))
        self._original = _dlpack.DLPackExchangeAPI.from_buffer_copy(original)
        self._table = _dlpack.DLPackExchangeAPI.from_buffer_copy(original)
        read_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_dlpack.DLTensor))
        stream_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
        self._read = read_type(original.dltensor_from_py_object_no_sync)
        self._stream = stream_type(original.current_work_stream)
        self._functions = read_type(self._labelled), stream_type(self._current_stream)
        self._streams = [runtime.stream(device, 1) for device in range(len(ARCHITECTURES))]
        self.device, self.stream = 0, None
        self.address = ctypes.addressof(self._table)
        torch.Tensor.__dlpack_c_exchange_api__ = _dlpack._new(self.address, b"dlpack_exchange_api", None)

    def _labelled(self, tensor, described):
        try:
            status = self._read(tensor, described)
        except Exception:  # PyTorch's own, which cannot go on from here
            return -1
        if status == 0 and described[0].device.device_type == _dlpack.CPU:
            described[0].device = _dlpack.DLDevice(_dlpack.ROCM, self.device)
        return status

    def _current_stream(self, device_type, device, stream):
        if device_type != _dlpack.ROCM:
            return self._stream(device_type, device, stream)
        stream[0] = self.stream or self._streams[device]
        return 0

    def switch(self, device, stream=None):
        """Labels tensors as a device's; with None, as what they are. A stream of the test's takes the place of ours."""
        if device is None:
            ctypes.memmove(ctypes.byref(self._table), ctypes.byref(self._original), ctypes.sizeof(self._table))
        else:
            self.device, self.stream = device, stream
            self._table.dltensor_from_py_object_no_sync = ctypes.cast(self._functions[0], ctypes.c_void_p)
            self._table.current_work_stream = ctypes.cast(self._functions[1], ctypes.c_void_p)


@functools.cache
def table():
    """PyTorch's exchange table, replaced: before fuseline first uses it. None where PyTorch has none."""
    runtime, _ = find()
    if runtime is None or not _dlpack.exchange_table(torch.Tensor):
        return None
    made = _Table(runtime)
    fuseline.swish(torch.ones(1))
    assert _call._made["torch"].exchange.value == made.address, "fuseline does not use the table"
    return made


@contextlib.contextmanager
def tensors(device, stream=None):
    """While entered, PyTorch's CPU tensors are labelled as the device's, and so computed on it.

    Args:
        stream: what the table tells to be the current one; None for one that runs all at once.
    """
    large, _torch._LARGE = _torch._LARGE, 1 << 62  # large ones on the CPU are described without the table
    table().switch(device, stream)
    try:
        yield
    finally:
        table().switch(None)
        _torch._LARGE = large
