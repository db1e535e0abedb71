"""Forms, layouts, dtypes and shapes of the activation family: the same numbers, and copies only where needed."""

import itertools
import math

import pytest
import torch

import fuseline
from activations import (
    DTYPES,
    FORMS,
    GATED,
    LAYOUTS,
    PAIRS,
    TOLERANCE,
    UNARY,
    assert_near,
    bias_from_form,
    bias_in_form,
    exact_gradients,
    off_the_limit,
    values,
    wide,
)
from devices import everywhere
from fuseline import _torch
from process import run_python

PLAIN = ["swiglu", "geglu", "reglu"]
by_operator = pytest.mark.parametrize("operator", GATED, ids=repr)
by_unary = pytest.mark.parametrize("operator", UNARY, ids=repr)
by_form = pytest.mark.parametrize("form", list(FORMS))
by_layout = pytest.mark.parametrize("layout", list(LAYOUTS))


@pytest.fixture
def no_copies(monkeypatch):
    """Fails the test if the Python layer copies an input."""

    def refuse(self, tensor, order):
        raise AssertionError(f"copied strides {tensor.stride()}")

    monkeypatch.setattr(_torch.TorchAdapter, "arrange", refuse)


def check_unary(operator, x, dy, **options):
    """Forward and backward against float64."""
    exact, (right,) = exact_gradients(operator, (x,), dy)
    y = operator.forward(x, **operator.options, **options)
    assert_near(y, exact, scale=2, what=operator.name)
    dx = operator.backward(dy, x, **operator.options)
    assert dx.dtype == x.dtype and dx.shape == x.shape
    assert_near(dx, right, scale=2, what=f"{operator.name} dx")


def check_gated(operator, form, gate, up, dy, biases=None, arrange=lambda t: t, dtype=None):
    """Forward and backward by hand of one form against float64, all in one layout.

    biases: of gate and of up, or None.
    """
    what = f"{operator.name} {form}"
    inputs = [*(tensor for tensor in (gate, up)), *(biases or ())]
    exact, right = exact_gradients(operator, (gate, up), dy, biases)
    to_form, keywords, from_form = FORMS[form]
    keywords = {**keywords, **operator.options}
    if biases:
        keywords["bias"] = arrange(bias_in_form(form, *biases))
    arrays = [arrange(array) if form != "chunks" else array for array in to_form(gate, up)]
    kept = [array.clone() for array in (*arrays, dy, *inputs)]
    # A sum with a bias is rounded in float before anything else: that costs as much as the larger of both is large.
    scale = 20 if biases and gate.dtype in (torch.float32, torch.float64) else 4
    y = operator.forward(*arrays, **keywords, dtype=dtype)
    assert y.dtype == (dtype or gate.dtype)
    assert_near(y, exact, scale=scale, what=what)
    grads = operator.backward(dy, *arrays, **keywords)
    grads = grads if isinstance(grads, tuple) else (grads,)
    assert len(grads) == len(arrays) + bool(biases)
    assert all(grad.shape == array.shape and grad.dtype == array.dtype for grad, array in zip(grads, arrays))
    for name, mine, other in zip(("dgate", "dup"), from_form(grads[: len(arrays)]), right):
        assert_near(mine, other, scale=scale, what=f"{what} {name}")
    if biases:
        assert grads[-1].dtype == gate.dtype
        for name, mine, column, grad in zip(
            ("gate's", "up's"), bias_from_form(form, grads[-1]), right[2:], from_form(grads[: len(arrays)])
        ):
            # By definition it is the column sum of the rounded gradients, each of which may be off by its own rounding.
            rows = grad.cpu().double().reshape(-1, grad.shape[-1])
            assert_near(mine, rows.sum(0), scale=4, what=f"{what} {name} bias, as a sum")
            error = TOLERANCE[gate.dtype][0] * scale * rows.abs().sum(0) + 1e-6
            assert ((mine.cpu().double() - column).abs() <= error).all(), f"{what} {name} bias"
    for array, before in zip((*arrays, dy, *inputs), kept):
        assert torch.equal(array, before), f"{what}: an input was written to (H4)"


# --- every operator, form, layout, dtype ---


@everywhere
@by_unary
def test_unary(device, dtype, operator):
    for arrange in LAYOUTS.values():
        x, dy = (arrange(values(3, 5, 7, seed=seed, dtype=dtype, device=device)) for seed in (1, 2))
        check_unary(operator, x, dy)


