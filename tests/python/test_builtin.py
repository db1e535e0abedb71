"""Calls that C serves by itself: which ones, and that they leave nothing behind."""

import gc
import os
import sys
import threading

import pytest
import torch

import fuseline
from conftest import torch_adapter
from fuseline import _builtin
from process import run_python

pytestmark = pytest.mark.skipif(
    not _builtin.is_supported or torch_adapter().exchange is None, reason="needs PyTorch's DLPack exchange table"
)


@pytest.fixture
def only_c(monkeypatch):
    """Makes every call that reaches the package's Python code an error."""

    def refuse(*arguments, **keywords):
        raise AssertionError("served by Python")

    for name in ("call", "plain", "run"):
        monkeypatch.setattr(type(torch_adapter()), name, refuse)


def pair(device, *shape, dtype=torch.float32):
    return [torch.randn(*shape, dtype=dtype, device=device) for _ in range(2)]


def test_ordinary_calls_are_served_by_c(only_c, device, dtype):
    x, u = pair(device, 6, 8, dtype=dtype)
    parameter = torch.nn.Parameter(x.clone())
    for tensor in (x, x[:, ::1], x.t(), x[:, :4], torch.ones((), dtype=dtype, device=device).expand(3, 4)[:0], x[0, 0]):
        for function in (fuseline.swish, fuseline.gelu, fuseline.relu2):
            function(tensor)
        fuseline.gelu(tensor, approximate="tanh")
    for function in (fuseline.swiglu, fuseline.geglu, fuseline.reglu):
        function(x, u)
        function(x)
        function(x, interleaved=True)
        for arguments in ((x, parameter), (parameter, u), (parameter,)):
            y = function(*arguments)
            y.backward(torch.ones_like(y))
        assert parameter.grad.shape == x.shape
    fuseline.swiglu(x, u, beta=1.702, limit=7.0, offset=1.0)
    for function in (fuseline.swish, fuseline.gelu, fuseline.relu2):
        function(parameter).sum().backward()
    with torch.no_grad():
        fuseline.swish(parameter)
    with torch.inference_mode():
        fuseline.swish(x)
    fuseline.swish_backward(x, x)
    fuseline.swiglu_backward(x, x, u)


def test_large_tensors_are_served_by_c(only_c):
    x = torch.randn(1 << 17)
    torch.testing.assert_close(fuseline.swish(x), torch.nn.functional.silu(x))


def test_values_equal_the_other_ways(device, dtype):
    """Served by C or by Python, the same kernel runs on the same numbers."""
    gate, up = pair(device, 5, 12, dtype=dtype)
    dy = torch.randn_like(gate)
    adapter = torch_adapter()

    def results():
        made = []
        for arguments in ((gate, up), (torch.cat((gate, up), -1),)):
            leaves = [tensor.clone().requires_grad_() for tensor in arguments]
            y = fuseline.swiglu(*leaves, beta=1.5, limit=1.0, offset=0.5)
            y.backward(dy)
            made += [y.detach(), *(leaf.grad for leaf in leaves)]
        return made

    by_c = results()
    adapter.serve_by_c(False)
    try:
        by_python = results()
    finally:
        adapter.serve_by_c(True)
    for ours, theirs in zip(by_c, by_python):
        assert torch.equal(ours, theirs)


def references(*objects):
    gc.collect()
    return [sys.getrefcount(thing) for thing in objects]


@pytest.mark.parametrize("differentiated", [False, True])
def test_references_are_given_back(device, differentiated):
    """Whether the call is served, fails, or goes to Python."""
    x, u = pair(device, 4, 6)
    x.requires_grad_(differentiated)
    wrong = torch.ones(4, 6, dtype=torch.int32, device=device)
    odd = torch.ones(4, 7, device=device)
    watched = x, u, wrong, odd, torch.empty_like, torch.is_grad_enabled, 1.5, fuseline.swish
    beta = 1.25e10 / 1e10

    def calls(count):
        for _ in range(count):
            fuseline.swish(x, beta)
            fuseline.swiglu(x, u)
            fuseline.swiglu(x)
            y = fuseline.swish(x)
            if differentiated:
                y.backward(u)
            for arguments in ((wrong,), ("no tensor",), (x, "no number")):
                with pytest.raises(TypeError):
                    fuseline.swish(*arguments)
            for arguments in ((odd,), (x, odd)):
                with pytest.raises(ValueError):
                    fuseline.swiglu(*arguments)

    calls(3)
    before = references(*watched, beta)
    singletons = references(None, True, False)
    calls(200)
    assert references(*watched, beta) == before
    for ours, theirs in zip(references(None, True, False), singletons):
        assert abs(ours - theirs) < 100


