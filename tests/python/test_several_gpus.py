"""Several GPUs in one machine: one process that uses two of them, by turns and at once. Skipped where there is one.

What one GPU shows, of streams, graphs and sizes, is in test_gpu.py; several processes are in test_dtensor.py and in
tests/scripts/test_examples.py.
"""

import contextlib
import ctypes
import importlib.util
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import fuseline
import reference
from activations import GATED, UNARY, assert_near, exact_gradients, off_the_limit, operator_named, values, wide
from cupy_arrays import filled_late
from devices import has_gpu
from process import run_python

GPUS = torch.cuda.device_count() if has_gpu() else 0
pytestmark = pytest.mark.skipif(GPUS < 2, reason=f"needs two GPUs that PyTorch can use; it finds {GPUS}")

BOTH = 0, 1
by_operator = pytest.mark.parametrize("operator", [*UNARY, *GATED], ids=repr)
by_current = pytest.mark.parametrize("current", BOTH, ids=["current 0", "current 1"])
SWISH, SWIGLU, GELU = map(operator_named, ("swish", "swiglu", "gelu"))


@pytest.fixture(autouse=True)
def both_are_ready():
    """PyTorch has a context on each, so that a change of what is current is nobody's first use."""
    for index in BOTH[::-1]:
        torch.cuda.set_device(index)
        torch.zeros(1, device=f"cuda:{index}")
    yield
    assert torch.cuda.current_device() == 0


@pytest.fixture
def way(torch_way):
    """The tests that take it run by each way to C that PyTorch has."""
    return torch_way


def is_two(operator):
    return operator in GATED


def _context():
    """The driver's own notion of what is current; None where it is not NVIDIA's."""
    if torch.version.hip:
        return None
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value


def _state():
    return torch.cuda.current_device(), _context(), [torch.cuda.current_stream(index).cuda_stream for index in BOTH]


@contextlib.contextmanager
def nothing_changes():
    """The current device and every device's current stream are at the end what they were at the beginning."""
    before = _state()
    yield
    assert _state() == before


def in_threads(count, work):
    """Runs work(index) in threads at once; raises what one of them raised."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))


def sleep(index, cycles):
    """Keeps a GPU's current stream busy, so that work on a wrong one comes too early. 2 million cycles: about 1 ms."""
    with torch.cuda.device(index):
        torch.cuda._sleep(cycles)


def synchronize():
    for index in BOTH:
        torch.cuda.synchronize(index)


# --- one process, by turns ---


def operands(operator, seed, shape=(37, 41)):
    """float64 leaves on the CPU: x, or gate and up; the result's gradient; and one for each leaf's gradient."""
    count = 2 if is_two(operator) else 1
    tensors = [values(*shape, seed=seed + k, dtype=torch.float64) for k in range(2 * count + 1)]
    inputs = off_the_limit(operator, *tensors[:count])
    return [tensor.requires_grad_() for tensor in (*inputs, tensors[count])], tensors[count + 1 :]


def derivatives(function, leaves, others):
    """The result, the gradients, and the second derivatives, of a function of all leaves but the last, which is dy."""
    *inputs, dy = leaves
    y = function(*inputs)
    first = torch.autograd.grad(y, inputs, dy, create_graph=True)
    second = torch.autograd.grad(first, leaves, others, allow_unused=True)
    second = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, second)]
    return [y, *first, *second]


def on_gpu(operator, index, seed):
    """The same on a GPU, by fuseline. Queued, not waited for."""
    leaves, others = operands(operator, seed)
    leaves = [leaf.detach().to(f"cuda:{index}").requires_grad_() for leaf in leaves]
    others = [other.to(f"cuda:{index}") for other in others]
    with nothing_changes():
        y = operator.forward(*leaves[:-1], **operator.options)
    assert y.device.index == index
    with nothing_changes():
        return derivatives(lambda *inputs: operator.forward(*inputs, **operator.options), leaves, others)


def assert_derivatives(operator, seed, found):
    right = derivatives(operator.exact, *operands(operator, seed))
    assert len(found) == len(right)
    for number, (ours, theirs) in enumerate(zip(found, right)):
        what = f"{operator}, result {number} on {ours.device}"
        torch.testing.assert_close(
            ours.detach().cpu(), theirs.detach(), rtol=1e-10, atol=1e-10, msg=lambda m, what=what: f"{what}: {m}"
        )