@everywhere
@by_operator
@by_form
def test_gated(device, dtype, operator, form):
    for arrange in LAYOUTS.values():
        for shape in ((3, 5, 8), (7,)):
            gate, up, dy = (values(*shape, seed=seed, dtype=dtype, device=device) for seed in (1, 2, 3))
            gate, up = off_the_limit(operator, gate, up)
            check_gated(operator, form, gate, up, arrange(dy), arrange=arrange)


@everywhere
@by_operator
@by_form
def test_bias(device, dtype, operator, form):
    for arrange in LAYOUTS.values():
        gate, up, dy = (values(3, 5, 8, seed=seed, dtype=dtype, device=device) for seed in (1, 2, 3))
        # Multiples of 1/4, so that their sums with the inputs are the same in every dtype.
        gate, up = ((t * 4).round() / 4 for t in (gate, up))
        biases = [(values(8, seed=seed, dtype=dtype, device=device) * 4).round() / 4 for seed in (4, 5)]
        biases = [bias + 0.125 for bias in biases]  # so that none of the sums is a limit
        check_gated(operator, form, gate, up, arrange(dy), biases, arrange)


@everywhere
@pytest.mark.parametrize(("operand", "result"), PAIRS, ids=str)
@by_form
def test_gated_result_of_another_dtype(device, operand, result, form):
    """The gradient of the result has its dtype; those of the inputs have theirs. Also at sizes for whole vectors."""
    for operator, width in itertools.product(GATED, (8, 67)):
        gate, up = (values(5, width, seed=seed, dtype=operand, device=device) for seed in (1, 2))
        gate, up = off_the_limit(operator, gate, up)
        dy = values(5, width, seed=3, dtype=result, device=device)
        check_gated(operator, form, gate, up, dy, dtype=result)


@everywhere
@pytest.mark.parametrize(("operand", "result"), PAIRS, ids=str)
def test_unary_result_of_another_dtype(device, operand, result):
    for operator in UNARY:
        x, dy = values(5, 67, seed=1, dtype=operand, device=device), values(5, 67, seed=2, dtype=result, device=device)
        for wanted in (result, str(result).rpartition(".")[2]):
            check_unary(operator, x, dy, dtype=wanted)
        out = torch.empty_like(x, dtype=result)
        assert operator.forward(x, **operator.options, out=out) is out
        assert torch.equal(out, operator.forward(x, **operator.options, dtype=result))


@pytest.mark.parametrize(
    ("operand", "result"),
    [(a, b) for a in DTYPES for b in DTYPES if a != b and (a, b) not in PAIRS],
    ids=str,
)
def test_dtypes_that_do_not_go_together(operand, result):
    x = torch.ones(4, 6, dtype=operand)
    named = str(result).rpartition(".")[2]
    for call in (fuseline.gelu, fuseline.relu2, fuseline.swiglu):
        with pytest.raises(TypeError, match=f"^dtype: is {named}, but (x|gate) is .*float32 with a 16-bit type"):
            call(x, dtype=result)
        shape = (4, 3) if call is fuseline.swiglu else (4, 6)
        with pytest.raises(TypeError, match=f"^out: dtype is {named}, but (x|gate) is"):
            call(x, out=torch.empty(shape, dtype=result))
    with pytest.raises(TypeError, match=f"dy: dtype is {named}, but gate is"):
        fuseline.geglu_backward(torch.ones(4, 3, dtype=result), x)


@pytest.mark.parametrize("dtype", ["int32", torch.int64, 3, "float8_e5m2", "tensor", float, torch.complex64])
def test_dtypes_that_are_refused(dtype):
    for call in (fuseline.gelu, fuseline.swiglu, fuseline.swish):
        with pytest.raises(TypeError, match="^dtype: (is|dtype is) .*accepted: float16, bfloat16, float32, float64"):
            call(torch.ones(2, 2), dtype=dtype)


def test_dtype_and_out():
    with pytest.raises(ValueError, match="dtype: is given with out"):
        fuseline.gelu(torch.ones(2), out=torch.ones(2), dtype=torch.float32)


# --- what is read in place ---


