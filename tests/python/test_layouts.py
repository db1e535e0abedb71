"""Shapes and strides of PyTorch tensors: the same numbers as for contiguous copies, and no needless copies."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fuseline
import reference
from devices import everywhere
from fuseline import _torch


def assert_swish(x, y, beta=1.0):
    """y is swish(x), to the accuracy of its type."""
    assert y.shape == x.shape and y.dtype == x.dtype and y.device == x.device
    exact = reference.swish(x, beta)
    checked = reference.is_normal(exact, x.dtype)
    if checked.any():
        assert reference.ulps(y, exact)[checked].max() <= (0.51 if x.element_size() == 2 else 4)


def normal(*shape, device="cpu", dtype=torch.float32):
    """Values that differ at every position, so that a mixed-up index shows."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


def dense_layouts(device, dtype):
    yield "C", normal(3, 5, 7, device=device, dtype=dtype)
    yield "Fortran", normal(5, 7, device=device, dtype=dtype).t()
    yield "channels_last", normal(2, 3, 4, 5, device=device, dtype=dtype).to(memory_format=torch.channels_last)
    for order in itertools.permutations(range(3)):
        yield f"permuted {order}", normal(2, 3, 4, device=device, dtype=dtype).permute(order)
    yield "offset", normal(40, device=device, dtype=dtype)[3:]
    yield "0-dim", normal(1, device=device, dtype=dtype)[0]


def copied_layouts(device, dtype):
    yield "every second (H6, H8)", normal(31, device=device, dtype=dtype)[::2]
    yield "every second column", normal(6, 8, device=device, dtype=dtype)[:, ::2]
    yield "block of a cube", normal(4, 5, 6, device=device, dtype=dtype)[1:3, 1:4, 2:5]
    yield "expanded inside", normal(2, 1, 3, device=device, dtype=dtype).expand(2, 4, 3)
    yield "diagonal", normal(5, 5, device=device, dtype=dtype).diagonal()


def row_layouts(device, dtype):
    yield "second chunk", normal(6, 10, device=device, dtype=dtype).chunk(2, -1)[1]
    yield "split heads (H9)", normal(8, 24, device=device, dtype=dtype).split(12, -1)[0].view(8, 3, 4)
    yield "column slice (C17)", torch.arange(6.0, device=device, dtype=dtype).reshape(2, 3)[:, 0:2]
    yield "odd rows (G23)", normal(9, 7, device=device, dtype=dtype)[:, :5]


@pytest.mark.parametrize("layouts", [dense_layouts, row_layouts, copied_layouts])
def test_forward_and_gradient(device, dtype, layouts):
    for name, x in layouts(device, dtype):
        before = x.clone()
        assert_swish(x, fuseline.swish(x)), name
        leaf = x.detach().requires_grad_()
        dy = normal(*x.shape, device=device, dtype=dtype) if x.ndim else torch.ones_like(x)
        kept = dy.clone()
        fuseline.swish(leaf).backward(dy)
        exact = reference.swish_backward(dy, x).to(dtype)
        torch.testing.assert_close(leaf.grad.cpu(), exact, rtol=8e-3 if x.element_size() == 2 else 2e-6, atol=1e-6)
        assert torch.equal(x, before), f"{name}: x was written to"
        assert torch.equal(dy, kept), f"{name}: the gradient was written to (H4)"


def test_dense_results_keep_the_dimension_order(device):
    for name, x in dense_layouts(device, torch.float32):
        assert fuseline.swish(x).stride() == x.stride(), name
    x = normal(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last)
    assert fuseline.swish(x).is_contiguous(memory_format=torch.channels_last)


@pytest.fixture
def no_copies(monkeypatch):
    """Fails the test if the Python layer copies an input."""

    def refuse(self, tensor, order):
        raise AssertionError(f"copied strides {tensor.stride()}")

    monkeypatch.setattr(_torch.TorchAdapter, "arrange", refuse)


def test_what_is_read_in_place(no_copies, device):
    for _, x in itertools.chain(dense_layouts(device, torch.float32), row_layouts(device, torch.float32)):
        assert_swish(x, fuseline.swish(x))


