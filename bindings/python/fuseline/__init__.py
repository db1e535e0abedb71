"""fuseline: fused, memory-bound tensor operators for PyTorch, NumPy, JAX, CuPy and everything that speaks DLPack.

Importing this loads fuseline's C library and nothing else: no framework, and no GPU is touched.
"""

import json as _json

from . import _call, _dynamo, _library
from ._errors import (
    ArchitectureError,
    ArgumentError,
    DeviceError,
    DTypeError,
    Error,
    ExchangeError,
    GpuRuntimeError,
    HostMemoryError,
    LayoutError,
    ObjectError,
    OverlapError,
    ReadOnlyError,
    ShapeError,
    VersionError,
)
from ._tensor import Tensor
from .operators.column_sum import column_sum
from .operators.geglu import geglu, geglu_backward
from .operators.gelu import gelu, gelu_backward
from .operators.reglu import reglu, reglu_backward
from .operators.relu2 import relu2, relu2_backward
from .operators.swiglu import swiglu, swiglu_backward
from .operators.swish import swish, swish_backward

_dynamo.when_loaded(_call.tell_compiler)

__version__ = _library.functions["fuseline_version"]().decode()


def info():
    """What the loaded library is and what it finds on this machine, as a dict.

    Looks for the GPU's runtime as the first call on a GPU would.

    Returns:
        ``version``; ``operators``: list of names; ``cpu``: ``variant`` and ``threads``; ``gpu``: ``targets`` (list of
        embedded code), ``runtime`` (path, or None), ``error`` (why there is none, or None), ``devices`` (list); and
        ``library``, the file that was loaded.
    """
    known = _json.loads(_info_text())
    known["library"] = _library.path
    return known


def _info_text():
    """The C library's own JSON text."""
    import ctypes

    call = _library.functions["fuseline_info"]
    size = call(None, 0) + 1
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = call(buffer, size)
        if length < size:
            return buffer.value.decode("utf-8", "replace")
        size = length + 1


__all__ = [
    "ArchitectureError",
    "ArgumentError",
    "DTypeError",
    "DeviceError",
    "Error",
    "ExchangeError",
    "GpuRuntimeError",
    "HostMemoryError",
    "LayoutError",
    "ObjectError",
    "OverlapError",
    "ReadOnlyError",
    "ShapeError",
    "Tensor",
    "VersionError",
    "column_sum",
    "geglu",
    "geglu_backward",
    "gelu",
    "gelu_backward",
    "info",
    "reglu",
    "reglu_backward",
    "relu2",
    "relu2_backward",
    "swiglu",
    "swiglu_backward",
    "swish",
    "swish_backward",
]