@by_form
@pytest.mark.parametrize("layout", ["contiguous", "rows", "misaligned"])
def test_forms_without_copies(no_copies, device, form, layout):
    for operator in GATED:
        gate, up, dy = (values(4, 3, 10, seed=seed, device=device) for seed in (1, 2, 3))
        check_gated(operator, form, gate, up, dy, arrange=LAYOUTS[layout])


@pytest.mark.parametrize("form", ["two", "packed"])
def test_permuted_without_copies(no_copies, device, form):
    for operator in GATED:
        gate, up, dy = (LAYOUTS["permuted"](values(6, 10, seed=seed, device=device)) for seed in (1, 2, 3))
        check_gated(operator, form, gate, up, dy, arrange=LAYOUTS["permuted"])


@everywhere
@by_form
def test_broadcast_gradient_is_read_in_place(no_copies, device, dtype, form):
    """H1: what sum().backward() hands to the backward function."""
    for operator in GATED:
        gate, up = (values(4, 6, seed=seed, dtype=dtype, device=device, scale=0.4) for seed in (1, 2))
        one = torch.ones((), dtype=dtype, device=device).expand(4, 6)
        check_gated(operator, form, gate, up, one)
        row = values(6, seed=3, dtype=dtype, device=device).expand(4, 6)
        check_gated(operator, form, gate, up, row)


@everywhere
@pytest.mark.parametrize("which", ["gate", "up"])
def test_broadcast_inputs(device, which):
    """H5: one value, one row or one column that repeats, in either input."""
    for operator in GATED:
        for repeated in ((1, 1), (1, 6), (4, 1)):
            gate, up, dy = (values(4, 6, seed=seed, device=device, scale=0.5) for seed in (1, 2, 3))
            if which == "gate":
                gate = values(*repeated, seed=4, device=device, scale=0.5).expand(4, 6)
            else:
                up = values(*repeated, seed=4, device=device, scale=0.5).expand(4, 6)
            check_gated(operator, "two", gate, up, dy)


def test_splits_of_one_projection(no_copies, device, dtype):
    """H9: gate and up among other parts of one matrix product's result, with heads split off."""
    whole = values(6, 40, seed=1, dtype=dtype, device=device)
    gate, up, _ = whole.split([12, 12, 16], -1)
    for shape in ((6, 12), (6, 3, 4), (2, 3, 12)):
        parts = gate.view(shape), up.view(shape)
        expected = torch.nn.functional.silu(parts[0].double()) * parts[1].double()
        assert_near(fuseline.swiglu(*parts), expected.cpu(), scale=2)
    packed = whole[:, 4:28]
    expected = torch.nn.functional.silu(packed[:, :12].double()) * packed[:, 12:].double()
    assert_near(fuseline.swiglu(packed), expected.cpu(), scale=2)


def test_order_of_the_dimensions_is_kept(device):
    gate, up = (values(2, 3, 4, 6, seed=seed, device=device).to(memory_format=torch.channels_last) for seed in (1, 2))
    assert fuseline.swiglu(gate, up).is_contiguous(memory_format=torch.channels_last)
    dgate, dup = fuseline.swiglu_backward(gate, gate, up)
    assert dgate.stride() == dup.stride() == gate.stride()
    packed = fuseline.swiglu(gate)
    assert packed.is_contiguous(memory_format=torch.channels_last) and packed.shape == (2, 3, 4, 3)
    assert fuseline.swiglu(values(6, 4, seed=1, device=device).t()).stride() == (1, 4)


@everywhere
@pytest.mark.parametrize("width", [1, 5, 7, 33, 67])
@by_form
def test_odd_rows(device, dtype, width, form):
    """G22, G23: rows whose beginnings fall at every offset from 16 bytes, and a bias that begins at none."""
    for operator in GATED[::3]:
        gate, up, dy = (values(9, width, seed=seed, dtype=dtype, device=device, scale=0.5) for seed in (1, 2, 3))
        check_gated(operator, form, gate, up, dy)
        check_gated(operator, form, gate, up, dy, arrange=LAYOUTS["misaligned"])
        gate, up = ((t * 4).round() / 4 for t in (gate, up))
        biases = [(values(width, seed=seed, dtype=dtype, device=device) * 4).round() / 4 + 0.125 for seed in (4, 5)]
        check_gated(operator, form, gate, up, dy, biases, LAYOUTS["misaligned"])