@pytest.mark.parametrize("shape", [(5,), (4, 6), (2, 3, 4)])
def test_broadcast_gradient_is_read_in_place(no_copies, device, shape):
    """H1: what sum().backward() hands to the backward function."""
    x = normal(*shape, device=device).requires_grad_()
    fuseline.swish(x).sum().backward()
    torch.testing.assert_close(
        x.grad.cpu(), reference.swish_backward(torch.ones(shape), x).float(), rtol=2e-6, atol=1e-7
    )


@pytest.mark.parametrize("of", ["row", "column"])
def test_gradient_broadcast_along_one_dimension(no_copies, device, of):
    x = normal(6, 8, device=device)
    dy = (normal(8, device=device) if of == "row" else normal(6, 1, device=device)).expand(6, 8)
    dx = fuseline.swish_backward(dy, x)
    torch.testing.assert_close(dx.cpu(), reference.swish_backward(dy, x).float(), rtol=2e-6, atol=1e-7)


def test_transposed_gradient(device):
    x, dy = normal(6, 8, device=device), normal(8, 6, device=device).t()
    for gradient in (dy, dy[:, :].clone()):
        dx = fuseline.swish_backward(gradient, x)
        torch.testing.assert_close(dx.cpu(), reference.swish_backward(dy, x).float(), rtol=2e-6, atol=1e-7)


def test_gradient_of_a_broadcast_weight(device):
    """H5: a copy must read stride 0 as repetition."""
    weight = normal(1, 1, device=device).requires_grad_()
    fuseline.swish((weight * torch.ones(3, 4, device=device)).t()).sum().backward()
    expected = reference.swish_backward(torch.ones(1, 1), weight) * 12
    torch.testing.assert_close(weight.grad.cpu(), expected.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (10, 0), (0, 10), (3, 0, 5), (1, 8, 0, 128)])
def test_no_elements(device, dtype, shape):
    """C10, G18, M17"""
    x = torch.empty(shape, dtype=dtype, device=device, requires_grad=True)
    y = fuseline.swish(x)
    assert y is not x and y.shape == shape and y.dtype == dtype
    y.sum().backward()
    assert x.grad.shape == shape
    strided = torch.empty((4, *shape), dtype=dtype, device=device)[::2]
    assert fuseline.swish(strided).shape == strided.shape


def test_strides_of_single_elements_do_not_matter(device):
    """C7, C9"""
    base = normal(16, device=device)
    for x in (
        base[::3][:1],
        base.as_strided((1, 4, 1), (77, 1, 0)),
        base[5].expand(1),
        base[5].expand(1, 1, 1),
        base.as_strided((1,), (3,)),
        base[2:3].t(),
    ):
        assert_swish(x, fuseline.swish(x))


def test_scalar(device):
    """C13"""
    y = fuseline.swish(torch.tensor(1.5, device=device))
    assert y.shape == () and y.item() == pytest.approx(1.2263616, rel=1e-6)


@everywhere
@pytest.mark.parametrize("offset", range(17))
def test_alignment(device, dtype, offset):
    """Base addresses at every element offset, so at every offset from 16 bytes."""
    for length in (1, 15, 16, 33, 1000):
        buffer = normal(length + 17, device=device, dtype=dtype)
        x = buffer[offset : offset + length]
        assert_swish(x, fuseline.swish(x))
        out = torch.zeros_like(buffer)
        fuseline.swish(x, out=out[offset : offset + length])
        assert_swish(x, out[offset : offset + length])
        assert not out[:offset].any() and not out[offset + length :].any()


def test_large(device):
    """Large enough for threads, at a size that divides by nothing."""
    x = normal(1_000_003, device=device)
    assert_swish(x, fuseline.swish(x))
    rows = normal(1009, 2003, device=device)[:, :1001]
    assert_swish(rows, fuseline.swish(rows))
    dx = fuseline.swish_backward(torch.ones(1, 1, device=device).expand(1009, 1001), rows)
    torch.testing.assert_close(dx.cpu(), reference.swish_backward(torch.ones(()), rows).float(), rtol=2e-6, atol=3e-7)


