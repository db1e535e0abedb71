"""The activation family on arrays of other libraries than PyTorch: NumPy, JAX, CuPy, and mere DLPack producers."""

import ml_dtypes
import numpy as np
import pytest
import torch

import fuseline
from activations import FORMS, GATED, UNARY, bias_in_form, exact_gradients, values
from producers import Memory, Producer

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None
try:
    import cupy

    cupy.cuda.runtime.getDeviceCount()
except Exception:
    cupy = None

KINDS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-13}


class NumPy:
    kinds = KINDS

    def make(self, tensor, kind):
        dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else kind
        return tensor.double().numpy().astype(dtype)

    def read(self, array):
        assert type(array) is np.ndarray
        return torch.from_numpy(array.astype(np.float64))

    def dtype(self, kind):
        return ml_dtypes.bfloat16 if kind == "bfloat16" else getattr(np, kind)


class Jax:
    kinds = {kind: KINDS[kind] for kind in ("float16", "bfloat16", "float32")}

    def __init__(self, device):
        self.device = device

    def make(self, tensor, kind):
        return jax.device_put(jnp.asarray(tensor.double().numpy(), dtype=kind), self.device)

    def read(self, array):
        assert isinstance(array, jax.Array) and array.devices() == {self.device}
        return torch.from_numpy(np.asarray(array).astype(np.float64))

    def dtype(self, kind):
        return getattr(jnp, kind)


class JaxAsOnGpu(Jax):
    """The CPU's arrays by the way that a GPU's go: kernels run while JAX imports the result, into its own memory."""

    def patch(self, monkeypatch):
        from fuseline import _jax

        export = _jax._Result.__dlpack__
        monkeypatch.setattr(_jax.JaxAdapter, "_is_on_gpu", staticmethod(lambda array: True))
        monkeypatch.setattr(_jax._Result, "__dlpack__", lambda self, *, stream=None, **_: export(self, stream=1))


class CuPy:
    kinds = {kind: KINDS[kind] for kind in ("float16", "float32", "float64")}

    def make(self, tensor, kind):
        return cupy.asarray(tensor.double().numpy().astype(kind))

    def read(self, array):
        assert isinstance(array, cupy.ndarray)
        return torch.from_numpy(cupy.asnumpy(array).astype(np.float64))

    def dtype(self, kind):
        return getattr(cupy, kind)


class Producers:
    """Objects that only have __dlpack__; results are fuseline.Tensor."""

    kinds = {"float32": KINDS["float32"]}

    def make(self, tensor, kind):
        return Producer(Memory(tensor.reshape(-1).tolist(), tuple(tensor.shape)))

    def read(self, array):
        assert type(array) is fuseline.Tensor
        return torch.from_numpy(np.from_dlpack(array).astype(np.float64))

    def dtype(self, kind):
        return kind


class Capsules(Producers):
    """Bare capsules."""

    def __init__(self):
        self.memories = []

    def make(self, tensor, kind):
        self.memories.append(Memory(tensor.reshape(-1).tolist(), tuple(tensor.shape)))
        return self.memories[-1].capsule()


def libraries():
    yield "numpy", NumPy
    yield "producers", Producers
    yield "capsules", Capsules
    if jax is not None:
        for device in {str(d): d for d in (jax.devices()[0], jax.devices("cpu")[0])}.values():
            yield f"jax {device}", lambda device=device: Jax(device)
        yield "jax as on a GPU", lambda: JaxAsOnGpu(jax.devices("cpu")[0])
    if cupy is not None:
        yield "cupy", CuPy


@pytest.fixture(params=[make for _, make in libraries()], ids=[name for name, _ in libraries()])
def library(request, monkeypatch):
    library = request.param()
    if hasattr(library, "patch"):
        library.patch(monkeypatch)
    return library


def inputs_of(kind, *shape, count=3, scale=0.5):
    """Tensors whose values the dtype has exactly."""
    return [values(*shape, seed=seed, dtype=getattr(torch, kind), scale=scale).double() for seed in range(count)]