@everywhere
@by_form
def test_misaligned_at_every_offset(device, dtype, form):
    """G22: each tensor at its own offset."""
    to_form, keywords, _ = FORMS[form]
    gate, up = (values(3, 24, seed=seed, dtype=dtype, device=device) for seed in (1, 2))
    expected = fuseline.swiglu(gate, up)
    for offset in range(1, 9):
        arrays = []
        for k, array in enumerate(to_form(gate, up)):
            buffer = torch.zeros(array.numel() + 16, dtype=dtype, device=device)
            begin = offset + k
            arrays.append(buffer[begin : begin + array.numel()].view(array.shape).copy_(array))
        buffer = torch.full((72 + 16,), 7.0, dtype=dtype, device=device)
        out = buffer[offset : offset + 72].view(3, 24)
        fuseline.swiglu(*arrays, **keywords, out=out)
        torch.testing.assert_close(out, expected, rtol=2e-2 if dtype == torch.bfloat16 else 2e-3, atol=1e-6)
        assert (buffer[:offset] == 7).all() and (buffer[offset + 72 :] == 7).all()


@pytest.mark.parametrize("form", list(FORMS))
def test_large(device, form):
    """Large enough for threads and many blocks, at a width that divides by nothing."""
    gate, up, dy = (values(521, 1009, seed=seed, device=device) for seed in (1, 2, 3))
    biases = [values(1009, seed=seed, device=device) for seed in (4, 5)]
    for operator in (GATED[0], GATED[4]):
        check_gated(operator, form, gate, up, dy)
        check_gated(operator, form, gate, up, dy, biases)


# --- no elements, few dimensions ---


@everywhere
@pytest.mark.parametrize("shape", [(0,), (10, 0), (0, 10), (3, 0, 4), (0, 0), (2, 0, 3, 8)])
@by_form
def test_no_elements(device, dtype, shape, form):
    """G18, M17: all empties are equal, and the gradient of a bias is zero."""
    to_form, keywords, _ = FORMS[form]
    gate, up, dy = (torch.empty(shape, dtype=dtype, device=device) for _ in range(3))
    arrays = to_form(gate, up)
    bias = torch.ones(2 * shape[-1], dtype=dtype, device=device)
    for operator in GATED:
        y = operator.forward(*arrays, **keywords, **operator.options)
        assert y.shape == shape and y.dtype == dtype and all(y is not array for array in arrays)
        assert operator.forward(*arrays, **keywords, **operator.options, bias=bias).shape == shape
        *grads, dbias = operator.backward(dy, *arrays, **keywords, **operator.options, bias=bias)
        assert [grad.shape for grad in grads] == [array.shape for array in arrays]
        assert dbias.shape == bias.shape and (dbias == 0).all()
    for operator in UNARY:
        assert operator.forward(gate, **operator.options).shape == shape
        assert operator.backward(dy, gate, **operator.options).shape == shape


def test_zero_dimensions(device, dtype):
    x, up = torch.tensor(1.5, dtype=dtype, device=device), torch.tensor(2.0, dtype=dtype, device=device)
    for operator in UNARY:
        check_unary(operator, x, up)
    for operator in GATED:
        expected = operator.exact(x.cpu().double(), up.cpu().double())
        assert_near(operator.forward(x, up, **operator.options), expected, scale=2)


@everywhere
def test_one_column(device, dtype):
    gate, up, dy = (values(7, 1, seed=seed, dtype=dtype, device=device, scale=0.5) for seed in (1, 2, 3))
    for form in FORMS:
        check_gated(GATED[0], form, gate, up, dy)


# --- outputs that the caller supplies ---


@everywhere
@by_operator
def test_out(device, dtype, operator):
    gate, up = (values(4, 6, seed=seed, dtype=dtype, device=device) for seed in (1, 2))
    expected = operator.forward(gate, up, **operator.options)
    for arrange in LAYOUTS.values():
        out = arrange(torch.zeros_like(gate))
        assert operator.forward(gate, up, **operator.options, out=out) is out
        assert torch.equal(out, expected)
    dy = values(4, 6, seed=3, dtype=dtype, device=device)
    right = operator.backward(dy, gate, up, **operator.options)
    for arrange in LAYOUTS.values():
        out = arrange(torch.zeros_like(gate)), torch.zeros_like(up)
        assert operator.backward(dy, gate, up, **operator.options, out=out) is out
        assert torch.equal(out[0], right[0]) and torch.equal(out[1], right[1])


