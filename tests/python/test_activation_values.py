"""The numbers of the activation family: against float64, 120-bit arithmetic and what the eager expressions give."""

import itertools
import math

import pytest
import torch

import fuseline
import reference
from activations import GATED, UNARY, exact_gradients, operator_named, values
from devices import everywhere
from reference import mpmath

HALVES = [torch.float16, torch.bfloat16]
NEW = [operator for operator in UNARY if operator.function != "swish"]  # which test_values.py is for


def by_name(operators):
    return pytest.mark.parametrize("operator", operators, ids=repr)


def error(operator, *inputs):
    """The largest distance from the right value where that is a normal number, in units of the last place."""
    y = operator.forward(*inputs, **operator.options)
    exact = operator.exact(*(x.detach().cpu().double() for x in inputs))
    checked = reference.is_normal(exact, y.dtype)
    assert checked.any()
    return reference.ulps(y, exact)[checked].max().item()


# --- accuracy ---


@everywhere
@by_name(NEW)
@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_every_16_bit_input(device, operator, kind):
    x = reference.all_values(kind, device)
    assert error(operator, x) <= 0.51
    y = operator.forward(x, **operator.options)
    assert torch.equal(y.isnan().cpu(), operator.exact(x.cpu().double()).isnan())


@everywhere
@by_name(NEW)
def test_float32(device, operator):
    x = torch.cat([reference.finite_bits_float32(100_000), torch.linspace(-15, 10, 100_001)]).to(device)
    assert error(operator, x) <= 2
    assert not operator.forward(x, **operator.options).isnan().any()


def _gelu_120_bits(x):
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _gelu_tanh_120_bits(x):
    z = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / (1 + mpmath.exp(-2 * z))


@everywhere
@pytest.mark.parametrize(
    ("approximate", "right"), [("none", _gelu_120_bits), ("tanh", _gelu_tanh_120_bits)], ids=["none", "tanh"]
)
def test_gelu_in_float64(device, approximate, right):
    """K22: constants of float's precision would show as 1e-8."""
    x = torch.cat(
        [
            values(400, seed=1, dtype=torch.float64),
            torch.linspace(-37, -3, 200, dtype=torch.float64),
            torch.tensor([1e-300, -1e-20, 5e-9, 100.0, -8.3, 20.7], dtype=torch.float64),
        ]
    )
    if approximate == "tanh":
        x = x.clamp(min=-20)  # below, the result is no normal number
    y = fuseline.gelu(x.to(device), approximate).tolist()
    for argument, got in zip(x.tolist(), y):
        exact = right(mpmath.mpf(argument))
        if abs(exact) > 1e-307:
            assert abs(got - exact) <= 2 * math.ulp(abs(float(exact))), argument
            assert abs(got - exact) <= 1e-14 * abs(exact)


def test_gelu_tail(device):
    """K16: no cancellation in 1 + erf: falling as it must, and each value right."""
    x = torch.linspace(-5.6, -3, 10_001, device=device)
    y = fuseline.gelu(x)
    assert (y.diff() < 0).all() and (y < 0).all()
    assert error(operator_named("gelu"), x) <= 2
    far = torch.linspace(-12.8, -5.6, 10_001, device=device)
    assert error(operator_named("gelu"), far) <= 2 and (fuseline.gelu(far) < 0).all()


def test_gelu_tanh_tail(device):
    """K17: 2 units at most where 1 + tanh has lost all digits."""
    x = torch.linspace(-8, -4, 10_001, device=device)
    assert (fuseline.gelu(x, "tanh") < 0).all()
    assert error(operator_named("gelu tanh"), x) <= 2
    assert error(operator_named("gelu tanh"), torch.linspace(-9.9, -8, 1001, device=device)) <= 2


def test_gelu_tanh_of_large_values_is_the_identity(device):
    """K19"""
    x = torch.cat([torch.arange(8, 16.5, 0.5), torch.logspace(2, 38, 37), torch.tensor([3e38])]).bfloat16().to(device)
    for approximate in ("none", "tanh"):
        assert torch.equal(fuseline.gelu(x, approximate), x)