@st.composite
def views(draw):
    """A view of random shape, slices, permutation and expansion."""
    shape = draw(st.lists(st.integers(0, 5), min_size=0, max_size=4))
    x = normal(*shape) if shape else normal(1)[0]
    for axis in range(x.ndim):
        start, step = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        x = x[(slice(None),) * axis + (slice(start, None, step),)]
    if x.ndim:
        x = x.permute(draw(st.permutations(range(x.ndim))))
    if draw(st.booleans()):
        x = x.unsqueeze(draw(st.integers(0, x.ndim)))
        grown = [draw(st.integers(1, 3)) if extent == 1 else extent for extent in x.shape]
        x = x.expand(grown)
    return x


@given(x=views(), dy=views())
def test_any_view(x, dy):
    assert_swish(x, fuseline.swish(x))
    if dy.shape != x.shape:
        with pytest.raises(ValueError, match="shape"):
            fuseline.swish_backward(dy, x)
    axes = range(x.ndim)[::-1]
    out = torch.full(x.shape[::-1], 7.0).permute(list(axes))
    torch.testing.assert_close(fuseline.swish(x, out=out), fuseline.swish(x))


@given(x=views(), data=st.data())
def test_gradient_for_any_view(x, data):
    generator = torch.Generator().manual_seed(0)
    dy = torch.randn(x.shape, generator=generator)
    if x.ndim:
        order = data.draw(st.permutations(range(x.ndim)))
        dy = dy.permute(order).contiguous().permute([order.index(axis) for axis in range(x.ndim)])
    expected = reference.swish_backward(dy, x).float()
    torch.testing.assert_close(fuseline.swish_backward(dy, x), expected, rtol=2e-6, atol=1e-7)


# --- outputs that the caller supplies ---


@everywhere
def test_out(device, dtype):
    x = normal(4, 6, device=device, dtype=dtype)
    for out in (
        torch.empty_like(x),
        torch.empty(6, 4, device=device, dtype=dtype).t(),
        torch.empty(4, 12, device=device, dtype=dtype)[:, ::2],
        torch.empty(8, 12, device=device, dtype=dtype)[::2, 3:9],
    ):
        assert fuseline.swish(x, out=out) is out
        assert_swish(x, out)


def test_in_place(device, dtype):
    for x in (normal(4, 6, device=device, dtype=dtype), normal(4, 12, device=device, dtype=dtype)[:, ::2]):
        before = x.clone()
        assert fuseline.swish(x, out=x) is x
        assert_swish(before, x)
    for place in (0, 1):
        operands = [normal(4, 6, device=device), normal(6, 4, device=device).t().contiguous()]
        expected = reference.swish_backward(*operands).float()
        fuseline.swish_backward(*operands, out=operands[place])
        torch.testing.assert_close(operands[place].cpu(), expected, rtol=2e-6, atol=1e-7)


def test_overlap_is_refused(device):
    buffer = normal(40, device=device)
    for x, out in ((buffer[:20], buffer[1:21]), (buffer[4:24], buffer[:20])):
        before = buffer.clone()
        with pytest.raises(fuseline.OverlapError, match="out: overlaps x"):
            fuseline.swish(x, out=out)
        assert torch.equal(buffer, before)


def test_rows_side_by_side_do_not_overlap(device):
    both = normal(6, 10, device=device)
    x, out = both.chunk(2, -1)
    fuseline.swish(x, out=out)
    assert_swish(x, out)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (torch.empty(4), "out: shape is \\(4\\), but x is \\(3\\)"),
        (torch.empty(3, 1), "out: shape"),
        (torch.empty(3, dtype=torch.float64), "out: dtype is float64, but x is float32"),
        ([0.0] * 3, "out: is list; accepted: torch.Tensor"),
    ],
)
def test_wrong_out(out, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fuseline.swish(torch.ones(3), out=out)