def test_out_in_place(device):
    """The result over gate, up, or their half of a packed array; gradients over any input."""
    gate, up, dy = (values(4, 6, seed=seed, device=device) for seed in (1, 2, 3))
    expected, right = fuseline.geglu(gate, up), fuseline.geglu_backward(dy, gate, up)
    for place in (0, 1):
        arrays = [gate.clone(), up.clone()]
        assert torch.equal(fuseline.geglu(*arrays, out=arrays[place]), expected)
        packed = torch.cat((gate, up), -1)
        half = packed.chunk(2, -1)[place]
        assert torch.equal(fuseline.geglu(packed, out=half), expected)
    arrays = [dy.clone(), gate.clone(), up.clone()]
    for first, second in itertools.permutations(range(3), 2):
        arrays = [dy.clone(), gate.clone(), up.clone()]
        results = fuseline.geglu_backward(*arrays, out=(arrays[first], arrays[second]))
        assert torch.equal(results[0], right[0]) and torch.equal(results[1], right[1])
    packed = torch.cat((gate, up), -1)
    fuseline.geglu_backward(dy, packed, out=packed)
    assert torch.equal(packed, torch.cat(right, -1))


def test_out_of_the_bias_gradient(device):
    gate, up, dy = (values(4, 6, seed=seed, device=device) for seed in (1, 2, 3))
    bias = values(12, seed=4, device=device)
    right = fuseline.swiglu_backward(dy, gate, up, bias=bias)
    for arrange in LAYOUTS.values():
        out = tuple(arrange(torch.zeros_like(grad)) for grad in right)
        assert fuseline.swiglu_backward(dy, gate, up, bias=bias, out=out) is out
        assert all(torch.equal(mine, other) for mine, other in zip(out, right))
    out = torch.zeros_like(gate), torch.zeros_like(up), bias
    fuseline.swiglu_backward(dy, gate, up, bias=bias, out=out)
    assert torch.equal(bias, right[2])
    packed, bias = torch.cat((gate, up), -1), values(12, seed=4, device=device)
    out = torch.zeros_like(packed), torch.zeros_like(bias)
    assert fuseline.swiglu_backward(dy, packed, bias=bias, out=out) is out
    torch.testing.assert_close(out[1], right[2])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (lambda: torch.zeros(2, 3), r"out: is torch.Tensor; accepted: a tuple of 3 arrays \(dgate, dup, dbias\)"),
        (lambda: (torch.zeros(2, 3),) * 2, "out: has 2 items; accepted: a tuple of 3 arrays"),
        (lambda: (torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(6)), r"out\[1\]: shape is \(3, 2\)"),
        (lambda: (torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3)), r"out\[2\]: shape is \(3,\), but bias is"),
        (
            lambda: (torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(6).half()),
            r"out\[2\]: dtype is torch.float16, but bias is torch.float32",
        ),
        (lambda: (torch.zeros(2, 3), [0.0], torch.zeros(6)), r"out\[1\]: is list; accepted: torch.Tensor"),
        (lambda: (torch.zeros(2, 3),) * 2 + (torch.zeros(6),), r"out\[1\]: is the same memory as out\[0\]"),
    ],
)
def test_wrong_out(out, message):
    gate, out = torch.ones(2, 3), out()
    before = [torch.as_tensor(array).clone() for array in out]
    with pytest.raises((ValueError, TypeError), match=message):
        fuseline.swiglu_backward(gate, gate, gate, bias=torch.ones(6), out=out)
    assert all(torch.equal(torch.as_tensor(array), kept) for array, kept in zip(out, before)), "written to"


# --- wrong inputs ---

