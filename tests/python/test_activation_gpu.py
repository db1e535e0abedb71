"""What only a GPU shows of the activation family: sizes beyond 32 bits, streams, graphs, how many kernels run."""

import gc

import pytest
import torch

import fuseline
from activations import FORMS, GATED, bias_in_form, values
from devices import has_gpu, needs_gpu

pytestmark = needs_gpu
by_form = pytest.mark.parametrize("form", list(FORMS))


def room(count):
    """Skips the test unless so many bytes of GPU memory are free."""
    gc.collect()
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0] if has_gpu() else 0
    if free < count * 1.05:
        pytest.skip(f"needs {count >> 30} GiB of GPU memory")


# --- sizes ---

ROWS, HIDDEN = 149_910, 14_336  # 2^31 and a little more, in elements


def filled(rows, columns, dtype, seed):
    """One repeated value, but for the last two rows; filled row by row would take long."""
    tensor = torch.full((rows, columns), 0.5, dtype=dtype, device="cuda")
    tensor[-2:] = values(2, columns, seed=seed, dtype=dtype, device="cuda")
    return tensor


def test_gelu_of_many_rows():
    """G3: row offsets beyond 32 bits; the last row against a run of that row alone."""
    room(2 * ROWS * HIDDEN * 3)
    x = filled(ROWS, HIDDEN, torch.float16, 1)
    for approximate in ("none", "tanh"):
        y = fuseline.gelu(x, approximate)
        assert torch.equal(y[-1], fuseline.gelu(x[-1], approximate))
        assert (y[:-2] == y[0, 0]).all()
        fuseline.gelu_backward(x[:1, :1].expand_as(x), x, approximate, out=y)
        assert torch.equal(y[-1], fuseline.gelu_backward(x[0], x[-1], approximate))


def test_swiglu_of_many_rows():
    """G3, forward and backward, with the row-strided halves of one tensor too."""
    room(2 * ROWS * HIDDEN * 5)
    both = filled(ROWS, 2 * HIDDEN, torch.float16, 1)
    gate, up = both.chunk(2, -1)
    y = fuseline.swiglu(gate, up)
    assert torch.equal(y[-1], fuseline.swiglu(gate[-1].clone(), up[-1].clone()))
    assert (y[:-2] == y[0, 0]).all()
    packed = fuseline.swiglu(both, out=y)
    assert torch.equal(packed[-1], fuseline.swiglu(both[-1].clone()))
    last = [tensor[-1].clone() for tensor in (gate, up)]
    dy = y[-1].clone()
    right = fuseline.swiglu_backward(dy, *last)
    fuseline.swiglu_backward(y, both, out=both)
    assert torch.equal(both[-1], torch.cat(right))
    assert (both[:-2, :HIDDEN] == both[0, 0]).all() and (both[:-2, HIDDEN:] == both[0, -1]).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_packed_just_over_32_bits(interleaved):
    """G2: rows * 2 * hidden just over 2^31, in bfloat16, with a bias: last row and the bias's gradient."""
    hidden = 4096
    rows = 2**31 // (2 * hidden) + 1
    room(2 * rows * hidden * 6)
    packed = filled(rows, 2 * hidden, torch.bfloat16, 1)
    bias = torch.full((2 * hidden,), 0.25, dtype=torch.bfloat16, device="cuda")
    y = fuseline.swiglu(packed, bias=bias, interleaved=interleaved)
    last = packed[-1:].clone()
    assert torch.equal(y[-1:], fuseline.swiglu(last, bias=bias, interleaved=interleaved))
    assert (y[:-2] == y[0, 0]).all()
    dy = torch.ones((), dtype=torch.bfloat16, device="cuda").expand_as(y)
    del y
    dpacked, dbias = fuseline.swiglu_backward(dy, packed, bias=bias, interleaved=interleaved)
    right, _ = fuseline.swiglu_backward(dy[-1:], last, bias=bias, interleaved=interleaved)
    assert torch.equal(dpacked[-1:], right)
    exact = (rows - 2) * dpacked[0].double() + dpacked[-2:].double().sum(0)
    torch.testing.assert_close(dbias.double(), exact, rtol=4e-3, atol=0)