def test_which_gelu_is_the_default(device):
    """K24: by erf; by tanh only when asked."""
    x = torch.tensor([2.0], device=device)
    assert fuseline.gelu(x).item() == pytest.approx(1.9544997, abs=2e-7)
    assert fuseline.gelu(x, "none").item() == fuseline.gelu(x).item()
    assert fuseline.gelu(x, approximate="tanh").item() == pytest.approx(1.9545977, abs=2e-7)
    gate, up = x, torch.ones_like(x)
    assert fuseline.geglu(gate, up).item() == fuseline.gelu(x).item()
    assert fuseline.geglu(gate, up, approximate="tanh").item() == fuseline.gelu(x, "tanh").item()


@everywhere
@by_name(GATED)
@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_gated_units_round_once(device, operator, kind):
    """K23: the product is taken in float, of the unrounded activation."""
    gate, up = (values(100_003, seed=seed, dtype=kind, device=device) for seed in (1, 2))
    assert error(operator, gate, up) <= 0.51


def test_swiglu_against_both_orders_of_rounding(device):
    """K23: equal to the product rounded once, and so nearer than the expression that rounds silu(gate) first."""
    gate, up = (values(100_003, seed=seed, dtype=torch.bfloat16, device=device) for seed in (1, 2))
    ours = fuseline.swiglu(gate, up)
    once = (torch.nn.functional.silu(gate.double()) * up.double()).bfloat16()
    twice = torch.nn.functional.silu(gate) * up
    exact = torch.nn.functional.silu(gate.cpu().double()) * up.cpu().double()
    assert (ours != once).float().mean() < 1e-3  # where float's own error crosses a tie
    assert (ours != twice).float().mean() > 0.1
    assert reference.ulps(ours, exact).mean() < 0.8 * reference.ulps(twice, exact).mean()


@everywhere
@by_name(GATED)
def test_gated_units_in_float32(device, operator):
    gate = torch.cat([values(50_000, seed=1, scale=3), torch.linspace(-13, 13, 50_001)]).to(device)
    gate = gate.clamp(min=-9)  # the activation itself is a normal number
    up = values(100_001, seed=2, device=device).abs() + 1  # no cancellation between up and an offset
    assert error(operator, gate, up) <= 3.5


def backward_error(function, exact):
    return (function.cpu().double() - exact).abs()


@by_name(NEW + GATED)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_backward_error_is_not_above_pytorchs(device, operator, kind):
    """Against the eager expression on the same data, in the mean; each gradient. Equal but for the draw of the data."""
    slack = 1 + 1e-3
    count = 2 if operator in GATED else 1
    inputs = [values(200_001, seed=seed, dtype=kind, device=device) for seed in range(count)]
    dy = values(200_001, seed=9, dtype=kind, device=device, scale=1)
    _, exact = exact_gradients(operator, inputs, dy)
    ours = operator.backward(dy, *inputs, **operator.options)
    leaves = [x.clone().requires_grad_() for x in inputs]
    theirs = torch.autograd.grad(operator.eager(*leaves), leaves, dy)
    for mine, other, right in zip(ours if count == 2 else (ours,), theirs, exact):
        assert backward_error(mine, right).mean() <= backward_error(other, right).mean() * slack


# --- special values ---

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0]


def same_specials(ours, theirs):
    """Equal nans, infinities, signs of zeros; near for the rest."""
    assert torch.equal(ours.isnan(), theirs.isnan())
    known = ~ours.isnan()
    torch.testing.assert_close(ours[known], theirs[known])
    assert torch.equal(torch.signbit(ours[known]), torch.signbit(theirs[known]))


@everywhere
@by_name(UNARY)
def test_special_values(device, dtype, operator):
    """K1, K2, K13: as the eager expression, also in one block with finite values."""
    x = torch.tensor(SPECIAL * 11, dtype=dtype, device=device)
    expected = operator.exact(x.cpu().double())
    same_specials(operator.forward(x, **operator.options).cpu(), expected.to(dtype))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_infinities_is_torchs(approximate):
    """K1, K13: what F.gelu gives in float64 on the CPU."""
    x = torch.tensor([math.inf, -math.inf, math.nan], dtype=torch.float64)
    theirs = torch.nn.functional.gelu(x, approximate=approximate)
    ours = fuseline.gelu(x, approximate)
    assert ours[0] == math.inf and ours[1].isnan() and ours[2].isnan()
    if not theirs[0].isnan():  # some releases of torch give nan for +inf
        same_specials(ours, theirs)


