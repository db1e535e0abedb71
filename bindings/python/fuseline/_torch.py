"""PyTorch tensors, with automatic differentiation, on PyTorch's current stream. PyTorch 1.13 and newer.

Two ways lead to C. Where ``torch.Tensor`` carries the DLPack exchange table, C reads the tensors and the current
stream through it, under Python's lock: the quick way for small tensors and for GPUs. Else, and for large tensors on
the CPU, where the lock had better be released, each tensor is described by its pointer, shape and strides.
"""

import ctypes
import os
import sys
import warnings

from . import _builtin, _dlpack, _dtensor, _errors, _gpu_runtime
from ._adapter import Adapter, type_name, unsupported_dtype, wrong_dtype, wrong_object
from ._differentiation import as_tuple, call_on_batch, make_functions
from ._kernels import COLUMNS, KERNELS, SAME, UNPACKED
from ._tensor import DTYPES

# From this many elements on a call on the CPU releases Python's lock.
_LARGE = 1 << 16

# What the C functions for Python objects take for an absent tensor.
_NULL = ctypes.py_object()


class _Wrapped(Exception):
    """A tensor is one of functorch's wrappers, which have no memory of their own: autograd.Function must unwrap it."""


_MOST_LEVELS = 64  # that the older vmap nests


class _Batched(_Wrapped):
    """A tensor is a wrapper of the older vmap, under which autograd runs backwards for several gradients at once."""


