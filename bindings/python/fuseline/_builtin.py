"""Functions of the C library that Python holds for built-in ones: the quick way for PyTorch's ordinary tensors.

They take every call, and hand to Python code what they do not serve themselves. Where this Python lacks what they need,
that code is called at once.
"""

import ctypes
from ctypes import c_char_p, c_int, c_uint, c_void_p, py_object

from . import _dlpack, _library
from ._kernels import COLUMNS, UNPACKED

_FUNCTIONS = (
    "Py_DecRef Py_IncRef PyObject_Type PyObject_GetAttr PyObject_SetAttr PyObject_VectorcallDict PyFloat_AsDouble "
    "PyErr_Clear PyErr_ExceptionMatches PyTuple_New PyTuple_SetItem PyTuple_GetItem PyTuple_Size PyLong_FromLongLong "
    "PyCapsule_GetPointer PyEval_SaveThread PyEval_RestoreThread"
).split()

_METH_FASTCALL = 0x80

# The attribute of a graph's node that holds its kernel.
_NODE_KERNEL = "_fuseline_kernel"
_OUTPUTS = 2


class _Functions(ctypes.Structure):
    """struct fuseline_python_functions."""

    _fields_ = [(name, c_void_p) for name in _FUNCTIONS]


class _Torch(ctypes.Structure):
    """struct fuseline_python_torch."""

    _fields_ = [
        (name, c_void_p)
        for name in (
            "exchange tensor parameter float_type bool_type tuple_type none true_object empty_like new_empty is_neg "
            "is_inference increment_version is_grad_enabled is_inference_mode_enabled are_transforms_active "
            "forward_ad current_level no_level count_of_modes zero "
            "tracing_state wrapped requires_grad to_save saved_tensors scalars node_kernel"
        ).split()
    ]


class _Kernel(ctypes.Structure):
    """struct fuseline_python_kernel."""


_Kernel._fields_ = [
    ("name", c_char_p),
    *((name, c_int) for name in "inputs scalars outputs lead second summed".split()),
    ("optional", c_uint),
    ("like", c_int * _OUTPUTS),
    ("halved", c_int * _OUTPUTS),
    ("is_single", c_int),
    *((name, c_void_p) for name in "fallback apply".split()),
    *((f"{role}_fallback", c_void_p) for role in "forward backward operator autograd".split()),
    ("gradient", ctypes.POINTER(_Kernel)),
    ("run", c_void_p),
]


class _MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


# What C points to lives as long as the process.
_kept = []

# No exchange table: one of version 0, by which C reads nothing.
_NO_EXCHANGE = _dlpack.DLPackExchangeAPI()
_kernels = {}


def _address(value):
    _kept.append(value)
    return id(value)


def _takes_functions():
    """Hands Python's functions to C. False if this Python has not all of them, or the library does not want them."""
    try:
        found = [ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in _FUNCTIONS]
        ctypes.pythonapi.PyCFunction_NewEx  # noqa: B018
        ctypes.pythonapi.PyCapsule_New  # noqa: B018
    except AttributeError:
        return False
    functions = _Functions(*found)
    status = _library.functions["fuseline_python_set_functions"](ctypes.byref(functions), ctypes.sizeof(functions))
    return status == 0


# True if C serves calls by itself.
is_supported = _takes_functions()


def _structure(kernel):
    """The kernel as C knows it; one for each."""
    if kernel.name in _kernels:
        return _kernels[kernel.name]
    made = _Kernel(
        kernel.name.encode(),
        len(kernel.inputs),
        len(kernel.scalars),
        len(kernel.outputs),
        kernel.lead,
        -1 if kernel.second is None else kernel.second,
        kernel.sums[0].like if kernel.sums else -1,
        sum(operand.is_optional << k for k, operand in enumerate(kernel.inputs)),
        (c_int * _OUTPUTS)(*(output.like for output in kernel.outputs)),
        (c_int * _OUTPUTS)(*(output.form is UNPACKED for output in kernel.outputs)),
        len(kernel.outputs) + len(kernel.sums) == 1,
    )
    if kernel.gradient is not None:
        made.gradient = ctypes.pointer(_structure(kernel.gradient))
    _library.check(_library.functions["fuseline_python_ready"](ctypes.byref(made), ctypes.sizeof(made)))
    _kernels[kernel.name] = made
    return made