def test_nothing_is_kept_after_backward(device):
    x = torch.randn(1000, device=device, requires_grad=True)
    y = fuseline.swish(x * 2)
    kept = y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        kept.saved_tensors  # noqa: B018
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_modified_input_is_noticed(device):
    x = torch.randn(10, device=device, requires_grad=True)
    inner = x * 1
    y = fuseline.swish(inner)
    inner.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_tensors_that_outlive_a_transform(device):
    """What torch.func leaves behind when a transform ends is an ordinary tensor again."""
    leaked = []

    def function(x):
        leaked.append(x * 1)
        return x.sum()

    torch.func.grad(function)(torch.ones(3, device=device))
    torch.func.vmap(function)(torch.ones(2, 3, device=device))
    for tensor in leaked[:1]:
        torch.testing.assert_close(fuseline.swish(tensor), torch.nn.functional.silu(tensor))
        leaf = torch.ones(3, device=device, requires_grad=True)
        fuseline.swiglu(leaf, tensor).sum().backward()
        expected = torch.autograd.grad(torch.nn.functional.silu(leaf) @ tensor, leaf)[0]
        torch.testing.assert_close(leaf.grad, expected)


def test_threads_call_and_differentiate_at_once():
    x = torch.linspace(-4, 4, 3000)
    expected = torch.nn.functional.silu(x)
    failures = []

    def work():
        try:
            for _ in range(50):
                leaf = x.clone().requires_grad_()
                y = fuseline.swish(leaf)
                torch.testing.assert_close(y.detach(), expected)
                y.sum().backward()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_graph_nodes_are_named_after_the_operator():
    x = torch.ones(4, requires_grad=True)
    assert "SwishBackward" in repr(fuseline.swish(x).grad_fn)
    assert "SwigluBackward" in repr(fuseline.swiglu(x, x).grad_fn)


def test_only_the_inputs_are_saved():
    gate, up = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
        fuseline.swiglu(gate, up)
        fuseline.swish(gate)
    assert [tensor.data_ptr() for tensor in saved] == [gate.data_ptr(), up.data_ptr(), gate.data_ptr()]


def has_large_pages(tensor):
    """True if the memory in the middle of a tensor was asked to lie in large pages."""
    address = tensor.data_ptr() + tensor.numel() * tensor.element_size() // 2
    is_there = False
    with open("/proc/self/smaps", encoding="ascii") as file:
        for line in file:
            first = line.split()[0]
            if "-" in first:
                begin, end = (int(part, 16) for part in first.split("-"))
                is_there = begin <= address < end
            elif is_there and first == "VmFlags:":
                return "hg" in line.split()
    raise AssertionError("the memory is nowhere")


@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="no large pages here")
def test_large_results_are_asked_to_lie_in_large_pages():
    """Those that are made for the call; a caller's memory is left as it is."""
    shape = 3000, 5000  # larger than what malloc ever takes from its own store
    x = torch.ones(shape)
    out = torch.empty(shape)
    fuseline.swish(x, out=out)
    assert has_large_pages(fuseline.swish(x))
    assert not has_large_pages(out) and not has_large_pages(x)


def test_torch_without_an_exchange_table():
    """Older releases of PyTorch have none: every way through a graph goes by Python then, from the first call on."""
    run_python("""
import torch
try:
    del torch.Tensor.__dlpack_c_exchange_api__
except AttributeError:
    pass
import fuseline

def values(function):
    x = torch.linspace(-2, 2, 5, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return function(x).detach(), first.detach(), second

for ours, right in zip(values(fuseline.swish), values(torch.nn.functional.silu)):
    torch.testing.assert_close(ours, right)
x = torch.linspace(-2, 2, 6, requires_grad=True)
fuseline.swiglu(x[:3], x[3:]).sum().backward()
gradient, x.grad = x.grad, None
(torch.nn.functional.silu(x[:3]) * x[3:]).sum().backward()
torch.testing.assert_close(gradient, x.grad)
torch.testing.assert_close(torch.vmap(fuseline.swish)(torch.ones(2, 3)), torch.nn.functional.silu(torch.ones(2, 3)))
""")
