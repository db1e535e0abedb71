"""JAX arrays, concrete ones. On whatever device JAX chose, and on the CPU."""

import re

import numpy as np
import pytest

from process import run_python

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import fuseline  # noqa: E402

DEVICES = jax.devices() if jax.default_backend() == "cpu" else [jax.devices()[0], jax.devices("cpu")[0]]


@pytest.fixture(params=DEVICES, ids=str)
def place(request):
    return request.param


def right(x):
    x = np.asarray(x).astype(np.float64)
    return x / (1 + np.exp(-x))


def right_backward(dy, x):
    dy, x = np.asarray(dy).astype(np.float64), np.asarray(x).astype(np.float64)
    s = 1 / (1 + np.exp(-x))
    return dy * s * (1 + x * (1 - s))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (7, 9), (2, 3, 4), (0, 4), (100_003,)])
def test_values(place, kind, shape):
    """D2"""
    values = np.random.default_rng(0).normal(size=shape) * 3
    x = jax.device_put(jnp.asarray(values, dtype=kind), place)
    y = fuseline.swish(x)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype and y.shape == x.shape and y.devices() == x.devices()
    rtol = 3e-7 if kind == "float32" else 5e-3
    np.testing.assert_allclose(np.asarray(y).astype(np.float64), right(x), rtol=rtol, atol=1e-7)
    dx = fuseline.swish_backward(jnp.ones_like(x), x)
    np.testing.assert_allclose(np.asarray(dx).astype(np.float64), right_backward(1, x), rtol=2 * rtol, atol=rtol)


def test_float64(place):
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        x = jax.device_put(jnp.linspace(-3, 3, 50, dtype=jnp.float64), place)
        y = fuseline.swish(x)
        assert y.dtype == jnp.float64
        np.testing.assert_allclose(np.asarray(y), right(x), rtol=1e-15)


def test_array_can_be_used_again_and_again(place):
    """A19"""
    x = jax.device_put(jnp.asarray([0.5, -1.5]), place)
    first, second = fuseline.swish(x), fuseline.swish(x)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))
    np.testing.assert_array_equal(np.asarray(x), [0.5, -1.5])
    np.testing.assert_allclose(np.asarray(fuseline.swish(first + x)), right(first + x), rtol=3e-7)


def test_ordered_with_work_of_jax(place):
    """F15: neither side reads what the other has not written yet."""
    x = jax.device_put(jnp.full((512, 512), 0.01), place)
    step = jax.jit(lambda a: jnp.tanh(a @ a) + 0.01)
    for _ in range(20):
        x = step(fuseline.swish(step(x)))
    expected = np.full((512, 512), 0.01)
    for _ in range(20):
        expected = np.tanh(expected @ expected) + 0.01
        expected = right(expected)
        expected = np.tanh(expected @ expected) + 0.01
    np.testing.assert_allclose(np.asarray(x), expected, rtol=2e-2)


def test_result_outlives_its_input(place):
    x = jax.device_put(jnp.linspace(-1, 1, 1000), place)
    expected = right(x)
    y = fuseline.swish(x)
    x.delete()
    np.testing.assert_allclose(np.asarray(y), expected, rtol=3e-7, atol=1e-9)
    with pytest.raises(ValueError, match="x: was deleted"):
        fuseline.swish(x)


@pytest.mark.parametrize(
    "transform",
    [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum()), jax.make_jaxpr],
    ids=lambda t: str(t)[:20],
)
def test_tracers_are_refused(transform):
    with pytest.raises(TypeError, match="x: is jax.*[Tt]racer; accepted: concrete arrays, outside jax.jit"):
        transform(fuseline.swish)(jnp.ones(3))


def test_inside_jit_by_a_callback():
    """The way that the message names."""

    @jax.custom_vjp
    def swish(x):
        return jax.pure_callback(lambda a: np.asarray(fuseline.swish(np.asarray(a))), jax.typeof(x), x)

    def backward(x, dy):
        return (
            jax.pure_callback(lambda g, a: fuseline.swish_backward(np.asarray(g), np.asarray(a)), jax.typeof(x), dy, x),
        )

    swish.defvjp(lambda x: (swish(x), x), backward)
    x = jnp.linspace(-2, 2, 9)
    dx = jax.jit(jax.grad(lambda a: swish(a).sum()))(x)
    np.testing.assert_allclose(np.asarray(dx), right_backward(1, x), rtol=1e-6, atol=1e-7)