GATE = torch.ones(4, 6)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((torch.ones(4, 5),), {}, ValueError, "gate: last extent is 5; accepted: an even one"),
        ((torch.tensor(1.0),), {}, ValueError, "gate: has no axis to split"),
        ((GATE, torch.ones(4, 5)), {}, ValueError, r"up: shape is \(4, 5\), but (gate|dy) is \(4, 6\)"),
        ((GATE, torch.ones(6)), {}, ValueError, r"up: shape is \(6\), but (gate|dy) is \(4, 6\)"),
        ((GATE, GATE.half()), {}, TypeError, "up: dtype is float16, but gate is float32"),
        ((GATE, [1.0]), {}, TypeError, "up: is list; accepted: torch.Tensor"),
        ((None, GATE), {}, TypeError, "gate: is NoneType; accepted: torch.Tensor, numpy.ndarray"),
        ((GATE, GATE.to(torch.int32)), {}, TypeError, "up: dtype is int of 32 bits"),
        ((GATE.bool(),), {}, TypeError, "gate: dtype is"),
        (
            (GATE, GATE),
            {"bias": torch.ones(6)},
            ValueError,
            r"bias: shape is \(6\); accepted: \(12\), an element for each column of gate and up",
        ),
        ((GATE,), {"bias": torch.ones(12)}, ValueError, r"bias: shape is \(12\); accepted: \(6\)"),
        ((GATE,), {"bias": torch.ones(1, 6)}, ValueError, r"bias: shape is \(1, 6\); accepted: \(6\)"),
        ((GATE,), {"bias": torch.ones(5)}, ValueError, r"bias: shape is \(5\); accepted: \(6\)"),
        ((GATE,), {"bias": torch.ones(6).double()}, TypeError, "bias: dtype is float64, but gate is float32"),
        ((GATE,), {"bias": 1.0}, TypeError, "bias: is float; accepted: torch.Tensor"),
        ((GATE, GATE), {"interleaved": True}, ValueError, "interleaved: is True, but up is given"),
        ((GATE,), {"interleaved": 1}, TypeError, "interleaved: is int; accepted: True or False"),
        ((GATE,), {"interleaved": None}, TypeError, "interleaved: is NoneType"),
    ],
)
@pytest.mark.parametrize("name", PLAIN)
def test_wrong_inputs(name, arguments, keywords, error, message):
    with pytest.raises(error, match=message) as caught:
        getattr(fuseline, name)(*arguments, **keywords)
    assert isinstance(caught.value, fuseline.Error)
    with pytest.raises(error, match=message):
        getattr(fuseline, name + "_backward")(torch.ones(4, 6 if len(arguments) > 1 else 3), *arguments, **keywords)


@pytest.mark.parametrize("name", PLAIN)
def test_wrong_gradients(name):
    backward = getattr(fuseline, name + "_backward")
    with pytest.raises(ValueError, match=r"^dy: shape is \(4, 6\), but half of gate is \(4, 3\); accepted"):
        backward(GATE, GATE)
    with pytest.raises(ValueError, match=r"^bias: shape is \(\); accepted: \(6\), an element for each column"):
        getattr(fuseline, name)(GATE, bias=torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"^out: shape is \(4, 6\), but half of gate is \(4, 3\); accepted"):
        getattr(fuseline, name)(GATE, out=torch.empty(4, 6))
    with pytest.raises(TypeError, match="dy: is NoneType"):
        backward(None, GATE, GATE)
    with pytest.raises(TypeError, match="dy: is float"):
        backward(1.0, GATE, GATE)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"limit": 0}, ValueError, "limit: is 0; accepted: a positive number"),
        ({"limit": 1e-60}, ValueError, "limit: is 1e-60; accepted: a positive number"),
        ({"limit": -1.0}, ValueError, "limit: is -1"),
        ({"limit": float("nan")}, ValueError, "limit: is nan"),
        ({"limit": "7"}, TypeError, "limit: is str; accepted: a real number"),
        ({"limit": torch.tensor(7.0)}, TypeError, "limit: is torch.Tensor"),
        ({"offset": float("inf")}, ValueError, "offset: is inf; accepted: a finite number"),
        ({"offset": 1e39}, ValueError, "offset: is 1e\\+39"),
        ({"offset": None}, TypeError, "offset: is NoneType"),
        ({"beta": float("nan")}, ValueError, "beta: is nan"),
        ({"beta": 10**400}, ValueError, "beta: is too large"),
        ({"beta": torch.tensor(1.0)}, TypeError, "beta: is torch.Tensor"),
    ],
)
def test_numbers_that_are_refused(keywords, error, message):
    for arguments in ((GATE,), (GATE, GATE)):
        with pytest.raises(error, match=message):
            fuseline.swiglu(*arguments, **keywords)
        with pytest.raises(error, match=message):
            fuseline.swiglu_backward(fuseline.swiglu(*arguments), *arguments, **keywords)


