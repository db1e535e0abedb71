"""Exceptions: one class for each status of the C library, each also one of Python's own."""


class Error(Exception):
    """Base of all errors that fuseline raises about its arguments, devices and memory."""


class ArgumentError(Error, ValueError):
    """A malformed tensor, or a scalar out of range."""


class ShapeError(Error, ValueError):
    """Shapes differ, or a shape is impossible."""


class DTypeError(Error, TypeError):
    """Element type not supported, or types differ."""


class LayoutError(Error, ValueError):
    """Strides that no kernel reads or writes without a copy, where no copy is made."""


class OverlapError(Error, ValueError):
    """An output shares some, but not all, of its memory with another operand; or its elements share memory."""


class ReadOnlyError(Error, ValueError):
    """An output is read-only."""


class DeviceError(Error, NotImplementedError, BufferError):
    """Device type not supported, or operands on different devices."""


class ArchitectureError(DeviceError):
    """The library holds no code for this GPU."""


class VersionError(Error, BufferError):
    """A DLPack structure of another major version."""


class GpuRuntimeError(Error, RuntimeError):
    """The GPU runtime is missing, ambiguous, or reported an error of its own."""


class HostMemoryError(Error, MemoryError):
    """Host memory ran out."""


class ExchangeError(Error, BufferError):
    """The framework could not describe its tensor."""


class ObjectError(Error, TypeError):
    """An argument is no tensor that fuseline knows how to read, or a kind that it refuses."""


# The values of fuseline_status, in order (include/fuseline/status.h). They are part of the ABI.
BY_STATUS = (
    None,
    ArgumentError,
    ShapeError,
    DTypeError,
    LayoutError,
    OverlapError,
    ReadOnlyError,
    DeviceError,
    ArchitectureError,
    VersionError,
    GpuRuntimeError,
    HostMemoryError,
    ExchangeError,
)
STATUS_LAYOUT = BY_STATUS.index(LayoutError)


def from_status(status, message):
    """The exception for a status other than 0, to be raised by the caller."""
    known = 0 < status < len(BY_STATUS)
    return (BY_STATUS[status] if known else Error)(message)
