"""PyTorch's differentiation of the activation family: which gradients there are, of what, and what is kept for them."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import fuseline
from activations import FORMS, GATED, PAIRS, UNARY, call_gated, exact_gradients, gated_leaves, values
from fuseline import _torch

by_operator = pytest.mark.parametrize("operator", GATED, ids=repr)
by_form = pytest.mark.parametrize("form", list(FORMS))


@pytest.fixture(autouse=True)
def way(torch_way):
    """Every test here runs by each way to C that PyTorch has."""
    return torch_way


@pytest.fixture
def kernels(way, monkeypatch):
    """The names of the kernels that were launched."""
    if way == "builtin":
        pytest.skip("C does not say what it launches")
    launched = []
    run = _torch.TorchAdapter.run
    call = _torch.TorchAdapter._call_on_objects

    def watch(original):
        def watched(self, kernel, *arguments):
            launched.append(kernel.name)
            return original(self, kernel, *arguments)

        return watched

    if way == "described":
        monkeypatch.setattr(_torch.TorchAdapter, "run", watch(run))
    else:
        monkeypatch.setattr(_torch.TorchAdapter, "_call_on_objects", watch(call))
    return launched


@by_operator
@by_form
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
def test_gradcheck(device, operator, form, bias):
    arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=bias)
    assert torch.autograd.gradcheck(lambda *inputs: call_gated(operator, inputs, keywords, bias), arrays)


@pytest.mark.parametrize("operator", UNARY, ids=repr)
def test_gradcheck_unary(device, operator):
    x = values(3, 5, seed=1, dtype=torch.float64, device=device).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: operator.forward(t, **operator.options), (x,))
    assert torch.autograd.gradcheck(lambda t: operator.forward(t[:, ::2].t(), **operator.options), (x,))


@by_operator
def test_chunks_of_one_tensor(device, operator):
    """What users write today: chunk(2, -1) of a projection, whose gradient is that of the packed form."""
    packed = values(6, 20, seed=1, dtype=torch.float64, device=device).requires_grad_()
    operator.forward(*packed.chunk(2, -1), **operator.options).square().sum().backward()
    by_chunks, packed.grad = packed.grad, None
    operator.forward(packed, **operator.options).square().sum().backward()
    torch.testing.assert_close(packed.grad, by_chunks)


def kept_by(function):
    """The tensors that autograd keeps of a call."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        function()
    return kept


@by_form
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
def test_only_the_inputs_are_kept(device, form, bias):
    """Nothing but the inputs themselves, in their own memory."""
    arrays, keywords = gated_leaves(form, 32, 48, device=device, dtype=torch.bfloat16, bias=bias)
    for operator in GATED:
        kept = kept_by(partial(call_gated, operator, arrays, keywords, bias))
        assert sorted(t.data_ptr() for t in kept) == sorted(t.data_ptr() for t in arrays)
        assert sum(t.numel() for t in kept) == sum(t.numel() for t in arrays)


def test_only_x_is_kept(device):
    x = values(1000, seed=1, device=device).requires_grad_()
    for operator in UNARY:
        kept = kept_by(partial(operator.forward, x, **operator.options))
        assert [t.data_ptr() for t in kept] == [x.data_ptr()]


def test_what_is_not_needed_is_not_computed(kernels, device):
    """M7: no column sums for a frozen bias, no backward at all where nothing is needed, no gradient of the frozen."""
    for form in FORMS:
        arrays, keywords = gated_leaves(form, 4, 6, device=device, bias=True)
        *inputs, bias = arrays
        sums = 2 if len(inputs) == 2 else 1
        for needs in ((True, True), (True, False), (False, True), (False, False)):
            for tensor, needed in [(inputs[0], needs[0]), *((t, False) for t in inputs[1:]), (bias, needs[1])]:
                tensor.requires_grad_(needed)
                tensor.grad = None
            kernels.clear()
            y = call_gated(GATED[0], arrays, keywords, True)
            assert kernels == ["swiglu_forward"] and y.requires_grad == any(needs)
            kernels.clear()
            if any(needs):
                y.sum().backward()
                assert kernels == ["swiglu_backward"] + ["column_sum"] * (sums if needs[1] else 0)
            assert (inputs[0].grad is not None, bias.grad is not None) == needs
            assert all(tensor.grad is None for tensor in inputs[1:])