@by_operator
@by_current
def test_by_turns(way, operator, current):
    """F8, I4: forward, backward and double backward on both, with values that differ, whichever is current."""
    with torch.cuda.device(current):
        found = [(index, turn, on_gpu(operator, index, 10 * turn + index)) for turn in range(3) for index in BOTH]
        assert torch.cuda.current_device() == current
    for index, turn, results in found:
        assert all(result.device.index == index for result in results)
        assert_derivatives(operator, 10 * turn + index, results)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@by_current
def test_forms_by_turns(way, dtype, current):
    """Two tensors, packed ones, interleaved ones, a bias and its gradient, column sums, results that are given."""
    made = []
    with torch.cuda.device(current):
        for turn in range(2):
            for index in BOTH:
                gate, up, dy = (
                    values(64, 48, seed=10 * turn + 3 * index + k, dtype=dtype, device=f"cuda:{index}")
                    for k in range(3)
                )
                packed = torch.cat((gate, up), -1)
                pairs = torch.stack((gate, up), -1).flatten(-2)
                bias = torch.zeros(96, dtype=dtype, device=f"cuda:{index}")
                out = torch.empty_like(gate)
                with nothing_changes():
                    results = {
                        "two": fuseline.swiglu(gate, up),
                        "packed": fuseline.swiglu(packed),
                        "interleaved": fuseline.swiglu(pairs, interleaved=True),
                        "bias": fuseline.swiglu(packed, bias=bias),
                    }
                with nothing_changes():
                    assert fuseline.swiglu(gate, up, out=out) is out
                with nothing_changes():
                    gradients = fuseline.swiglu_backward(dy, gate, up)
                with nothing_changes():
                    dpacked, dbias = fuseline.swiglu_backward(dy, packed, bias=bias)
                with nothing_changes():
                    total = fuseline.column_sum(dy)
                made.append((gate, up, dy, {**results, "out": out}, gradients, dpacked, dbias, total))
    for gate, up, dy, results, gradients, dpacked, dbias, total in made:
        exact, exact_grads = exact_gradients(SWIGLU, (gate, up), dy)
        for name, result in results.items():
            assert result.device == gate.device
            assert_near(result, exact, what=f"{name} on {gate.device}")
        for grads in (gradients, dpacked.chunk(2, -1)):
            for grad, exact_grad in zip(grads, exact_grads):
                assert grad.device == gate.device
                assert_near(grad, exact_grad, scale=2, what=f"gradient on {gate.device}")
        # sums of 64 numbers, each with its own rounding
        exact_sums = torch.cat([grad.sum(0) for grad in exact_grads])
        torch.testing.assert_close(
            dbias.cpu().double(), exact_sums, rtol=1e-2, atol=0.2 if dy.element_size() == 2 else 1e-4
        )
        assert_near(total, dy.cpu().double().sum(0), scale=16, what=f"column sum on {gate.device}")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_tensor_on_another_than_the_current_device(way, dtype):
    """F8, I4: a module of each dtype is loaded there."""
    x = torch.linspace(-3, 3, 1000, device="cuda:1", dtype=dtype, requires_grad=True)
    with torch.cuda.device(0):
        y = fuseline.swish(x)
        y.sum().backward()
        assert y.device == x.device == x.grad.device and torch.cuda.current_device() == 0
    assert_near(y, reference.swish(x))
    assert_near(x.grad, reference.swish_backward(torch.ones(1), x))


def test_info_lists_every_gpu():
    devices = fuseline.info()["gpu"]["devices"]
    kind = "rocm" if torch.version.hip else "cuda"
    assert [(device["index"], device["kind"]) for device in devices] == [(index, kind) for index in range(GPUS)]
    for index, device in enumerate(devices):
        assert device["supported"] is True
        if kind == "cuda":
            assert device["architecture"] == "sm_{}{}".format(*torch.cuda.get_device_capability(index))


# --- threads ---


@pytest.mark.parametrize("count", [2, 6], ids=["one thread per GPU", "three threads per GPU"])
def test_threads(way, count):
    """A12, F8: each with the other GPU as its current one."""

    def work(thread):
        index = thread % 2
        with torch.cuda.device(1 - index):
            for turn in range(10):
                for operator in (SWISH, SWIGLU):
                    seed = 100 * thread + turn
                    assert_derivatives(operator, seed, on_gpu(operator, index, seed))
            assert torch.cuda.current_device() == 1 - index

    in_threads(count, work)