def near(library, result, exact, kind, rtol=None):
    rtol = rtol or library.kinds[kind]
    torch.testing.assert_close(library.read(result), exact, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("operator", UNARY, ids=repr)
def test_unary(library, operator):
    for kind in library.kinds:
        x, dy = inputs_of(kind, 5, 7, count=2)
        exact, (right,) = exact_gradients(operator, (x,), dy)
        near(library, operator.forward(library.make(x, kind), **operator.options), exact, kind)
        dx = operator.backward(library.make(dy, kind), library.make(x, kind), **operator.options)
        near(library, dx, right, kind)


@pytest.mark.parametrize("operator", GATED, ids=repr)
@pytest.mark.parametrize("form", ["two", "packed", "interleaved"])
@pytest.mark.parametrize("has_bias", [False, True], ids=["plain", "bias"])
def test_gated(library, operator, form, has_bias):
    to_form, form_keywords, _ = FORMS[form]
    for kind in library.kinds:
        gate, up, dy = inputs_of(kind, 4, 3, 6)
        biases = [values(6, seed=seed).mul(4).round().div(4).double() for seed in (7, 8)] if has_bias else None
        exact, right = exact_gradients(operator, (gate, up), dy, biases)

        def given():
            arrays = [library.make(array, kind) for array in to_form(gate, up)]  # noqa: B023
            bias = {"bias": library.make(bias_in_form(form, *biases), kind)} if biases else {}  # noqa: B023
            return arrays, {**form_keywords, **operator.options, **bias}

        arrays, keywords = given()
        near(library, operator.forward(*arrays, **keywords), exact, kind)
        arrays, keywords = given()
        grads = operator.backward(library.make(dy, kind), *arrays, **keywords)
        grads = grads if isinstance(grads, tuple) else (grads,)
        expected = list(to_form(*right[:2]))
        if has_bias:
            expected.append(bias_in_form(form, *right[2:]))
        assert len(grads) == len(expected)
        for grad, wanted in zip(grads, expected):
            near(library, grad, wanted, kind, rtol=12 * library.kinds[kind])


def test_results_of_another_dtype(library):
    for operand, result in (("float16", "float32"), ("bfloat16", "float32"), ("float32", "float16")):
        if operand not in library.kinds or (result not in library.kinds and not isinstance(library, Producers)):
            continue
        gate, up = inputs_of(operand, 4, 6, count=2)
        exact = torch.nn.functional.silu(gate) * up
        for dtype in (result, library.dtype(result)):
            y = fuseline.swiglu(library.make(gate, operand), library.make(up, operand), dtype=dtype)
            assert str(y.dtype) == result
            near(library, y, exact, result, rtol=max(KINDS[operand], KINDS[result]))
            y = fuseline.gelu(library.make(gate, operand), dtype=dtype)
            assert str(y.dtype) == result
    for dtype in ("int32", "nonsense", 3):
        with pytest.raises(TypeError, match="^dtype: is"):
            fuseline.gelu(library.make(torch.ones(3), "float32"), dtype=dtype)
    with pytest.raises(TypeError, match="^dtype: is float64, but x is float32"):
        fuseline.gelu(library.make(torch.ones(3), "float32"), dtype="float64")


def test_column_sum(library):
    for kind in library.kinds:
        (x,) = inputs_of(kind, 5, 3, 7, count=1)
        near(library, fuseline.column_sum(library.make(x, kind)), x.sum((0, 1)), kind)


def test_no_elements(library):
    for shape in ((0, 4), (4, 0), (0, 0)):
        gate, dy = torch.zeros(shape[0], 2 * shape[1]), torch.zeros(shape)
        assert tuple(fuseline.swiglu(library.make(gate, "float32")).shape) == shape
        bias = torch.zeros(2 * shape[1])
        dgate, dbias = fuseline.swiglu_backward(
            library.make(dy, "float32"), library.make(gate, "float32"), bias=library.make(bias, "float32")
        )
        assert tuple(dgate.shape) == (shape[0], 2 * shape[1])
        assert library.read(dbias).tolist() == [0.0] * (2 * shape[1])


def test_mixed_libraries_are_refused(library):
    other = torch.ones(4, 6)
    mine = library.make(other, "float32")
    if isinstance(library, Producers):  # anything with __dlpack__ goes with them
        assert tuple(fuseline.swiglu(mine, other).shape) == (4, 6)
        return
    with pytest.raises(TypeError, match="up: is torch.Tensor; accepted: "):
        fuseline.swiglu(mine, other)
    with pytest.raises(TypeError, match="bias: is torch.Tensor; accepted: "):
        fuseline.swiglu(mine, bias=torch.ones(6))
    with pytest.raises(TypeError, match="up: is .*; accepted: torch.Tensor"):
        fuseline.swiglu(other, mine)


# --- NumPy's own ---


def test_numpy_layouts():
    base = np.random.default_rng(0).normal(size=(6, 8, 10)).astype(np.float32)
    for x in (
        base,
        base.transpose(2, 1, 0),
        base.transpose(1, 0, 2),
        np.asfortranarray(base[0]),
        base[0, :, 2:8],
        base[::2, 1:, ::5],
        base[::-1],
        base[:, ::-1, ::-1],
        np.broadcast_to(base[0, 0], (3, 10)),
    ):
        for interleaved in (False, True):
            gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, -1)
            expected = gate.astype(np.float64) / (1 + np.exp(-gate.astype(np.float64))) * up
            before = x.copy()
            y = fuseline.swiglu(x, interleaved=interleaved)
            np.testing.assert_allclose(y, expected, rtol=2e-6, atol=1e-6)
            np.testing.assert_allclose(fuseline.swiglu(gate, up), expected, rtol=2e-6, atol=1e-6)
            out = np.zeros(y.shape[::-1], np.float32).T
            assert fuseline.swiglu(x, interleaved=interleaved, out=out) is out
            np.testing.assert_array_equal(out, y)
            packed = fuseline.swiglu_backward(y, x, interleaved=interleaved)
            dgate, dup = fuseline.swiglu_backward(y, gate, up)
            both = (packed[..., ::2], packed[..., 1::2]) if interleaved else np.split(packed, 2, -1)
            np.testing.assert_allclose(both[0], dgate, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(both[1], dup, rtol=1e-6, atol=1e-7)
            np.testing.assert_array_equal(x, before)
        np.testing.assert_allclose(
            fuseline.column_sum(x), x.astype(np.float64).reshape(-1, x.shape[-1]).sum(0), rtol=1e-5, atol=1e-5
        )


def test_numpy_booleans():
    """What a comparison of NumPy's gives is as good as Python's."""
    packed = np.arange(8, dtype=np.float32).reshape(2, 4)
    for value in (True, False):
        right = fuseline.swiglu(packed, interleaved=value)
        np.testing.assert_array_equal(fuseline.swiglu(packed, interleaved=np.bool_(value)), right)
        tensor = torch.from_numpy(packed).requires_grad_()
        assert torch.equal(fuseline.swiglu(tensor, interleaved=np.bool_(value)), torch.from_numpy(right))
    fuseline.swiglu(packed, packed, interleaved=np.bool_(False))
    with pytest.raises(ValueError, match="interleaved: is True, but up is given"):
        fuseline.swiglu(packed, packed, interleaved=np.bool_(True))
    for wrong in (np.array([True]), np.int8(1), torch.tensor(True)):
        with pytest.raises(TypeError, match="interleaved: is .*; accepted: True or False"):
            fuseline.swiglu(packed, interleaved=wrong)


def test_numpy_out():
    gate, bias = np.ones((4, 6), np.float32), np.zeros(6, np.float32)
    dy = np.ones((4, 3), np.float32)
    right = fuseline.swiglu_backward(dy, gate, bias=bias)
    out = np.zeros((4, 6), np.float32), np.zeros(12, np.float32)[::2]
    assert fuseline.swiglu_backward(dy, gate, bias=bias, out=out) is out
    for mine, other in zip(out, right):
        np.testing.assert_array_equal(mine, other)
    wide = np.zeros((4, 3), np.float32)
    assert fuseline.swiglu(gate.astype(np.float16), out=wide) is wide
    np.testing.assert_allclose(wide, 0.7310586, rtol=1e-6)
    frozen = np.zeros(6, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"out\[1\]: is read-only"):
        fuseline.swiglu_backward(dy, gate, bias=bias, out=(out[0], frozen))


def test_numpy_strides_that_are_no_whole_elements():
    records = np.zeros((4, 6), dtype=np.dtype([("tag", "u1"), ("value", "f4")]))
    records["value"] = np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_array_equal(fuseline.swiglu(records["value"]), fuseline.swiglu(records["value"].copy()))


# --- producers ---


def test_capsules_are_used_up_once():
    memories = [Memory([0.5] * 12, (2, 6)), Memory([0.1] * 6), Memory([1.0] * 6, (2, 3))]
    gate, bias, dy = (memory.capsule() for memory in memories)
    fuseline.swiglu_backward(dy, gate, bias=bias)
    assert [memory.deleted for memory in memories] == [1, 1, 1]
    memories = [Memory([0.5] * 12, (2, 6)), Memory([0.1] * 5)]
    gate, bias = (memory.capsule() for memory in memories)
    with pytest.raises(ValueError, match=r"bias: shape is \(5\); accepted: \(6\)"):
        fuseline.swiglu(gate, bias=bias)
    assert [memory.deleted for memory in memories] == [1, 1]


def test_producers_write_into_out():
    dy, gate, bias = Producer(Memory([1.0] * 6, (2, 3))), Producer(Memory([0.5] * 12, (2, 6))), Memory([0.0] * 6)
    memories = Memory([0.0] * 12, (2, 6)), Memory([0.0] * 6)
    out = tuple(map(Producer, memories))
    assert fuseline.swiglu_backward(dy, gate, bias=Producer(bias), out=out) is out
    expected = fuseline.swiglu_backward(
        np.ones((2, 3), np.float32), np.full((2, 6), 0.5, np.float32), bias=np.zeros(6, np.float32)
    )
    for memory, right in zip(memories, expected):
        np.testing.assert_array_equal(np.array(memory.values), right.reshape(-1))
    assert [memory.deleted for memory in memories] == [1, 1]


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        ({"ndim": -1}, "ndim"),
        ({"shape": "NULL", "ndim": 2}, "shape is NULL"),
        ({"null_data": True, "shape": (2, 6)}, "data is NULL"),
        ({"shape": (2, -6)}, "negative|extent|shape"),
        ({"shape": (2, 6), "dtype": (2, 32, 4)}, "lanes"),
        ({"shape": (2, 6), "dtype": (0, 32, 1)}, "dtype is int"),
        ({"shape": (2, 6), "device": (99, 0)}, "device"),
    ],
)
def test_malformed_structures(malformed, message):
    """Named as the argument that they are."""
    good = {"gate": ([0.5] * 12, (2, 6)), "bias": ([0.5] * 6, (6,))}
    for place in good:
        memories = {name: Memory(*arguments) for name, arguments in good.items()}
        memories[place] = Memory([0.5] * 12, **malformed)
        with pytest.raises(fuseline.Error, match=f"{place}: .*{message}|{place} .*{message}"):
            fuseline.swiglu(Producer(memories["gate"]), bias=Producer(memories["bias"]))
        assert all(memory.deleted == 1 for memory in memories.values() if memory.deleted or memory is memories[place])
