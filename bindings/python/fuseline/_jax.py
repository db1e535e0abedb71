"""JAX arrays.

Concrete arrays are read through DLPack and results given back through ``jax.dlpack.from_dlpack``, without a copy.
Inside ``jax.jit``, ``jax.grad`` and ``jax.vmap`` there are no concrete arrays, so tracers are refused.

On a GPU, JAX names a stream when it imports a result, and takes what that stream holds by then as the result's
definition. So the kernel is launched inside the import, on that very stream, after the stream has been told to wait
for the inputs. The call then waits for the result, since JAX cannot be told that a foreign stream still reads an
input which it might free.
"""

import importlib
import sys

from . import _dlpack, _errors
from ._adapter import wrong_dtype, wrong_object
from ._generic import GenericAdapter, TakenAdapter
from ._kernels import COLUMNS, UNPACKED
from ._tensor import DTYPES, NAMES

_TRACED = (
    "concrete arrays, outside jax.jit, jax.grad and jax.vmap; there, jax.pure_callback calls fuseline on concrete "
    "arrays, and jax.custom_vjp ties the gradient's function to it"
)


class JaxAdapter(GenericAdapter):
    kind = "jax.Array"

    def __init__(self, jax):
        self._jax = jax
        self._import = importlib.import_module("jax.dlpack").from_dlpack

    def compute(self, kernel, inputs, scalars, results, outputs, names, dtype):
        if names:
            raise _errors.ObjectError("out: JAX arrays cannot be written to; accepted: None")
        lead, lead_name = inputs[kernel.lead], kernel.inputs[kernel.lead].name
        for operand, array in zip(kernel.inputs, inputs):
            if array is not None and array.devices() != lead.devices():
                raise _errors.DeviceError(
                    f"{operand.name} is on {_device(array)}, but {lead_name} is on {_device(lead)}; "
                    "accepted: one device"
                )
        if not self._is_on_gpu(lead):
            made = super().compute(kernel, inputs, scalars, results, None, {}, dtype)
            return [self._placed(array, _device(lead)) for array in made]
        outputs = [self._empty(kernel, inputs, result, dtype) for result in results]
        launch = _Launch(kernel, inputs, scalars, results, outputs)
        return self._jax.block_until_ready([self._import(_Result(launch, output)) for output in outputs])

    @staticmethod
    def _is_on_gpu(array):
        return array.__dlpack_device__()[0] in _dlpack.GPU_DEVICE_TYPES

    def _empty(self, kernel, inputs, result, dtype):
        """A new array of JAX's, on the device of its model; see `empty`, which is for what C reads."""
        like, form = inputs[result.like], kernel.form(result, inputs)
        shape = like.shape
        if form is UNPACKED and shape:
            shape = (*shape[:-1], shape[-1] // 2)
        elif form is COLUMNS:
            shape = shape[-1:]
        name = NAMES.get(dtype, like.dtype.name)
        if name == "float64" and not self._jax.config.jax_enable_x64:  # JAX would make it float32
            raise _errors.DTypeError(
                f"dtype: is float64, but {kernel.inputs[result.like].name} is {like.dtype.name}; accepted: the same "
                "dtype, or float32 with a 16-bit type"
            )
        with self._jax.default_device(_device(like)):  # JAX itself leaves the place of an uncommitted array
            return self._jax.numpy.empty_like(like, name, shape)

    def as_dtype(self, dtype):
        try:
            return DTYPES[self._jax.numpy.dtype(dtype).name]
        except (TypeError, KeyError):
            raise wrong_dtype(dtype) from None

    def check_kind(self, name, array):
        if isinstance(array, self._jax.core.Tracer):
            raise wrong_object(name, array, _TRACED)
        if not isinstance(array, self._jax.Array):
            raise wrong_object(name, array, self.kind)
        if array.is_deleted():
            raise _errors.ArgumentError(f"{name}: was deleted or donated; accepted: an array that still holds its data")
        devices = array.devices()
        if len(devices) != 1:
            raise _errors.DeviceError(f"{name}: is spread over {len(devices)} devices; accepted: one device")

    def finish(self, result):
        return self._import(result)

    def _placed(self, array, device):
        """The array there. Host memory is imported as the first CPU device's, of which JAX may have made several."""
        if _device(array) == device:
            return array
        with self._jax.ensure_compile_time_eval():  # the array itself, also while a function around it is traced
            return self._jax.device_put(array, device)


def _device(array):
    (device,) = array.devices()
    return device


class _OnStream(TakenAdapter):
    """Runs kernels on one stream."""

    def __init__(self, stream):
        self._stream = stream

    def stream(self, array):
        return self._stream


class _Launch:
    """A kernel that runs once, on the first stream that it is told of."""

    def __init__(self, kernel, inputs, scalars, results, outputs):
        self._kernel, self._inputs, self._scalars = kernel, inputs, scalars
        self._results, self._outputs = results, outputs
        self._done = False

    def __call__(self, stream, device_type):
        if self._done:
            return
        if stream is None:
            raise _errors.DeviceError(
                "JAX names no stream on this device, so its results cannot be ordered after the kernel"
            )
        pointer = _dlpack.stream_pointer(device_type, stream)
        self._done = True
        held = []

        def take(name, array):
            held.append(_dlpack.Import(name, _dlpack.export(array, device_type, stream)))
            return held[-1]

        try:
            inputs = [
                None if array is None else take(operand.name, array)
                for operand, array in zip(self._kernel.inputs, self._inputs)
            ]
            outputs = [take(result.name, array) for result, array in zip(self._results, self._outputs)]
            adapter = _OnStream(pointer)
            adapter.run(self._kernel, inputs, self._scalars, self._results, outputs, {})
            adapter.add_sums(self._kernel, inputs, self._results, outputs, {})
        finally:
            for item in held:
                item.release()


class _Result:
    """What JAX imports as a result: asking for it launches the kernel on the stream that JAX names."""

    def __init__(self, launch, output):
        self._launch = launch
        self._output = output

    def __dlpack_device__(self):
        return self._output.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **keywords):
        self._launch(stream, self.__dlpack_device__()[0])
        return _dlpack.export(self._output, self.__dlpack_device__()[0], stream)


def make():
    """The adapter for jax.Array, once JAX is loaded."""
    return JaxAdapter(sys.modules["jax"])
