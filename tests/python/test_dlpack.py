"""Objects with __dlpack__ and bare capsules: ownership, keywords, versions, layouts, dtypes and devices."""

import ctypes
import gc
import threading

import numpy as np
import pytest

import fuseline
import producers
from fuseline import _dlpack
from producers import Memory, Producer

VALUES = [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]


def expected(values=VALUES):
    x = np.asarray(values, dtype=np.float64)
    return (x / (1 + np.exp(-x))).astype(np.float32)


def assert_swish(result, values=VALUES):
    np.testing.assert_allclose(np.from_dlpack(result), expected(values), rtol=3e-7)


both_kinds = pytest.mark.parametrize("versioned", [False, True], ids=["legacy", "versioned"])


# --- ownership ---


@both_kinds
@pytest.mark.parametrize("destructor", ["checks the name", "none"])
def test_deleter_runs_once(versioned, destructor):
    """A3: whatever the producer's destructor does."""
    memory = Memory(VALUES, versioned=versioned)
    address = ctypes.cast(fuseline._library.functions["fuseline_capsule_destructor"], ctypes.c_void_p)
    capsule = memory.capsule(address if destructor != "none" else None)
    assert_swish(fuseline.swish(capsule))
    assert producers.capsule_name(capsule) == (b"used_dltensor_versioned" if versioned else b"used_dltensor")
    assert memory.deleted == 1
    del capsule
    gc.collect()
    assert memory.deleted == 1


@both_kinds
def test_capsule_is_accepted_once(versioned):
    """A1, A20"""
    memory = Memory(VALUES, versioned=versioned)
    capsule = memory.capsule()
    first = fuseline.swish(capsule)
    for _ in range(2):
        with pytest.raises(
            ValueError, match="x: the DLPack capsule is used already.*accepted: an object with __dlpack__"
        ):
            fuseline.swish(capsule)
    assert_swish(first)
    assert memory.deleted == 1


def test_one_capsule_for_two_arguments():
    memory = Memory(VALUES)
    capsule = memory.capsule()
    with pytest.raises(ValueError, match="x: the DLPack capsule is used already"):
        fuseline.swish_backward(capsule, capsule)
    assert memory.deleted == 1


def test_things_that_are_no_tensor_capsules():
    """A20"""
    other = _dlpack._new(1, b"something else", None)
    with pytest.raises(ValueError, match="x: is a capsule named 'something else'; accepted"):
        fuseline.swish(other)
    nameless = _dlpack._new(1, None, None)
    with pytest.raises(ValueError, match="x: is a capsule without a name"):
        fuseline.swish(nameless)

    class Wrong:
        def __dlpack__(self, **keywords):
            return 3

    with pytest.raises(TypeError, match="x: __dlpack__ returned int, no capsule"):
        fuseline.swish(Wrong())


