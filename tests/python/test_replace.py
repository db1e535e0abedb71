"""fuseline.torch.replace: what it recognises, what it leaves alone, and that a model stays the same model."""

import collections
import copy
import inspect
import io
import pickle

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

import fuseline.torch  # noqa: E402
from process import run_python  # noqa: E402

try:
    import transformers
except ImportError:
    transformers = None

needs_transformers = pytest.mark.skipif(transformers is None, reason="no transformers")


@pytest.fixture(autouse=True)
def seed():
    """The same numbers for every test; one thread, since models this small lose by more."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- models ---

_SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,  # so that the activations' arguments are not all near 0
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "layer_types": ["full_attention"] * 2}
_OSS = "swiglu(gate_up, beta=1.702, limit=7.0, offset=1.0, interleaved=True) in _apply_gate"

# model -> (configuration's class, more options, what each of its two feed-forwards becomes)
MODELS = {
    "llama": ("LlamaConfig", {}, "swiglu(gate_proj, up_proj)"),
    "llama-bias": ("LlamaConfig", {"mlp_bias": True}, "swiglu(gate_proj, up_proj)"),
    "qwen2": ("Qwen2Config", {}, "swiglu(gate_proj, up_proj)"),
    "qwen3": ("Qwen3Config", {}, "swiglu(gate_proj, up_proj)"),
    "mistral": ("MistralConfig", {}, "swiglu(gate_proj, up_proj)"),
    "gemma": ("GemmaConfig", {}, "geglu(gate_proj, up_proj, approximate='tanh')"),
    "gemma2": ("Gemma2Config", {}, "geglu(gate_proj, up_proj, approximate='tanh')"),
    "phi3": ("Phi3Config", {}, "swiglu(gate_up_proj)"),
    "gpt-oss": ("GptOssConfig", {**_EXPERTS, "experts_implementation": "eager"}, _OSS),
    "gpt-oss-grouped": ("GptOssConfig", {**_EXPERTS, "experts_implementation": "grouped_mm"}, _OSS),
}


def make_model(name, dtype=torch.float32, **more):
    kind, options, _ = MODELS[name]
    kind = getattr(transformers, kind, None)
    if kind is None:
        pytest.skip(f"transformers {transformers.__version__} has no such model")
    options = {**_SIZES, **options, **more}
    implementation = options.pop("experts_implementation", None)
    configuration = kind(**options)
    if implementation:
        configuration._experts_implementation = implementation
    model = transformers.AutoModelForCausalLM.from_config(configuration)
    if name.startswith("gpt-oss") and not hasattr(model.model.layers[0].mlp.experts, "_apply_gate"):
        pytest.skip(f"transformers {transformers.__version__} writes the unit into a longer forward")
    for parameter in model.parameters():  # biases and norms too
        torch.nn.init.normal_(parameter, std=0.3)
    return model.to(dtype).eval()


def make_tokens():
    return torch.randint(3, _SIZES["vocab_size"], (2, 24), generator=torch.Generator().manual_seed(1))


def loss_and_gradients(model, tokens):
    model.zero_grad()
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    return loss.detach().double(), torch.cat([gradient.double().flatten() for gradient in gradients])


def saved_bytes(model, run):
    """The bytes that autograd keeps for the backward, weights apart; what shares memory counts once."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    total = sum(storage.nbytes() for storage in kept.values())
    del result
    return total