@everywhere
@by_name(GATED)
def test_special_values_of_gated_units(device, dtype, operator):
    """Every pair, as the eager expression gives it in the type's own arithmetic or a wider one."""
    pairs = torch.tensor(list(itertools.product(SPECIAL, SPECIAL)), dtype=torch.float64)
    gate, up = (column.to(dtype).to(device) for column in pairs.unbind(1))
    expected = operator.eager(*pairs.unbind(1))
    same_specials(operator.forward(gate, up, **operator.options).cpu(), expected.to(dtype))


@by_name(UNARY + GATED)
def test_gradients_of_special_values(device, dtype, operator):
    """K1, K2, K9: every combination, as autograd has it in float64 for the eager expression, but for what
    docs/operators.md lists.
    """
    is_gated, has_limits = operator in GATED, operator.has_limits
    numbers = [*SPECIAL, 3.0, -3.0]
    columns = torch.tensor(list(itertools.product(numbers, repeat=3 if is_gated else 2)), dtype=torch.float64).unbind(1)
    leaves = [column.clone().requires_grad_() for column in columns[1:]]
    theirs = torch.autograd.grad(operator.eager(*leaves), leaves, columns[0])
    ours = operator.backward(*(column.to(dtype).to(device) for column in columns), **operator.options)
    ours = [result.cpu().double() for result in (ours if is_gated else (ours,))]
    x = columns[1]
    factor = columns[0]  # of the activation's derivative
    if is_gated:
        limit = operator.options.get("limit", math.inf)
        factor = factor * (columns[2].clamp(-limit, limit) + operator.options.get("offset", 0.0))
    as_eager = (
        ~(x.isinf() | (factor.isinf() & theirs[0].isnan())) if has_limits else torch.ones_like(x, dtype=torch.bool)
    )
    assert (
        not ours[0][~as_eager & ~columns[0].isnan() & ~factor.isnan() & (factor != 0) & ~factor.isinf()].isnan().any()
    )
    for mine, other, known in zip(ours, theirs, (as_eager, torch.ones_like(as_eager))):
        mine, other = mine[known], other[known]
        if not has_limits:
            same_specials(mine.to(dtype), other.to(dtype))
        else:  # a zero that comes of a derivative which has vanished may have either sign
            same_specials(mine.to(dtype) + 0.0, other.to(dtype) + 0.0)


@pytest.mark.parametrize("limit", [None, 7.0])
@pytest.mark.parametrize("bias", [False, True])
def test_nan_stops_at_a_clamp(device, dtype, limit, bias):
    """As torch.clamp's own gradient, which is 0 where its argument is nan; without one nan goes on."""
    gate = torch.tensor([math.nan, 1.0, 1.0], dtype=dtype, device=device)
    up = torch.tensor([1.0, math.nan, 1.0], dtype=dtype, device=device)
    add = torch.zeros(6, dtype=dtype, device=device) if bias else None
    dgate, dup = fuseline.swiglu_backward(torch.ones_like(up), gate, up, limit=limit, bias=add)[:2]
    nans = torch.tensor([dgate.isnan().tolist(), dup.isnan().tolist()])
    zeros = torch.tensor([(dgate == 0).tolist(), (dup == 0).tolist()])
    stopped = [[True, False, False], [False, True, False]]
    assert zeros.tolist() == (stopped if limit else [[False] * 3] * 2)
    assert nans.tolist() == ([stopped[1], stopped[0]] if limit else [[True, True, False], [True, False, False]])


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_where_one_pass_differs_from_two(device, kind):
    """silu(-80) is 0 in float16, and 0 * inf is nan; in float, which the product is taken in, it is -1.4e-33. So an
    infinite up gives an infinity where the eager expression gives nan.
    """
    gate = torch.tensor([-80.0], dtype=kind, device=device)
    up = torch.tensor([math.inf], dtype=kind, device=device)
    assert fuseline.swiglu(gate, up).item() == -math.inf
    if kind == torch.float16:
        assert (torch.nn.functional.silu(gate) * up).isnan().all()


@everywhere
@by_name(UNARY)
def test_derivative_at_infinity(device, dtype, operator):
    """K9: the limits, and no nan from finite x."""
    most = torch.finfo(dtype).max
    x = torch.tensor([math.inf, -math.inf, -most, math.nan, most], dtype=dtype, device=device)
    dx = operator.backward(torch.ones_like(x), x, **operator.options).cpu()
    assert dx[:3].tolist() == [*operator.slopes_at_infinity, 0]
    assert dx[3].isnan() and not dx[4].isnan()