def test_each_input_alone(device):
    """Gate with a frozen up, and the reverse."""
    for operator in GATED:
        gate, up = (values(4, 6, seed=seed, dtype=torch.float64, device=device) for seed in (1, 2))
        _, right = exact_gradients(operator, (gate, up), torch.ones(4, 6))
        for place in (0, 1):
            inputs = [gate.clone(), up.clone()]
            inputs[place].requires_grad_()
            operator.forward(*inputs, **operator.options).sum().backward()
            torch.testing.assert_close(inputs[place].grad.cpu(), right[place])
            assert inputs[1 - place].grad is None


def test_one_tensor_as_gate_and_up(device):
    x = values(8, seed=1, dtype=torch.float64, device=device).requires_grad_()
    fuseline.swiglu(x, x).sum().backward()
    by_ours, x.grad = x.grad, None
    (torch.nn.functional.silu(x) * x).sum().backward()
    torch.testing.assert_close(by_ours, x.grad)


@by_form
def test_gradient_is_never_written_to(device, dtype, form):
    """H4, M6"""
    arrays, keywords = gated_leaves(form, 4, 6, dtype=dtype, device=device, bias=True)
    for operator in GATED:
        dy = values(4, 6, seed=9, dtype=dtype, device=device)
        for gradient in (dy, dy[:1, :1].expand(4, 6), dy[:1].expand(4, 6)):
            kept = gradient.clone()
            y = call_gated(operator, arrays, keywords, True)
            grads = torch.autograd.grad(y, arrays, gradient)
            assert torch.equal(gradient, kept)
            pointers = {t.data_ptr() for t in (*arrays, gradient, y)}
            assert not pointers & {grad.data_ptr() for grad in grads}


@pytest.mark.parametrize("operator", UNARY + GATED, ids=repr)
def test_every_operator_is_differentiable(device, dtype, operator):
    """M22: a gradient for each input, not none."""
    inputs = [
        values(5, seed=k, dtype=dtype, device=device).requires_grad_() for k in range(2 if operator in GATED else 1)
    ]
    y = operator.forward(*inputs, **operator.options)
    assert y.requires_grad and all(y is not x for x in inputs)
    y.sum().backward()
    assert all(x.grad is not None and x.grad.dtype == dtype and x.grad.abs().sum() > 0 for x in inputs)


def test_column_sum_says_that_it_is_not_differentiable(device):
    """M22"""
    x = torch.ones(3, 4, device=device, requires_grad=True)
    with pytest.raises(NotImplementedError, match="fuseline.column_sum: its gradient.*is not offered"):
        fuseline.column_sum(x).sum().backward()


@pytest.mark.parametrize(("operand", "result"), PAIRS, ids=str)
@by_form
def test_gradients_through_another_dtype(device, operand, result, form):
    """M10: the gradient of the result has the result's dtype, those of the inputs have theirs."""
    arrays, keywords = gated_leaves(form, 4, 6, dtype=operand, device=device, bias=True)
    for operator in GATED:
        y = call_gated(operator, arrays, keywords, True, dtype=result)
        assert y.dtype == result
        dy = values(4, 6, seed=9, dtype=result, device=device)
        grads = torch.autograd.grad(y, arrays, dy)
        by_hand = operator.backward(dy, *arrays[:-1], **keywords, **operator.options, bias=arrays[-1])
        assert all(grad.dtype == operand for grad in grads)
        assert all(torch.equal(mine, other) for mine, other in zip(grads, by_hand))


def test_gradient_of_another_dtype(device):
    """M10: one that does not come from autograd, which would have cast it."""
    gate = values(6, seed=1, dtype=torch.bfloat16, device=device).requires_grad_()
    y = fuseline.swiglu(gate, gate.detach())
    for dtype in (torch.float32, torch.float16, torch.float64):
        dgate = y.grad_fn.apply(torch.ones(6, dtype=dtype, device=device))[0]
        expected = fuseline.swiglu_backward(torch.ones_like(gate), gate, gate.detach())[0]
        assert torch.equal(dgate, expected.detach())
        y = fuseline.swiglu(gate, gate.detach())