def test_threads_on_streams_of_their_own(way):
    """I1: each thread's stream is busy when the call comes, and the input is filled on it."""

    def work(index):
        x = torch.zeros(1 << 20, device=f"cuda:{index}")
        torch.cuda.synchronize(index)
        with torch.cuda.stream(torch.cuda.Stream(device=index)), torch.cuda.device(1 - index):
            for turn in range(3):
                sleep(index, 20_000_000)
                x.fill_(0.5 + index + turn)
                with nothing_changes():
                    y = fuseline.swish(x)
                assert_near(y[-3:], reference.swish(torch.full((3,), 0.5 + index + turn)))
                x.zero_()

    in_threads(2, work)


# --- streams ---


@by_current
def test_side_streams_of_both(way, current):
    """I1, F15: on each GPU behind what its current stream holds, and before what follows there."""
    inputs = [torch.zeros(1 << 20, device=f"cuda:{index}") for index in BOTH]
    ones = [torch.ones((), device=x.device).expand_as(x) for x in inputs]
    synchronize()
    streams = [torch.cuda.Stream(device=index) for index in BOTH]

    def work(cycles, value):
        found = []
        with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]), torch.cuda.device(current):
            for index, x in enumerate(inputs):
                sleep(index, cycles)
                x.fill_(value + index)
            for x, dy in zip(inputs, ones):
                with nothing_changes():
                    y = fuseline.swish(x)
                with nothing_changes():
                    dx = fuseline.swish_backward(dy, x)
                found.append((y[-1:].clone(), dx[-1:].clone()))
        return found

    work(1, 0.5)  # all code is loaded, which may wait
    synchronize()
    found = work(400_000_000, 1.5)
    assert not any(stream.query() for stream in streams), "a call waited, or the sleep is too short for this GPU"
    for index, stream in enumerate(streams):
        stream.synchronize()
        x = torch.tensor([1.5 + index])
        with torch.cuda.stream(stream):
            assert_near(found[index][0], reference.swish(x))
            assert_near(found[index][1], reference.swish_backward(torch.ones(1), x))


@pytest.mark.parametrize("busy", BOTH)
def test_one_gpu_does_not_wait_for_the_other(way, busy):
    """Nor does the host: a call on the idle GPU is done while the other's stream sleeps."""
    inputs = [torch.full((1 << 16,), 1.5, device=f"cuda:{index}") for index in BOTH]
    for index, x in enumerate(inputs):
        fuseline.swish(x)
        sleep(index, 1)
    synchronize()
    waited = []
    for _ in range(3):  # others may use the GPUs
        done = torch.cuda.Event()
        with torch.cuda.device(busy):
            sleep(busy, 400_000_000)
            behind = fuseline.swish(inputs[busy])
            done.record()
        y = fuseline.swish(inputs[1 - busy])
        torch.cuda.synchronize(1 - busy)
        waited.append(done.query())
        for result in (y, behind):
            assert_near(result[:3], reference.swish(torch.full((3,), 1.5)))
    assert not all(waited), "calls waited for the other GPU, or the sleep is too short for this one"


# --- autograd ---


def two_gpu_network(weights, x, first, second, swish, swiglu, gelu):
    """From one device to the other and back, with operators on both; a number."""
    hidden = swish(x @ weights[0])
    there = swiglu(*(hidden.to(second) @ weights[1]).chunk(2, -1))
    back = gelu(there.to(first) @ weights[2] + hidden)
    return back.square().sum() + there.sum().to(first)


def network_leaves(seed):
    leaves = (
        values(32, 24, seed=seed, dtype=torch.float64),
        *(
            values(24, columns, seed=seed + 1 + k, dtype=torch.float64, scale=0.3)
            for k, columns in enumerate((24, 48, 24))
        ),
    )
    return [leaf.requires_grad_() for leaf in leaves]


