"""The whole way to a ROCm device and back, on the one that standin.py plays: streams, memory, errors, architectures.

Right values for every operator, dtype, layout and alignment are what the other tests check there: see devices.py.
"""

import os
import re
import sys

import pytest
import torch

import fuseline
import reference
import standin
from process import run_python

RUNTIME, _REASON = standin.find()
_REASON = standin.why_not(0) if _REASON is None else _REASON
pytestmark = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))

X = torch.linspace(-4, 4, 1003)


def array(tensor, device=0, at_end=True):
    return standin.Array(RUNTIME, tensor, device, at_end)


def assert_swish(result, x=X):
    torch.testing.assert_close(result.double(), reference.swish(x), rtol=3e-7, atol=0)


@pytest.fixture
def arrays():
    """x and an output, on device 0."""
    made = array(X), array(torch.empty_like(X))
    yield made
    for each in made:
        each.release()


def test_work_is_queued_on_the_stream_that_the_producers_were_told_of(arrays):
    """F15, I1: nothing has run when the call returns; then it waits for the fill, and what follows finds the result."""
    x, out = arrays
    before = RUNTIME.kernels_run()
    assert fuseline.swish(x, out=out) is out
    assert RUNTIME.kernels_run() == before
    assert x.streams == out.streams == [0]
    assert x.deleted == out.deleted == 1
    assert_swish(out.read())
    assert RUNTIME.kernels_run() == before + 1


def test_the_exchange_table_tells_the_stream():
    """I1: PyTorch's tensors, by their type's exchange table, on a stream that runs late."""
    if standin.table() is None:
        pytest.skip("this PyTorch has no exchange table")
    stream = RUNTIME.stream(0, 0)
    before = RUNTIME.kernels_run()
    with standin.tensors(0, stream):
        y = fuseline.swish(X)
        assert RUNTIME.kernels_run() == before
        RUNTIME.wait(stream)
    assert RUNTIME.kernels_run() == before + 1
    assert_swish(y)


@pytest.mark.parametrize("device", [0, 1])
def test_the_device_is_the_tensors(device):
    """F8: modules, streams and the current device of another one do not mix in."""
    if standin.why_not(device) is not None:
        pytest.skip(standin.why_not(device))
    x, out = array(X, device), array(torch.empty_like(X), device)
    fuseline.swish(x, out=out)
    assert_swish(out.read())
    x.release()
    out.release()


def test_two_devices_by_turns():
    """F8: nothing runs before all is queued; then each result is its own device's."""
    if standin.why_not(1) is not None:
        pytest.skip(standin.why_not(1))
    made = []
    for turn in range(3):
        for device in (0, 1):
            values = X + 0.25 * (2 * turn + device)
            made.append((values, array(values, device), array(torch.empty_like(X), device)))
    before = RUNTIME.kernels_run()
    for _, x, out in made:
        fuseline.swish(x, out=out)
    assert RUNTIME.kernels_run() == before
    for values, x, out in reversed(made):
        assert_swish(out.read(), values)
        x.release()
        out.release()
    assert RUNTIME.kernels_run() == before + len(made)


@pytest.mark.parametrize(
    "function, names",
    [
        ("swish", ["x", "out"]),
        ("swish_backward", ["dy", "x", "out"]),
        ("swiglu", ["gate", "up", "out"]),
    ],
)
def test_two_devices_are_refused(function, names):
    """F10: each operand in turn is elsewhere, and named; all are given back."""
    for home in (0, 1):
        for odd in range(len(names)):
            made = [array(torch.ones(24), 1 - home if k == odd else home) for k in range(len(names))]
            with pytest.raises(
                fuseline.DeviceError, match=r"is on ROCm device \d, but .*; accepted: one device"
            ) as caught:
                getattr(fuseline, function)(*made[:-1], out=made[-1])
            assert re.search(rf"\b{names[odd]} is on ROCm device {1 - home}\b", str(caught.value)), caught.value
            assert f"is on ROCm device {home}" in str(caught.value)
            for each in made:
                each.release()


def test_no_code_for_the_architecture(arrays):
    """J1: one clear error, which leaves everything else in order."""
    x, out = array(X, 2), array(torch.empty_like(X), 2)
    for _ in range(2):
        with pytest.raises(fuseline.DeviceError, match="ROCm device 2 is gfx803, for which this library has no code"):
            fuseline.swish(x, out=out)
    x.release()
    out.release()
    fuseline.swish(arrays[0], out=arrays[1])
    assert_swish(arrays[1].read())


def test_no_result_without_an_allocator(arrays):
    with pytest.raises(fuseline.DeviceError, match="out: is None, and the data is on a GPU"):
        fuseline.swish(arrays[0])


