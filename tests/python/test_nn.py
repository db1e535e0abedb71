"""fuseline.torch.nn: each module is its function, with torch.nn's manners."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

import fuseline  # noqa: E402
import fuseline.torch  # noqa: E402
from fuseline.torch import nn  # noqa: E402
from process import run_python  # noqa: E402

# (module, its function on the same arguments, repr)
UNARY = [
    (nn.Swish(), fuseline.swish, "Swish(beta=1.0)"),
    (nn.Swish(1.702), lambda x: fuseline.swish(x, 1.702), "Swish(beta=1.702)"),
    (nn.SiLU(), fuseline.swish, "SiLU()"),
    (nn.GELU(), fuseline.gelu, "GELU(approximate='none')"),
    (nn.GELU("tanh"), lambda x: fuseline.gelu(x, "tanh"), "GELU(approximate='tanh')"),
    (nn.ReLU2(), fuseline.relu2, "ReLU2()"),
]
_OSS = {"beta": 1.702, "limit": 1.5, "offset": 1.0}
GATED = [
    (nn.SwiGLU, {}, fuseline.swiglu, "SwiGLU()"),
    (nn.SwiGLU, _OSS, fuseline.swiglu, "SwiGLU(beta=1.702, limit=1.5, offset=1.0)"),
    (nn.GEGLU, {}, fuseline.geglu, "GEGLU()"),
    (nn.GEGLU, {"approximate": "tanh"}, fuseline.geglu, "GEGLU(approximate='tanh')"),
    (nn.ReGLU, {}, fuseline.reglu, "ReGLU()"),
]


@pytest.mark.parametrize(("module", "function", "text"), UNARY)
def test_unary(module, function, text, device):
    x = torch.randn(5, 8, device=device, requires_grad=True)
    y = module(x)
    assert torch.equal(y, function(x))
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.autograd.grad(function(x).sum(), x)[0])
    assert repr(module) == text


@pytest.mark.parametrize(("kind", "options", "function", "text"), GATED)
def test_gated(kind, options, function, text, device):
    gate, up = torch.randn(2, 5, 8, device=device)
    bias = torch.randn(16, device=device)
    packed = torch.cat((gate, up), -1)
    module = kind(**options)
    assert repr(module) == text
    assert torch.equal(module(gate, up), function(gate, up, **options))
    assert torch.equal(module(packed), function(gate, up, **options))
    assert torch.equal(module(packed, bias=bias), function(packed, bias=bias, **options))
    alternating = kind(interleaved=True, **options)
    assert "interleaved=True" in repr(alternating)
    assert torch.equal(alternating(torch.stack((gate, up), -1).flatten(-2)), function(gate, up, **options))
    with pytest.raises(ValueError, match="interleaved"):
        alternating(gate, up)


@pytest.mark.parametrize(
    ("name", "options"),
    [("SiLU", {}), ("GELU", {}), ("GELU", {"approximate": "none"}), ("GELU", {"approximate": "tanh"})],
)
def test_constructor_and_repr_are_those_of_torch(name, options):
    ours, theirs = getattr(nn, name)(**options), getattr(torch.nn, name)(**options)
    assert repr(ours) == repr(theirs)
    x = torch.linspace(-4, 4, 50, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "module", [module for module, _, _ in UNARY] + [kind(**options) for kind, options, _, _ in GATED], ids=repr
)
def test_modules_are_without_state_and_can_be_copied(module):
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), module)
    assert set(network.state_dict()) == {"0.weight", "0.bias"}
    x = torch.randn(3, 4)
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert repr(other) == repr(network)
        assert torch.equal(other(x), network(x))


def test_a_parameter_is_refused_where_no_gradient_would_reach_it():
    module = nn.Swish(torch.nn.Parameter(torch.tensor(1.0)))
    with pytest.raises(TypeError, match="beta"):
        module(torch.ones(2))


def test_torch_is_imported_only_by_the_subpackage():
    program = """
import sys, fuseline
assert "torch" not in sys.modules
import fuseline.torch
assert "torch" in sys.modules
assert fuseline.torch.nn.SiLU is not sys.modules["torch"].nn.SiLU
"""
    run_python(program)
