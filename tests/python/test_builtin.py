"""Calls that C serves by itself: which ones, and that they leave nothing behind."""

import gc
import os
import sys
import threading

import pytest
import torch

import fuseline
from devices import torch_adapter
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


def test_calls_with_out_are_served_by_c(only_c, device, dtype):
    x, u = pair(device, 6, 8, dtype=dtype)
    y = torch.empty_like(x)
    for function in (fuseline.swish, fuseline.gelu, fuseline.relu2):
        assert function(x, out=y) is y and torch.equal(y, function(x))
        rows = torch.empty(6, 10, dtype=dtype, device=device)[:, :8]
        assert function(x, out=rows) is rows and torch.equal(rows, y)
        taken = x.clone()
        assert function(taken, out=taken) is taken and torch.equal(taken, y)
    for function in (fuseline.swish_backward, fuseline.gelu_backward, fuseline.relu2_backward):
        assert function(u, x, out=y) is y and torch.equal(y, function(u, x))
    wide, narrow = torch.empty(6, 8, dtype=torch.float32, device=device), torch.empty(6, 4, dtype=dtype, device=device)
    for function, backward in (
        (fuseline.swiglu, fuseline.swiglu_backward),
        (fuseline.geglu, fuseline.geglu_backward),
        (fuseline.reglu, fuseline.reglu_backward),
    ):
        assert function(x, u, out=y) is y and torch.equal(y, function(x, u))
        assert function(x, interleaved=True, out=narrow) is narrow
        assert torch.equal(narrow, function(x, interleaved=True))
        if dtype != torch.float64:
            assert torch.equal(function(x, u, out=wide).to(dtype), y)
        both = torch.empty_like(x), torch.empty_like(x)
        assert backward(x, x, u, out=both) is both
        for ours, expected in zip(both, backward(x, x, u)):
            assert torch.equal(ours, expected)
        packed = torch.empty_like(x)
        assert backward(narrow, x, out=packed) is packed and torch.equal(packed, backward(narrow, x))
    parameter = torch.nn.Parameter(x.clone())
    with torch.no_grad():
        fuseline.swish(parameter, out=y)
    with torch.inference_mode():
        fuseline.swish(parameter, out=torch.empty_like(x))


def test_large_tensors_with_out_are_served_by_c(only_c):
    x = torch.randn(1 << 17)
    y = torch.empty_like(x)
    torch.testing.assert_close(fuseline.swish(x, out=y), torch.nn.functional.silu(x))


def test_autograd_is_told_what_c_wrote(only_c, device):
    """What it saved of a tensor that was written later is stale."""
    leaf = torch.ones(4, device=device, requires_grad=True)
    saved = torch.ones(4, device=device)
    y = leaf * saved
    before = saved._version
    fuseline.swish(torch.ones(4, device=device), out=saved)
    assert saved._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("interrupted", [0, 1], ids=["at once", "once it is told"])
def test_a_failure_to_tell_autograd_reaches_the_caller(monkeypatch, interrupted):
    """As it was raised, say by Ctrl-C; and a call that succeeds tells of all results at once."""
    calls = []

    def increment(tensors):
        calls.append(len(tensors))
        if interrupted:
            torch._C._increment_version(tensors)
        raise KeyboardInterrupt("here")

    x, one, two = torch.ones(4), (torch.empty(4),), (torch.empty(4), torch.empty(4))
    monkeypatch.setattr("fuseline._torch._version_counter", lambda torch: increment)
    torch_adapter().serve_by_c(True)
    try:
        for call, results in (
            (lambda: fuseline.swish(x, out=one[0]), one),
            (lambda: fuseline.swiglu_backward(x, x, x, out=two), two),
        ):
            before = references(*results)
            for _ in range(20):
                with pytest.raises(KeyboardInterrupt, match="here") as raised:
                    call()
                assert raised.value.__cause__ is None and raised.value.__context__ is None
            assert calls == [len(results)] * 20
            assert [result._version for result in results] == [20 * interrupted] * len(results)
            del raised
            assert references(*results) == before
            calls.clear()
    finally:
        monkeypatch.undo()
        torch_adapter().serve_by_c(True)


FIRST_CALL = """
import warnings
warnings.simplefilter("error")
import torch, fuseline
x, y = torch.linspace(-3, 3, 5), torch.empty(5)
with {surroundings}:
    fuseline.swish(x, out=y)
assert torch.allclose(y, torch.nn.functional.silu(x))
from fuseline import _call
assert _call._made["torch"].exchange is not None
"""


@pytest.mark.parametrize("surroundings", ['torch.device("meta")', "torch.inference_mode()", "torch.no_grad()"])
def test_the_first_calls_surroundings_do_not_decide_how_the_others_are_served(surroundings):
    """What is tried at that call is tried on the CPU, whatever the default device: no GPU has to be woken for it."""
    run_python(FIRST_CALL.format(surroundings=surroundings))


class Named(torch.Tensor):
    """A subclass, whose elements are its own."""


def _traced(function):
    return lambda *tensors: torch.jit.trace(function, tensors, check_trace=False)


def _under(mode):
    def wrap(function):
        def call(*tensors):
            with mode():
                return function(*tensors)

        return call

    return wrap


def _fake_mode():
    return torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)


def _inference(*shape):
    with torch.inference_mode():
        return torch.zeros(*shape)


def _swish(x, y):
    return fuseline.swish(x, out=y)