def check_network(seed, first=0, second=1, delay=lambda: None):
    """First and second derivatives of a graph that spans two GPUs, against float64 on the CPU.

    Args:
        delay: is called before the forward and before each backward.
    """

    def gradients(leaves, first, second, *operators):
        x, *weights = leaves
        delay()
        loss = two_gpu_network(weights, x, first, second, *operators)
        delay()
        grads = torch.autograd.grad(loss, leaves, create_graph=True)
        penalty = sum(grad.square().sum().to(first) for grad in grads)
        delay()
        return [loss, *grads, *torch.autograd.grad(penalty, leaves)]

    right = gradients(network_leaves(seed), "cpu", "cpu", SWISH.exact, SWIGLU.exact, GELU.exact)
    places = [f"cuda:{index}" for index in (first, first, second, first)]
    leaves = [leaf.detach().to(place).requires_grad_() for leaf, place in zip(network_leaves(seed), places)]
    with nothing_changes():
        found = gradients(leaves, f"cuda:{first}", f"cuda:{second}", fuseline.swish, fuseline.swiglu, fuseline.gelu)
    for number, (ours, theirs) in enumerate(zip(found, right)):
        scale = theirs.detach().abs().max()
        error = (ours.detach().cpu() - theirs.detach()).abs().max()
        assert error <= 1e-9 * scale, f"result {number} of seed {seed}: {error} of {scale}"


@by_current
def test_graph_that_spans_two_gpus(way, current):
    """Nodes of both run on autograd's threads, one for each GPU."""
    with torch.cuda.device(current):
        for first in BOTH:
            check_network(7, first, 1 - first)


def test_graphs_that_span_two_gpus_in_threads(way):
    def work(thread):
        with torch.cuda.device(thread % 2):
            for turn in range(3):
                check_network(100 * thread + turn, thread % 2, 1 - thread % 2)

    in_threads(4, work)


def test_graph_that_spans_two_gpus_on_side_streams(way):
    """M: the backward's kernels follow the streams that the forward ran on, both of which are busy."""
    streams = [torch.cuda.Stream(device=index) for index in BOTH]
    check_network(3)
    synchronize()

    def delay():
        for index in BOTH:
            sleep(index, 20_000_000)

    with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]), torch.cuda.device(0):
        check_network(3, delay=delay)
    synchronize()


def test_backward_into_leaves_of_both(way):
    """As a training step has it: backward() into .grad, on the device of each leaf."""
    x = values(50, 60, seed=1, device="cuda:0").requires_grad_()
    w = values(50, 60, seed=2, device="cuda:1").requires_grad_()
    with nothing_changes():
        fuseline.swiglu(fuseline.gelu(x).to("cuda:1"), w).sum().backward()
    wx, ww = wide(x, w)
    SWIGLU.exact(GELU.exact(wx), ww).sum().backward()
    assert (x.grad.device.index, w.grad.device.index) == (0, 1)
    assert_near(x.grad, wx.grad, scale=4)
    assert_near(w.grad, ww.grad, scale=4)


# --- graphs ---


@by_current
def test_graph_capture_on_both(way, current):
    """I7, I9: each captured on its own GPU while `current` is the current one, then replayed at once on new inputs."""
    leaves, graphs, results = [], [], []

    def step(x, up):
        y = fuseline.swiglu(x, up)
        return y, *torch.autograd.grad(y.sum(), (x, up))

    for index in BOTH:
        x, up = (values(301, 77, seed=k, device=f"cuda:{index}").requires_grad_() for k in range(2))
        stream = torch.cuda.Stream(device=index)
        stream.wait_stream(torch.cuda.current_stream(index))
        with torch.cuda.stream(stream), torch.cuda.device(current):
            for _ in range(3):  # code is loaded, and autograd's threads run
                step(x, up)
        torch.cuda.synchronize(index)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            with torch.cuda.device(current), nothing_changes():
                results.append(step(x, up))
        leaves.append((x, up))
        graphs.append(graph)
    for turn in range(3):
        for index in BOTH:
            with torch.no_grad(), torch.cuda.device(index):
                for k, leaf in enumerate(leaves[index]):
                    leaf.copy_(values(301, 77, seed=50 * turn + 2 * index + k))
                graphs[index].replay()
        for index in BOTH:
            torch.cuda.synchronize(index)
            y, *grads = results[index]
            exact, exact_grads = exact_gradients(SWIGLU, leaves[index], torch.ones(()))
            assert_near(y, exact, what=f"turn {turn}")
            for grad, exact_grad in zip(grads, exact_grads):
                assert_near(grad, exact_grad, scale=2, what=f"turn {turn}")


# --- refusals ---


