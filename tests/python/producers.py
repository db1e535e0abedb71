"""Producers for the tests: DLPack structures filled by hand. They record what they are asked and count deletions."""

import ctypes
import itertools

from fuseline import _dlpack

_MANAGED_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_serial = itertools.count()


class Memory:
    """Host memory with one DLPack structure over it.

    Attributes:
        deleted: how often the deleter was called.
    """

    def __init__(
        self,
        values,
        shape=None,
        strides=None,
        *,
        versioned=True,
        dtype=(_dlpack.FLOAT, 32, 1),
        device=(_dlpack.CPU, 0),
        byte_offset=0,
        ndim=None,
        flags=0,
        version=(1, 0),
        deleter=True,
        null_data=False,
    ):
        self.values = (ctypes.c_float * len(values))(*values)
        shape = (len(values),) if shape is None else shape
        self._shape = (ctypes.c_int64 * len(shape))(*shape) if shape != "NULL" else None
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.deleted = 0
        self._deleter = _MANAGED_DELETER(self._delete)
        self.versioned = versioned
        kind = _dlpack.DLManagedTensorVersioned if versioned else _dlpack.DLManagedTensor
        self.structure = kind()
        tensor = self.structure.dl_tensor
        tensor.data = None if null_data else ctypes.addressof(self.values)
        tensor.device = _dlpack.DLDevice(*device)
        tensor.ndim = len(shape) if ndim is None else ndim
        tensor.dtype = _dlpack.DLDataType(*dtype)
        tensor.shape = self._shape
        tensor.strides = self._strides
        tensor.byte_offset = byte_offset
        if deleter:
            self.structure.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)
        if versioned:
            self.structure.version = _dlpack.DLPackVersion(*version)
            self.structure.flags = flags

    def _delete(self, address):
        assert address == ctypes.addressof(self.structure)
        self.deleted += 1

    def capsule(self, destructor=None):
        """A capsule over the structure. destructor: None, or an address."""
        name = _dlpack.VERSIONED if self.versioned else _dlpack.LEGACY
        return _dlpack.make_capsule(ctypes.addressof(self.structure), name, destructor)


class Producer:
    """An object with __dlpack__ that takes the keywords named by `accepts`, and records each call."""

    def __init__(self, memory, accepts=("stream", "max_version", "dl_device", "copy"), device=(_dlpack.CPU, 0)):
        self.memory = memory
        self.calls = []
        self._accepts = set(accepts)
        self._device = device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **keywords):
        for keyword in keywords:
            if keyword not in self._accepts:
                raise TypeError(f"__dlpack__() got an unexpected keyword argument '{keyword}'")
        self.calls.append(keywords)
        return self.memory.capsule()


def capsule_name(capsule):
    return _dlpack._get_name(capsule)