def _gradients(x, y):
    return fuseline.swiglu_backward(x, x, x, out=y)


# What C must not serve by itself: (a call of x and out, what makes the two).
UNUSUAL = {
    "x requires a gradient": (_swish, lambda x, y: (x.requires_grad_(), y)),
    "out requires a gradient": (_swish, lambda x, y: (x, y.requires_grad_())),
    "out requires one, without gradients": (_under(torch.no_grad)(_swish), lambda x, y: (x, y.requires_grad_())),
    "x of a subclass": (_swish, lambda x, y: (x.as_subclass(Named), y)),
    "out of a subclass": (_swish, lambda x, y: (x, y.as_subclass(Named))),
    "a negated x": (_swish, lambda x, y: (torch._neg_view(x), y)),
    "a negated out": (_swish, lambda x, y: (x, torch._neg_view(y))),
    "an inference tensor": (_swish, lambda x, y: (x, _inference(4, 6))),
    "an array": (_swish, lambda x, y: (x, y.numpy())),
    "a number": (_swish, lambda x, y: (x, 1.0)),
    "a tuple for one result": (_swish, lambda x, y: (x, (y,))),
    "a list for two": (_gradients, lambda x, y: (x, [y, y.clone()])),
    "a short tuple": (_gradients, lambda x, y: (x, (y,))),
    "a tensor for two": (_gradients, lambda x, y: (x, y)),
    "twice the same": (_gradients, lambda x, y: (x, (y, y))),
    "another shape": (_swish, lambda x, y: (x, y[:3])),
    "another dtype": (_swish, lambda x, y: (x, y.double())),
    "integers": (_swish, lambda x, y: (x, y.int())),
    "another order of dimensions": (_swish, lambda x, y: (x, y.reshape(6, 4).t())),
    "repeated elements": (_swish, lambda x, y: (x, y[:1].expand(4, 6))),
    "overlapping x": (lambda x, y: fuseline.swish(x[:20], out=x[4:]), lambda x, y: (x.reshape(-1), y)),
    "a dtype, too": (lambda x, y: fuseline.swish(x, out=y, dtype=torch.float32), lambda x, y: (x, y)),
    "an integer for beta": (lambda x, y: fuseline.swish(x, 2, out=y), lambda x, y: (x, y)),
    "a bias's gradient": (
        lambda x, y: fuseline.swiglu_backward(x, x, x, bias=x.reshape(-1)[:12], out=y),
        lambda x, y: (x, (y, y.clone(), y.reshape(-1)[:12].clone())),
    ),
    "a sparse out": (_swish, lambda x, y: (x, y.to_sparse())),
    "a quantized out": (_swish, lambda x, y: (x, torch.quantize_per_tensor(y, 0.1, 0, torch.quint8))),
    "a nested out": (_swish, lambda x, y: (x, torch.nested.nested_tensor([y[0], y[1]]))),
    "out on no device": (_swish, lambda x, y: (x, y.to("meta"))),
    "x on no device": (_swish, lambda x, y: (x.to("meta"), y)),
    "forward mode": (_under(torch.autograd.forward_ad.dual_level)(_swish), lambda x, y: (x, y)),
    "a dispatch mode": (_under(_fake_mode)(_swish), lambda x, y: (x, y)),
    "a trace": (_traced(_swish), lambda x, y: (x, y)),
    "vmap": (torch.vmap(_swish), lambda x, y: (x, y)),
    "vmap of x alone": (torch.vmap(_swish, in_dims=(0, None)), lambda x, y: (x, y[0])),
    "torch.func.grad": (
        torch.func.grad(lambda x, y: fuseline.swish(x.detach(), out=torch.empty_like(x)).sum()),
        lambda x, y: (x, y),
    ),
    "functionalized": (torch.func.functionalize(_swish), lambda x, y: (x, y)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call, made", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_calls_with_out_are_left_to_python(monkeypatch, call, made):
    """They end as if C served none: with the same error, or the same values."""
    adapter, seen = torch_adapter(), []
    original = type(adapter).call
    monkeypatch.setattr(type(adapter), "call", lambda *arguments: seen.append(1) or original(*arguments))

    def outcome():
        x = torch.linspace(-3, 3, 24).reshape(4, 6)
        x, y = made(x, torch.full_like(x, 7.0))
        try:
            result = call(x, y)
        except Exception as error:
            return type(error), str(error)
        result = result if isinstance(result, (tuple, list)) else (result,)
        return [item.tolist() if type(item) in (torch.Tensor, Named) else type(item) for item in result]

    by_c = outcome()
    assert seen
    adapter.serve_by_c(False)
    try:
        assert by_c == outcome()
    finally:
        adapter.serve_by_c(True)


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
    y_given, both_given = torch.empty_like(u), (torch.empty_like(u), torch.empty_like(u))
    watched = x, u, wrong, odd, torch.empty_like, torch.is_grad_enabled, 1.5, fuseline.swish
    watched += y_given, both_given, *both_given
    beta = 1.25e10 / 1e10

    def calls(count):
        for _ in range(count):
            fuseline.swish(x, beta)
            with torch.no_grad():
                fuseline.swish(x, out=y_given)
                fuseline.swiglu_backward(u, x, u, out=both_given)
                for unfit in (odd, wrong, "no tensor"):
                    with pytest.raises((TypeError, ValueError)):
                        fuseline.swish(x, out=unfit)
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