@everywhere
@by_name(GATED)
def test_gradients_of_extreme_gates(device, dtype, operator):
    """K9: no nan from finite values, however large; at infinity the derivative's limits."""
    most = torch.finfo(dtype).max
    gate = torch.tensor([most, -most, most, -most, 0.0], dtype=dtype, device=device)
    up = torch.tensor([1.0, 1.0, -1.0, -1.0, most], dtype=dtype, device=device)
    for gradient in operator.backward(torch.ones_like(gate), gate, up, **operator.options):
        assert not gradient.isnan().any()
    gate = torch.tensor([math.inf, -math.inf], dtype=dtype, device=device)
    up = torch.full_like(gate, 0.5)
    dgate, _ = operator.backward(torch.ones_like(gate), gate, up, **operator.options)
    assert dgate.tolist() == list(operator.slopes_at_infinity)


def test_derivatives_at_zero(device, dtype):
    x = torch.tensor([0.0, -0.0], dtype=dtype, device=device)
    one = torch.ones_like(x)
    for approximate in ("none", "tanh"):
        assert fuseline.gelu_backward(one, x, approximate).tolist() == [0.5, 0.5]
    assert fuseline.relu2_backward(one, x).tolist() == [0, 0]
    assert fuseline.reglu_backward(one, x, one)[0].tolist() == [0, 0]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_minus_infinity_is_the_same_for_every_rank(device, kind):
    """K2"""
    for operator in UNARY:
        for shape in ((1,), (3, 4), (1, 2, 3, 4, 5)):
            x = torch.full(shape, -math.inf, dtype=kind, device=device)
            same_specials(operator.forward(x, **operator.options).cpu(), operator.exact(x.cpu().double()).to(kind))


# --- the clamped form ---


@everywhere
def test_clamp_of_gpt_oss(device, dtype):
    """Gate is clamped from above only, up from both sides, then offset."""
    gate = torch.tensor([9.0, 7.0, 6.0, -9.0, 1.0, 1.0, 1.0], dtype=dtype, device=device)
    up = torch.tensor([1.0, 1.0, 1.0, 1.0, 9.0, -9.0, -7.0], dtype=dtype, device=device)
    y = fuseline.swiglu(gate, up, beta=1.702, limit=7.0, offset=1.0)
    assert y[0] == y[1] and y[1] > y[2]
    assert y[3] != fuseline.swiglu(torch.full_like(gate, -7), up, beta=1.702, limit=7.0, offset=1.0)[3]
    assert y[5] == y[6] and y[5] < 0 < y[4]
    dgate, dup = fuseline.swiglu_backward(torch.ones_like(gate), gate, up, beta=1.702, limit=7.0, offset=1.0)
    assert [value != 0 for value in dgate.tolist()] == [False, True, True, True, True, True, True]
    assert [value != 0 for value in dup.tolist()] == [True, True, True, True, False, False, True]


def test_gradient_at_the_clamp_is_torchs(device):
    """At the bound itself the gradient passes, as through torch.clamp."""
    limit = 1.5
    gate, up = torch.meshgrid(*[torch.tensor([-1.6, -1.5, 0.3, 1.5, 1.6], dtype=torch.float64)] * 2, indexing="ij")
    leaves = [gate.clone().requires_grad_(), up.clone().requires_grad_()]
    g, u = leaves[0].clamp(max=limit), leaves[1].clamp(-limit, limit)
    expected = torch.autograd.grad(((u + 1) * g * torch.sigmoid(1.702 * g)).sum(), leaves)
    ours = fuseline.swiglu_backward(
        torch.ones_like(gate).to(device), gate.to(device), up.to(device), beta=1.702, limit=limit, offset=1.0
    )
    for mine, right in zip(ours, expected):
        torch.testing.assert_close(mine.cpu(), right, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("limit", [None, math.inf])
def test_no_limit(device, limit):
    gate, up = values(50, seed=1, device=device, scale=1e4), values(50, seed=2, device=device, scale=1e4)
    assert torch.equal(fuseline.swiglu(gate, up, limit=limit), fuseline.swiglu(gate, up))
