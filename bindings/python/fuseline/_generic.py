"""Any object with ``__dlpack__``, and bare DLPack capsules.

Results are ``fuseline.Tensor``s in host memory. Where the data is on a GPU, for which fuseline has no allocator,
the caller supplies ``out``; the work runs on the default stream, which the producers are told of.
"""

from . import _dlpack, _errors
from ._adapter import Adapter, wrong_object
from ._tensor import Tensor

ACCEPTED = (
    "torch.Tensor, numpy.ndarray, jax.Array, cupy.ndarray, an object with __dlpack__, "
    "or a DLPack capsule that nobody has used"
)


class GenericAdapter(Adapter):
    """Computes on `_dlpack.Import`s and `Tensor`s, in place of the user's objects, which it takes over first."""

    def check_kind(self, name, array):
        if not _dlpack.is_capsule(array) and not hasattr(type(array), "__dlpack__"):
            raise wrong_object(name, array, ACCEPTED)

    def compute(self, kernel, inputs, scalars, outputs, given):
        held = []
        try:
            for name, value in zip(kernel.inputs + given, (*inputs, *(outputs or ()))):
                held.append(self.take(name, value))
            taken, targets = held[: len(inputs)], held[len(inputs) :]
            for name, target in zip(given, targets):
                self.check_writable(name, target)
            results = super().compute(kernel, taken, scalars, targets or None, given)
            return outputs or [self.finish(result) for result in results]
        finally:
            for item in held:
                item.release()

    def take(self, name, value):
        """Takes a capsule over, or asks the object for one. The result is to be released."""
        if _dlpack.is_capsule(value):
            return _dlpack.Import(name, value)
        device = getattr(value, "__dlpack_device__", None)
        device_type = _dlpack.CPU if device is None else int(device()[0])
        stream = _dlpack.stream_number(device_type, None)
        return _dlpack.Import(name, _dlpack.export(value, device_type, stream))

    def finish(self, result):
        """Turns a new Tensor into what the user gets."""
        return result

    @staticmethod
    def check_writable(name, target):
        if not target.writable:
            raise _errors.ReadOnlyError(
                f"{name}: is read-only, or a legacy DLPack capsule, which cannot tell; "
                "accepted: a producer of versioned capsules without the read-only flag"
            )

    def describe(self, name, array):
        return array.described if isinstance(array, Tensor) else array.tensor

    def empty_like(self, array):
        if isinstance(array, Tensor):
            return Tensor(array.described)
        like = array.tensor
        if like.device.device_type in _dlpack.GPU_DEVICE_TYPES:
            raise _errors.DeviceError(
                f"out: is None, and the data is on a GPU (DLPack device type {like.device.device_type}), where "
                "fuseline cannot allocate for a library that it does not know; accepted: an array for the result"
            )
        return Tensor(like, array.name)

    def can_copy(self, array):
        return array.tensor.device.device_type not in _dlpack.GPU_DEVICE_TYPES

    def copy_like(self, array, model):
        described = array.tensor
        if described.strides and described.strides[: described.ndim] == list(model.strides):
            return array
        copied = Tensor(model.described)
        copied.fill_from(described)
        return copied


def make():
    """The adapter for everything that no other one is for."""
    return GenericAdapter()