@pytest.mark.parametrize(
    ("approximate", "error"), [("erf", ValueError), ("Tanh", ValueError), (None, TypeError), (True, TypeError)]
)
def test_approximations_that_are_refused(approximate, error):
    """K24"""
    for call in (
        lambda: fuseline.gelu(GATE, approximate),
        lambda: fuseline.gelu_backward(GATE, GATE, approximate),
        lambda: fuseline.geglu(GATE, approximate=approximate),
        lambda: fuseline.geglu_backward(GATE, GATE, GATE, approximate=approximate),
    ):
        with pytest.raises(error, match="approximate: is .*; accepted: 'none' or 'tanh'"):
            call()


def test_overlap_is_refused(device):
    buffer = values(100, seed=1, device=device)
    gate, up, out = buffer[:24].view(4, 6), buffer[24:48].view(4, 6), buffer[20:44].view(4, 6)
    before = buffer.clone()
    with pytest.raises(fuseline.OverlapError, match="out: overlaps gate"):
        fuseline.swiglu(gate, up, out=out)
    packed = buffer[:48].view(4, 12)
    with pytest.raises(fuseline.OverlapError, match="out: overlaps gate"):
        fuseline.swiglu(packed, out=packed[:, 3:9])
    assert torch.equal(buffer, before)


# --- column sums ---


@everywhere
@pytest.mark.parametrize(
    "shape", [(1,), (5,), (7, 1), (1, 9), (300, 5), (3, 4, 7), (2000, 33), (17, 4099), (0, 5), (5, 0)]
)
def test_column_sum(device, dtype, shape):
    for arrange in LAYOUTS.values():
        x = arrange(values(*shape, seed=1, dtype=dtype, device=device, scale=1))
        exact = x.cpu().double().reshape(-1, shape[-1]).sum(0) if x.numel() else torch.zeros(shape[-1]).double()
        total = fuseline.column_sum(x)
        assert total.dtype == dtype
        size = x.cpu().double().abs().reshape(-1, shape[-1]).sum(0).max().item() if x.numel() else 0
        limit = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 2e-7, torch.float64: 5e-15}[dtype]
        torch.testing.assert_close(total.cpu().double(), exact, rtol=limit, atol=limit * size * 1e-2 + 1e-7 * size)
        out = torch.full_like(total, 7)
        assert fuseline.column_sum(x, out=out) is out and torch.equal(out, total)
        out = torch.zeros(2 * shape[-1], dtype=dtype, device=device)[::2]
        assert torch.equal(fuseline.column_sum(x, out=out), total)


def test_column_sum_is_the_same_at_every_call(device):
    x = values(5000, 257, seed=1, device=device)
    first = fuseline.column_sum(x)
    for _ in range(5):
        assert torch.equal(fuseline.column_sum(x), first)


def test_column_sum_does_not_depend_on_the_threads():
    program = """
import numpy, fuseline, hashlib
numbers = hashlib.sha256()
for shape in (2000, 517), (100, 6000), (200_000, 3), (300_001, 1):
    for dtype in "float16", "float32", "float64":
        x = numpy.random.default_rng(0).normal(size=shape).astype(dtype)
        numbers.update(fuseline.column_sum(x).tobytes())
print(numbers.hexdigest())
"""
    assert len({run_python(program, OMP_NUM_THREADS=str(threads)) for threads in (1, 2, 3, 8)}) == 1


def test_column_sum_loses_nothing_in_long_columns(device):
    """A plain float sum of these would stop at 2^24."""
    x = torch.ones(1, 1, device=device).expand((1 << 24) + 4096, 1)
    assert fuseline.column_sum(x.contiguous()).item() == (1 << 24) + 4096


@pytest.mark.parametrize(
    "dtype, column, right",
    [
        (torch.float16, [1, 2**-11, 2**-24], 1 + 2**-10),
        (torch.float16, [1, 2**-11, -(2**-24)], 1),
        (torch.float16, [-1, -(2**-11), -(2**-24)], -1 - 2**-10),
        (torch.float16, [1, 2**-11, 0], 1),
        (torch.bfloat16, [1, 2**-8, 2**-30], 1 + 2**-7),
        (torch.bfloat16, [1, 2**-8, -(2**-30)], 1),
        (torch.bfloat16, [-1, -(2**-8), -(2**-30)], -1 - 2**-7),
        (torch.float32, [1, 2**-24, 2**-45], 1 + 2**-23),
        (torch.float32, [1e8, 1, -1e8], 1),
        (torch.float64, [1e16, 1, -1e16], 1),
        (torch.float64, [1, 2**-53, 2**-100], 1 + 2**-52),
    ],
)
def test_column_sum_is_rounded_once(device, dtype, column, right):
    """L29: to the neighbour that is nearer to the sum itself; and what is lost on the way comes back."""
    x = torch.tensor(column, dtype=torch.float64, device=device).to(dtype).reshape(3, 1)
    assert (fuseline.column_sum(x.expand(3, 70).contiguous()) == right).all()
    assert fuseline.column_sum(x).item() == right