@needs_transformers
@pytest.mark.parametrize("name", MODELS)
class TestTransformers:
    def test_what_is_replaced(self, name):
        model = make_model(name)
        done = fuseline.torch.replace(model)
        assert [change.after for change in done.changed].count(MODELS[name][2]) == 2
        assert not done.skipped
        for change in done.changed:
            assert type(model.get_submodule(change.name)).__name__ == "Fuseline" + change.before

    def test_loss_and_gradients_in_float64(self, name):
        if name == "gpt-oss-grouped":
            pytest.skip("PyTorch's grouped matrix product does not take float64")
        model, tokens = make_model(name, torch.float64), make_tokens()
        loss, gradients = loss_and_gradients(model, tokens)
        fuseline.torch.replace(model)
        our_loss, our_gradients = loss_and_gradients(model, tokens)
        assert abs(our_loss - loss) <= 1e-13 * abs(loss)
        assert (our_gradients - gradients).norm() <= 1e-12 * gradients.norm()

    def test_loss_and_gradients_in_bfloat16(self, name):
        """The distance to float64 on the same weights is that of PyTorch's own, up to chance: most of it is rounding in
        matrix products, which moves by a tenth with each change of their inputs."""
        model, tokens = make_model(name, torch.bfloat16), make_tokens()
        exact = copy.deepcopy(model).double()
        exact.config._experts_implementation = "eager"  # the grouped one does not take float64
        loss, gradients = loss_and_gradients(exact, tokens)
        their_loss, their_gradients = loss_and_gradients(model, tokens)
        fuseline.torch.replace(model)
        our_loss, our_gradients = loss_and_gradients(model, tokens)
        assert (our_gradients - gradients).norm() <= 1.25 * (their_gradients - gradients).norm()
        assert abs(our_loss - loss) <= max(1.25 * abs(their_loss - loss), 2**-9 * abs(loss))

    def test_generated_tokens(self, name):
        model, tokens = make_model(name), make_tokens()
        options = {"max_new_tokens": 16, "min_new_tokens": 16, "do_sample": False}
        theirs = model.generate(tokens, **options)
        fuseline.torch.replace(model)
        ours = model.generate(tokens, **options)
        assert ours.shape == (2, 40)
        assert torch.equal(ours, theirs)

    def test_less_is_saved_for_backward(self, name):
        model, tokens = make_model(name), make_tokens()
        before = saved_bytes(model, lambda: model(tokens, labels=tokens))
        done = fuseline.torch.replace(model)
        after = saved_bytes(model, lambda: model(tokens, labels=tokens))
        # In each of the two layers the activation of gate, a tensor of the unit's size; in gpt-oss, where two experts
        # see each token, four of them: the clamped gate, its sigmoid, the product of these, and the clamped up + 1.
        unit = tokens.numel() * _SIZES["intermediate_size"] * 4
        assert before - after == 2 * unit * (2 * 4 if name.startswith("gpt-oss") else 1)
        done.undo()
        assert saved_bytes(model, lambda: model(tokens, labels=tokens)) == before

    def test_the_model_stays_the_same(self, name):
        model, tokens = make_model(name), make_tokens()
        modules, state = list(model.named_modules()), model.state_dict(keep_vars=True)
        classes = [type(module) for _, module in modules]
        text, result = repr(model), model(tokens).logits
        done = fuseline.torch.replace(model)
        assert repr(model) != text
        assert all(isinstance(module, kind) for (_, module), kind in zip(modules, classes))
        assert [name for name, _ in model.named_modules()] == [name for name, _ in modules]
        assert all(ours is theirs for (_, ours), (_, theirs) in zip(model.named_modules(), modules))
        ours = model.state_dict(keep_vars=True)
        assert list(ours) == list(state)
        assert all(ours[key] is state[key] for key in state)

        again = fuseline.torch.replace(model)
        assert not again.changed and not again.skipped and repr(again) == "replaced: 0"

        replaced = model(tokens).logits
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert [type(module) for module in other.modules()] == [type(module) for module in model.modules()]
            assert torch.equal(other(tokens).logits, replaced)
            other.load_state_dict(state)

        done.undo()
        done.undo()
        assert [type(module) for module in model.modules()] == classes
        assert repr(model) == text
        assert torch.equal(model(tokens).logits, result)