def test_mixed_dtypes_are_named(device):
    """M9: neither guessed nor promoted."""
    gate = torch.ones(2, 6, dtype=torch.bfloat16, device=device, requires_grad=True)
    bias = torch.ones(6, device=device, requires_grad=True)
    with pytest.raises(fuseline.DTypeError, match="bias: dtype is float32, but gate is bfloat16"):
        fuseline.swiglu(gate, bias=bias)
    with pytest.raises(fuseline.DTypeError, match="up: dtype is float32, but gate is bfloat16"):
        fuseline.swiglu(gate, gate.float())


def test_without_gradients(device):
    """No graph where none is asked for."""
    arrays, keywords = gated_leaves("packed", 4, 6, device=device, bias=True)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert call_gated(GATED[0], arrays, keywords, True).grad_fn is None
    frozen = [array.detach() for array in arrays]
    assert call_gated(GATED[0], frozen, keywords, True).grad_fn is None
    frozen[-1].requires_grad_()
    assert call_gated(GATED[0], frozen, keywords, True).requires_grad


def test_out_and_gradients(device):
    gate = torch.ones(3, device=device, requires_grad=True)
    for inputs in ((gate, gate.detach()), (gate.detach(), gate)):
        with pytest.raises(RuntimeError, match="out: functions with out"):
            fuseline.swiglu(*inputs, out=torch.empty(3, device=device))
    plain = gate.detach()
    with pytest.raises(RuntimeError, match="out: functions with out"):
        fuseline.swiglu(
            plain, plain, bias=torch.ones(6, device=device, requires_grad=True), out=torch.empty_like(plain)
        )


def test_input_changed_after_the_call_is_noticed(device):
    base = torch.ones(4, 6, device=device, requires_grad=True)
    bias = torch.zeros(6, device=device, requires_grad=True)
    for place in (0, 1):
        inputs = base * 1, bias * 1
        y = fuseline.swiglu(inputs[0], bias=inputs[1])
        inputs[place].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_negated_views(device):
    x = values(4, 6, seed=1, device=device)
    negated = torch._neg_view(x)
    torch.testing.assert_close(fuseline.swiglu(negated), fuseline.swiglu(-x))
    torch.testing.assert_close(fuseline.geglu(x, negated), fuseline.geglu(x, -x))


def test_feed_forward_layer_matches_eager(device):
    """A layer as it stands in a model, weights and all: two projections with a bias into one packed tensor."""
    torch.manual_seed(0)
    into, out = torch.nn.Linear(8, 2 * 12, bias=False).to(device).double(), torch.nn.Linear(12, 8).to(device).double()
    bias = torch.nn.Parameter(torch.randn(24, dtype=torch.float64, device=device))
    data = torch.randn(5, 3, 8, dtype=torch.float64, device=device, requires_grad=True)

    def eager(hidden):
        gate, up = (hidden + bias).chunk(2, -1)
        return torch.nn.functional.silu(gate) * up

    parameters = [data, bias, *into.parameters(), *out.parameters()]
    results = []
    for unit in (eager, lambda hidden: fuseline.swiglu(hidden, bias=bias)):
        loss = out(unit(into(data))).square().sum()
        results.append((loss, *torch.autograd.grad(loss, parameters)))
    for theirs, ours in zip(*results):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch 2 only")
def test_compiled_layer_has_equal_gradients():
    """M13, M23: a break in the graph, not an error."""
    weight = values(4, 12, seed=1).requires_grad_()
    data = values(3, 4, seed=2)

    def model(data):
        return fuseline.swiglu(data @ weight, limit=2.0).sum()

    model(data).backward()
    expected, weight.grad = weight.grad, None
    torch.compile(model, backend="eager")(data).backward()
    torch.testing.assert_close(weight.grad, expected)


# --- torch.func ---

transforms = pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2 only")


