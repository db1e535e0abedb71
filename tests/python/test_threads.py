"""Threads, forks and memory over many calls."""

import os
import sys
import threading
import time

import pytest
import torch

import fuseline
import reference
from devices import needs_gpu
from memory import resident_kilobytes
from process import run_python


def in_threads(count, work):
    """Runs work(index) in threads at once; raises what any of them raised."""
    failures = []

    def run(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_eight_threads(device):
    """A12: results right in each thread, and freed in others."""
    results = []
    inputs = [torch.randn(50 + 3 * k, device=device) for k in range(8)]
    expected = [torch.nn.functional.silu(x) for x in inputs]

    def work(index):
        for _ in range(100):
            y = fuseline.swish(inputs[index])
            torch.testing.assert_close(y, expected[index], rtol=1e-6, atol=1e-7)
            results.append(y)
            if len(results) > 20:
                try:
                    del results[0]
                except IndexError:
                    pass

    in_threads(8, work)


def test_messages_belong_to_their_threads():
    def work(index):
        for _ in range(50):
            with pytest.raises(ValueError, match=f"x: shape is \\({index + 3}\\), but dy is \\(2\\)"):
                fuseline.swish_backward(torch.ones(2), torch.ones(index + 3))

    in_threads(8, work)


def test_gradients_in_threads(device):
    def work(index):
        x = torch.randn(100, device=device, requires_grad=True)
        for _ in range(20):
            x.grad = None
            fuseline.swish(x).sum().backward()
        exact = reference.swish_backward(torch.ones(100), x).float()
        torch.testing.assert_close(x.grad.cpu(), exact, rtol=3e-6, atol=1e-6)

    in_threads(8, work)


def test_large_calls_release_pythons_lock():
    """Another thread of Python goes on while a large tensor is computed (the best of some calls: cores may be busy)."""
    x = torch.randn(1 << 24, dtype=torch.float64)
    out = torch.empty_like(x)
    fuseline.swish(x, out=out)
    done = threading.Event()
    gaps = []

    def watch():
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    kept = []  # the longest that the other thread waited, as a part of the call
    for _ in range(8):
        del gaps[:]
        began = time.perf_counter()
        fuseline.swish(x, out=out)
        took = time.perf_counter() - began
        time.sleep(0.01)
        kept.append(max(gaps) / took)
    done.set()
    watcher.join()
    assert min(kept) < 0.6, kept


def test_references():
    """N5: a thousand calls of each kind leave every count where it was."""
    x, dy, out = torch.randn(10), torch.randn(10), torch.empty(10)
    needing = torch.randn(10, requires_grad=True)
    needing.grad = torch.zeros(10)
    strided = torch.randn(20)[::2]
    objects = (x, dy, out, needing, strided, torch.Tensor, fuseline.swish)

    def calls(count):
        for _ in range(count):
            fuseline.swish(x)
            fuseline.swish(x, out=out)
            fuseline.swish(strided)
            fuseline.swish_backward(dy, x)
            fuseline.swish(needing).sum().backward()
            for wrong in (torch.ones(3, dtype=torch.int32), torch.eye(3).to_sparse()):
                try:
                    fuseline.swish(wrong)
                except fuseline.Error:
                    pass

    calls(10)
    before = [sys.getrefcount(value) for value in objects]
    calls(1000)
    assert [sys.getrefcount(value) for value in objects] == before


def test_memory_over_many_calls(device):
    """M3: the graph of a forward call without a backward one goes with its result."""
    x = torch.randn(100, 100, device=device, requires_grad=True)

    def calls(count):
        for _ in range(count):
            fuseline.swish(x)
            fuseline.swish(x.detach())

    calls(200)
    before = resident_kilobytes()
    allocated = torch.cuda.memory_allocated() if device == "cuda" else 0
    calls(5000)
    assert resident_kilobytes() - before < 4000
    if device == "cuda":
        assert torch.cuda.memory_allocated() == allocated


# The child calls nothing of PyTorch's that may use threads: GNU's OpenMP waits for ever for those that a fork lost.
FORK = """
import os, sys, numpy, torch, fuseline
x = torch.randn({count}{device})
fuseline.swish(x)
y = numpy.linspace(-3, 3, {count}, dtype=numpy.float32)
tensor, expected = torch.from_numpy(y), y / (1 + numpy.exp(-y))
child = os.fork()
if child == 0:
    results = fuseline.swish(y), fuseline.swish(tensor).numpy()
    ok = all(numpy.allclose(result, expected, atol=1e-6) for result in results)
    {more}
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("count", [100, 1_000_000])
def test_child_of_a_fork_computes_on_the_cpu(count):
    """N8: also after the parent used threads."""
    run_python(FORK.format(count=count, device="", more="pass"), "-W", "ignore::DeprecationWarning")


FORK_BEFORE_OUR_FIRST_CALL = """
import os, sys, torch, fuseline
torch.nn.functional.silu(torch.ones(2048, 2048))  # PyTorch starts the threads that a fork loses
packed, dy, y = torch.empty(2048, 2048), torch.empty(2048, 1024), torch.empty(2048, 1024)
child = os.fork()
if child == 0:
    packed.numpy().fill(2.0)
    dy.numpy().fill(1.0)
    fuseline.swiglu(packed, out=y)
    fuseline.swiglu_backward(dy, packed)
    sums = fuseline.column_sum(packed).numpy()
    os._exit(0 if abs(y.numpy() - 3.523188).max() < 1e-5 and (sums == 4096).all() else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_child_of_a_fork_whose_parent_used_threads_without_us():
    """N8: PyTorch's use of OpenMP counts too."""
    run_python(FORK_BEFORE_OUR_FIRST_CALL, "-W", "ignore::DeprecationWarning")


@needs_gpu
def test_child_of_a_fork_after_the_gpu_was_used():
    """N6, N8: the CPU still works there; the GPU gives an error, not a crash."""
    more = """
    try:
        fuseline.swish(x)
        ok = False
    except (RuntimeError, NotImplementedError) as error:
        ok = ok and bool(str(error))
"""
    run_python(FORK.format(count=1000, device=", device='cuda'", more=more.strip("\n").lstrip()))


@needs_gpu
def test_import_leaves_the_gpu_to_children():
    """N6"""
    program = """
import os, sys, fuseline
child = os.fork()
if child == 0:
    import torch
    x = torch.ones(3, device="cuda")
    os._exit(0 if torch.allclose(fuseline.swish(x), torch.nn.functional.silu(x)) else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    run_python(program)