@needs_transformers
@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("gelu", "gelu(input)"),
        ("gelu_fast", "gelu(input, approximate='tanh')"),
        ("gelu_new", "gelu(input, approximate='tanh')"),
        ("gelu_python", "gelu(input)"),
        ("gelu_pytorch_tanh", "gelu(input, approximate='tanh')"),
        ("gelu_accurate", "gelu(input, approximate='tanh')"),
        ("quick_gelu", "swish(input, beta=1.702)"),
        ("relu2", "relu2(input)"),
        ("silu", "swish(input)"),
        ("swish", "swish(input)"),
        # others
        ("gelu_10", None),
        ("laplace", None),
        ("leaky_relu", None),
        ("linear", None),
        ("mish", None),
        ("relu", None),
        ("relu6", None),
        ("sigmoid", None),
        ("tanh", None),
    ],
)
def test_activations_of_transformers(name, after):
    model = transformers.activations.ACT2FN[name]
    x = torch.linspace(-9, 9, 400, dtype=torch.float64, requires_grad=True)
    y = model(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    done = fuseline.torch.replace(model)
    assert [change.after for change in done.changed] == ([] if after is None else [after])
    # (gelu_fast's constant has ten digits.)
    torch.testing.assert_close(model(x), y, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(torch.autograd.grad(model(x).sum(), x)[0], gradient, rtol=1e-9, atol=1e-11)


# --- by structure ---


class Own(torch.nn.Module):
    """A feed-forward of its own names."""

    def __init__(self, activation=None):
        super().__init__()
        self.w1 = torch.nn.Linear(6, 10)
        self.w2 = torch.nn.Linear(10, 6)
        self.w3 = torch.nn.Linear(6, 10)
        self.activation = activation


class Functional(Own):
    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class UpFirst(Own):
    def forward(self, hidden):
        up = self.w3(hidden)
        gate = self.w1(hidden)
        return self.w2(up.mul(torch.sigmoid(1.5 * gate)) * gate)


class Relu(Own):
    def __init__(self):
        super().__init__(torch.nn.ReLU())

    def forward(self, x):
        return self.w2(self.activation(self.w1(x)) * self.w3(x))


class WithDropout(Own):
    def __init__(self):
        super().__init__(torch.nn.GELU())
        self.dropout = torch.nn.Dropout(0.0)

    def forward(self, x):
        return self.dropout(self.activation(self.w1(x)) * self.w3(x))


class Plain(Own):
    def forward(self, x):
        return self.w2(functional.gelu(self.w1(x), approximate="tanh"))


class Interleaved(Own):
    def __init__(self):
        super().__init__()
        self.limit = 0.5

    def unit(self, packed):
        gate, up = packed[..., 0::2].clamp(max=self.limit), packed[..., 1::2]
        return gate * torch.sigmoid(gate) * torch.clamp(up, -self.limit, self.limit)

    def forward(self, x):
        return self.unit(self.w1(x))


class Chunks(torch.nn.Module):
    def forward(self, packed):
        gate, up = torch.chunk(packed, 2, dim=-1)
        return functional.relu(gate) * up


class QuickGelu(torch.nn.Module):
    def forward(self, x):
        return x * (1.702 * x).sigmoid()


@pytest.mark.parametrize(
    ("model", "after"),
    [
        (Functional(), ["swiglu(w1, w3)"]),
        (UpFirst(), ["swiglu(w1, w3, beta=1.5)"]),
        (Relu(), ["reglu(w1, w3)"]),
        (WithDropout(), ["geglu(w1, w3)", "gelu(input)"]),
        (Plain(), ["gelu(w1, approximate='tanh')"]),
        (Interleaved(), ["swiglu(w1, limit=0.5, interleaved=True)"]),
        (Chunks(), ["reglu(packed)"]),
        (QuickGelu(), ["swish(x, beta=1.702)"]),
        (torch.nn.SiLU(), ["swish(input)"]),
        (torch.nn.GELU(), ["gelu(input)"]),
        (torch.nn.GELU("tanh"), ["gelu(input, approximate='tanh')"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_code_is_recognised_by_what_it_computes(model, after):
    model = copy.deepcopy(model).double()
    x = 2 * torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    parameter = list(inspect.signature(model.forward).parameters)[0]
    y = model(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    done = fuseline.torch.replace(model)
    assert [change.after for change in done.changed] == after
    torch.testing.assert_close(model(x), y, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(model(**{parameter: x}), y, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(torch.autograd.grad(model(x).sum(), x)[0], gradient, rtol=1e-12, atol=1e-13)
    for arguments, named in (((), {}), ((x, x), {}), ((), {"other": x})):
        with pytest.raises(TypeError):
            model(*arguments, **named)


class Clamped(torch.nn.Module):
    """A gated unit with bounds of its own: none is None."""

    def __init__(self, gate_min, gate_max, up_min, up_max):
        super().__init__()
        self.gate_min, self.gate_max, self.up_min, self.up_max = gate_min, gate_max, up_min, up_max

    def forward(self, packed):
        gate, up = packed.chunk(2, dim=-1)
        gate, up = gate.clamp(self.gate_min, self.gate_max), up.clamp(min=self.up_min, max=self.up_max)
        return gate * torch.sigmoid(gate) * up


@pytest.mark.parametrize(
    ("bounds", "after"),
    [
        ((None, 50.0, -50.0, 50.0), ["swiglu(packed, limit=50.0)"]),
        ((None, 7.0, -7.0, 7.0), ["swiglu(packed, limit=7.0)"]),
        ((None, None, None, None), ["swiglu(packed)"]),
        ((None, 7.0, -7.0, 6.9), []),
        ((None, 7.0, -7.0, None), []),
        ((None, 50.0, None, None), []),
        ((None, None, -50.0, 50.0), []),
        ((None, 50.0, -50.0, 50.1), []),
        ((-7.0, 7.0, -7.0, 7.0), []),
    ],
)
def test_bounds_are_told_apart(bounds, after):
    assert [change.after for change in fuseline.torch.replace(Clamped(*bounds)).changed] == after


# --- what is left alone ---


class Doubled(torch.nn.SiLU):
    def forward(self, input):
        return super().forward(input) * 2


class Shifted(torch.nn.GELU):
    def forward(self, input):
        return functional.gelu(input) + 1e-6


class Branching(torch.nn.SiLU):
    def forward(self, input):
        return functional.silu(input) if self.training else input


class Counting(torch.nn.SiLU):
    calls = 0

    def forward(self, input):
        self.calls += 1
        return functional.silu(input)


_seen = []


class Recording(torch.nn.SiLU):
    def forward(self, input):
        _seen.append(input)
        return functional.silu(input)


class Guarded(torch.nn.SiLU):
    def forward(self, input):
        with torch.autocast("cpu", enabled=False):
            return functional.silu(input)


class TwoTensors(torch.nn.SiLU):
    def forward(self, input, scale):
        return functional.silu(input) * scale


class Cast(torch.nn.SiLU):
    def forward(self, input):
        return functional.silu(input.float())


class Wrapped(torch.nn.SiLU):
    @torch.no_grad()
    def forward(self, input):
        return functional.silu(input)


class Gated(torch.nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.gate_proj = torch.nn.Linear(6, 10)
        self.up_proj = torch.nn.Linear(6, 10)
        self.down_proj = torch.nn.Linear(10, 6)
        self.act_fn = activation

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Residual(Gated):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)) + x


class Normed(Gated):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(functional.layer_norm(x, (6,))))


class Twice(Gated):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(self.act_fn(x)))


class Sum(Gated):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) + self.up_proj(x))


def patched():
    module = torch.nn.SiLU()
    module.forward = lambda input: input
    return module


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Doubled(), "super"),
        (Shifted(), "none of fuseline's operators"),
        (Branching(), "branches"),
        (Counting(), "assigns"),
        (Recording(), "it uses _seen"),
        (Guarded(), "with"),
        (TwoTensors(), "another number of arguments"),
        (Cast(), "float"),
        (Wrapped(), "wrapped"),
        (patched(), "set on the module itself"),
        (torch.nn.SiLU(inplace=True), "in place"),
        (Gated(torch.nn.Mish()), "none of fuseline's operators"),
        (Gated(torch.nn.SiLU(inplace=True)), "in place"),
        (Gated(torch.nn.Softplus()), "none of fuseline's operators"),
        (Residual(torch.nn.SiLU()), "none of"),
        (Normed(torch.nn.SiLU()), "layer_norm"),
        (Twice(torch.nn.SiLU()), "none of"),
        (Sum(torch.nn.SiLU()), "none of"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_what_is_not_fully_recognised_is_left_alone(model, reason):
    kind = type(model)
    done = fuseline.torch.replace(model)
    assert type(model) is kind
    skipped = [skip for skip in done.skipped if skip.name == ""]
    assert [skip.kind for skip in skipped] == [kind.__name__]
    assert reason in skipped[0].reason
    assert not _seen
    assert f"{kind.__name__}: {skipped[0].reason}" in repr(done)


def test_in_place_activations_are_replaced_if_wished():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.SiLU(inplace=True))
    x = torch.randn(3, 4)
    y = model(x)
    assert not fuseline.torch.replace(model).changed
    done = fuseline.torch.replace(model, in_place=True)
    assert [change.name for change in done.changed] == ["1"]
    torch.testing.assert_close(model(x), y)


def test_unrelated_modules_are_not_mentioned():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Softmax(-1), torch.nn.LayerNorm(3))
    assert repr(fuseline.torch.replace(model)) == "replaced: 0"


def test_not_a_module():
    with pytest.raises(TypeError, match="model: is function; accepted: a torch.nn.Module"):
        fuseline.torch.replace(lambda x: x)


# --- what models are used with ---


class Lora(torch.nn.Module):
    """A linear layer with an adapter of low rank, as fine-tuning puts it in the place of the layer."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = torch.nn.Linear(base.in_features, 2, bias=False)
        self.up = torch.nn.Linear(2, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


@pytest.mark.parametrize("when", ["before", "after"])
def test_adapters_around_children(when):
    model = Gated(torch.nn.SiLU())
    if when == "after":
        fuseline.torch.replace(model)
    model.gate_proj = Lora(model.gate_proj)
    if when == "before":
        fuseline.torch.replace(model)
    x = torch.randn(5, 6)
    expected = model.down_proj(functional.silu(model.gate_proj(x)) * model.up_proj(x))
    torch.testing.assert_close(model(x), expected)
    model(x).sum().backward()
    assert model.gate_proj.up.weight.grad.abs().sum() > 0


def test_an_adapter_in_float32_beside_bfloat16():
    """PyTorch promotes gate and up to one dtype."""
    model = Gated(torch.nn.SiLU()).bfloat16()
    x = torch.randn(5, 6).bfloat16()
    model.gate_proj.register_forward_hook(lambda module, arguments, result: result.float())
    model.down_proj.float()
    expected = model(x)
    fuseline.torch.replace(model)
    assert model(x).dtype == expected.dtype == torch.float32
    torch.testing.assert_close(model(x), expected)


def test_hooks_are_called_as_before():
    model = Gated(torch.nn.SiLU())
    calls = []

    def watch(name):
        module = model.get_submodule(name)
        module.register_forward_pre_hook(lambda *arguments: calls.append(name + " before"))
        module.register_forward_hook(lambda *arguments: calls.append(name))

    for name in ("", "gate_proj", "act_fn", "up_proj"):
        watch(name)
    x = torch.randn(2, 6)
    expected = model(x)
    before, calls[:] = list(calls), []
    done = fuseline.torch.replace(model)
    assert len(done.changed) == 2
    torch.testing.assert_close(model(x), expected)
    assert calls == before


def test_an_exchanged_activation_counts():
    model = Gated(torch.nn.SiLU())
    fuseline.torch.replace(model)
    model.act_fn = torch.nn.Tanh()
    x = torch.randn(2, 6)
    torch.testing.assert_close(model(x), model.down_proj(torch.tanh(model.gate_proj(x)) * model.up_proj(x)))


def test_the_fused_unit_is_what_runs():
    model = Gated(torch.nn.SiLU())
    fuseline.torch.replace(model)
    operators = collections.Counter()
    with torch.profiler.profile() as profile:
        model(torch.randn(2, 6))
    for event in profile.events():
        operators[event.name] += 1
    assert operators["aten::linear"] == 3
    assert not operators["aten::silu"] and not operators["aten::mul"]


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="no torch.compile")
def test_compiled_as_one_graph():
    model = torch.nn.Sequential(Gated(torch.nn.SiLU()), torch.nn.GELU("tanh"), Interleaved())
    fuseline.torch.replace(model)
    x = torch.randn(5, 6, requires_grad=True)
    y = model(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(compiled, y)
    torch.testing.assert_close(torch.autograd.grad(compiled.sum(), x)[0], gradient)


def test_shared_modules_are_replaced_once():
    activation = torch.nn.SiLU()
    model = torch.nn.ModuleDict({"a": activation, "b": activation})
    assert len(fuseline.torch.replace(model).changed) == 1
    assert model["a"] is model["b"] is activation


def test_on_the_meta_device():
    with torch.device("meta"):
        model = Gated(torch.nn.SiLU())
        assert len(fuseline.torch.replace(model).changed) == 2
    model = model.to_empty(device="cpu")
    assert model(torch.zeros(2, 6)).shape == (2, 6)


def test_replicas_for_data_parallel_run_on_their_own_weights():
    model = Gated(torch.nn.SiLU())
    fuseline.torch.replace(model)
    replica = model._replicate_for_data_parallel()
    replica._modules = {name: copy.deepcopy(child) for name, child in model._modules.items()}
    torch.nn.init.zeros_(replica.down_proj.weight)
    torch.nn.init.zeros_(replica.down_proj.bias)
    assert not replica(torch.randn(2, 6)).any()


def test_saved_whole_and_loaded():
    model = Gated(torch.nn.GELU("tanh"))
    fuseline.torch.replace(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    other = torch.load(file, weights_only=False)
    x = torch.randn(2, 6)
    assert torch.equal(other(x), model(x))
    assert type(other) is type(model)


def test_undo_refuses_where_the_class_was_changed_since():
    model = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.GELU())
    done = fuseline.torch.replace(model)
    ours = type(model[0])
    model[0].__class__ = type("Other", (ours,), {})
    with pytest.raises(RuntimeError, match="undo: module '0' is of class Other now"):
        done.undo()
    assert type(model[1]) is not torch.nn.GELU
    model[0].__class__ = ours
    done.undo()
    assert [type(module) for module in model] == [torch.nn.SiLU, torch.nn.GELU]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")
def test_sharded_by_fully_shard():
    """fully_shard changes the class too, on top of ours; undo says so."""
    pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(torch.distributed.fsdp, "fully_shard"):
        pytest.skip("this PyTorch has no fully_shard")
    program = """
import os, torch
import torch.distributed as distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import fuseline.torch

class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (torch.nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = Gated()
x = torch.randn(3, 6)
expected = model(x)
done = fuseline.torch.replace(model)
fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
torch.testing.assert_close(model(x), expected)
model(x).sum().backward()
assert all(parameter.grad is not None for parameter in model.parameters())
assert not fuseline.torch.replace(model).changed
try:
    done.undo()
except RuntimeError as error:
    print(error, flush=True)
os._exit(0)  # at once: PyTorch's own threads may not end well
"""
    expected = "undo: module '' is of class FSDPFuselineGated now"
    assert expected in run_python(program, CUDA_VISIBLE_DEVICES="")


def test_the_result_does_not_keep_the_model():
    model = torch.nn.Sequential(torch.nn.SiLU())
    done = fuseline.torch.replace(model)
    del model
    assert done._modules[0][1]() is None
    done.undo()


def test_the_result_reads_well():
    layers = [Gated(torch.nn.SiLU()) for _ in range(12)]
    done = fuseline.torch.replace(torch.nn.Sequential(*layers, Counting()))
    assert repr(done).splitlines() == [
        "replaced: 24",
        "  *         Gated -> swiglu(gate_proj, up_proj)  (12 times)",
        "  *.act_fn  SiLU -> swish(input)  (12 times)",
        "skipped: 1",
        "  *  Counting: it assigns to something else than local names, or has statements that are more than a formula",
    ]