@both_kinds
@pytest.mark.parametrize("deleter", [True, False])
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ({"dtype": (_dlpack.INT, 32, 1)}, TypeError, "x: dtype is int of 32 bits"),
        ({"dtype": (_dlpack.FLOAT, 32, 2)}, TypeError, "x: dtype has 2 lanes"),
        ({"ndim": -1}, ValueError, "x: ndim is -1"),
        ({"shape": "NULL", "ndim": 2}, ValueError, "x: shape is NULL with ndim 2"),
        ({"shape": (-3,)}, ValueError, "x: extent of axis 0 is -3"),
        ({"shape": (2**31, 2**31, 4)}, ValueError, "x: element count or memory extent overflows 64 bits at axis 0"),
        ({"null_data": True}, ValueError, "x: data is NULL with 6 elements"),
        ({"device": (7, 0)}, fuseline.DeviceError, "x: device type is 7"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_malformed_structures(versioned, deleter, fault, error, message):
    """A8, A18, C20: a clear error, and the deleter runs, if there is one."""
    if fault.get("shape") == "NULL":
        fault = {"shape": "NULL", "ndim": 2}
        memory = Memory(VALUES, shape=(), ndim=2, versioned=versioned, deleter=deleter)
        memory.structure.dl_tensor.shape = None
    else:
        memory = Memory(VALUES, versioned=versioned, deleter=deleter, **fault)
    with pytest.raises(error, match=message):
        fuseline.swish(Producer(memory))
    assert memory.deleted == int(deleter)


def test_deleters_of_earlier_arguments_run_when_a_later_one_fails():
    first, second = Memory(VALUES), Memory(VALUES, dtype=(_dlpack.INT, 8, 1))
    with pytest.raises(TypeError):
        fuseline.swish_backward(Producer(first), Producer(second))
    assert (first.deleted, second.deleted) == (1, 1)

    class Failing:
        def __dlpack__(self, **keywords):
            raise BufferError("no")

    third = Memory(VALUES)
    with pytest.raises(BufferError, match="^no$"):
        fuseline.swish_backward(Producer(third), Failing())
    assert third.deleted == 1


def test_structure_reused_by_its_producer():
    """A16: what is kept of the structure is a copy."""

    class Reusing(Producer):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            return capsule

    memory = Memory(VALUES)
    result = fuseline.swish(Reusing(memory))
    memory.structure.dl_tensor.data = None
    memory.structure.dl_tensor.shape[0] = 99
    assert result.shape == (6,)
    assert_swish(result)
    gc.collect()

    results, producers_ = [], [Producer(Memory(VALUES)) for _ in range(2)]
    threads = [
        threading.Thread(target=lambda p=p: results.extend(fuseline.swish(p) for _ in range(50))) for p in producers_
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 100
    for result in results:
        assert_swish(result)
    assert [p.memory.deleted for p in producers_] == [50, 50]


# --- keywords and versions ---


@pytest.mark.parametrize(
    ("accepts", "asked"),
    [
        ((), {}),
        (("stream",), {}),
        (("stream", "max_version"), {"max_version": (1, 0)}),
        (("stream", "max_version", "dl_device", "copy"), {"max_version": (1, 0)}),
    ],
)
def test_fewer_keywords_where_the_producer_knows_fewer(accepts, asked):
    """B2, F17: a producer on the CPU never gets a stream."""
    producer = Producer(Memory(VALUES), accepts)
    assert_swish(fuseline.swish(producer))
    assert producer.calls == [asked]


def test_fewer_keywords_with_a_plain_signature():
    """B2: the signature's own TypeError, not one that the test words."""
    memory = Memory(VALUES, versioned=False)

    class Old:
        def __dlpack__(self, stream=None):
            return memory.capsule()

    assert_swish(fuseline.swish(Old()))


def test_type_errors_from_inside_are_not_swallowed():
    """B2: only a TypeError about the signature leads to another try."""
    calls = []

    class Broken:
        def __dlpack__(self, **keywords):
            calls.append(keywords)
            raise TypeError("the element type has no DLPack code")

    with pytest.raises(TypeError, match="no DLPack code"):
        fuseline.swish(Broken())
    assert len(calls) == 1


@both_kinds
def test_what_came_back_counts_not_what_was_asked(versioned):
    """B3"""
    producer = Producer(Memory(VALUES, versioned=versioned))
    assert_swish(fuseline.swish(producer))
    assert producer.calls == [{"max_version": (1, 0)}]
    assert producer.memory.deleted == 1


def test_other_major_version():
    """Only the deleter is touched."""
    memory = Memory(VALUES, version=(2, 0), ndim=-7)
    with pytest.raises(fuseline.VersionError, match="x: DLPack version is 2.0; accepted: 1.x") as raised:
        fuseline.swish(Producer(memory))
    assert isinstance(raised.value, BufferError)
    assert memory.deleted == 1


def test_newer_minor_version_and_unknown_flags():
    memory = Memory(VALUES, version=(1, 9), flags=1 << 40)
    assert_swish(fuseline.swish(Producer(memory)))


def test_read_only_input_is_fine_and_output_is_not():
    memory, target = Memory(VALUES, flags=_dlpack.FLAG_READ_ONLY), Memory([7.0] * 6, flags=_dlpack.FLAG_READ_ONLY)
    assert_swish(fuseline.swish(Producer(memory)))
    with pytest.raises(fuseline.ReadOnlyError, match="out: is read-only"):
        fuseline.swish(Producer(memory), out=Producer(target))
    assert list(target.values) == [7.0] * 6
    assert (memory.deleted, target.deleted) == (2, 1)


def test_legacy_output_counts_as_read_only():
    """B12"""
    target = Memory([7.0] * 6, versioned=False)
    with pytest.raises(ValueError, match="out: is read-only, or a legacy DLPack capsule"):
        fuseline.swish(Producer(Memory(VALUES)), out=Producer(target))
    assert list(target.values) == [7.0] * 6 and target.deleted == 1


def test_versioned_output():
    target = Producer(Memory([7.0] * 6))
    assert fuseline.swish(Producer(Memory(VALUES)), out=target) is target
    np.testing.assert_allclose(list(target.memory.values), expected(), rtol=3e-7)
    assert target.memory.deleted == 1


# --- layouts ---


def test_byte_offset():
    """C1"""
    values = [float(k) for k in range(16)]
    assert_swish(fuseline.swish(Producer(Memory(values, shape=(8,), byte_offset=32))), values[8:])


@both_kinds
def test_strides_null(versioned):
    """C5"""
    result = fuseline.swish(Producer(Memory(VALUES, shape=(2, 3), strides=None, versioned=versioned)))
    np.testing.assert_allclose(np.from_dlpack(result), expected().reshape(2, 3), rtol=3e-7)


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((2, 3), (3, 1), [0, 1, 2, 3, 4, 5]),
        ((3, 2), (1, 3), [0, 3, 1, 4, 2, 5]),
        ((3,), (2,), [0, 2, 4]),
        ((2,), (3,), [0, 3]),
        ((4,), (0,), [0, 0, 0, 0]),
        ((2, 2), (3, 1), [0, 1, 3, 4]),
        ((1, 3), (99, 1), [0, 1, 2]),
        ((0, 3), (1, 1), []),
        ((2, 2, 2), (1, 0, 2), [0, 2, 0, 2, 1, 3, 1, 3]),
    ],
)
def test_strides(shape, strides, order):
    """C7, C9, C10, C17: also those that are copied first."""
    result = np.from_dlpack(fuseline.swish(Producer(Memory(VALUES, shape=shape, strides=strides))))
    assert result.shape == shape
    np.testing.assert_allclose(result.ravel(), expected()[order], rtol=3e-7)