def refusals():
    """{name: (function of tensors, the tensors' names)}: calls on tensors that have to be on one device."""
    out = "out"
    return {
        "swish backward": (fuseline.swish_backward, ["dy", "x"]),
        "gelu backward": (fuseline.gelu_backward, ["dy", "x"]),
        "swish into": (lambda x, out: fuseline.swish(x, out=out), ["x", out]),
        "swiglu": (fuseline.swiglu, ["gate", "up"]),
        "swiglu into": (lambda gate, up, out: fuseline.swiglu(gate, up, out=out), ["gate", "up", out]),
        "geglu backward": (fuseline.geglu_backward, ["dy", "gate", "up"]),
        "column sum into": (lambda x, out: fuseline.column_sum(x, out=out), ["x", out]),
    }


def refused(call, tensors, name, index):
    """Calls with one tensor elsewhere. The message has the name of an argument, and both devices."""
    label = "ROCm" if torch.version.hip else "CUDA"
    with nothing_changes(), pytest.raises(fuseline.DeviceError) as caught:
        call(*tensors)
    found = re.fullmatch(
        rf"(\w+) is on {label} device (\d), but (\w+) is on {label} device (\d); accepted: one device",
        str(caught.value),
    )
    assert found, caught.value
    first, first_device, second, second_device = found.groups()
    elsewhere = {first: first_device, second: second_device}
    assert {int(first_device), int(second_device)} == {0, 1}
    assert name in elsewhere and int(elsewhere[name]) == index, caught.value


@pytest.mark.parametrize("name", list(refusals()))
def test_operand_on_the_other_gpu(way, name):
    """F10: each in turn; and what follows works."""
    call, names = refusals()[name]
    for home in BOTH:
        for odd, odd_name in enumerate(names):
            tensors = [
                torch.ones(24 if (name, k) == ("column sum into", 1) else (3, 24), device=f"cuda:{home}")
                for k in range(len(names))
            ]
            tensors[odd] = tensors[odd].to(f"cuda:{1 - home}")
            refused(call, tensors, odd_name, 1 - home)
            assert_near(fuseline.swish(tensors[0]), reference.swish(tensors[0]))
    synchronize()


@pytest.mark.parametrize("with_gradient", [False, True])
def test_bias_and_packed_on_the_other_gpu(way, with_gradient):
    """F10: named with a gradient, too, where autograd makes the call."""
    packed = torch.ones(3, 24, device="cuda:1", requires_grad=with_gradient)
    refused(
        lambda packed, bias: fuseline.swiglu(packed, bias=bias), (packed, torch.ones(24, device="cuda:0")), "bias", 0
    )
    gate = torch.ones(3, 24, device="cuda:1", requires_grad=with_gradient)
    refused(fuseline.swiglu, (gate, torch.ones(3, 24, device="cuda:0")), "up", 0)
    fuseline.swiglu(packed, bias=torch.ones(24, device="cuda:1"))
    torch.cuda.synchronize(1)


def test_operand_on_the_cpu(way):
    for index in BOTH:
        with nothing_changes(), pytest.raises(fuseline.DeviceError, match=rf"device {index}\b.*accepted: one device"):
            fuseline.swish_backward(torch.ones(3), torch.ones(3, device=f"cuda:{index}"))
        fuseline.swish(torch.ones(3, device=f"cuda:{index}"))


@by_current
def test_other_failing_calls_change_nothing(way, current):
    with torch.cuda.device(current):
        for index in BOTH:
            x = torch.ones(4, 6, device=f"cuda:{index}")
            for error, call in (
                (fuseline.ShapeError, lambda x=x: fuseline.swish_backward(x[:2], x)),
                (fuseline.DTypeError, lambda x=x: fuseline.swish(x.int())),
                (fuseline.OverlapError, lambda x=x: fuseline.swish(x[:3], out=x[1:])),
                (fuseline.ShapeError, lambda x=x: fuseline.swiglu(x[:, :3])),
            ):
                with nothing_changes(), pytest.raises(error):
                    call()
            assert_near(fuseline.swish(x), reference.swish(x))


# --- processes of their own: what is seen first, and which GPUs are seen at all ---

PROGRAM = """
import ctypes, json, os, sys
import torch
import fuseline

def right(x):
    x = x.detach().cpu().double()
    return x * torch.sigmoid(x)

def check(index):
    x = torch.linspace(-3, 3, 1000, device=f"cuda:{index}")
    y = fuseline.swish(x)
    assert y.device.index == index
    torch.testing.assert_close(y.cpu().double(), right(x), rtol=3e-7, atol=1e-9)
"""