class TorchAdapter(Adapter):
    kind = "torch.Tensor"
    can_assign = True

    def __init__(self, torch):
        self._torch = torch
        self._empty_like = torch.empty_like
        self._is_grad_enabled = torch.is_grad_enabled
        self._forward_ad = torch.autograd.forward_ad
        functorch = getattr(torch._C, "_functorch", None)
        self._is_wrapped = getattr(functorch, "is_functorch_wrapped_tensor", _never)
        self._is_batched = getattr(functorch, "is_legacy_batchedtensor", _never)
        self._device_types = {"cpu": _dlpack.CPU, "cuda": _dlpack.ROCM if torch.version.hip else _dlpack.CUDA}
        self._dtypes = _dtypes(torch)
        self._results = [getattr(torch, name) for name in DTYPES]
        self._readable_types = {torch.Tensor, torch.nn.Parameter}
        # Subclasses whose elements need not lie in their own memory: they are shown operators instead.
        self._dispatching_types = set()
        self._count_of_modes = getattr(torch._C, "_len_torch_dispatch_stack", int)
        self._tracing_state = getattr(torch._C, "_get_tracing_state", _none)
        self._registered = None
        self._apply = make_functions(torch, self)
        # Why tensors on a GPU are refused; None if they are not.
        self._gpu_problem = _gpu_runtime.tell("PyTorch", _linked_to_hip(torch)) if torch.version.hip else None
        # The address of the exchange table; None where there is none, or where it does not do what it should.
        self.exchange = _working_exchange(torch, self) if self._gpu_problem is None else None
        self.serve_by_c(True)

    def serve_by_c(self, is_wanted):
        """Whether C serves ordinary calls by itself, before they come here; it does where it can."""
        transforms = getattr(self._torch._C, "_are_functorch_transforms_active", None) or _never
        exchange = self.exchange if is_wanted else None
        _builtin.serve_torch(self._torch, exchange, _version_counter(self._torch), transforms, _Wrapped)

    # --- differentiation ---

    @property
    def registered(self):
        """The kernels as operators that PyTorch knows by name; registered when they are first needed."""
        if self._registered is None:
            from ._registered import RegisteredOperators

            self._registered = RegisteredOperators(self._torch, self)
        return self._registered

    def call(self, kernel, inputs, scalars, out=None, dtype=None, wanted=None):
        if self._is_watched(kernel, inputs):
            if dtype is not None:
                dtype = self.as_dtype(dtype)
            if _dtensor.is_distributed(inputs[kernel.lead]):
                return _dtensor.call(self, kernel, inputs, scalars, out, dtype, wanted)
            return self.registered.call(kernel, inputs, scalars, out, dtype, wanted)
        if self._is_differentiated(kernel, inputs, out):
            return self._apply(kernel, scalars, dtype, wanted, inputs)
        try:
            return self.plain(kernel, inputs, scalars, out, dtype, wanted)
        except _Wrapped:
            return self._apply(kernel, scalars, dtype, wanted, inputs)

    def _is_watched(self, kernel, inputs):
        """True if something looks at the operators that are called. Checks the inputs' types on the way."""
        watched = self._count_of_modes() > 0 or self._tracing_state() is not None
        for operand, tensor in zip(kernel.inputs, inputs):
            if type(tensor) not in self._readable_types and not (tensor is None and operand.is_optional):
                self._check_type(operand.name, tensor)
                watched |= type(tensor) in self._dispatching_types
            watched |= tensor is not None and tensor.is_meta
        return watched

    def _is_differentiated(self, kernel, inputs, out):
        """True if automatic differentiation takes part."""
        if self._forward_ad._current_level >= 0:
            differentiated = True
        elif self._is_grad_enabled():
            differentiated = any([tensor is not None and tensor.requires_grad for tensor in inputs])
            if out is not None:
                differentiated |= any([getattr(tensor, "requires_grad", False) for tensor in as_tuple(out)])
        else:
            return False
        if differentiated and out is not None:
            raise RuntimeError(
                "out: functions with out=... do not support automatic differentiation, but one of the arguments "
                "requires grad; accepted: tensors that do not, or the call inside torch.no_grad()"
            )
        return differentiated

    def plain(self, kernel, inputs, scalars, out=None, dtype=None, wanted=None):
        """A kernel without differentiation, on inputs whose types have been checked."""
        if out is not None:
            try:
                super().call(kernel, inputs, scalars, out, dtype, wanted)
            except _Wrapped:
                raise _errors.ObjectError(
                    "out: is not supported inside torch.func's transforms; accepted: None"
                ) from None
            for tensor in as_tuple(out):
                _count_change(self._torch, tensor)
            return out
        try:
            return super().call(kernel, inputs, scalars, None, dtype, wanted)
        except _Batched:
            return self._call_on_batched(kernel, inputs, scalars, dtype, wanted)

    def _call_on_batched(self, kernel, inputs, scalars, dtype, wanted):
        """A call on wrappers of the older vmap's innermost level: on what they hold, outside of that level."""
        torch = self._torch
        nesting = torch._C._vmapmode_increment_nesting() - 1
        torch._C._vmapmode_decrement_nesting()
        level = nesting or self._level_of(inputs)
        if nesting:
            torch._C._vmapmode_decrement_nesting()
        try:
            dims = [None if tensor is None or not self._is_batched(tensor) else 0 for tensor in inputs]
            # What is a wrapper of an outer level only gets an extent of 1 here.
            held = [
                tensor if dim is None else torch._remove_batch_dim(tensor, level, 1, 0)
                for dim, tensor in zip(dims, inputs)
            ]
            (count,) = {tensor.shape[0] for dim, tensor in zip(dims, held) if dim == 0} - {1} or {1}
            held = [
                tensor if dim is None else tensor.expand(count, *tensor.shape[1:]) for dim, tensor in zip(dims, held)
            ]
            made = call_on_batch(torch, self.call, kernel, count, dims, held, scalars, dtype, wanted)
            made = tuple(torch._add_batch_dim(result, 0, level) for result in made)
        finally:
            if nesting:
                torch._C._vmapmode_increment_nesting()
        return made if len(made) > 1 else made[0]

    def _level_of(self, inputs):
        """The innermost level of such wrappers in a thread that has none of its own, as autograd's for a GPU.

        Nothing tells it. From what is no wrapper of a level, its removal makes an extent as large as is asked for.
        """
        remove = self._torch._remove_batch_dim
        batched = [tensor for tensor in inputs if tensor is not None and self._is_batched(tensor)]
        for level in range(_MOST_LEVELS, 1, -1):
            if any(remove(tensor, level, 1, 0).shape == remove(tensor, level, 2, 0).shape for tensor in batched):
                return level
        return 1

    # --- calls ---

    def launch(self, kernel, inputs, scalars, outputs, names):
        for tensor in inputs:
            if tensor is not None and tensor.is_neg():
                # a view that is negated when read, which the memory does not show
                inputs = [None if tensor is None else tensor.resolve_neg() for tensor in inputs]
                break
        lead = inputs[kernel.lead]
        if self.exchange is None or (lead.numel() >= _LARGE and not lead.is_cuda):
            return super().launch(kernel, inputs, scalars, outputs, names)
        try:
            return self._call_on_objects(kernel, inputs, scalars, outputs)
        except (RuntimeError, BufferError) as error:
            for operand, tensor in zip((*kernel.inputs, *kernel.outputs), (*inputs, *outputs)):
                if tensor is not None:
                    self.check_kind(names.get(operand.name, operand.name), tensor)
            raise _errors.ExchangeError(f"PyTorch could not describe the tensor: {_first_line(error)}") from error

    def _call_on_objects(self, kernel, inputs, scalars, outputs):
        """Calls the C function that reads tensors through the exchange table. Returns its status."""
        if not kernel.is_plain:
            inputs = [_NULL if tensor is None else tensor for tensor in inputs]
            outputs = [_NULL if tensor is None else tensor for tensor in outputs]
        return kernel.objects(self.exchange, *inputs, *scalars, *outputs)

    def describe(self, name, tensor):
        self.check_kind(name, tensor)
        dtype = self._dtypes.get(tensor.dtype)
        if dtype is None:
            raise unsupported_dtype(name, tensor.dtype)
        device = self._device_types[tensor.device.type], tensor.device.index or 0
        return _dlpack.describe(tensor.data_ptr(), tensor.shape, tensor.stride(), dtype, device)

    def stream(self, tensor):
        if not tensor.is_cuda:
            return None
        if self._gpu_problem is not None:
            raise _errors.GpuRuntimeError(self._gpu_problem)
        return self._torch.cuda.current_stream(tensor.device).cuda_stream

    def new_outputs(self, kernel, inputs, results, dtype):
        # As the base class has it, with one call less for most.
        return [
            self._empty_like(inputs[result.like], dtype=dtype)
            if result.form is SAME
            else self.empty(inputs[result.like], kernel.form(result, inputs), dtype)
            for result in results
        ]

    def empty(self, like, form, dtype):
        if form is COLUMNS:
            return self._torch.empty(like.shape[-1:], dtype=dtype or like.dtype, device=like.device)
        if form is UNPACKED and like.ndim:
            if like.is_contiguous():
                return like.new_empty((*like.shape[:-1], like.shape[-1] // 2), dtype=dtype)
            like = like.narrow(-1, 0, like.shape[-1] // 2)
        return self._empty_like(like, dtype=dtype)

    def arrange(self, tensor, order):
        with self._torch.no_grad():
            return tensor.permute(order).contiguous().permute(sorted(order, key=order.__getitem__))

    def strides(self, tensor):
        return tensor.stride()

    def as_dtype(self, dtype):
        found = getattr(self._torch, dtype, None) if isinstance(dtype, str) else dtype
        if found not in self._results:
            raise wrong_dtype(dtype)
        return found

    def assign(self, tensors, sources, message):
        with self._torch.no_grad():
            for tensor, source in zip(tensors, sources):
                tensor.copy_(source)

    # --- what is accepted ---

    def _check_type(self, name, tensor):
        kind = type(tensor)
        if kind in self._readable_types:
            return
        if not isinstance(tensor, self._torch.Tensor):
            raise wrong_object(name, tensor, self.kind)
        if kind.__torch_dispatch__ is not self._torch.Tensor.__torch_dispatch__:
            self._dispatching_types.add(kind)
        else:
            self._readable_types.add(kind)

    def check_kind(self, name, tensor):
        self._check_type(name, tensor)
        if type(tensor) in self._dispatching_types:
            raise _errors.ObjectError(
                f"{name}: is {type_name(tensor)}, a subclass with __torch_dispatch__, whose elements need not lie in "
                "its own memory; accepted: a plain torch.Tensor, such as DTensor's x.to_local()"
            )
        if self._is_wrapped(tensor):
            raise _Wrapped
        if self._is_batched(tensor):
            raise _Batched
        if tensor.is_nested:
            raise _errors.ObjectError(f"{name}: is a nested tensor; accepted: a tensor of one shape")
        if tensor.layout is not self._torch.strided:
            raise _errors.LayoutError(f"{name}: layout is {tensor.layout}; accepted: torch.strided, from x.to_dense()")
        if tensor.is_quantized:
            raise unsupported_dtype(name, f"{tensor.dtype}, quantized")
        if tensor.device.type not in self._device_types:
            raise _errors.DeviceError(
                f"{name}: is on device {tensor.device}; accepted: {', '.join(self._device_types)}"
            )

    def check_output(self, name, tensor):
        if tensor.is_neg():
            raise _errors.LayoutError(f"{name}: is a view that negates its memory; accepted: a plain tensor")
        if tensor.is_inference() and not self._torch.is_inference_mode_enabled():
            raise _errors.ReadOnlyError(
                f"{name}: is an inference tensor, outside of inference mode; accepted: a normal tensor"
            )


def _never(*arguments):
    return False


def _none():
    return None


def _linked_to_hip(torch):
    """PyTorch's own libraries that use AMD's runtime."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    return [os.path.join(folder, name) for name in ("libc10_hip.so", "libtorch_hip.so")]


def _first_line(error):
    """What a foreign error says, without the trace that may follow."""
    return str(error).strip().partition("\n")[0]


def _dtypes(torch):
    """torch.dtype -> (DLPack code, bits), also of types that the C library refuses, since it says why."""
    table = {
        torch.float16: (_dlpack.FLOAT, 16),
        torch.bfloat16: (_dlpack.BFLOAT, 16),
        torch.float32: (_dlpack.FLOAT, 32),
        torch.float64: (_dlpack.FLOAT, 64),
        torch.bool: (_dlpack.BOOL, 8),
        torch.uint8: (_dlpack.UINT, 8),
        torch.complex64: (_dlpack.COMPLEX, 64),
        torch.complex128: (_dlpack.COMPLEX, 128),
    }
    table.update({getattr(torch, f"int{bits}"): (_dlpack.INT, bits) for bits in (8, 16, 32, 64)})
    return table


def _count_change(torch, tensor):
    """Tells autograd that the tensor's memory was written, so that what it saved of it counts as stale."""
    if tensor.is_inference():
        return
    increment = getattr(torch.autograd.graph, "increment_version", None)
    if increment is not None:
        increment(tensor)
    else:
        with torch.no_grad():
            tensor.unsqueeze(0)[:0].zero_()


def _version_counter(torch):
    """A function of a tuple of tensors that does what _count_change does for one; PyTorch's own where that takes it."""
    try:
        increment = torch._C._increment_version
        increment(())  # older releases take one tensor, and refuse this
        return increment
    except (AttributeError, TypeError, RuntimeError):
        return lambda tensors: [_count_change(torch, tensor) for tensor in tensors]


def _working_exchange(torch, adapter):
    """The address of PyTorch's exchange table if it reads tensors rightly, else None; warns if it misreads them."""
    table = _dlpack.exchange_table(torch.Tensor)
    if table is None:
        return None
    try:
        problem = _exchange_problem(torch, adapter, table)
    except Exception as error:
        problem = f"it raised {type(error).__name__}: {_first_line(error)}"
    if problem is None:
        return ctypes.c_void_p(table)
    warnings.warn(
        f"fuseline does not use the DLPack exchange table of PyTorch {torch.__version__}, and so is slower on small "
        f"tensors: {problem}",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _exchange_problem(torch, adapter, table):
    """What is wrong with an exchange table, or None. Compares what it reads with what torch says of the tensor."""
    api = _dlpack.DLPackExchangeAPI.from_address(table)
    if api.version.major != _dlpack.MAJOR_VERSION:
        return f"its version is {api.version.major}.{api.version.minor}"
    if not api.dltensor_from_py_object_no_sync or not api.current_work_stream:
        return "it lacks functions"
    read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_dlpack.DLTensor))
    sample = torch.arange(60, dtype=torch.float32, device="cpu").reshape(5, 12)[1:4, 2:10:2].t()
    seen = _dlpack.DLTensor()
    if read(api.dltensor_from_py_object_no_sync)(sample, seen) != 0:
        return "it cannot read a tensor"
    expected = adapter.describe("sample", sample)
    if _facts(seen) != _facts(expected):
        return f"it reads {_facts(seen)} where the tensor has {_facts(expected)}"
    # The whole way once: the same kernel by both ways.
    kernel = next(
        kernel
        for kernel in KERNELS.values()
        if len(kernel.inputs) == len(kernel.outputs) == 1 and kernel.outputs[0].form is SAME
    )
    scalars = (1.0,) * len(kernel.scalars)
    x = torch.linspace(-3, 3, 16, device="cpu")[3:]
    results = torch.empty_like(x), torch.empty_like(x)
    if kernel.objects(table, x, *scalars, results[0]) != 0:
        return "a call through it failed"
    described = [adapter.describe("x", x), adapter.describe("y", results[1])]
    kernel.borrow(described[0], *scalars, None, described[1])
    if not torch.equal(*results):
        return "a call through it gives other values"
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        stream = ctypes.c_void_p()
        current = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
        index = torch.cuda.current_device()
        device_type = adapter._device_types["cuda"]
        if current(api.current_work_stream)(device_type, index, stream) != 0:
            return "it cannot tell the current stream"
        if (stream.value or 0) != torch.cuda.current_stream(index).cuda_stream:
            return "it tells another stream than PyTorch"
    return None


def _facts(tensor):
    ndim = tensor.ndim
    return (
        (tensor.data or 0) + tensor.byte_offset,
        (tensor.device.device_type, tensor.device.device_id),
        (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        tensor.shape[:ndim],
        tensor.strides[:ndim],
    )


def make():
    """The adapter for torch.Tensor, once PyTorch is loaded."""
    return TorchAdapter(sys.modules["torch"])
