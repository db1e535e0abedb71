"""PyTorch's modes: autocast, deterministic algorithms, checkpointing, anomaly detection, hooks on saved tensors."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import fuseline
from activations import GATED, UNARY, values
from devices import needs_gpu

operators = pytest.mark.parametrize("operator", UNARY + GATED, ids=repr)


def inputs_of(operator, *shape, device, dtype=torch.float32):
    count = 2 if operator in GATED else 1
    return [values(*shape, seed=seed, dtype=dtype, device=device).requires_grad_() for seed in range(count)]


def gradients(function, inputs):
    y = function(*inputs)
    return [y, *torch.autograd.grad(y, inputs, torch.ones_like(y))]


def ours(operator):
    return lambda *inputs: operator.forward(*inputs, **operator.options)


# --- autocast ---


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
@operators
def test_autocast_keeps_dtypes(device, operator, kind):
    """As of torch's own activations: the dtypes of results and gradients are those of the inputs, not autocast's."""
    for dtype in (torch.float32, kind):
        inputs = inputs_of(operator, 3, 5, device=device, dtype=dtype)
        plain = gradients(ours(operator), inputs)
        with torch.autocast(device, dtype=kind):
            cast = gradients(ours(operator), inputs)
            theirs = operator.eager(*inputs)
        # pow(), in the expression for relu2, is computed in float32 on a GPU; no activation of torch's is.
        assert theirs.dtype == dtype or (operator.name == "relu2" and device == "cuda")
        for without, under in zip(plain, cast):
            assert under.dtype == dtype and torch.equal(without, under)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
def test_feed_forward_under_autocast(device, kind):
    """Projections in 16 bits, parameters and their gradients in float32; the backward runs outside of autocast."""
    torch.manual_seed(0)
    gate, up, down = (torch.nn.Linear(*size).to(device) for size in ((16, 32), (16, 32), (32, 16)))
    x = values(8, 16, seed=1, dtype=torch.float32, device=device)
    found = []
    for unit in (fuseline.swiglu, lambda g, u: torch.nn.functional.silu(g) * u):
        with torch.autocast(device, dtype=kind):
            projected = gate(x), up(x)
            hidden = unit(*projected)
            y = down(hidden)
        assert {t.dtype for t in (*projected, hidden, y)} == {kind}
        parameters = [p for layer in (gate, up, down) for p in layer.parameters()]
        grads = torch.autograd.grad(y.float().square().sum(), parameters)
        assert {g.dtype for g in grads} == {torch.float32}
        found.append([y, *grads])
    for mine, right in zip(*found):
        torch.testing.assert_close(mine.float(), right.float(), rtol=0.02, atol=0.02 * right.abs().max().item())


def test_dtypes_that_autocast_parts_are_named(device):
    """M9: a projection's result and a float32 tensor. PyTorch would promote; the error says which is which."""
    gate = values(3, 4, seed=1, dtype=torch.float32, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        up = torch.nn.Linear(4, 4).to(device)(gate)
        with pytest.raises(fuseline.DTypeError, match="up: dtype is bfloat16, but gate is float32"):
            fuseline.swiglu(gate, up)


# --- deterministic algorithms ---


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@operators
def test_deterministic_algorithms(deterministic, device, operator):
    """Nothing warns or is refused, a bias's column sum included, and the same bits come again."""
    inputs = inputs_of(operator, 50, 64, device=device, dtype=torch.bfloat16)
    options = dict(operator.options)
    if operator in GATED:
        inputs.append(values(128, seed=5, dtype=torch.bfloat16, device=device).requires_grad_())

    def function(*arrays):
        extra = {"bias": arrays[2]} if len(arrays) == 3 else {}
        return operator.forward(*arrays[:2], **extra, **options)

    first, second = gradients(function, inputs), gradients(function, inputs)
    assert all(torch.equal(a, b) for a, b in zip(first, second))


# --- what autograd does with what is saved ---


@pytest.mark.parametrize("use_reentrant", [False, True])
@operators
def test_checkpointing(device, operator, use_reentrant):
    inputs = inputs_of(operator, 6, 8, device=device)
    y = checkpoint(ours(operator), *inputs, use_reentrant=use_reentrant)
    y.sum().backward()
    got = [tensor.grad for tensor in inputs]
    for grad, right in zip(got, torch.autograd.grad(ours(operator)(*inputs).sum(), inputs)):
        assert torch.equal(grad, right)


@operators
def test_hooks_on_saved_tensors(device, operator):
    """They see the inputs, once each and nothing else, and what they give back is what the backward reads."""
    inputs = inputs_of(operator, 4, 3, device=device)
    packed = []

    def pack(tensor):
        packed.append(tensor.data_ptr())
        return tensor.detach() * 2

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor / 2):
        y = ours(operator)(*inputs)
    assert packed == [tensor.data_ptr() for tensor in inputs]
    right = torch.autograd.grad(ours(operator)(*inputs).sum(), inputs)
    for got, expected in zip(torch.autograd.grad(y.sum(), inputs), right):
        assert torch.equal(got, expected)


@operators
def test_graphs_that_are_kept(device, operator):
    inputs = inputs_of(operator, 4, 3, device=device)
    y = ours(operator)(*inputs).sum()
    first = torch.autograd.grad(y, inputs, retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(first, torch.autograd.grad(y, inputs)))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, inputs)


@pytest.mark.filterwarnings("ignore")
def test_anomalies_are_traced_to_the_operator(device):
    x = torch.tensor([float("nan")], device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="Swish.*returned nan"):
        fuseline.swish(x).sum().backward()


# --- streams ---


@needs_gpu
def test_memory_used_on_another_stream_is_not_given_away():
    """record_stream: what is made on one stream and read by ours on another is not reused before that is done."""
    side, count = torch.cuda.Stream(), 1 << 22
    for _ in range(5):
        x = torch.full((count,), 2.0, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            y = fuseline.swish(x)
        x.record_stream(side)
        address = x.data_ptr()
        del x
        taken = torch.full((count,), -100.0, device="cuda")  # at once, on the default stream
        assert taken.data_ptr() != address
        torch.cuda.synchronize()
        torch.testing.assert_close(y, torch.nn.functional.silu(torch.full_like(y, 2.0)))