@everywhere
@pytest.mark.parametrize("rows", [3, 100, 128, 1000])
@pytest.mark.parametrize(
    ("dtype", "column", "right"),
    [
        (torch.float16, [1, 2**-11, 2**-24], 1 + 2**-10),
        (torch.bfloat16, [1, 2**-8, 2**-40], 1 + 2**-7),
        (torch.float16, [32768, 2**-10, -32768], 2**-10),
        (torch.bfloat16, [2**30, 2**-10, -(2**30)], 2**-10),
        (torch.float32, [2**40, 1, -(2**40)], 1),
        (torch.float64, [2.0**120, 1, -(2.0**120)], 1),
    ],
)
def test_column_sum_is_rounded_once_in_columns_of_any_length(device, rows, dtype, column, right):
    """However rows are gathered before they are added up: what is lost on the way comes back."""
    x = torch.zeros(rows, 1, dtype=dtype)
    for row, value in zip((0, 64, 16) if rows > 64 else (0, 1, 2), column):
        x[row] = value
    assert fuseline.column_sum(x.to(device)).item() == right


@everywhere
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_column_sum_of_centered_columns(device, dtype):
    """As gradients of biases are: the sum is far smaller than its terms."""
    x = torch.randn(1 << 15, 20, generator=torch.Generator().manual_seed(0))
    x = (x - x.mean(0)).to(dtype)
    total = fuseline.column_sum(x.to(device)).cpu()
    for column in range(20):
        right = math.fsum(x[:, column].double().tolist())
        assert abs(total[column].item() - right) <= 0.51 * abs(right) * torch.finfo(dtype).eps + 2**-25


@everywhere
@pytest.mark.parametrize(("dtype", "unit"), [(torch.float32, 2.0**104), (torch.float64, 2.0**971)])
@pytest.mark.parametrize("zeros", [0, 7, 200])
def test_column_sum_near_the_end_of_the_range(device, dtype, unit, zeros):
    """What an addition loses may not be finite where the sum is."""
    most = torch.finfo(dtype).max
    x = torch.tensor([-1.5 * unit, *[0.0] * zeros, most], dtype=dtype, device=device).reshape(-1, 1)
    assert fuseline.column_sum(x).item() == most - unit  # a tie, to even


@pytest.mark.parametrize("shape", [(3, 5), (1000, 7), (30_000, 2), (2000, 600)])
def test_column_sum_of_numbers_that_cancel(device, shape):
    """float64 against exact sums: as if it were summed in twice the precision."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    x *= torch.pow(10.0, torch.randint(-8, 9, shape, generator=generator).double())
    half = shape[0] // 2
    x[half : 2 * half] = -x[:half][torch.randperm(half, generator=generator)] * (1 + 1e-14)
    total = fuseline.column_sum(x.to(device)).cpu()
    for column in range(0, shape[1], 1 + shape[1] // 50):
        numbers = x[:, column].tolist()
        right = math.fsum(numbers)
        size = math.fsum(map(abs, numbers))
        assert abs(total[column].item() - right) <= 2**-53 * abs(right) + (shape[0] * 2**-53) ** 2 * size


def test_wrong_column_sums():
    with pytest.raises(ValueError, match="^x: has no axis"):
        fuseline.column_sum(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"^out: shape is \(3\); accepted: \(4\), an element for each column$"):
        fuseline.column_sum(torch.ones(3, 4), out=torch.ones(3))
    with pytest.raises(TypeError, match="out: dtype"):
        fuseline.column_sum(torch.ones(3, 4), out=torch.ones(4).half())
    both = torch.ones(4, 4)
    with pytest.raises(fuseline.OverlapError, match="out: overlaps x"):
        fuseline.column_sum(both, out=both[0])


def test_wide_is_used():
    """The tests' own reference does not take part in autograd of what it is given."""
    x = torch.ones(2, requires_grad=True)
    assert wide(x)[0].is_leaf