def _definition(name, role):
    """The address of a PyMethodDef of the C function `fuseline_python_<role>`."""
    made = _MethodDef(name.encode(), ctypes.cast(_library.functions[f"fuseline_python_{role}"], c_void_p).value)
    made.flags = _METH_FASTCALL
    _kept.append(made)
    return ctypes.addressof(made)


def _capsule(structure):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = py_object, (c_void_p, c_char_p, c_void_p)
    return new(ctypes.addressof(structure), None, None)


def _make(name, role, structure):
    """A built-in function: the C function `fuseline_python_<role>` on a kernel."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = py_object, (c_void_p, py_object, c_void_p)
    return new(_definition(name, role), _capsule(structure), None)


def call_function(kernel, fallback):
    """A function of a kernel's inputs, scalars, ``out`` and ``dtype``.

    Args:
        fallback: one with the same arguments, for the calls that C does not serve.
    """
    if not is_supported or len(kernel.outputs) > _OUTPUTS or any(output.form is COLUMNS for output in kernel.outputs):
        return fallback
    structure = _structure(kernel)
    structure.fallback = _address(fallback)
    return _make(kernel.function, "call", structure)


def implementation(kernel, role, fallback):
    """An implementation of a kernel's registered operator: "operator" on a device, "autograd" before that.

    Args:
        fallback: the same in Python, for the calls that C does not serve.
    """
    if not is_supported or kernel.name not in _kernels:
        return fallback
    setattr(_kernels[kernel.name], f"{role}_fallback", _address(fallback))
    return _make(kernel.name, role, _kernels[kernel.name])


def differentiable(kernel, forward, backward):
    """The forward and backward of a kernel's autograd.Function, in C where that is supported.

    Args:
        forward, backward: the same in Python, for the calls that C does not serve.
    """
    if not is_supported or kernel.gradient is None:
        return forward, backward
    structure = _structure(kernel)
    structure.forward_fallback, structure.backward_fallback = _address(forward), _address(backward)
    return _make("forward", "forward", structure), _make("backward", "backward", structure)


def serve_function(kernel, apply, node):
    """Has C apply a kernel's autograd.Function, and run its node of the graph.

    Args:
        apply: the Function's.
        node: the type of the Function's nodes, whose ``apply`` the engine calls; None if it is not known.
    """
    if not is_supported or kernel.name not in _kernels:
        return
    _kernels[kernel.name].apply = _address(apply)
    if node is not None and kernel.gradient is not None:
        new = ctypes.pythonapi.PyDescr_NewMethod
        new.restype, new.argtypes = py_object, (py_object, c_void_p)
        setattr(node, _NODE_KERNEL, _capsule(_kernels[kernel.name]))
        node.apply = new(node, _definition("apply", "node_apply"))


def _none():
    return None


def serve_torch(torch, exchange, increment_version, are_transforms_active, wrapped):
    """From now on C serves PyTorch's tensors.

    Args:
        exchange: the address of the exchange table; None so that C does not, but for handing calls to Python code, for
            which it needs the other objects.
        increment_version: a function of a tuple of tensors that tells autograd that their memory was written.
        are_transforms_active: a function that tells whether any of torch.func's is.
        wrapped: the exception by which the Python form of a forward refuses their tensors.
    """
    function = _library.functions["fuseline_python_set_torch"]
    if not is_supported:
        return
    if exchange is None:
        exchange = ctypes.addressof(_NO_EXCHANGE)
    objects = (
        torch.Tensor,
        torch.nn.Parameter,
        float,
        bool,
        tuple,
        None,
        True,
        torch.empty_like,
        torch.Tensor.new_empty,
        torch.Tensor.is_neg,
        torch.Tensor.is_inference,
        increment_version,
        torch.is_grad_enabled,
        torch.is_inference_mode_enabled,
        are_transforms_active,
        torch.autograd.forward_ad,
        "_current_level",
        -1,
        getattr(torch._C, "_len_torch_dispatch_stack", int),
        0,
        getattr(torch._C, "_get_tracing_state", _none),
        wrapped,
        "requires_grad",
        "to_save",
        "saved_tensors",
        "scalars",
        _NODE_KERNEL,
    )
    table = _Torch(exchange, *map(_address, objects))
    _library.check(function(ctypes.byref(table), ctypes.sizeof(table)))