def test_negative_stride():
    """C15"""
    memory = Memory(VALUES, strides=(-1,), byte_offset=20)
    assert_swish(fuseline.swish(Producer(memory)), VALUES[::-1])
    target = Producer(Memory(VALUES, strides=(-1,), byte_offset=20))
    with pytest.raises(
        fuseline.LayoutError, match="out: strides are \\(-1\\) for shape \\(6\\); accepted: .*contiguous"
    ):
        fuseline.swish(Producer(Memory(VALUES)), out=target)


def test_strides_on_a_gpu_of_an_unknown_library():
    """C15: the message names the strides and the remedy."""
    device = (_dlpack.CUDA, 0)
    x = Producer(Memory(VALUES, shape=(3,), strides=(2,), device=device), device=device)
    out = Producer(Memory(VALUES, shape=(3,), device=device), device=device)
    with pytest.raises(
        fuseline.LayoutError, match="x: strides are \\(2\\) for shape \\(3\\); .*copy it to a contiguous"
    ):
        fuseline.swish(x, out=out)
    assert (x.memory.deleted, out.memory.deleted) == (1, 1)


def test_zero_dimensions():
    """C13: shape is never read."""
    memory = Memory([1.5], shape=())
    memory.structure.dl_tensor.shape = ctypes.cast(8, ctypes.POINTER(ctypes.c_int64))
    result = fuseline.swish(Producer(memory))
    assert result.shape == ()
    assert float(np.from_dlpack(result)) == pytest.approx(1.2263616, rel=1e-6)


# --- dtypes and devices ---


@pytest.mark.parametrize("code", [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 99, 255])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_codes_that_are_no_supported_float(code, bits):
    """D4, D5: no unknown code is read as a float."""
    memory = Memory(VALUES, dtype=(code, bits, 1))
    with pytest.raises(TypeError, match=f"x: dtype is .* of {bits} bits \\(DLPack code {code}\\); accepted: float16"):
        fuseline.swish(Producer(memory))


@pytest.mark.parametrize(("code", "bits"), [(2, 8), (2, 128), (4, 32), (4, 8), (2, 0)])
def test_floats_of_other_widths(code, bits):
    """D7"""
    with pytest.raises(TypeError, match=f"of {bits} bits"):
        fuseline.swish(Producer(Memory(VALUES, dtype=(code, bits, 1))))


@pytest.mark.parametrize("device", [(_dlpack.CUDA_HOST, 5), (_dlpack.ROCM_HOST, 1), (_dlpack.CPU, 3)])
def test_host_memory_of_gpu_runtimes(device):
    """F4, F6: runs on the CPU, whatever the index."""
    result = fuseline.swish(Producer(Memory(VALUES, device=device), device=device))
    assert result.__dlpack_device__() == (1, 0)
    assert_swish(result)


@pytest.mark.parametrize(("device_type", "stream"), [(_dlpack.CUDA, 1), (_dlpack.CUDA_MANAGED, 1), (_dlpack.ROCM, 0)])
def test_stream_that_gpu_producers_are_told(device_type, stream):
    """F12: the default stream is 1 on CUDA and 0 on ROCm. Results need `out`, since nothing can be allocated there."""
    device = (device_type, 0)
    producer = Producer(Memory(VALUES, device=device), device=device)
    with pytest.raises(fuseline.DeviceError, match="out: is None, and the data is on a GPU"):
        fuseline.swish(producer)
    assert producer.calls == [{"stream": stream, "max_version": (1, 0)}]
    assert producer.memory.deleted == 1
    assert _dlpack.stream_number(device_type, 0x7F0012345678) == 0x7F0012345678


def test_devices_of_two_operands():
    """B13, F11: both named, nothing copied."""
    gpu = Producer(Memory(VALUES, device=(_dlpack.CUDA, 0)), device=(_dlpack.CUDA, 0))
    with pytest.raises(fuseline.DeviceError, match="x is on CPU device 0, but dy is on CUDA device 0|dy.*CUDA.*x.*CPU"):
        fuseline.swish_backward(gpu, Producer(Memory(VALUES)))


# --- references ---


def test_references_and_calls():
    """N5: a thousand round trips leave nothing behind."""
    import sys

    array = np.linspace(-3, 3, 100, dtype=np.float32)

    class Around:
        def __dlpack__(self, **keywords):
            return array.__dlpack__(**keywords)

    producer = Around()
    fuseline.swish(producer)
    before = sys.getrefcount(array), sys.getrefcount(producer)
    for _ in range(1000):
        fuseline.swish(producer)
        fuseline.swish(array)
    assert (sys.getrefcount(array), sys.getrefcount(producer)) == before
