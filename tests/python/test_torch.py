"""PyTorch: differentiation, modes, kinds of tensors, refusals, and both ways to C."""

import copy
import warnings

import pytest
import torch

import fuseline
from devices import needs_gpu
from fuseline import _call, _torch


@pytest.fixture(autouse=True)
def way(torch_way):
    """Every test here runs by each way to C that PyTorch has."""
    return torch_way


def leaf(*shape, dtype=torch.float64, device="cpu"):
    return torch.randn(*shape, dtype=dtype, device=device, requires_grad=True)


# --- differentiation ---


@pytest.mark.parametrize("beta", [1.0, 1.702, -0.7])
def test_gradcheck(device, beta):
    """M1"""
    x = leaf(3, 5, device=device)
    assert torch.autograd.gradcheck(lambda t: fuseline.swish(t, beta), (x,))
    assert torch.autograd.gradcheck(lambda t: fuseline.swish(t[:, ::2].t(), beta), (x,))


def test_gradient_of_another_dtype(device):
    """M10"""

    class Widen(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            return y.float()

        @staticmethod
        def backward(ctx, dy):
            return dy

    x = leaf(10, dtype=torch.bfloat16, device=device)
    Widen.apply(fuseline.swish(x)).sum().backward()
    assert x.grad.dtype == torch.bfloat16
    y = fuseline.swish(x)
    torch.testing.assert_close(
        y.grad_fn.apply(torch.ones(10, device=device))[0], fuseline.swish_backward(torch.ones_like(x), x).detach()
    )


def test_dtypes_that_do_not_go_together_in_the_raw_call():
    with pytest.raises(fuseline.DTypeError, match="dy: dtype is float16, but x is bfloat16"):
        fuseline.swish_backward(torch.ones(3, dtype=torch.float16), torch.ones(3, dtype=torch.bfloat16))


def test_gradient_only_where_it_is_needed():
    """M7"""
    x = torch.randn(4)
    assert fuseline.swish(x).grad_fn is None
    assert not fuseline.swish(x).requires_grad
    assert fuseline.swish(leaf(4)).requires_grad


def test_input_changed_after_the_call_is_noticed():
    base = leaf(4)
    x = base * 1
    y = fuseline.swish(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_output_written_by_us_is_noticed():
    """A tensor that autograd saved and that we write to counts as changed."""
    a = leaf(4)
    b = a.exp()  # saves b
    with torch.no_grad():
        fuseline.swish(torch.ones(4, dtype=torch.float64), out=b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()


def test_result_is_never_the_input(device):
    """M17"""
    for x in (torch.ones(3, device=device), torch.empty(0, device=device)):
        y = fuseline.swish(x)
        assert y is not x
        assert x.numel() == 0 or y.data_ptr() != x.data_ptr()


def test_no_grad_and_inference_mode(device):
    """M16"""
    x = leaf(4, device=device)
    with torch.no_grad():
        assert fuseline.swish(x).grad_fn is None
    with torch.inference_mode():
        y = fuseline.swish(x)
        made = torch.ones(4, dtype=torch.float64, device=device)
        assert y.is_inference()
        fuseline.swish(made, out=made)
    torch.testing.assert_close(fuseline.swish(made), torch.nn.functional.silu(made))
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        fuseline.swish(made * x).sum().backward()
    with pytest.raises(ValueError, match="out: is an inference tensor"):
        fuseline.swish(torch.ones_like(x).detach(), out=made)


def test_out_and_gradients(device):
    """As PyTorch's own functions: out= is for tensors without gradients."""
    plain, needing = torch.ones(3, device=device), torch.ones(3, device=device, requires_grad=True)
    for x, out in ((needing, plain), (plain, needing)):
        with pytest.raises(RuntimeError, match="don't support|do not support"):
            fuseline.swish(x, out=out)
        with torch.no_grad():
            fuseline.swish(x, out=torch.empty_like(plain))


def test_raw_gradient_of_a_leaf(device):
    """E1: works, and can be differentiated."""
    x = leaf(4, device=device)
    dx = fuseline.swish_backward(torch.ones_like(x), x)
    torch.testing.assert_close(dx, fuseline.swish_backward(torch.ones_like(x).detach(), x.detach()))
    (slope,) = torch.autograd.grad(torch.nn.functional.silu(x).sum(), x, create_graph=True)
    right = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(torch.autograd.grad(dx.sum(), x), right)


def test_module_parameters(device):
    weight = torch.nn.Parameter(torch.randn(5, device=device))
    fuseline.swish(weight).sum().backward()
    other = copy.deepcopy(weight)
    other.grad = None
    torch.nn.functional.silu(other).sum().backward()
    torch.testing.assert_close(weight.grad, other.grad)


def test_training_step_matches_silu(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Linear(32, 1)).to(device)
    data = torch.randn(16, 8, device=device)
    grads = []
    for activation in (fuseline.swish, torch.nn.functional.silu):
        model.zero_grad()
        model[1](activation(model[0](data))).pow(2).mean().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for ours, theirs in zip(*grads):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


# --- torch.func ---

transforms = pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2 only")


@transforms
def test_func_grad(device):
    """E6, M11"""
    x = torch.randn(4, dtype=torch.float64, device=device)
    for take in (torch.func.grad, torch.func.jacrev):
        torch.testing.assert_close(
            take(lambda t: fuseline.swish(t, 1.702).sum())(x),
            fuseline.swish_backward(torch.ones_like(x), x, 1.702),
        )
    second = torch.func.grad(lambda t: torch.func.grad(lambda u: fuseline.swish(u).sum())(t).sum())
    right = torch.func.grad(lambda t: torch.func.grad(lambda u: torch.nn.functional.silu(u).sum())(t).sum())
    torch.testing.assert_close(second(x), right(x))


@transforms
def test_vmap(device):
    """E4: over any dimension, alone and over gradients."""
    x = torch.randn(3, 4, 5, dtype=torch.float64, device=device)
    for dim in range(3):
        torch.testing.assert_close(torch.vmap(fuseline.swish, in_dims=dim, out_dims=dim)(x), fuseline.swish(x))
    per_row = torch.vmap(torch.func.grad(lambda t: fuseline.swish(t).sum()))(x)
    torch.testing.assert_close(per_row, fuseline.swish_backward(torch.ones_like(x), x))
    mixed = torch.vmap(fuseline.swish_backward, in_dims=(None, 0))(torch.ones_like(x[0]), x)
    torch.testing.assert_close(mixed, per_row)


@transforms
def test_out_under_vmap_is_refused():
    with pytest.raises((fuseline.Error, RuntimeError)):
        torch.vmap(lambda t: fuseline.swish(t, out=torch.empty_like(t)))(torch.ones(2, 3))


@transforms
def test_forward_mode(device):
    """E6: torch.func.jvp, and dual numbers."""
    x, direction = (torch.randn(3, dtype=torch.float64, device=device) for _ in range(2))
    expected = torch.func.jvp(torch.nn.functional.silu, (x,), (direction,))
    torch.testing.assert_close(torch.func.jvp(fuseline.swish, (x,), (direction,)), expected)
    with torch.autograd.forward_ad.dual_level():
        y = fuseline.swish(torch.autograd.forward_ad.make_dual(x, direction))
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(y), expected, check_dtype=False)


# --- kinds of tensors ---


@pytest.mark.parametrize(
    "kind",
    ["bool", "int8", "uint8", "int32", "int64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"],
)
def test_dtypes_that_are_refused(kind):
    """D3, D5: with a true message that names the type found and those accepted."""
    if not hasattr(torch, kind):
        pytest.skip("unknown to this PyTorch")
    x = torch.ones(3).to(getattr(torch, kind))
    named = {"complex64": "complex of 64", "complex128": "complex of 128"}.get(kind, kind.rstrip("0123456789"))
    with pytest.raises(TypeError, match=f"x: dtype is .*{named}.*accepted: float16, bfloat16, float32, float64"):
        fuseline.swish(x)
    with pytest.raises(TypeError, match="dtype"):
        fuseline.swish_backward(x, x)


def test_fp8_seen_as_integers_is_refused():
    """D5"""
    if not hasattr(torch, "float8_e4m3fn"):
        pytest.skip("no float8 in this PyTorch")
    with pytest.raises(TypeError, match="dtype is int of 8 bits"):
        fuseline.swish(torch.ones(3).to(torch.float8_e4m3fn).view(torch.int8))


@pytest.mark.parametrize("value", [[1.0, 2.0], 1.0, None, "x", object()])
def test_objects_that_are_refused(value):
    """A20"""
    with pytest.raises(TypeError, match="x: is .*; accepted: torch.Tensor, numpy.ndarray"):
        fuseline.swish(value)
    with pytest.raises(TypeError, match="dy: is .*; accepted: torch.Tensor"):
        fuseline.swish_backward(value, torch.ones(2))


def test_shapes_must_agree(device):
    x = torch.ones(3, device=device)
    with pytest.raises(fuseline.ShapeError, match="x: shape is \\(3\\), but dy is \\(4\\)"):
        fuseline.swish_backward(torch.ones(4, device=device), x)
    with pytest.raises(ValueError, match="shape"):
        fuseline.swish_backward(torch.ones(3, 1, device=device), x)


def test_negated_views(device):
    """A view whose elements are the negatives of what is in memory."""
    x = torch.randn(6, 2, device=device)
    negated = torch._neg_view(x)
    torch.testing.assert_close(fuseline.swish(negated), fuseline.swish(-x))
    torch.testing.assert_close(fuseline.swish_backward(negated, x), fuseline.swish_backward(-x, x))
    imaginary = torch.tensor([1 + 2j], device=device).conj().imag
    assert fuseline.swish(imaginary).item() == pytest.approx(-0.2384058)
    with pytest.raises(ValueError, match="out: .*negates"):
        fuseline.swish(x, out=negated)


def test_complex_conjugate_views_are_refused():
    """E1"""
    with pytest.raises(TypeError, match="complex"):
        fuseline.swish(torch.ones(3, dtype=torch.complex64).conj())


@pytest.mark.filterwarnings("ignore")
def test_layouts_without_plain_memory():
    for make in (
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.eye(3).to_mkldnn(),
    ):
        with pytest.raises(ValueError, match="x: layout is torch\\..*; accepted: torch.strided"):
            fuseline.swish(make())
        with pytest.raises(ValueError, match="dy: layout is"):
            fuseline.swish_backward(make(), torch.eye(3))


@pytest.mark.filterwarnings("ignore")
def test_quantized_tensors():
    with pytest.raises(TypeError, match="x: dtype is torch.quint8, quantized"):
        fuseline.swish(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8))


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors():
    with pytest.raises(TypeError, match="nested|subclass"):
        fuseline.swish(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))