def test_graph_capture(arrays):
    """I9: after one call a captured one only launches; and the graph computes anew each time."""
    x, out = arrays
    stream = RUNTIME.default_stream(0)
    fuseline.swish(x, out=out)
    out.read()
    RUNTIME.begin_capture(stream)
    fuseline.swish(x, out=out)
    graph = RUNTIME.end_capture(stream)
    assert graph is not None
    before = RUNTIME.kernels_run()
    for scale in (0.5, -2.0):
        changed = X * scale
        RUNTIME.copy(stream, x._data, changed.data_ptr(), changed.nbytes)
        RUNTIME.launch_graph(graph, stream)
        assert_swish(out.read(), changed)
    assert RUNTIME.kernels_run() == before + 2


def test_nothing_is_left():
    """Neither memory nor code loaded twice, after all tests that came before."""
    assert RUNTIME.leaks() == 0


# --- what the stand-in is there to notice, in processes of their own ---

PROGRAM = """
import torch, fuseline, standin
runtime, _ = standin.find()

def array(count, value, at_end=True):
    return standin.Array(runtime, torch.full((count,), value), 0, at_end)

x, out = array(1000, 1.5), array(1000, 0.0)
"""


def run(program):
    here = os.path.dirname(__file__)
    return run_python(program, check=False, PYTHONPATH=os.pathsep.join([here, *sys.path]))


def test_the_process_itself_goes_well():
    done = run(PROGRAM + "fuseline.swish(x, out=out); out.read(); x.release(); out.release()")
    assert done.returncode == 0, done.stderr
    assert "stand-in" not in done.stderr


def test_first_call_inside_a_capture():
    """I9: code cannot be loaded then, which the error says and the capture does not survive; the next call works."""
    done = run(
        PROGRAM
        + """
x.read()  # whose copy is no part of the capture
stream = runtime.default_stream(0)
runtime.begin_capture(stream)
try:
    fuseline.swish(x, out=out)
except RuntimeError as error:
    print(error)
assert runtime.end_capture(stream) is None
fuseline.swish(x, out=out)
assert abs(out.read() - 1.2263616).max() < 1e-6
x.release(); out.release()
"""
    )
    assert done.returncode == 0, done.stderr
    assert "loading the code of swish for float32 on ROCm device 0 (gfx1151) failed with" in done.stdout
    assert "hipErrorStreamCaptureUnsupported (900)" in done.stdout


def test_memory_given_back_too_early_crashes():
    done = run(
        PROGRAM + "fuseline.swish(x, out=out); runtime.wait(runtime.stream_of_producers[0]); runtime.release(x._memory)"
    )
    assert done.returncode < 0
    assert "fl_swish_forward_float32_vector" in done.stderr
    assert "in memory of 4000 bytes that was given back" in done.stderr


@pytest.mark.parametrize("which", ["x", "out"])
def test_an_element_too_many_crashes(which):
    """J7: a producer that states one more element than it has."""
    other = "out" if which == "x" else "x"
    longer = f"kept = {other}; {which}._like, {other} = torch.empty(1001), array(1001, 1.5)"
    done = run(PROGRAM + f"{longer}; fuseline.swish(x, out=out); runtime.wait(runtime.default_stream(0))")
    assert done.returncode < 0
    assert "fl_swish_forward_float32_" in done.stderr
    assert "4000 bytes from the beginning of memory of 4000 bytes" in done.stderr


def test_leaks_are_reported():
    done = run(PROGRAM + "fuseline.swish(x, out=out); out.read()")
    assert done.returncode == 0
    assert "stand-in: 2 left, of memory and of code loaded twice" in done.stderr


FAILING = """
import os, torch, fuseline, standin

def attempt(call, only):
    runtime, _ = standin.find()
    state = standin.State.in_dll(runtime.library, "standin")
    x, out = (standin.Array(runtime, torch.full((1000,), value), 0, True) for value in (1.5, 0.0))
    state.fail[call], state.fail_only[call] = 2, only
    for attempt in range(4):
        try:
            fuseline.swish(x, out=out)
            assert abs(out.read() - 1.2263616).max() < 1e-6
        except RuntimeError as error:
            assert "hipErrorOfStandin (2)" in str(error), error
            assert attempt < 3
        if attempt == 2:
            state.fail[call] = 0
    x.release()
    out.release()
    assert runtime.leaks() == 0

for call in range(standin.State.CALLS):
    for only in (1, 2, 0):
        child = os.fork()
        if child == 0:
            try:
                attempt(call, only)
            except BaseException as error:
                print(call, only, repr(error), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            print(call, only, "status", status, flush=True)
"""


def test_each_call_of_the_runtime_fails():
    """I10: the first, the second, or each: an error with the runtime's words or the right result, and it after that."""
    done = run(FAILING)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and "stand-in" not in done.stderr