@transforms
@by_form
def test_func_grad(device, form):
    """M11"""
    arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=True)
    arrays = [array.detach() for array in arrays]

    def total(operator, *inputs):
        return call_gated(operator, inputs, keywords, True).sum()

    for operator in GATED:
        function = partial(total, operator)
        grads = torch.func.grad(function, argnums=tuple(range(len(arrays))))(*arrays)
        ones = torch.ones(3, 4, dtype=torch.float64, device=device)
        by_hand = operator.backward(ones, *arrays[:-1], **keywords, **operator.options, bias=arrays[-1])
        for mine, other in zip(grads, by_hand):
            torch.testing.assert_close(mine, other)


@transforms
@by_form
def test_vmap(device, form):
    """E4: over a batch, with and without the bias in it, and over gradients, the bias's too."""
    operator = GATED[0]
    arrays, keywords = gated_leaves(form, 2, 3, 4, device=device, bias=True)
    *inputs, bias = [array.detach() for array in arrays]
    biases = torch.stack((bias, 2 * bias))
    whole = call_gated(operator, (*inputs, bias), keywords, True)
    dims = (0,) * len(inputs)

    def one(*given):
        return call_gated(operator, given, keywords, True)

    torch.testing.assert_close(torch.vmap(one, (*dims, None))(*inputs, bias), whole)
    each = torch.stack([one(*(array[k] for array in inputs), biases[k]) for k in range(2)])
    torch.testing.assert_close(torch.vmap(one, (*dims, 0))(*inputs, biases), each)
    torch.testing.assert_close(
        torch.vmap(lambda b: one(*(array[0] for array in inputs), b))(biases),
        torch.stack([one(*(array[0] for array in inputs), b) for b in biases]),
    )
    moved = [array.movedim(0, 1) for array in inputs]
    torch.testing.assert_close(torch.vmap(one, (*(1 for _ in moved), None), 1)(*moved, bias), whole.movedim(0, 1))
    every = tuple(range(len(arrays)))
    grad = torch.func.grad(lambda *given: one(*given).sum(), argnums=every)
    for in_dim, given in ((0, biases), (None, bias)):  # one bias for all, too, has a gradient for each
        single = [grad(*(array[k] for array in inputs), biases[k] if in_dim == 0 else bias) for k in range(2)]
        for mine, other in zip(torch.vmap(grad, (*dims, in_dim))(*inputs, given), zip(*single)):
            torch.testing.assert_close(mine, torch.stack(other))
    x = inputs[0]
    for dim in range(3):
        expected = torch.stack([fuseline.column_sum(part) for part in x.unbind(dim)])
        torch.testing.assert_close(torch.vmap(fuseline.column_sum, in_dims=dim)(x), expected)


@transforms
@pytest.mark.parametrize("form", ["two", "packed"])
def test_vmap_over_an_empty_batch(device, form):
    """E4: empty results, as torch's own functions give; with gradients that are empty or zero."""
    arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=True)
    *inputs, bias = [array.detach() for array in arrays]
    biases = torch.ones(0, *bias.shape, dtype=bias.dtype, device=device, requires_grad=True)
    shared = [array.requires_grad_() for array in inputs]
    y = torch.vmap(lambda b: call_gated(GATED[0], (*shared, b), keywords, True))(biases)
    assert y.shape == (0, 3, 4) and y.dtype == bias.dtype
    grads = torch.autograd.grad(y.sum(), (biases, *shared))
    assert all(torch.equal(grad, torch.zeros_like(array)) for grad, array in zip(grads, (biases, *shared)))
    every = torch.vmap(
        lambda b: torch.func.grad(lambda c: call_gated(GATED[0], (*inputs, c), keywords, True).sum())(b)
    )(biases)
    assert every.shape == biases.shape
    assert torch.vmap(fuseline.column_sum, in_dims=1)(torch.ones(3, 0, 4, device=device)).shape == (0, 4)


