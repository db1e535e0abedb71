"""fuseline.Tensor: results in host memory for inputs whose library has no array to put them in."""

import ctypes

from . import _dlpack, _errors
from ._library import check, functions, last_error

_create = functions["fuseline_tensor_create"]
_copy = functions["fuseline_tensor_copy"]
_view = functions["fuseline_tensor_view"]
_export = functions["fuseline_tensor_export"]
_export_versioned = functions["fuseline_tensor_export_versioned"]
_release = functions["fuseline_tensor_release"]
_DESTRUCTOR = ctypes.cast(functions["fuseline_capsule_destructor"], ctypes.c_void_p)

DTYPES = {
    "float16": (_dlpack.FLOAT, 16),
    "bfloat16": (_dlpack.BFLOAT, 16),
    "float32": (_dlpack.FLOAT, 32),
    "float64": (_dlpack.FLOAT, 64),
}
NAMES = {code_and_bits: name for name, code_and_bits in DTYPES.items()}


class Tensor:
    """A dense tensor in host memory, to be read by any library through DLPack: ``numpy.from_dlpack(tensor)``.

    Made by fuseline's functions, not by users. The memory lives until this object and everything exported from it
    is gone; it may be freed in any thread.

    Attributes:
        shape: tuple of int.
        strides: tuple of int, in elements.
        dtype: "float16", "bfloat16", "float32" or "float64".
    """

    __slots__ = ("_handle", "_described", "__weakref__")

    def __init__(self, like, name="like"):
        """An unset tensor of the shape, dtype and dimension order of a DLTensor, which messages call `name`."""
        self._handle = None
        handle = ctypes.c_void_p()
        status = _create(like, handle)
        if status:
            raise _errors.from_status(status, last_error().replace("like:", name + ":", 1))
        self._handle = handle
        self._described = _view(handle)[0]

    def __del__(self):
        if self._handle is not None:
            _release(self._handle)

    @property
    def shape(self):
        return _dlpack.shape(self._described)

    @property
    def strides(self):
        return _dlpack.strides(self._described)

    @property
    def ndim(self):
        return self._described.ndim

    @property
    def dtype(self):
        return NAMES[self._described.dtype.code, self._described.dtype.bits]

    def __repr__(self):
        return f"fuseline.Tensor(shape={self.shape}, dtype={self.dtype})"

    def __dlpack_device__(self):
        """(device type, index): host memory, (1, 0)."""
        return _dlpack.CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule that shares this tensor's memory.

        Args:
            stream: None or -1; host memory has no streams.
            max_version: (major, minor) that the consumer knows. From (1, 0) on the capsule is versioned and says 1.0;
                below, or with None, it is a legacy one.
            dl_device: None or a host device, (1, index).
            copy: True shares a copy instead; False and None share the memory.

        Raises:
            BufferError: for any other stream or device.
        """
        if stream is not None and stream != -1:
            raise _errors.DeviceError(f"stream: is {stream!r}; accepted: None, since the tensor is in host memory")
        if dl_device is not None and dl_device[0] != _dlpack.CPU:
            raise _errors.DeviceError(f"dl_device: is {tuple(dl_device)}; accepted: (1, 0), host memory")
        flags = 0
        exported = self
        if copy:
            exported = Tensor(self._described)
            exported.fill_from(self._described)
            flags = _dlpack.FLAG_IS_COPIED
        managed = ctypes.c_void_p()
        if max_version is not None and max_version[0] >= 1:
            name = _dlpack.VERSIONED
            check(_export_versioned(exported._handle, flags, managed))
        else:
            name = _dlpack.LEGACY
            check(_export(exported._handle, managed))
        return _dlpack.make_capsule(managed, name, _DESTRUCTOR)

    def fill_from(self, source):
        """Copies the elements of a DLTensor of the same shape and dtype, whatever its strides."""
        check(_copy(self._handle, source))

    @property
    def described(self):
        """The tensor as a DLTensor, valid as long as this object."""
        return self._described
