"""Any object with ``__dlpack__``, and bare DLPack capsules.

Results are ``fuseline.Tensor``s in host memory. Where the data is on a GPU, for which fuseline has no allocator,
the caller supplies ``out``; the work runs on the default stream, which the producers are told of.
"""

from . import _dlpack, _errors
from ._adapter import Adapter, wrong_dtype, wrong_object
from ._kernels import COLUMNS, UNPACKED
from ._tensor import DTYPES, Tensor

ACCEPTED = (
    "torch.Tensor, numpy.ndarray, jax.Array, cupy.ndarray, an object with __dlpack__, "
    "or a DLPack capsule that nobody has used"
)


class _Part:
    """A view of a part of another array's memory."""

    def __init__(self, tensor):
        self.tensor = tensor


def _described(array):
    return array.described if isinstance(array, Tensor) else array.tensor


class TakenAdapter(Adapter):
    """Works on what was taken over: on `_dlpack.Import`s, fuseline's own `Tensor`s and parts of either."""

    def describe(self, name, array):
        return _described(array)

    def shape(self, array):
        return _dlpack.shape(_described(array))

    def strides(self, array):
        return _dlpack.strides(_described(array))

    def dtype(self, array):
        dtype = _described(array).dtype
        return dtype.code, dtype.bits

    def empty(self, like, form, dtype):
        if not self.can_copy(like):
            raise _errors.DeviceError(
                f"out: is None, and the data is on a GPU (DLPack device type {_described(like).device.device_type}), "
                "where fuseline cannot allocate for a library that it does not know; accepted: an array for the result"
            )
        shape, strides = list(self.shape(like)), list(self.strides(like))
        if form is UNPACKED and shape:
            shape[-1] //= 2
        elif form is COLUMNS:
            shape, strides = shape[-1:], [1] * len(shape[-1:])
        model = _dlpack.redescribe(_described(like), shape=shape, strides=strides, dtype=dtype)
        return Tensor(model, getattr(like, "name", "like"))

    def arrange(self, array, order):
        shape, dense = self.shape(array), _dlpack.dense_strides(self.shape(array), order)
        if self.strides(array) == dense:
            return array
        copied = Tensor(_dlpack.redescribe(_described(array), shape=shape, strides=dense))
        copied.fill_from(_described(array))
        return copied

    def split(self, array, count):
        (extent,), (stride,) = self.shape(array), self.strides(array)
        width = extent // count
        return [
            _Part(_dlpack.redescribe(_described(array), shape=(width,), strides=(stride,), offset=k * width * stride))
            for k in range(count)
        ]

    def can_copy(self, array):
        return _described(array).device.device_type not in _dlpack.GPU_DEVICE_TYPES


class GenericAdapter(TakenAdapter):
    """Takes the user's objects over first."""

    def check_kind(self, name, array):
        if not _dlpack.is_capsule(array) and not hasattr(type(array), "__dlpack__"):
            raise wrong_object(name, array, ACCEPTED)

    def as_dtype(self, dtype):
        if dtype not in DTYPES:
            raise wrong_dtype(dtype)
        return DTYPES[dtype]

    def compute(self, kernel, inputs, scalars, results, outputs, names, dtype):
        held = []
        try:
            taken = [
                None if value is None else self.take(operand.name, value, held)
                for operand, value in zip(kernel.inputs, inputs)
            ]
            targets = None
            if outputs is not None:
                targets = [self.take(name, value, held) for name, value in zip(names.values(), outputs)]
                for target in targets:
                    self.check_writable(target)
            made = super().compute(kernel, taken, scalars, results, targets, names, dtype)
            return outputs or [self.finish(result) for result in made]
        finally:
            for item in held:
                item.release()

    def take(self, name, value, held):
        """Takes a capsule over, or asks the object for one. Adds it to `held`, what is to be released."""
        if _dlpack.is_capsule(value):
            held.append(_dlpack.Import(name, value))
        else:
            device = getattr(value, "__dlpack_device__", None)
            device_type = _dlpack.CPU if device is None else int(device()[0])
            stream = _dlpack.stream_number(device_type, None)
            held.append(_dlpack.Import(name, _dlpack.export(value, device_type, stream)))
        return held[-1]

    def finish(self, result):
        """Turns a new Tensor into what the user gets."""
        return result

    @staticmethod
    def check_writable(target):
        if not target.writable:
            raise _errors.ReadOnlyError(
                f"{target.name}: is read-only, or a legacy DLPack capsule, which cannot tell; "
                "accepted: a producer of versioned capsules without the read-only flag"
            )


def make():
    """The adapter for everything that no other one is for."""
    return GenericAdapter()