@pytest.mark.parametrize("operator", GATED[:1] + UNARY[:1], ids=repr)
@by_form
def test_gradients_of_several_results_at_once(device, operator, form):
    """autograd's is_grads_batched, on which jacobian(vectorize=True) and gradcheck(check_batched_grad=True) stand."""
    if operator in UNARY:
        arrays, keywords = [values(3, 4, seed=1, dtype=torch.float64, device=device).requires_grad_()], {}
    else:
        arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=True)

    def function(*inputs):
        return call_gated(operator, inputs, keywords, operator in GATED)

    y = function(*arrays)
    for count in (1, 5):
        dy = values(count, *y.shape, seed=2, dtype=y.dtype, device=device)
        single = [torch.autograd.grad(y, arrays, one, retain_graph=True) for one in dy]
        for create_graph in (False, True):
            together = torch.autograd.grad(
                y, arrays, dy, retain_graph=True, is_grads_batched=True, create_graph=create_graph
            )
            for array, mine, *others in zip(arrays, together, *single):
                assert mine.shape == (count, *array.shape)
                assert all(torch.equal(one, other) for one, other in zip(mine, others))
    functional = torch.autograd.functional
    inputs = tuple(array.detach() for array in arrays)
    one_by_one = functional.jacobian(function, inputs)
    for mine, other in zip(functional.jacobian(function, inputs, vectorize=True), one_by_one):
        torch.testing.assert_close(mine, other)
    assert torch.autograd.gradcheck(function, arrays, check_batched_grad=True)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("nested", [False, True])
def test_gradients_of_several_results_in_another_thread(device, count, nested):
    """A thread of autograd's own, as backward has for a GPU, knows nothing of the vmap around the gradients."""
    vmap = torch._vmap_internals._vmap
    x = values(3, 4, seed=1, dtype=torch.float64, device=device)
    dy = values(*(2, count)[not nested :], 3, 4, seed=2, dtype=torch.float64, device=device)

    def elsewhere(one):
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(fuseline.swish_backward, one, x).result()

    mine = (vmap(vmap(elsewhere)) if nested else vmap(elsewhere))(dy)
    assert torch.equal(mine, fuseline.swish_backward(dy, x.expand_as(dy)))


def test_the_older_vmap(device):
    """Of calls themselves, one inside of another too; `out` is refused."""
    from torch._vmap_internals import _vmap

    x = values(2, 3, 4, seed=1, device=device)
    outer = values(3, 4, seed=2, device=device)
    assert torch.equal(_vmap(fuseline.swish)(x), fuseline.swish(x))
    nested = _vmap(lambda a: _vmap(lambda b: fuseline.swiglu(a, b))(x[0]), 0)(outer)
    assert torch.equal(nested, torch.stack([torch.stack([fuseline.swiglu(a, b) for b in x[0]]) for a in outer]))
    with pytest.raises(TypeError, match="^out: is not supported inside"):
        _vmap(lambda t: fuseline.swish(t, out=torch.empty(3, 4, device=device)))(x)


@transforms
@pytest.mark.parametrize("operator", UNARY + GATED, ids=repr)
def test_forward_mode(device, operator):
    """E6: with tangents of all inputs, and of one."""
    count = 2 if operator in GATED else 1
    x, t = ([torch.randn(3, 4, dtype=torch.float64, device=device) for _ in range(count)] for _ in range(2))

    def ours(*inputs):
        return operator.forward(*inputs, **operator.options)

    torch.testing.assert_close(
        torch.func.jvp(ours, tuple(x), tuple(t)), torch.func.jvp(operator.exact, tuple(x), tuple(t))
    )
    for k in range(count):

        def of_one(function, k=k):
            return torch.func.jvp(lambda one: function(*x[:k], one, *x[k + 1 :]), (x[k],), (t[k],))

        torch.testing.assert_close(of_one(ours), of_one(operator.exact))


@transforms
@pytest.mark.parametrize("form", list(FORMS))
def test_forward_mode_in_every_form(device, form):
    """With a bias; against the derivative by backward differentiation."""
    arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=True)
    tangents = tuple(torch.randn_like(array) for array in arrays)

    def function(*arrays):
        return call_gated(GATED[0], arrays, keywords, True)

    _, result = torch.func.jvp(function, tuple(array.detach() for array in arrays), tangents)
    weights = torch.randn_like(result)
    grads = torch.autograd.grad(function(*arrays), arrays, weights)
    torch.testing.assert_close((result * weights).sum(), sum((g * t).sum() for g, t in zip(grads, tangents)))


@transforms
def test_forward_mode_of_a_column_sum_is_refused():
    x = torch.randn(4, dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="column_sum: its gradient"):
        torch.func.jvp(fuseline.column_sum, (x,), (torch.ones_like(x),))