def test_meta_tensors():
    """Shapes, dtypes and strides without elements."""
    x = torch.empty(3, 4, device="meta", dtype=torch.bfloat16).t()
    y = fuseline.swish(x)
    assert y.is_meta and y.dtype == x.dtype and y.shape == x.shape and y.stride() == x.stride()
    assert fuseline.swiglu(torch.empty(3, 4, device="meta")).shape == (3, 2)


@needs_gpu
def test_two_devices():
    """B13, F11: no silent copy."""
    with pytest.raises(fuseline.DeviceError, match="CPU.*CUDA|CUDA.*CPU|ROCm"):
        fuseline.swish_backward(torch.ones(3), torch.ones(3, device="cuda"))


@needs_gpu
def test_pinned_memory():
    """F4"""
    x = torch.randn(100).pin_memory()
    y = fuseline.swish(x)
    assert y.device.type == "cpu"
    torch.testing.assert_close(y, torch.nn.functional.silu(x))


def test_plain_subclasses():
    class Mine(torch.Tensor):
        pass

    x = torch.randn(3).as_subclass(Mine)
    torch.testing.assert_close(fuseline.swish(x).as_subclass(torch.Tensor), torch.nn.functional.silu(torch.Tensor(x)))


def test_subclasses_are_shown_operators():
    """E8: a subclass whose elements need not lie in its own memory decides what is done; it is not read as it lies."""
    shown = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

        def __init__(self, held):
            self.held = held

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            shown.append(function)
            args = [argument.held if isinstance(argument, Wrapper) else argument for argument in args]
            return Wrapper(function(*args, **(kwargs or {})))

    x = torch.randn(3)
    y = fuseline.swish(Wrapper(x), 1.5)
    assert isinstance(y, Wrapper) and torch.equal(y.held, fuseline.swish(x, 1.5))
    dx = fuseline.swish_backward(torch.ones(3), Wrapper(x))
    assert isinstance(dx, Wrapper) and torch.equal(dx.held, fuseline.swish_backward(torch.ones(3), x))
    assert shown == [torch.ops.fuseline.swish_forward.default, torch.ops.fuseline.swish_backward.default]

    class Refuser(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError("not with me")

    with pytest.raises(NotImplementedError, match="not with me"):
        fuseline.swish(Refuser(x))


def test_tensor_without_data():
    with pytest.raises(fuseline.Error, match="data is NULL with 3 elements|zero"):
        fuseline.swish(torch._efficientzerotensor((3,)))


# --- the exchange table ---


def test_exchange_table_is_tested_before_use(way, monkeypatch):
    """A table that misreads is not used, and the user is told."""
    if way != "exchange":
        pytest.skip("not about this way")
    adapter = _call._made["torch"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _torch._working_exchange(torch, adapter) is not None
    right = _torch._facts
    seen = []

    def misread(tensor):
        facts = right(tensor)
        seen.append(facts)
        return facts if len(seen) % 2 else (facts[0] + 4, *facts[1:])

    monkeypatch.setattr(_torch, "_facts", misread)
    with pytest.warns(RuntimeWarning, match="exchange table.*reads"):
        assert _torch._working_exchange(torch, adapter) is None


def test_failed_calls_leave_torch_working(device):
    for _ in range(3):
        with pytest.raises(TypeError):
            fuseline.swish(torch.ones(3, dtype=torch.int32, device=device))
        torch.testing.assert_close(torch.ones(3, device=device) + 1, torch.full((3,), 2.0, device=device))
    torch.testing.assert_close(
        fuseline.swish(torch.ones(3, device=device)), torch.nn.functional.silu(torch.ones(3, device=device))
    )


@pytest.mark.filterwarnings("ignore")
def test_compiled_model_has_equal_gradients():
    """M13, M23: the call is a break in the graph, not an error."""
    compile = getattr(torch, "compile", None)
    if compile is None:
        pytest.skip("PyTorch 2 only")
    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True)
    data = torch.randn(3, 4)

    def model(data):
        return fuseline.swish(data @ weight).sum()

    model(data).backward()
    expected, weight.grad = weight.grad, None
    compile(model, backend="eager")(data).backward()
    torch.testing.assert_close(weight.grad, expected)


def test_what_pytorch_says_is_one_line(way, monkeypatch):
    """PyTorch's own errors carry a trace of its C++ code; the first line says what is wrong."""
    if way != "exchange":
        pytest.skip("for the way through the exchange table")

    def fail(*arguments):
        raise RuntimeError("no memory of its own\n\nException raised from here\nframe #0: there\n")

    monkeypatch.setattr(_torch.TorchAdapter, "_call_on_objects", fail)
    with pytest.raises(fuseline.ExchangeError) as caught:
        fuseline.swish(torch.ones(3))
    assert str(caught.value) == "PyTorch could not describe the tensor: no memory of its own"
