"""What only a GPU shows: streams, graphs, sizes beyond 32 bits, errors of others. Two of them: test_several_gpus.py."""

import ctypes
import gc

import pytest
import torch

import fuseline
import reference
from devices import has_gpu, needs_gpu

pytestmark = needs_gpu

GPUS = torch.cuda.device_count() if has_gpu() else 0


@pytest.fixture
def way(torch_way):
    """The tests that take it run by each way to C that PyTorch has."""
    return torch_way


def needs_bytes(count):
    free = torch.cuda.mem_get_info()[0] if has_gpu() else 0
    if free < count * 1.05:
        pytest.skip(f"needs {count >> 30} GiB of GPU memory")


def sleep():
    """Keeps the current stream busy for long enough that unordered work would be seen."""
    torch.cuda._sleep(50_000_000)


# --- order ---


def test_side_stream(way):
    """I1, F15: the work is queued behind what the current stream holds, and before what follows."""
    x = torch.zeros(1 << 22, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        sleep()
        x.fill_(1.5)
        y = fuseline.swish(x)
        dx = fuseline.swish_backward(torch.ones((), device="cuda").expand_as(x), x)
        total = y.sum(dtype=torch.float64)
    stream.synchronize()
    assert total.item() / x.numel() == pytest.approx(1.2263616, rel=1e-6)
    assert dx[-1].item() == pytest.approx(reference.swish_backward(torch.ones(1), torch.tensor([1.5])).item(), rel=1e-6)


def test_call_does_not_wait(way):
    """A call returns while the stream is busy."""
    x = torch.ones(1 << 20, device="cuda")
    fuseline.swish(x)
    torch.cuda.synchronize()
    sleep()
    event = torch.cuda.Event()
    fuseline.swish(x)
    fuseline.swish(x.t() if x.ndim == 2 else x)
    event.record()
    assert not event.query()
    torch.cuda.synchronize()


def test_gradient_on_a_side_stream(way):
    stream = torch.cuda.Stream()
    x = torch.linspace(-4, 4, 1 << 20, device="cuda", requires_grad=True)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        sleep()
        fuseline.swish(x * 1).sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    exact = reference.swish_backward(torch.ones(1), x)
    torch.testing.assert_close(x.grad.cpu(), exact.float(), rtol=3e-6, atol=1e-7)


def test_graph_capture(way):
    """I7, I9: forward and backward, after a first call."""
    x = torch.linspace(-4, 4, 10_001, device="cuda", requires_grad=True)
    fuseline.swish(x).sum().backward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    x.grad = None
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            x.grad = None
            fuseline.swish(x).sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    x.grad = None
    with torch.cuda.graph(graph):
        y = fuseline.swish(x)
        y.sum().backward()
    for scale in (1.0, 0.5):
        with torch.no_grad():
            x.copy_(torch.linspace(-4, 4, 10_001, device="cuda") * scale)
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(y.detach().cpu(), reference.swish(x).float(), rtol=3e-7, atol=1e-9)
        torch.testing.assert_close(
            x.grad.cpu(), reference.swish_backward(torch.ones(1), x).float(), rtol=3e-6, atol=1e-7
        )


def test_nothing_else_is_launched():
    """I3: no copy, fill or synchronisation of ours: exactly one kernel for each call, as seen by PyTorch's profiler."""
    x = torch.ones(1 << 16, device="cuda")
    y = torch.empty_like(x)
    fuseline.swish(x, out=y)
    torch.cuda.synchronize()
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
        for _ in range(3):
            fuseline.swish(x, out=y)
        torch.cuda.synchronize()
    on_gpu = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    if not on_gpu:
        pytest.skip("the profiler sees no GPU here")
    assert all("swish" in event.name for event in on_gpu), [event.name for event in on_gpu]
    assert len(on_gpu) == 3


def test_memory_reused_on_another_stream():
    """I15: results are PyTorch's own memory, so its allocator keeps them apart between streams."""
    stream = torch.cuda.Stream()
    x = torch.full((1 << 20,), 1.5, device="cuda")
    torch.cuda.synchronize()
    for _ in range(200):
        with torch.cuda.stream(stream):
            y = fuseline.swish(x)
            z = y.clone()
        torch.full((1 << 20,), float("nan"), device="cuda")
        del y
        stream.synchronize()
        assert not z.isnan().any()


# --- devices ---


def test_current_device_is_left_alone():
    before = torch.cuda.current_device()
    for index in range(GPUS):
        fuseline.swish(torch.ones(3, device=f"cuda:{index}"))
        assert torch.cuda.current_device() == before


def test_errors_of_others_are_not_ours():
    """I12: a stale error of the runtime does not fail our call, and G17: an empty call leaves none."""
    fuseline.swish(torch.empty(0, device="cuda"))
    fuseline.swish(torch.empty(3, 0, device="cuda"))
    torch.cuda.synchronize()
    name = "libamdhip64.so" if torch.version.hip else "libcudart.so"
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if name in line}
    if not paths:
        pytest.skip(f"no {name} of PyTorch's to provoke an error in")
    runtime = ctypes.CDLL(paths.pop())
    set_device = runtime.hipSetDevice if torch.version.hip else runtime.cudaSetDevice
    assert set_device(99) != 0
    x = torch.ones(3)
    last = runtime.hipGetLastError if torch.version.hip else runtime.cudaGetLastError
    on_gpu = _stale_safe(x, last, set_device)
    torch.testing.assert_close(on_gpu.cpu(), torch.nn.functional.silu(x))


