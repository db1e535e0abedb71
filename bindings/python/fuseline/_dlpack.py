"""DLPack in ctypes: its structures, and capsules from both ends.

Layouts follow dlpack.h, version 1. A capsule is named "dltensor" or "dltensor_versioned"; its consumer renames it to
"used_..." and calls the structure's deleter exactly once.
"""

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object

from . import _errors

MAJOR_VERSION = 1
MOST_DIMENSIONS = 64  # what the C library accepts
MAX_VERSION = (1, 0)  # what we ask producers for: 1.0 has all that is read here

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
GPU_DEVICE_TYPES = frozenset((CUDA, ROCM, CUDA_MANAGED))
# as the C library's messages have them
_DEVICE_NAMES = {**dict.fromkeys((CPU, CUDA_HOST, ROCM_HOST), "CPU"), CUDA: "CUDA", CUDA_MANAGED: "CUDA", ROCM: "ROCm"}

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6

FLAG_READ_ONLY = 1
FLAG_IS_COPIED = 2


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class DLPackVersion(ctypes.Structure):
    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    )


class DLPackExchangeAPI(ctypes.Structure):
    _fields_ = (
        ("version", DLPackVersion),
        ("prev_api", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    )


def describe(address, shape, strides, dtype, device):
    """A DLTensor over memory that the caller keeps alive.

    Args:
        address: of the first element, as an int.
        shape, strides: of equal length; strides in elements.
        dtype: (code, bits).
        device: (device type, index).
    """
    ndim = len(shape)
    extents = c_int64 * ndim
    return DLTensor(
        address, DLDevice(*device), ndim, DLDataType(dtype[0], dtype[1], 1), extents(*shape), extents(*strides), 0
    )


def shape(tensor):
    """A DLTensor's shape, as a tuple; () where none can be read, which the C library will complain of."""
    return tuple(tensor.shape[: tensor.ndim]) if 0 < tensor.ndim <= MOST_DIMENSIONS and tensor.shape else ()


def strides(tensor):
    """A DLTensor's strides in elements, as a tuple, those too that are left out because they are the compact ones."""
    extents = shape(tensor)
    return tuple(tensor.strides[: len(extents)]) if tensor.strides else dense_strides(extents, range(len(extents)))


def dense_strides(extents, order):
    """The strides in elements of a dense tensor with its axes in this order, outermost first."""
    dense, step = [0] * len(extents), 1
    for axis in reversed(order):
        dense[axis] = step
        step *= max(extents[axis], 1)
    return tuple(dense)


def device_text(tensor):
    """A DLTensor's device as messages have it: "CPU device 0"."""
    name = _DEVICE_NAMES.get(tensor.device.device_type, f"DLPack type {tensor.device.device_type}")
    return f"{name} device {tensor.device.device_id}"


def redescribe(tensor, *, shape, strides, dtype=None, offset=0):
    """A DLTensor over another one's memory: `offset` elements on, with other extents, and perhaps another dtype."""
    dtype = dtype or (tensor.dtype.code, tensor.dtype.bits)
    device = tensor.device.device_type, tensor.device.device_id
    address = (tensor.data or 0) + tensor.byte_offset + offset * tensor.dtype.bits // 8
    return describe(address, shape, strides, dtype, device)


# --- capsules ---

_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, (py_object, c_char_p)
_get_name = _api.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = c_char_p, (py_object,)
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, (py_object, c_char_p)
_set_name = _api.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = c_int, (py_object, c_char_p)
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = py_object, (c_void_p, c_char_p, c_void_p)

_CAPSULE_TYPE = type(_new(1, b"fuseline", None))
_DELETER = ctypes.PYFUNCTYPE(None, c_void_p)  # keeps Python's lock: some producers' deleters count on it


def _lasting(name):
    """A name that outlives every capsule: a capsule keeps the pointer, not the text."""
    _increment = _api.Py_IncRef
    _increment.restype, _increment.argtypes = None, (py_object,)
    _increment(name)
    return name


LEGACY = _lasting(b"dltensor")
VERSIONED = _lasting(b"dltensor_versioned")
_USED = {LEGACY: _lasting(b"used_dltensor"), VERSIONED: _lasting(b"used_dltensor_versioned")}
_STRUCTURES = {LEGACY: DLManagedTensor, VERSIONED: DLManagedTensorVersioned}


def is_capsule(value):
    """True for a Python capsule, of whatever name."""
    return type(value) is _CAPSULE_TYPE


def make_capsule(pointer, name, destructor):
    """A capsule around an exported structure. `name` is LEGACY or VERSIONED; `destructor` a C function's address."""
    return _new(pointer, name, destructor)


def exchange_table(kind):
    """The address of a type's DLPack exchange table, or None."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or not is_capsule(capsule) or not _is_valid(capsule, b"dlpack_exchange_api"):
        return None
    return _get_pointer(capsule, b"dlpack_exchange_api")


class Import:
    """A tensor taken over from a capsule: the owner of its structure until `release`.

    Attributes:
        name: of the argument, for messages.
        tensor: its DLTensor, valid until `release`.
        writable: False if the producer said read-only, or could not say (a legacy capsule).
    """

    def __init__(self, name, capsule):
        found = _get_name(capsule) if is_capsule(capsule) else None
        if found not in _STRUCTURES:
            raise _not_a_tensor(name, capsule, found)
        address = _get_pointer(capsule, found)
        if _set_name(capsule, _USED[found]) != 0:
            raise _errors.ArgumentError(f"{name}: the DLPack capsule could not be marked as used")
        structure = _STRUCTURES[found].from_address(address)
        self.name = name
        self._address = address
        self._deleter = structure.deleter
        if found == VERSIONED and structure.version.major != MAJOR_VERSION:
            text = f"{structure.version.major}.{structure.version.minor}"
            self.release()
            raise _errors.VersionError(f"{name}: DLPack version is {text}; accepted: {MAJOR_VERSION}.x")
        self.tensor = structure.dl_tensor
        self.writable = found == VERSIONED and not structure.flags & FLAG_READ_ONLY

    def release(self):
        """Calls the deleter. Further calls do nothing."""
        deleter, self._deleter, self.tensor = self._deleter, None, None
        if deleter:
            _DELETER(deleter)(self._address)


def _not_a_tensor(name, value, capsule_name):
    accepted = "accepted: an object with __dlpack__, or a DLPack capsule that nobody has used"
    if not is_capsule(value):
        return _errors.ObjectError(f"{name}: __dlpack__ returned {type(value).__name__}, no capsule; {accepted}")
    if capsule_name in _USED.values():
        return _errors.ArgumentError(f"{name}: the DLPack capsule is used already, which can be done once; {accepted}")
    text = "without a name" if capsule_name is None else "named " + repr(capsule_name.decode("utf-8", "replace"))
    return _errors.ArgumentError(f"{name}: is a capsule {text}; {accepted}")


def _call_with_fewer(function, attempts):
    """Calls with the first keywords that the function's signature takes."""
    for keywords in attempts[:-1]:
        try:
            return function(**keywords)
        except TypeError as error:
            # One frame is this one; a second one belongs to the function itself.
            if error.__traceback__.tb_next is not None and "unexpected keyword argument" not in str(error):
                raise
    return function(**attempts[-1])


def export(producer, device_type, stream):
    """Asks a producer for a capsule, with fewer keywords where it knows fewer.

    Args:
        device_type: the producer's; CPU producers get no stream.
        stream: as the protocol wants it (see `stream_number`).
    """
    version = {"max_version": MAX_VERSION}
    if device_type in GPU_DEVICE_TYPES:
        order = {"stream": stream}
        attempts = ({**order, **version}, order, {})
    else:
        attempts = (version, {})
    return _call_with_fewer(producer.__dlpack__, attempts)


def stream_pointer(device_type, number):
    """The stream that a consumer's ``stream`` argument of ``__dlpack__`` names, as a pointer to launch on.

    As the array API standard has it: CUDA's default stream is 1 and each thread's own 2, which are their pointers too;
    ROCm's is 0, where 1 and 2 are not allowed. Of both, -1 asks for no order, and what is greater than 2 is a pointer.

    Raises: DeviceError for None and -1 too, since what is launched has to be ordered before the consumer's work.
    """
    accepted = "1, 2" if device_type != ROCM else "0"
    if isinstance(number, int) and not isinstance(number, bool):
        if number > 2:
            return number
        if str(number) in accepted.split(", "):
            return number or None
    raise _errors.DeviceError(f"stream: is {number!r}; accepted: {accepted}, or a stream's pointer")


def stream_number(device_type, pointer):
    """A stream as `__dlpack__` takes it: CUDA's default stream is 1, ROCm's 0, others are their pointer."""
    if pointer:
        return pointer
    return 0 if device_type == ROCM else 1
