"""Whatever looks at operators rather than run them: torch.compile, torch.export, tracers, FakeTensor."""

import math
import subprocess
import sys

import pytest
import torch

import fuseline
from devices import needs_compile, torch_adapter

pytestmark = [
    needs_compile,
    pytest.mark.filterwarnings("ignore"),
]

CLAMPED = {"beta": 1.702, "limit": 1.0, "offset": 1.0}

# Names of operators' functions with what they are called on: shapes, and keywords.
CALLS = [
    ("swish", [(4, 6)], {}),
    ("swish", [(4, 6)], {"beta": 1.702}),
    ("gelu", [(4, 6)], {}),
    ("gelu", [(4, 6)], {"approximate": "tanh"}),
    ("relu2", [(4, 6)], {}),
    *((name, shapes, {}) for name in ("swiglu", "geglu", "reglu") for shapes in ([(4, 6), (4, 6)], [(4, 6)])),
    ("swiglu", [(4, 6)], {"interleaved": True}),
    ("swiglu", [(4, 6), (4, 6)], CLAMPED),
    ("geglu", [(4, 6)], {"approximate": "tanh"}),
]
calls = pytest.mark.parametrize(("name", "shapes", "keywords"), CALLS)


def compiled(function, backend="aot_eager", **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def check(function, leaves, **options):
    """Results and gradients are those of the eager call, to the last bit: the same kernels run."""
    y = function(*leaves)
    dy = torch.randn_like(y)
    expected = torch.autograd.grad(y, leaves, dy)
    z = compiled(function, **options)(*leaves)
    assert torch.equal(z, y)
    for ours, right in zip(torch.autograd.grad(z, leaves, dy), expected):
        assert torch.equal(ours, right)


def leaves_of(shapes, device, dtype=torch.float32):
    return [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for shape in shapes]


@calls
def test_no_graph_break(device, name, shapes, keywords):
    """M13: forward and backward, with one graph for all shapes."""
    function = getattr(fuseline, name)
    check(lambda *x: function(*x, **keywords), leaves_of(shapes, device), dynamic=True)


def test_other_ways_to_call(device):
    (x,) = leaves_of([(4, 6)], device)
    bias = torch.randn(12, device=device, requires_grad=True)
    check(lambda x, b: fuseline.swiglu(x, x * 2, bias=b), [x, bias])
    check(lambda x: fuseline.swish(x.t() * 2) + 1, [x])
    for dtype in (torch.bfloat16, "bfloat16"):
        check(lambda x, dtype=dtype: fuseline.swish(x, dtype=dtype), [x])
    held = x.detach()

    def into(x):
        y = torch.empty_like(x)
        assert fuseline.swish(x, out=y) is y
        return y

    assert torch.equal(compiled(into)(held), fuseline.swish(held))
    backward = compiled(lambda dy, x: fuseline.swiglu_backward(dy, x, x))
    for ours, right in zip(backward(held, held), fuseline.swiglu_backward(held, held, held)):
        assert torch.equal(ours, right)


def test_inductor(device):
    """M23: a small model, as users compile it."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)).to(device)

    def function(x):
        return model[1](fuseline.gelu(model[0](x))).sum()

    (x,) = leaves_of([(4, 8)], device)
    expected = torch.autograd.grad(function(x), x)
    torch.testing.assert_close(torch.autograd.grad(compiled(function, backend="inductor")(x), x), expected)


@pytest.mark.parametrize(
    "order", ["import torch, fuseline", "import fuseline, torch", "import torch._dynamo, fuseline"]
)
def test_order_of_imports(order):
    """The compiler knows the functions however it came to be loaded, and whether or not they were called before."""
    program = f"""{order}
f = torch.compile(lambda x: fuseline.swish(x) + 1, fullgraph=True, backend="aot_eager")
x = torch.ones(3)
assert torch.equal(f(x), fuseline.swish(x) + 1)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_compiler_is_not_loaded_for_its_own_sake():
    program = "import sys, torch, fuseline; fuseline.swish(torch.ones(3)); print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["False"], done.stderr


def operator_cases(device):
    operators = torch_adapter().registered and torch.ops.fuseline
    x, up = leaves_of([(4, 6), (4, 6)], device)
    bias, held = torch.randn(12, device=device, requires_grad=True), torch.randn(4, 6, device=device)
    plain, clamped = (1.0, math.inf, 0.0), (1.702, 1.0, 1.0)
    yield operators.swish_forward, (x, 1.5)
    yield operators.swish_forward, (x.t(), 1.5)
    yield operators.swish_forward, (x[:, ::2], 1.5)
    yield operators.swish_forward, (x, 1.0, torch.bfloat16)
    yield operators.swish_forward, (torch.randn(2, 3, 4, 5, device=device).permute(0, 3, 1, 2)[:, :, ::2], 1.0)
    yield operators.gelu_forward, (x,)
    yield operators.gelu_tanh_forward, (x,)
    yield operators.relu2_forward, (x,)
    yield operators.swiglu_forward, (x, up, None, False, *plain)
    yield operators.swiglu_forward, (x, None, None, True, *clamped)
    yield operators.geglu_forward, (x, None, None, False)
    yield operators.reglu_forward, (x, up, bias, False)
    yield operators.swish_backward, (held, held, 1.0)
    yield operators.swish_backward, (up, x.t().contiguous().t(), 1.5)
    yield operators.gelu_tanh_backward, (x, x)
    yield operators.swish_double_backward, (held, held[:1].expand(4, 6), held, 1.5)
    yield operators.relu2_double_backward, (held, held, held)
    yield operators.swiglu_backward, (held, held, held, bias.detach(), False, *clamped)
    yield operators.swiglu_backward, (held[:, :3], held, None, None, False, *plain)
    yield operators.column_sum, (held,)


def test_operators_keep_the_rules(device):
    """What torch.library.opcheck looks at: schema, fake results, differentiation, ahead-of-time compilation."""
    for operator, arguments in operator_cases(device):
        torch.library.opcheck(operator, arguments)


def test_fake_tensors(device):
    from torch._subclasses import FakeTensorMode

    x = torch.randn(4, 6, device=device)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = mode.from_tensor(x)
        for y in (fuseline.swish(fake), fuseline.swish(x), fuseline.swish(fake.t(), dtype=torch.bfloat16).t()):
            assert type(y) is type(fake) and y.shape == (4, 6)
        assert fuseline.swiglu(fake).shape == (4, 3)


def test_tracers_see_the_operator(device):
    """A tracer that saw only the allocation would give a graph with wrong numbers."""
    from torch.fx.experimental.proxy_tensor import make_fx

    x, other = (torch.randn(4, 6, device=device) for _ in range(2))

    def function(x):
        return fuseline.gelu(fuseline.swiglu(x, x * 2))

    for mode in ("real", "fake", "symbolic"):
        assert torch.equal(make_fx(function, tracing_mode=mode)(x)(other), function(other))
    assert torch.equal(torch.jit.trace(function, (x,))(other), function(other))


@pytest.mark.parametrize("strict", [False, True])
def test_export(device, strict):
    class Model(torch.nn.Module):
        def forward(self, x):
            return fuseline.gelu(fuseline.swiglu(x))

    x, other = (torch.randn(4, 6, device=device) for _ in range(2))
    program = torch.export.export(Model(), (x,), strict=strict)
    assert torch.equal(program.module()(other), Model()(other))


def test_batches(device):
    x = torch.randn(3, 4, 6, device=device)
    bias = torch.randn(3, 6, device=device)
    ours = compiled(torch.vmap(lambda x, b: fuseline.swiglu(fuseline.swish(x), bias=b)))(x, bias)
    right = torch.stack([fuseline.swiglu(fuseline.swish(one), bias=b) for one, b in zip(x, bias)])
    torch.testing.assert_close(ours, right)