def run(program, **environment):
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    return run_python(PROGRAM + program, PYTHONPATH=path, **environment)


@pytest.mark.skipif(bool(torch.version.hip), reason="asks NVIDIA's driver")
@pytest.mark.parametrize("first", ["swish(x)", "swish(x, out=torch.empty_like(x))", "swiglu(x)", "gelu(x, 'tanh')"])
def test_first_call_of_a_process_is_on_gpu_1(first):
    """F8: and it makes no context on GPU 0 that PyTorch has not made."""
    run(
        """
driver = ctypes.CDLL("libcuda.so.1")

def contexts():
    found = []
    for index in (0, 1):
        handle, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        assert driver.cuDeviceGet(ctypes.byref(handle), index) == 0
        assert driver.cuDevicePrimaryCtxGetState(handle, ctypes.byref(flags), ctypes.byref(active)) == 0
        found.append(active.value)
    return found

x = torch.linspace(-3, 3, 1000).to("cuda:1")
before = contexts()
y = fuseline.FIRST
after = contexts()
assert after == before, (before, after)
assert y.device.index == 1 and torch.cuda.current_device() == 0
check(1)
check(0)
""".replace("FIRST", first)
    )


def test_first_call_of_a_thread_is_on_gpu_1():
    """A thread of which the driver knows nothing yet, by way of tensors that are made elsewhere."""
    run(
        """
import threading
x = torch.linspace(-3, 3, 1000, device="cuda:1")
made = []
thread = threading.Thread(target=lambda: made.append((fuseline.swish(x), torch.cuda.current_device())))
thread.start()
thread.join()
(y, current), = made
assert current == 0
torch.testing.assert_close(y.cpu().double(), right(x), rtol=3e-7, atol=1e-9)
"""
    )


def visible():
    """What CUDA_VISIBLE_DEVICES has for the two GPUs of this process."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0,1").split(",")[:2]


def identity(index):
    """What tells a GPU from others of its kind; None where this PyTorch does not know."""
    return str(getattr(torch.cuda.get_device_properties(index), "uuid", None))


def seen(devices):
    """[identity of each GPU that a process sees], which has computed on each."""
    return run(
        """
count = torch.cuda.device_count()
listed = fuseline.info()["gpu"]["devices"]
assert [device["index"] for device in listed] == list(range(count)), listed
for index in range(count):
    check(index)
    print(getattr(torch.cuda.get_device_properties(index), "uuid", None))
""",
        CUDA_VISIBLE_DEVICES=",".join(devices),
    ).split("\n")[:-1]


def test_visible_devices_hide():
    """The second GPU alone, which is number 0 then."""
    assert seen(visible()[1:]) == [identity(1)]


def test_visible_devices_reorder():
    assert seen(visible()[::-1]) == [identity(1), identity(0)]


def test_visible_devices_show_none():
    """The CPU works; what claims to be on a GPU is refused by a clear error; the info call lists none."""
    run(
        """
from producers import Memory, Producer
assert not torch.cuda.is_available()
assert fuseline.info()["gpu"]["devices"] == []
x = torch.linspace(-3, 3, 1000)
torch.testing.assert_close(fuseline.swish(x).double(), right(x), rtol=3e-7, atol=1e-9)
kind = 10 if torch.version.hip else 2
tensors = [Producer(Memory([1.5] * 8, device=(kind, 0)), device=(kind, 0)) for _ in range(2)]
for _ in range(2):
    try:
        fuseline.swish(tensors[0], out=tensors[1])
    except fuseline.DeviceError as error:
        assert "device 0, but" in str(error) and "0 device(s)" in str(error), error
    else:
        raise AssertionError("computed on a GPU that is not visible")
torch.testing.assert_close(fuseline.swish(x).double(), right(x), rtol=3e-7, atol=1e-9)
assert fuseline.info()["gpu"]["devices"] == []
""",
        CUDA_VISIBLE_DEVICES="",
        HIP_VISIBLE_DEVICES="" if torch.version.hip else None,
    )


# --- other libraries ---


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX")
def test_jax_arrays_on_the_second_gpu():
    """In a process of its own, since JAX would keep memory of every GPU in this one."""
    printed = run(
        """
import re
import numpy as np, jax, jax.numpy as jnp
if jax.default_backend() == "cpu" or len(jax.devices()) < 2:
    print("JAX finds no two GPUs")
    sys.exit()
devices = jax.devices()[:2]