def _stale_safe(x, last, set_device):
    """Calls swish with an error of the runtime's pending, and clears it before PyTorch can find it."""
    last()
    tensor, out = x.cuda(), torch.empty(3, device="cuda")
    assert set_device(99) != 0
    fuseline.swish(tensor, out=out)
    last()
    return out


def test_generic_producer_with_out():
    """Objects of an unknown library, with memory for the result, on the default stream."""

    class Plain:
        def __init__(self, tensor):
            self.tensor = tensor
            self.streams = []

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, stream=None, **keywords):
            self.streams.append(stream)
            return self.tensor.__dlpack__(stream=stream, **keywords)

    x, out = Plain(torch.linspace(-3, 3, 1000, device="cuda")), Plain(torch.empty(1000, device="cuda"))
    assert fuseline.swish(x, out=out) is out
    torch.cuda.synchronize()
    assert x.streams == out.streams == [0 if torch.version.hip else 1]
    torch.testing.assert_close(out.tensor.cpu(), reference.swish(x.tensor).float(), rtol=3e-7, atol=1e-9)


# --- sizes ---


@pytest.mark.parametrize("count", [2**31 + 5, 2**32 + 7])
def test_more_elements_than_32_bits_count(count):
    """G2, G5, G7: first, last and middle elements of a flat tensor; written nowhere else."""
    gc.collect()
    torch.cuda.empty_cache()
    needs_bytes(2 * 2 * count)
    x = torch.empty(count, dtype=torch.bfloat16, device="cuda")
    step = 1 << 28
    for begin in range(0, count, step):
        x[begin : begin + step] = (begin // step) % 7 - 3
    x[-5:] = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0], dtype=torch.bfloat16)
    y = fuseline.swish(x)
    for begin in {0, 1, 2**31 - 4, 2**31 - 1, 2**31, count // 2, 2**32 - 3 if count > 2**32 else 0, count - 5}:
        piece = slice(begin, begin + 5)
        expected = reference.swish(x[piece]).to(torch.bfloat16)
        torch.testing.assert_close(y[piece].cpu(), expected, rtol=4e-3, atol=0)
    for begin in range(0, count - 5, step):
        end = min(begin + step, count - 5)
        assert (y[begin:end] == y[begin]).all(), f"elements {begin} to {end}"
    del y
    fuseline.swish(x, out=x)
    torch.testing.assert_close(
        x[-1:].cpu(), reference.swish(torch.tensor([-1.0])).to(torch.bfloat16), rtol=4e-3, atol=0
    )


def test_gradient_of_more_elements_than_32_bits_count():
    """With a broadcast gradient, which is read in place: it would not fit otherwise."""
    gc.collect()
    torch.cuda.empty_cache()
    count = 2**31 + 5
    needs_bytes(2 * 2 * count)
    x = torch.full((count,), 0.5, dtype=torch.bfloat16, device="cuda")
    x[-2:] = -1.0
    dx = fuseline.swish_backward(torch.ones((), dtype=torch.bfloat16, device="cuda").expand(count), x)
    exact = reference.swish_backward(torch.ones(4), x[-4:]).to(torch.bfloat16)
    torch.testing.assert_close(dx[-4:].cpu(), exact, rtol=4e-3, atol=0)
    assert (dx[:-2] == dx[0]).all()


def test_many_rows():
    """G3: row offsets beyond 32 bits, over a row-strided view."""
    gc.collect()
    torch.cuda.empty_cache()
    rows, width = 149_910, 14_336
    needs_bytes(2 * rows * width * 3)
    both = torch.empty(rows, 2 * width, dtype=torch.float16, device="cuda")
    both.fill_(7.0)
    x = both[:, width:]
    x.fill_(0.5)
    x[-1] = torch.linspace(-4, 4, width, dtype=torch.float16, device="cuda")
    y = fuseline.swish(x)
    assert torch.equal(y[-1], fuseline.swish(x[-1].clone()))
    assert (y[:-1] == y[0, 0]).all()


@pytest.mark.parametrize("count", [1, 31, 32, 33, 255, 256, 257, 1023, 1025, 65_535, 65_537, 1_000_003])
def test_sizes_around_blocks(dtype, count):
    x = torch.linspace(-8, 8, count + 1).to(dtype).cuda()[1:]
    y = fuseline.swish(x)
    exact = reference.swish(x)
    checked = reference.is_normal(exact, dtype)
    assert reference.ulps(y, exact)[checked].max() <= (0.51 if x.element_size() == 2 else 4)
