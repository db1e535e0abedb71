"""Outputs that share memory with what they must not are refused before anything is written, by whatever way."""

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import fuseline
from activations import values
from fuseline import _dlpack
from fuseline._overlap import Footprint
from producers import Memory, Producer

# --- footprints: NumPy's own answer is exact ---


@st.composite
def views(draw):
    """A view of few elements with any strides, into the middle of a buffer that holds it: (offset, shape, strides)."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    strides = draw(st.lists(st.integers(-12, 12), min_size=len(shape), max_size=len(shape)))
    return draw(st.integers(0, 40)) + 150, tuple(shape), tuple(strides)


BUFFER = np.zeros(400, np.float32)


def as_array(view):
    offset, shape, strides = view
    return np.lib.stride_tricks.as_strided(BUFFER[offset:], shape, [4 * stride for stride in strides])


def as_footprint(view, bits=32):
    offset, shape, strides = view
    address = BUFFER.__array_interface__["data"][0] + offset * 4
    return Footprint(_dlpack.describe(address, shape, strides, (_dlpack.FLOAT, bits), (_dlpack.CPU, 0)))


@hypothesis.given(views(), views())
@hypothesis.settings(max_examples=400)
def test_shared_memory(a, b):
    assert as_footprint(a).shares_memory(as_footprint(b)) == np.shares_memory(as_array(a), as_array(b))


@hypothesis.given(views())
@hypothesis.settings(max_examples=400)
def test_elements_that_overlap(view):
    _, shape, strides = view
    places = [int(np.dot(index, strides)) for index in np.ndindex(*shape)]
    assert as_footprint(view).overlaps_itself() == (len(set(places)) < len(places))


def test_elements_of_other_sizes():
    short = Footprint(_dlpack.describe(1000, (3,), (4,), (_dlpack.FLOAT, 16), (_dlpack.CPU, 0)))  # 1000, 1008, 1016

    def long(address):
        return Footprint(_dlpack.describe(address, (3,), (1,), (_dlpack.FLOAT, 64), (_dlpack.CPU, 0)))

    assert [long(976 + k).shares_memory(short) for k in (0, 1, 24)] == [False, True, True]
    assert [long(1000 + k).shares_memory(short) for k in (16, 17, 18)] == [True, True, False]


def test_large_tensors_take_no_time():
    matrix = as_footprint((0, (1 << 20, 1 << 20), (1 << 21, 1)))
    other = as_footprint((1 << 20, (1 << 20, 1 << 20), (1 << 21, 1)))
    assert not matrix.shares_memory(other) and not matrix.overlaps_itself()
    assert matrix.shares_memory(as_footprint((1 << 19, (1 << 20, 1 << 20), (1 << 21, 1))))


# --- calls ---


class Torch:
    """Views of one buffer, by offset, shape and strides."""

    def __init__(self):
        self.buffer = values(400, seed=1)

    def view(self, offset, shape, strides):
        return self.buffer.as_strided(shape, strides, offset)

    def read(self):
        return self.buffer.clone()


class NumPy:
    def __init__(self):
        self.buffer = values(400, seed=1).numpy()

    def view(self, offset, shape, strides):
        return np.lib.stride_tricks.as_strided(self.buffer[offset:], shape, [4 * stride for stride in strides])

    def read(self):
        return torch.from_numpy(self.buffer.copy())


class DLPack:
    """Producers that nobody knows."""

    def __init__(self):
        self.memory = Memory(values(400, seed=1).tolist())

    def view(self, offset, shape, strides):
        view = Memory([0.0], shape, strides, byte_offset=4 * offset)
        view.values = self.memory.values
        view.structure.dl_tensor.data = self.memory.structure.dl_tensor.data
        return Producer(view)

    def read(self):
        return torch.tensor(list(self.memory.values))


@pytest.fixture(params=[Torch, NumPy, DLPack])
def memory(request):
    return request.param()


def refused(memory, message, function, *arguments, **keywords):
    before = memory.read()
    with pytest.raises(fuseline.OverlapError, match=message):
        function(*arguments, **keywords)
    assert torch.equal(memory.read(), before), "written to"


PACKED = (0, (3, 8), (8, 1))  # in elements 0 to 23
BIAS = (30, (8,), (1,))
DY = (40, (3, 4), (4, 1))
GRADIENT = (60, (3, 8), (8, 1))  # 60 to 83


@pytest.mark.parametrize(
    ("dbias", "message"),
    [
        ((60, (8,), (1,)), r"out\[1\]: overlaps out\[0\] in memory; accepted: outputs apart from each other"),
        ((83, (8,), (1,)), r"out\[1\]: overlaps out\[0\]"),
        ((61, (8,), (8,)), r"out\[1\]: overlaps out\[0\]"),
        ((100, (8,), (0,)), r"out\[1\]: strides are \(0,\) for shape \(8,\), so that its elements overlap; accepted"),
        ((8, (8,), (1,)), r"out\[1\]: overlaps gate in memory without being the same elements"),
        ((31, (8,), (1,)), r"out\[1\]: overlaps bias in memory"),
        ((37, (8,), (-1,)), r"out\[1\]: overlaps bias in memory"),
        ((44, (8,), (1,)), r"out\[1\]: overlaps dy in memory"),
    ],
)
def test_bias_gradient(memory, dbias, message):
    view = memory.view
    if min(dbias[2]) < 0 and isinstance(memory, Torch):
        pytest.skip("torch has no negative strides")
    out = view(*GRADIENT), view(*dbias)
    refused(memory, message, fuseline.swiglu_backward, view(*DY), view(*PACKED), bias=view(*BIAS), out=out)


def test_bias_gradient_that_is_the_bias(memory):
    view = memory.view
    right = fuseline.swiglu_backward(view(*DY), view(*PACKED), bias=view(*BIAS))[1]
    fuseline.swiglu_backward(view(*DY), view(*PACKED), bias=view(*BIAS), out=(view(*GRADIENT), view(*BIAS)))
    assert torch.equal(memory.read()[30:38], torch.from_dlpack(right))


@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (2, 1)])
def test_results_that_overlap_themselves(memory, strides):
    view, message = memory.view, r"out: strides are \(., .\) for shape \(3, 4\), so that its elements overlap; accepted"
    out = view(100, (3, 4), strides)
    refused(memory, message, fuseline.swiglu, view(*PACKED), out=out)
    refused(memory, message, fuseline.swish, view(*DY), out=out)
    refused(memory, message, fuseline.relu2_backward, view(*DY), view(*DY), out=out)
    refused(memory, r"out: strides are \(0,\)", fuseline.column_sum, view(*DY), out=view(100, (4,), (0,)))
    half = view(120, (3, 4), (4, 1))
    refused(memory, r"out\[0\]: strides", fuseline.reglu_backward, view(*DY), view(*DY), view(*DY), out=(out, half))


STEPPED = (0, (3, 4), (20, 2))  # every other column, which no kernel walks


@pytest.mark.parametrize("of", ["x", "out", "both"])
def test_strides_that_need_a_copy(memory, of):
    """Where results are copied into `out`, an overlap is as wrong as where kernels write it."""
    view = memory.view
    x = view(*(STEPPED if of != "out" else (0, (3, 4), (20, 1))))
    for offset in (2, 20, 40):
        out = view(offset, (3, 4), (20, 2) if of != "x" else (20, 1))
        refused(memory, "out: overlaps x in memory without being", fuseline.swish, x, out=out)
    up = view(200, (3, 4), (4, 1))
    outs = view(100, (3, 4), (20, 2)), view(104, (3, 4), (20, 2))
    refused(memory, r"out\[.\]: overlaps out\[.\] in memory", fuseline.geglu_backward, up, x, up, out=outs)
    refused(memory, "out: overlaps x", fuseline.column_sum, view(*STEPPED), out=view(2, (4,), (2,)))


def test_what_is_accepted_where_strides_need_a_copy():
    """In place, and between the elements of others: as where they need none."""
    for memory in (Torch(), NumPy()):  # what nobody knows is never copied into
        view = memory.view
        x, y = view(*STEPPED), view(100, (3, 4), (4, 1))
        for target in (STEPPED, (1, *STEPPED[1:])):
            fuseline.swish(view(*STEPPED), out=y)
            right = memory.read()[100:112].view(3, 4)
            fuseline.swish(x, out=view(*target))
            assert torch.equal(memory.read().as_strided(target[1], target[2], target[0]), right)
        # halves, and turns, of a packed input that is no two rows
        for keywords, shape, strides in (({}, (3, 4), (30, 2)), ({"interleaved": True}, (3, 4), (30, 4))):
            packed = view(200, (3, 8), (30, 2))
            expected = torch.from_dlpack(fuseline.reglu(packed, **keywords)).clone()
            for start in (0, 8 if not keywords else 2):
                kept = memory.read()
                fuseline.reglu(packed, out=view(200 + start, shape, strides), **keywords)
                assert torch.equal(memory.read().as_strided(shape, strides, 200 + start), expected)
                memory.view(0, (400,), (1,))[:] = kept if isinstance(memory, Torch) else kept.numpy()
            wrong = view(200 + (8 if keywords else 2), (3, 4), (30, 2))
            refused(memory, "out: overlaps gate", fuseline.reglu, packed, out=wrong, **keywords)
        # gradients into both halves of one buffer, of an input that needs a copy
        grads = view(300, (3, 4), (8, 1)), view(304, (3, 4), (8, 1))
        fuseline.reglu_backward(view(*DY), x, view(*DY), out=grads)


def test_a_bias_gradient_on_another_device():
    memory = DLPack()
    view = memory.view
    other = Memory([0.0] * 8, device=(_dlpack.CUDA, 1))
    before = memory.read()
    with pytest.raises(fuseline.DeviceError, match=r"out\[1\] is on CUDA device 1, but bias is on CPU device 0"):
        fuseline.swiglu_backward(
            view(*DY), view(*PACKED), bias=view(*BIAS), out=(view(*GRADIENT), Producer(other, device=(_dlpack.CUDA, 1)))
        )
    assert torch.equal(memory.read(), before)


def test_a_bias_gradient_whose_strides_cannot_be_served():
    """Nor is anything written where the sums could not be; gradients that column sums do not walk are no hindrance."""
    memory = DLPack()
    view = memory.view
    before = memory.read()
    with pytest.raises(fuseline.LayoutError, match=r"out\[1\]: strides are \(2,\); accepted: \(1,\)"):
        out = view(*GRADIENT), view(100, (8,), (2,))
        fuseline.swiglu_backward(view(*DY), view(*PACKED), bias=view(*BIAS), out=out)
    assert torch.equal(memory.read(), before)
    with pytest.raises(ValueError, match="^bias: shape is"):
        fuseline.swiglu_backward(
            view(*DY), view(*PACKED), bias=view(30, (), ()), out=(view(*GRADIENT), view(100, (), ()))
        )
    columns = (3, 4), (1, 3)
    given = view(0, *columns), view(12, *columns), view(*DY)
    right = torch.from_dlpack(fuseline.swiglu_backward(*given, bias=view(*BIAS))[2])
    fuseline.swiglu_backward(
        *given, bias=view(*BIAS), out=(view(200, *columns), view(212, *columns), view(300, (8,), (1,)))
    )
    assert torch.equal(memory.read()[300:308], right)


def test_inputs_that_need_a_copy_are_no_hindrance_for_out(memory):
    view = memory.view
    x = view(*STEPPED)
    right = torch.from_dlpack(fuseline.swish(x))
    for strides in ((4, 1), (1, 3)):
        fuseline.swish(x, out=view(300, (3, 4), strides))
        assert torch.equal(memory.read().as_strided((3, 4), strides, 300), right)