def test_column_sum_of_more_elements_than_32_bits_count():
    columns = 1024
    rows = 2**32 // columns + 3
    room(2 * rows * columns)
    x = torch.zeros(rows, columns, dtype=torch.float16, device="cuda")
    x[0] = 1
    x[rows // 2] = 2
    x[-1] = 4
    assert (fuseline.column_sum(x) == 7).all()


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 255, 256, 257, 1023, 4096, 65_537])
@by_form
def test_sizes_around_blocks(dtype, columns, form):
    to_form, keywords, from_form = FORMS[form]
    gate, up, dy = (values(3, columns, seed=seed, dtype=dtype, device="cuda") for seed in (1, 2, 3))
    arrays = to_form(gate, up)
    exact = torch.nn.functional.silu(gate.double()) * up.double()
    rtol = {2: 4.5e-3 if dtype == torch.bfloat16 else 6e-4, 4: 5e-7, 8: 1e-14}[gate.element_size()]
    torch.testing.assert_close(fuseline.swiglu(*arrays, **keywords).double(), exact, rtol=rtol, atol=1e-6)
    grads = fuseline.swiglu_backward(dy, *arrays, **keywords)
    dgate, dup = from_form(grads if isinstance(grads, tuple) else (grads,))
    by_two = fuseline.swiglu_backward(dy, gate, up)
    assert torch.equal(dgate, by_two[0]) and torch.equal(dup, by_two[1])


# --- streams, graphs, launches ---


def layer(form, dtype=torch.bfloat16, bias=True):
    gate, up = (values(256, 512, seed=seed, dtype=dtype, device="cuda") for seed in (1, 2))
    to_form, keywords, _ = FORMS[form]
    leaves = [array.detach().clone().requires_grad_() for array in to_form(gate, up)]
    if bias:
        halves = (values(512, seed=seed, dtype=dtype, device="cuda") for seed in (3, 4))
        keywords = {**keywords, "bias": bias_in_form(form, *halves).requires_grad_()}
        return leaves, keywords, [*leaves, keywords["bias"]]
    return leaves, keywords, leaves


@by_form
def test_side_stream(form):
    """All work, the column sums too, is queued on the current stream."""
    leaves, keywords, needed = layer(form)
    dy = values(256, 512, seed=9, dtype=torch.bfloat16, device="cuda")
    expected = torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        with torch.no_grad():
            for leaf in leaves:
                leaf.mul_(2)
        torch.cuda._sleep(50_000_000)
        with torch.no_grad():
            for leaf in leaves:
                leaf.mul_(0.5)
        grads = torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy)
        copies = [grad.clone() for grad in grads]
    stream.synchronize()
    assert all(torch.equal(mine, right) for mine, right in zip(copies, expected))


@by_form
def test_graph_capture(form):
    leaves, keywords, needed = layer(form)
    dy = values(256, 512, seed=9, dtype=torch.bfloat16, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = fuseline.swiglu(*leaves, **keywords)
        grads = torch.autograd.grad(y, needed, dy)
    for scale in (1.0, 0.5):
        with torch.no_grad():
            for leaf in leaves:
                leaf.mul_(scale)
        graph.replay()
        torch.cuda.synchronize()
        again = fuseline.swiglu(*leaves, **keywords)
        right = torch.autograd.grad(again, needed, dy)
        assert torch.equal(y, again)
        assert all(torch.equal(mine, other) for mine, other in zip(grads, right))


def kernels_of(function):
    """The names of what runs on the GPU."""
    function()
    torch.cuda.synchronize()
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    found = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    if not found:
        pytest.skip("the profiler sees no GPU here")
    return found


@by_form
def test_one_kernel_forward_and_one_backward(form):
    """No copy, no cat, no fill: also for a gradient that is broadcast."""
    for operator in GATED:
        leaves, keywords, needed = layer(form, bias=False)
        broadcast = torch.ones((), dtype=torch.bfloat16, device="cuda").expand(256, 512)
        for dy in (values(256, 512, seed=9, dtype=torch.bfloat16, device="cuda"), broadcast):

            def both(operator=operator, leaves=leaves, keywords=keywords, needed=needed, dy=dy):
                torch.autograd.grad(operator.forward(*leaves, **keywords, **operator.options), needed, dy)

            names = kernels_of(both)
            assert len(names) == 2, names


def test_a_bias_costs_its_column_sum():
    leaves, keywords, needed = layer("packed")
    dy = values(256, 512, seed=9, dtype=torch.bfloat16, device="cuda")
    names = kernels_of(lambda: torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy))
    assert len(names) == 3 and sum("column_sum" in name for name in names) == 1, names


def test_the_same_bits_at_every_call():
    """Sums take no atomic additions."""
    leaves, keywords, needed = layer("packed", torch.float32)
    dy = values(256, 512, seed=9, device="cuda")
    first = torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy)
    for _ in range(10):
        again = torch.autograd.grad(fuseline.swiglu(*leaves, **keywords), needed, dy)
        assert all(torch.equal(mine, other) for mine, other in zip(again, first))