def test_gradient_of_another_dtype():
    """M10: read as it is where it can be the gradient of a result of another dtype, else named."""
    x = jnp.linspace(-2, 2, 9, dtype=jnp.bfloat16)
    dx = fuseline.swish_backward(jnp.ones(9), x)
    assert dx.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(dx).astype(np.float64), right_backward(1, x), rtol=5e-3)
    with pytest.raises(TypeError, match="dy: dtype is float16, but x is bfloat16"):
        fuseline.swish_backward(jnp.ones(9, dtype=jnp.float16), x)


@pytest.mark.parametrize("kind", ["int32", "bool", "complex64", "float8_e4m3fn"])
def test_dtypes_that_are_refused(place, kind):
    """D3, D4"""
    with pytest.raises(TypeError, match="x: dtype"):
        fuseline.swish(jax.device_put(jnp.ones(3, dtype=kind), place))


def test_array_on_several_devices():
    """Named, not read in part."""
    program = """
import jax, jax.numpy as jnp, fuseline
mesh = jax.sharding.Mesh(jax.devices(), ("d",))
x = jax.device_put(jnp.ones(4), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d")))
y, z = (jax.device_put(jnp.ones(4), device) for device in jax.devices())
assert (fuseline.swish_backward(z, z) > 0).all()
for call in (lambda: fuseline.swish(x), lambda: fuseline.swish_backward(y, z)):
    try:
        call()
    except fuseline.DeviceError as error:
        print(error)
"""
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    spread, apart = run_python(program, **environment).splitlines()
    assert spread == "x: is spread over 2 devices; accepted: one device"
    assert re.fullmatch("dy is on .*:0, but x is on .*:1; accepted: one device", apart)


ON_TWO_CPU_DEVICES = """
import os
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy as np
import fuseline
for device in jax.devices():
    x = jax.device_put(jnp.linspace(-3, 3, 8, dtype="float32"), device)
    right = np.asarray(jax.nn.silu(x))
    with jax.default_device(device):
        uncommitted = jnp.linspace(-3, 3, 8, dtype="float32")
    for given in x, uncommitted:
        y = fuseline.swish(given)
        assert y.devices() == given.devices() == {device}, (y.devices(), device)
        np.testing.assert_allclose(np.asarray(y), right, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(given * y), np.asarray(given) * right, rtol=1e-6)
    for dx in fuseline.swiglu_backward(x, x, x):
        assert dx.devices() == {device}
    assert fuseline.column_sum(x.reshape(2, 4)).devices() == {device}
    # While another function is traced, of arrays that are not.
    z = jax.jit(lambda v: v + np.asarray(fuseline.swish(x)))(x)
    np.testing.assert_allclose(np.asarray(z), np.asarray(x) + right, rtol=1e-6)
"""


def test_one_of_several_cpu_devices():
    """A result is where its input is, so that the two can be used together."""
    run_python(ON_TWO_CPU_DEVICES, JAX_PLATFORMS="cpu")


def test_out_is_refused():
    with pytest.raises(TypeError, match="out: JAX arrays cannot be written to"):
        fuseline.swish(jnp.ones(3), out=jnp.ones(3))


def test_mixed_libraries_are_refused():
    with pytest.raises(TypeError, match="dy: is numpy.ndarray; accepted: jax.Array"):
        fuseline.swish_backward(np.ones(3, np.float32), jnp.ones(3))


def test_two_devices():
    """B13: both named, nothing copied."""
    if jax.default_backend() == "cpu":
        pytest.skip("no GPU that JAX can use")
    on_cpu, on_gpu = jax.device_put(jnp.ones(3), jax.devices("cpu")[0]), jnp.ones(3)
    for dy, x in ((on_cpu, on_gpu), (on_gpu, on_cpu)):
        with pytest.raises(fuseline.DeviceError, match="dy is on .*, but x is on .*; accepted: one device"):
            fuseline.swish_backward(dy, x)
