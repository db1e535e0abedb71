"""Second derivatives in PyTorch: the gradients of a gradient, which the operators compute in one pass too."""

from functools import partial

import pytest
import torch

import fuseline
from activations import FORMS, GATED, PAIRS, UNARY, call_gated, gated_leaves, values
from devices import needs_compile
from fuseline._torch import TorchAdapter

UNARY = [*UNARY, UNARY[0]._replace(name="swish beta -0.7", options={"beta": -0.7})]
UNARY[-1] = UNARY[-1]._replace(eager=lambda x: x * torch.sigmoid(-0.7 * x), exact=lambda x: x * torch.sigmoid(-0.7 * x))
by_unary = pytest.mark.parametrize("operator", UNARY, ids=repr)
needs_func = pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2 only")


@pytest.fixture(autouse=True)
def way(torch_way):
    """Every test here runs by each way to C that PyTorch has."""
    return torch_way


def leaf(*shape, seed=1, dtype=torch.float64, device="cpu"):
    return values(*shape, seed=seed, dtype=dtype, device=device).requires_grad_()


def second(function, x, dy, ddx, **options):
    """The gradients of dy and x, from ddx, that of x's gradient."""
    (dx,) = torch.autograd.grad(function(x), x, dy, create_graph=True)
    return torch.autograd.grad(dx, (dy, x), ddx, **options)


@by_unary
def test_gradgradcheck(device, operator):
    """M1, K10"""
    ours = partial(operator.forward, **operator.options)
    assert torch.autograd.gradgradcheck(ours, (leaf(3, 5, device=device),))
    assert torch.autograd.gradgradcheck(lambda t: ours(t[:, ::2].t()), (leaf(3, 5, device=device),))
    # A gradient that is one value for all: read in place, and differentiated.
    x, one = leaf(4, 6, device=device), leaf(1, 1, device=device)
    backward = partial(operator.backward, **operator.options)
    assert torch.autograd.gradcheck(lambda t, g: backward(g.expand(4, 6), t), (x, one))
    assert torch.autograd.gradcheck(
        lambda t, g: backward(g[:, None].expand(4, 6), t), (x, leaf(4, seed=2, device=device))
    )


@by_unary
def test_as_the_eager_expression(device, operator):
    ours = partial(operator.forward, **operator.options)
    for shape, order in (
        ((4, 6), (0, 1)),
        ((4, 6), (1, 0)),
        ((1,), (0,)),
        ((0, 3), (0, 1)),
        ((2, 3, 4, 5), (0, 2, 3, 1)),
    ):
        x = values(*shape, seed=1, dtype=torch.float64, device=device).permute(order).contiguous()
        x = x.permute(sorted(range(len(order)), key=order.__getitem__)).requires_grad_()
        dy, ddx = (torch.randn_like(x, requires_grad=True) for _ in range(2))
        for got, right in zip(second(ours, x, dy, ddx), second(operator.exact, x, dy, ddx)):
            torch.testing.assert_close(got, right)
            assert got.stride() == x.stride()


@by_unary
@pytest.mark.parametrize(("operand", "result"), PAIRS, ids=str)
def test_of_another_dtype(device, operator, operand, result):
    x = values(40, seed=1, dtype=operand, device=device).requires_grad_()
    dy, ddx = values(40, seed=2, dtype=result, device=device), values(40, seed=3, dtype=operand, device=device)
    dy.requires_grad_()
    made = second(lambda t: operator.forward(t, **operator.options, dtype=result), x, dy, ddx)
    right = second(operator.exact, *[t.detach().double().requires_grad_() for t in (x, dy)], ddx.double())
    for got, exact, dtype in zip(made, right, (result, operand)):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), exact, rtol=1e-2, atol=1e-2)


