"""Second derivatives in PyTorch: the gradients of a gradient, which the operators compute in one pass too."""

from functools import partial

import pytest
import torch

import fuseline
from activations import PAIRS, UNARY, values

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
@pytest.mark.skipif(
    not hasattr(torch, "compiler") or not hasattr(torch.compiler, "substitute_in_graph"),
    reason="needs PyTorch 2.6 or newer",
)
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
