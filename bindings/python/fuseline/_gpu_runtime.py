"""Tells the C library which copy of AMD's runtime a framework uses.

A process may hold several: PyTorch's wheels bring one, and so may the system. What one allocated or queued means
nothing to another, so work on a framework's arrays has to be launched by its own copy. Nothing is opened here: a copy
is found through a library of the framework's that is loaded, as that one finds it.
"""

import ctypes
import os
from ctypes import c_char_p, c_int, c_void_p

from ._library import functions, last_error

_VARIABLE = "FUSELINE_GPU_RUNTIME"
_ANY_FUNCTION = "hipInit"

_told = set()


class _SymbolInfo(ctypes.Structure):
    """Dl_info of <dlfcn.h>."""

    _fields_ = (("file", c_char_p), ("base", c_void_p), ("symbol", c_char_p), ("address", c_void_p))


def _copy_of(library):
    """The file of the copy that a loaded library uses; None where that cannot be told."""
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        address = ctypes.cast(getattr(loaded, _ANY_FUNCTION), c_void_p)
        find = ctypes.CDLL(None).dladdr
    except (OSError, AttributeError):
        return None
    find.restype, find.argtypes = c_int, (c_void_p, ctypes.POINTER(_SymbolInfo))
    info = _SymbolInfo()
    return info.file if find(address, info) and info.file else None


def tell(framework, libraries):
    """Has the C library use a framework's copy.

    Args:
        framework: its name, for messages.
        libraries: files of the framework's own that may be loaded and linked to the runtime.

    Returns: None; or why the framework's arrays cannot be used on a GPU, which is that another copy is in use already.
    """
    path = next(filter(None, map(_copy_of, libraries)), None)
    if path is None or os.environ.get(_VARIABLE):  # who names a copy knows why
        return None
    name = functions["fuseline_set_gpu_runtime"]
    if name(path):
        return f"{framework}'s arrays belong to another copy of the ROCm runtime than is in use: {last_error()}"
    _told.add(path)
    if len(_told) > 1:
        name(None)  # two frameworks, two copies: the C library refuses, as long as none is in use
    return None