@by_unary
def test_error_is_not_above_the_expressions(device, operator, dtype):
    """The mean error, against PyTorch's own operators differentiated twice in the same dtype."""
    x = values(20000, seed=1, dtype=dtype, device=device, scale=1.0).requires_grad_()
    dy, ddx = (values(20000, seed=seed, dtype=dtype, device=device, scale=1.0).requires_grad_() for seed in (2, 3))
    exact = second(operator.exact, *[t.detach().double().requires_grad_() for t in (x, dy)], ddx.double())
    ours = second(partial(operator.forward, **operator.options), x, dy, ddx)
    theirs = second(operator.eager, x, dy, ddx)
    for got, other, right in zip(ours, theirs, exact):
        error, bar = ((t.double() - right).abs().mean() for t in (got, other))
        # In float64 what it is compared with is rounded as well.
        assert error <= bar * 1.02 or (dtype == torch.float64 and error < 1e-16)


@by_unary
def test_gradient_penalty(device, operator):
    """A training step whose loss holds a gradient, as in Gulrajani et al., arXiv 1704.00028."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 1))
    model = model.double().to(device)
    data = values(8, 6, seed=1, dtype=torch.float64, device=device)
    found = []
    for activation in (partial(operator.forward, **operator.options), operator.exact):
        model.zero_grad()
        x = data.clone().requires_grad_()
        y = model[2](activation(model[1](activation(model[0](x)))))
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        loss = y.mean() + 10 * (slope.norm(2, dim=1) - 1).pow(2).mean()
        loss.backward()
        found.append([loss.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(*found)


@by_unary
def test_third_derivatives_are_refused(device, operator):
    x = leaf(3, device=device)
    (dx,) = torch.autograd.grad(operator.forward(x, **operator.options).sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="_double_backward: its gradient.*is not offered"):
        ddx.sum().backward()


@needs_func
@by_unary
def test_torch_func(device, operator):
    ours, x = partial(operator.forward, **operator.options), leaf(4, device=device).detach()

    def of(function):
        return lambda t: (function(t) * torch.arange(1, 5, device=device)).sum()

    jacrev, hessian, vmap = torch.func.jacrev, torch.func.hessian, torch.vmap
    right = hessian(of(operator.exact))(x)
    torch.testing.assert_close(hessian(of(ours))(x), right)
    torch.testing.assert_close(jacrev(jacrev(of(ours)))(x), right)
    batch = torch.stack((x, x / 2, -x))
    right = vmap(jacrev(jacrev(of(operator.exact))))(batch)
    torch.testing.assert_close(vmap(jacrev(jacrev(of(ours))))(batch), right)


def test_nothing_else_is_kept(device):
    """Of the backward, in its turn, only its inputs are kept."""
    x, dy = leaf(1000, device=device), leaf(1000, seed=2, device=device)
    kept = []
    y = fuseline.gelu(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        torch.autograd.grad(y, x, dy, create_graph=True)
    assert sorted(t.data_ptr() for t in kept) == sorted(t.data_ptr() for t in (x, dy))


@pytest.mark.filterwarnings("ignore")
@needs_compile
@by_unary
def test_compiled(device, operator):
    """A gradient inside of what is compiled, differentiated."""
    leaves = [leaf(4, 6, seed=seed, device=device) for seed in (1, 2)]

    def by_hand(x, dy):
        return operator.backward(dy, x, **operator.options).square().sum()

    def by_autograd(x, dy):
        (dx,) = torch.autograd.grad(operator.forward(x, **operator.options), x, dy, create_graph=True)
        return dx.square().sum()

    expected = torch.autograd.grad(by_autograd(*leaves), leaves)
    torch._dynamo.reset()
    functions = [by_hand]
    if hasattr(torch._dynamo.config, "trace_autograd_ops"):
        torch._dynamo.config.trace_autograd_ops = True
        functions.append(by_autograd)
    try:
        for function in functions:
            compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
            for got, right in zip(torch.autograd.grad(compiled(*leaves), leaves), expected):
                torch.testing.assert_close(got, right)
    finally:
        if len(functions) > 1:
            torch._dynamo.config.trace_autograd_ops = False


# --- gated units: one kernel, or with a bias composed of their activation's kernels ---

by_gated = pytest.mark.parametrize("operator", GATED, ids=repr)
by_form = pytest.mark.parametrize("form", list(FORMS))


@by_gated
@by_form
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
def test_gradgradcheck_of_gated_units(device, operator, form, bias):
    """M1"""
    arrays, keywords = gated_leaves(form, 3, 4, device=device, bias=bias)
    assert torch.autograd.gradgradcheck(lambda *inputs: call_gated(operator, inputs, keywords, bias), arrays)


@by_gated
def test_gated_units_as_the_eager_expression(device, operator):
    """With a broadcast gradient, and where only some inputs are differentiated."""
    for needs in ((True, True), (True, False)):
        found = []
        for function in (partial(operator.forward, **operator.options), operator.exact):
            inputs, _ = gated_leaves("two", 4, 6, device=device)
            for tensor, needed in zip(inputs, needs):
                tensor.requires_grad_(needed)
            leaves = [tensor for tensor in inputs if tensor.requires_grad]
            grads = torch.autograd.grad(function(*inputs).sum(), leaves, create_graph=True)
            found.append(torch.autograd.grad(sum(g.square().sum() for g in grads), leaves, allow_unused=True))
        for ours, right in zip(*found):
            torch.testing.assert_close(ours, torch.zeros_like(ours) if right is None else right)


@by_gated
def test_error_of_gated_units_is_not_above_the_expressions(device, operator, dtype):
    def second_of(function, dtype):
        inputs, _ = gated_leaves("two", 50, 40, device=device, dtype=start)
        inputs = [tensor.detach().to(dtype).requires_grad_() for tensor in inputs]
        grads = torch.autograd.grad(function(*inputs).sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.sum() for g in grads), inputs)

    start = dtype
    exact = second_of(operator.exact, torch.float64)
    ours = second_of(partial(operator.forward, **operator.options), dtype)
    theirs = second_of(operator.eager, dtype)
    for got, other, right in zip(ours, theirs, exact):
        error, bar = ((t.double() - right).abs().mean() for t in (got, other))
        assert error <= bar * 1.02 or (dtype == torch.float64 and error < 1e-15)


def test_gated_gradient_penalty(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Linear(16, 1)).double().to(device)
    data, found = values(8, 6, seed=1, dtype=torch.float64, device=device), []
    for unit in (fuseline.swiglu, lambda packed: torch.nn.functional.silu(packed[:, :16]) * packed[:, 16:]):
        model.zero_grad()
        x = data.clone().requires_grad_()
        y = model[1](unit(model[0](x)))
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (y.mean() + 10 * (slope.norm(2, dim=1) - 1).pow(2).mean()).backward()
        found.append([p.grad for p in (x, *model.parameters()) if p.grad is not None])
    torch.testing.assert_close(*[[g.clone() for g in grads] for grads in found])


@needs_func
@by_gated
def test_gated_units_under_torch_func(device, operator):
    (gate, up), _ = gated_leaves("two", 4, device=device)
    jacrev = torch.func.jacrev
    ours = jacrev(jacrev(lambda t: operator.forward(t, up.detach(), **operator.options).square().sum()))
    right = jacrev(jacrev(lambda t: operator.exact(t, up.detach()).square().sum()))
    torch.testing.assert_close(ours(gate.detach()), right(gate.detach()))


@needs_func
@by_gated
def test_forward_over_backward_of_gated_units(device, operator):
    """torch.func.hessian, of gate and up and of both."""
    (gate, up), _ = gated_leaves("two", 4, device=device)
    pair = gate.detach(), up.detach()
    found = [
        torch.func.hessian(lambda g, u, f=function: f(g, u).square().sum(), argnums=(0, 1))(*pair)
        for function in (partial(operator.forward, **operator.options), operator.exact)
    ]
    torch.testing.assert_close(*found)


@needs_func
@by_form
@pytest.mark.parametrize("bias", [False, True])
def test_forward_mode_through_the_gradient_of_a_gated_unit(device, form, bias):
    """Against the derivative by backward differentiation, with tangents of all inputs, and of each alone."""
    leaves, keywords = gated_leaves(form, 3, 4, device=device, bias=bias)
    leaves = [values(3, 4, seed=9, dtype=torch.float64, device=device).requires_grad_(), *leaves]
    inputs = len(leaves) - bias

    def function(*arrays):
        extra = {"bias": arrays[-1]} if bias else {}
        made = fuseline.swiglu_backward(*arrays[:inputs], **extra, **keywords, limit=1.5, offset=1.0)
        return made if isinstance(made, tuple) else (made,)

    directions = [torch.randn_like(leaf) for leaf in leaves]
    weights = [torch.randn_like(result) for result in function(*leaves)]
    grads = torch.autograd.grad(function(*leaves), leaves, weights)
    for chosen in ([True] * len(leaves), *([k == n for k in range(len(leaves))] for n in range(len(leaves)))):
        varied = [leaf.detach() for leaf, is_varied in zip(leaves, chosen) if is_varied]

        def of_varied(*arrays, chosen=chosen):
            arrays = iter(arrays)
            return function(*(next(arrays) if c else leaf.detach() for c, leaf in zip(chosen, leaves)))

        tangents = tuple(d for d, is_varied in zip(directions, chosen) if is_varied)
        _, results = torch.func.jvp(of_varied, tuple(varied), tangents)
        expected = sum((g * d).sum() for g, d, c in zip(grads, directions, chosen) if c)
        torch.testing.assert_close(sum((r * w).sum() for r, w in zip(results, weights)), expected)


@by_gated
@by_form
def test_gated_units_need_one_kernel(device, operator, form, monkeypatch):
    """Without a bias; where one of the backward's results has no gradient too."""
    leaves, keywords = gated_leaves(form, 3, 4, device=device)
    dy = leaf(3, 4, seed=8, device=device)
    run, launched = TorchAdapter.plain, []

    def watched(self, kernel, *arguments):
        launched.append(kernel.name)
        return run(self, kernel, *arguments)

    for results in (slice(None), slice(1)):
        grads = torch.autograd.grad(
            operator.forward(*leaves, **operator.options, **keywords), leaves, dy, create_graph=True
        )
        total = sum(grad.square().sum() for grad in grads[results])
        with monkeypatch.context() as context:
            context.setattr(TorchAdapter, "plain", watched)
            torch.autograd.grad(total, [dy, *leaves])
        assert len(launched) == 1 and launched.pop().endswith("_double_backward")


