"""Finds and loads the C library, and declares every function of it."""

import ctypes
import os
import sys
from ctypes import c_char_p, c_int, c_size_t, c_ssize_t, c_uint64, c_void_p, py_object

from . import _errors
from ._dlpack import DLTensor
from ._kernels import KERNELS

ENVIRONMENT_VARIABLE = "FUSELINE_LIBRARY"
SONAME = "libfuseline.0.dylib" if sys.platform == "darwin" else "libfuseline.so.0"

_TENSOR = ctypes.POINTER(DLTensor)


def _prototypes():
    """name -> (restype, argtypes) of every exported function. Pointers that Python only passes on are void pointers."""
    table = {
        "fuseline_version": (c_char_p, ()),
        "fuseline_info": (c_size_t, (c_char_p, c_size_t)),
        "fuseline_set_gpu_runtime": (c_int, (c_char_p,)),
        "fuseline_last_error": (c_char_p, ()),
        "fuseline_status_string": (c_char_p, (c_int,)),
        "fuseline_tensor_create": (c_int, (_TENSOR, ctypes.POINTER(c_void_p))),
        "fuseline_tensor_copy": (c_int, (c_void_p, _TENSOR)),
        "fuseline_tensor_view": (_TENSOR, (c_void_p,)),
        "fuseline_tensor_export": (c_int, (c_void_p, ctypes.POINTER(c_void_p))),
        "fuseline_tensor_export_versioned": (c_int, (c_void_p, c_uint64, ctypes.POINTER(c_void_p))),
        "fuseline_tensor_release": (None, (c_void_p,)),
        "fuseline_capsule_destructor": (None, (c_void_p,)),
        "fuseline_set_capsule_functions": (None, (c_void_p, c_void_p)),
        "fuseline_python_set_functions": (c_int, (c_void_p, c_size_t)),
        "fuseline_python_set_torch": (c_int, (c_void_p, c_size_t)),
        "fuseline_python_ready": (c_int, (c_void_p, c_size_t)),
        # Only Python itself calls these, as built-in functions.
        "fuseline_python_call": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
        "fuseline_python_operator": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
        "fuseline_python_autograd": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
        "fuseline_python_forward": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
        "fuseline_python_backward": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
        "fuseline_python_node_apply": (c_void_p, (c_void_p, c_void_p, c_ssize_t)),
    }
    for kernel in KERNELS.values():
        inputs, outputs = len(kernel.inputs), len(kernel.outputs)
        scalars = tuple(scalar.c_type for scalar in kernel.scalars)
        for suffix, tensor in (("", _TENSOR), ("_managed", c_void_p), ("_versioned", c_void_p)):
            arguments = (tensor,) * inputs + scalars + (c_void_p,) + (tensor,) * outputs
            table[f"fuseline_{kernel.name}{suffix}"] = (c_int, arguments)
        arguments = (c_void_p,) + (py_object,) * inputs + scalars + (py_object,) * outputs
        table[f"fuseline_{kernel.name}_objects"] = (c_int, arguments)
    return table


PROTOTYPES = _prototypes()


def _needs_python(name):
    """True for functions that call into Python, and so must keep its lock."""
    return name.endswith("_objects") or name == "fuseline_capsule_destructor"


def _candidates():
    """Yields (where it comes from, file to load), best first."""
    override = os.environ.get(ENVIRONMENT_VARIABLE)
    if override:
        yield f"environment variable {ENVIRONMENT_VARIABLE}", override
        return  # whoever names a file wants that one or an error
    yield "beside the package", os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    try:
        from . import _config
    except ImportError:
        pass
    else:
        yield "installed", os.path.join(_config.LIBRARY_DIRECTORY, _config.LIBRARY_NAME)
    yield "system search", SONAME


def _declare(library, python_library):
    """Gives every function its types. Returns name -> function; raises OSError naming what the library lacks."""
    functions = {}
    for name, (restype, argtypes) in PROTOTYPES.items():
        try:
            function = getattr(python_library if _needs_python(name) else library, name)
        except AttributeError:
            raise OSError(f"lacks the function {name}: another version of the library") from None
        function.restype = restype
        function.argtypes = argtypes
        functions[name] = function
    return functions


def _load():
    if getattr(ctypes, "PyDLL", None) is None:
        raise ImportError(
            "fuseline needs ctypes.PyDLL, to call C with Python's lock held, and this Python "
            f"({sys.implementation.name} {sys.version.split()[0]}) has none; CPython does"
        )
    failures = []
    for origin, path in _candidates():
        try:
            if os.path.isabs(path) and not os.path.exists(path):
                raise OSError("no such file")
            functions = _declare(ctypes.CDLL(path), ctypes.PyDLL(path))
        except OSError as error:
            failures.append(f"  {path} ({origin}): {error}")
        else:
            return path, functions
    raise ImportError("fuseline could not load its C library. Tried:\n" + "\n".join(failures))


path, functions = _load()

for _kernel in KERNELS.values():
    _kernel.borrow = functions[f"fuseline_{_kernel.name}"]
    _kernel.objects = functions[f"fuseline_{_kernel.name}_objects"]

functions["fuseline_set_capsule_functions"](
    ctypes.cast(ctypes.pythonapi.PyCapsule_IsValid, c_void_p),
    ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, c_void_p),
)

_last_error = functions["fuseline_last_error"]


def last_error():
    """The message of this thread's last failed call."""
    return _last_error().decode("utf-8", "replace")


def check(status):
    """Raises the exception of a status other than 0."""
    if status:
        raise _errors.from_status(status, last_error())