def exact(x):
    x = np.asarray(x).astype(np.float64)
    return x / (1 + np.exp(-x))

def slope(x):
    x = np.asarray(x).astype(np.float64)
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))

values = np.random.default_rng(0).normal(size=(301, 77)).astype(np.float32)
for device in (devices[1], devices[0], devices[1]):  # the first call is on the second
    x = jax.device_put(jnp.asarray(values), device)
    y, dx = fuseline.swish(x), fuseline.swish_backward(jax.device_put(jnp.ones_like(x), device), x)
    assert y.devices() == dx.devices() == {device}
    np.testing.assert_allclose(np.asarray(y), exact(x), rtol=3e-7, atol=1e-7)
    np.testing.assert_allclose(np.asarray(dx), slope(x), rtol=3e-6, atol=1e-6)
    gate, up = x[:, :38], x[:, 38:76]
    z = fuseline.swiglu(gate, up)
    assert z.devices() == {device}
    np.testing.assert_allclose(np.asarray(z), exact(gate) * np.asarray(up), rtol=1e-6, atol=1e-7)

with jax.default_device(devices[1]):  # an array that JAX itself may move to the first
    x = jnp.linspace(-3, 3, 1000, dtype=jnp.float32)
assert x.devices() == {devices[1]}
y = fuseline.swish(x)
assert y.devices() == {devices[1]}
np.testing.assert_allclose(np.asarray(y), exact(x), rtol=3e-7, atol=1e-7)

step = jax.jit(lambda a: jnp.tanh(a @ a) + 0.01)
arrays = [jax.device_put(jnp.full((256, 256), 0.01), device) for device in devices]
for _ in range(20):
    arrays = [step(fuseline.swish(step(array))) for array in arrays]
assert [array.devices() for array in arrays] == [{device} for device in devices]
wanted = np.full((256, 256), 0.01)
for _ in range(20):
    wanted = exact(np.tanh(wanted @ wanted) + 0.01)
    wanted = np.tanh(wanted @ wanted) + 0.01
for array in arrays:
    np.testing.assert_allclose(np.asarray(array), wanted, rtol=2e-2)

pair = [jax.device_put(jnp.ones(3), device) for device in devices]
for dy, x in (pair, pair[::-1]):
    try:
        fuseline.swish_backward(dy, x)
    except fuseline.DeviceError as error:
        (a,), (b,) = dy.devices(), x.devices()
        assert str(error) == f"dy is on {a}, but x is on {b}; accepted: one device" and a != b, error
    else:
        raise AssertionError("operands on two GPUs were taken")
print("done")
""",
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
        JAX_PLATFORMS=None,
    )
    if "no two GPUs" in printed:
        pytest.skip(printed.strip())
    assert printed.split()[-1] == "done"


@pytest.fixture
def cupy():
    module = pytest.importorskip("cupy")
    if module.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("CuPy finds no two GPUs")
    return module


@by_current
def test_cupy_arrays_on_the_second_gpu(cupy, current):
    """F8, F15: on the array's own device and its current stream there."""

    def read(array):
        with array.device:
            return torch.from_numpy(cupy.asnumpy(array))

    with cupy.cuda.Device(current):
        for index in (1, 0, 1):
            with cupy.cuda.Device(index):
                x = cupy.linspace(-6, 6, 301, dtype=cupy.float32)
                dy = cupy.ones_like(x)
            y, dx = fuseline.swish(x), fuseline.swish_backward(dy, x)
            assert y.device.id == dx.device.id == index and cupy.cuda.Device().id == current
            assert_near(read(y), reference.swish(read(x)))
            assert_near(read(dx), reference.swish_backward(torch.ones(1), read(x)))
        with cupy.cuda.Device(1):
            x, stream = filled_late(cupy)
            with stream, cupy.cuda.Device(0):
                y = fuseline.swish(x)
            stream.synchronize()
            assert_near(read(y[-3:]), reference.swish(torch.full((3,), 1.5)))


def test_cupy_arrays_on_two_gpus(cupy):
    """F10"""
    arrays = []
    for index in BOTH:
        with cupy.cuda.Device(index):
            arrays.append(cupy.ones(100, cupy.float32))
    for dy, x in (arrays, arrays[::-1]):
        with pytest.raises(fuseline.DeviceError, match="device 1.*device 0|device 0.*device 1"):
            fuseline.swish_backward(dy, x)
    fuseline.swish(arrays[1])