def test_third_derivatives_of_a_gated_unit_are_refused(device):
    (gate, up), _ = gated_leaves("two", 4, device=device)
    (dgate,) = torch.autograd.grad(fuseline.swiglu(gate, up).sum(), gate, create_graph=True)
    (ddgate,) = torch.autograd.grad(dgate.sum(), gate, create_graph=True)
    with pytest.raises(NotImplementedError, match="_double_backward: its gradient.*is not offered"):
        ddgate.sum().backward()


@pytest.mark.filterwarnings("ignore")
@needs_compile
@by_form
def test_gated_units_compiled(device, form):
    leaves, keywords = gated_leaves(form, 4, 6, device=device, bias=True)
    leaves.append(values(4, 6, seed=9, dtype=torch.float64, device=device).requires_grad_())

    def penalty(*arrays):
        *inputs, bias, dy = arrays
        made = fuseline.swiglu_backward(dy, *inputs, **keywords, bias=bias, limit=1.5, offset=1.0)
        return sum(grad.square().sum() for grad in made)

    expected = torch.autograd.grad(penalty(*leaves), leaves)
    torch._dynamo.reset()
    compiled = torch.compile(penalty, fullgraph=True, backend="aot_eager")
    for got, right in zip(torch.autograd.grad(compiled(*leaves), leaves), expected):
        torch.testing.assert_close(got, right)
