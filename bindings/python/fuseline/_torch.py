"""PyTorch tensors, with automatic differentiation, on PyTorch's current stream. PyTorch 1.13 and newer.

Two ways lead to C. Where ``torch.Tensor`` carries the DLPack exchange table, C reads the tensors and the current
stream through it, under Python's lock: the quick way for small tensors and for GPUs. Else, and for large tensors on
the CPU, where the lock had better be released, each tensor is described by its pointer, shape and strides.
"""

import ctypes
import sys
import warnings

from . import _dlpack, _errors
from ._adapter import Adapter, type_name, unsupported_dtype, wrong_object
from ._kernels import KERNELS

# From this many elements on a call on the CPU releases Python's lock.
_LARGE = 1 << 16


class _Wrapped(Exception):
    """A tensor is one of functorch's wrappers, which have no memory of their own: autograd.Function must unwrap it."""


class TorchAdapter(Adapter):
    kind = "torch.Tensor"

    def __init__(self, torch):
        self._torch = torch
        self._empty_like = torch.empty_like
        self._is_grad_enabled = torch.is_grad_enabled
        self._forward_ad = torch.autograd.forward_ad
        self._is_wrapped = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", _never)
        self._device_types = {"cpu": _dlpack.CPU, "cuda": _dlpack.ROCM if torch.version.hip else _dlpack.CUDA}
        self._dtypes = _dtypes(torch)
        self._readable_types = {torch.Tensor, torch.nn.Parameter}
        self._apply = _make_function(torch, self)
        # The address of the exchange table; None where there is none, or where it does not do what it should.
        self.exchange = _working_exchange(torch, self)

    # --- differentiation ---

    def call(self, kernel, inputs, scalars, out):
        # Ordinary tensors without gradients take the short way. Whatever is not quite ordinary goes through the checks
        # below, which either serve it or say what is wrong.
        if out is None and self.exchange is not None and self._forward_ad._current_level < 0:
            for tensor in inputs:
                if type(tensor) not in self._readable_types or tensor.requires_grad:
                    break
            else:
                output = self._quick(kernel, inputs, scalars)
                if output is not None:
                    return output
        if self._is_differentiated(kernel, inputs, out):
            return self._apply(kernel, scalars, *inputs)
        try:
            return self.plain(kernel, inputs, scalars, out)
        except _Wrapped:
            return self._apply(kernel, scalars, *inputs)

    def _quick(self, kernel, inputs, scalars):
        """A kernel through the exchange table, into a new tensor; None if that is not the way for these tensors."""
        for tensor in inputs:
            if tensor.is_neg():
                return None
        if len(kernel.like) > 1 or (tensor.numel() >= _LARGE and not tensor.is_cuda):
            return None
        try:
            output = self._empty_like(inputs[kernel.like[0]])
            if kernel.objects(self.exchange, *inputs, *scalars, output) == 0:
                return output
        except (RuntimeError, BufferError):
            pass
        return None

    def _is_differentiated(self, kernel, inputs, out):
        """True if automatic differentiation takes part. Checks the inputs' types on the way."""
        for tensor in inputs:
            if type(tensor) not in self._readable_types:
                self._check_types(kernel, inputs)
        if self._forward_ad._current_level >= 0:
            differentiated = True
        elif self._is_grad_enabled():
            differentiated = any([tensor.requires_grad for tensor in inputs])
            if out is not None:
                differentiated |= any([getattr(tensor, "requires_grad", False) for tensor in _as_tuple(out)])
        else:
            return False
        if differentiated and out is not None:
            raise RuntimeError(
                "out: functions with out=... do not support automatic differentiation, but one of the arguments "
                "requires grad; accepted: tensors that do not, or the call inside torch.no_grad()"
            )
        return differentiated

    def plain(self, kernel, inputs, scalars, out=None):
        """A kernel without differentiation, on inputs whose types have been checked."""
        if out is not None:
            try:
                super().call(kernel, inputs, scalars, out)
            except _Wrapped:
                raise _errors.ObjectError(
                    "out: is not supported inside torch.func's transforms; accepted: None"
                ) from None
            for tensor in _as_tuple(out):
                _count_change(self._torch, tensor)
            return out
        if self.exchange is not None:
            output = self._quick(kernel, inputs, scalars)
            if output is not None:
                return output
        return super().call(kernel, inputs, scalars, None)

    # --- calls ---

    def launch(self, kernel, inputs, scalars, outputs, given):
        lead = inputs[0]
        for tensor in inputs:
            if tensor.is_neg():  # a view that is negated when read, which the memory does not show
                inputs = [tensor.resolve_neg() for tensor in inputs]
                break
        if self.exchange is None or (lead.numel() >= _LARGE and not lead.is_cuda):
            return super().launch(kernel, inputs, scalars, outputs, given)
        try:
            return kernel.objects(self.exchange, *inputs, *scalars, *outputs)
        except (RuntimeError, BufferError) as error:
            for name, tensor in zip((*kernel.inputs, *(given or kernel.outputs)), (*inputs, *outputs)):
                self.check_kind(name, tensor)
            raise _errors.ExchangeError(f"PyTorch could not describe the tensor: {error}") from error

    def describe(self, name, tensor):
        self.check_kind(name, tensor)
        dtype = self._dtypes.get(tensor.dtype)
        if dtype is None:
            raise unsupported_dtype(name, tensor.dtype)
        device = self._device_types[tensor.device.type], tensor.device.index or 0
        return _dlpack.describe(tensor.data_ptr(), tensor.shape, tensor.stride(), dtype, device)

    def stream(self, tensor):
        return self._torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else None

    def empty_like(self, tensor):
        return self._empty_like(tensor)

    def copy_like(self, tensor, model):
        if tensor.stride() == model.stride():
            return tensor
        with self._torch.no_grad():
            return self._empty_like(model).copy_(tensor)

    def assign(self, tensors, sources, message):
        with self._torch.no_grad():
            for tensor, source in zip(tensors, sources):
                tensor.copy_(source)

    # --- what is accepted ---

    def _check_types(self, kernel, inputs):
        for name, tensor in zip(kernel.inputs, inputs):
            self._check_type(name, tensor)

    def _check_type(self, name, tensor):
        kind = type(tensor)
        if kind in self._readable_types:
            return
        if not isinstance(tensor, self._torch.Tensor):
            raise wrong_object(name, tensor, self.kind)
        if kind.__torch_dispatch__ is not self._torch.Tensor.__torch_dispatch__:
            raise _errors.ObjectError(
                f"{name}: is {type_name(tensor)}, a subclass with __torch_dispatch__, whose elements need not lie in "
                "its own memory; accepted: a plain torch.Tensor, such as DTensor's x.to_local()"
            )
        self._readable_types.add(kind)

    def check_kind(self, name, tensor):
        self._check_type(name, tensor)
        if self._is_wrapped(tensor):
            raise _Wrapped
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


def _never(tensor):
    return False


def _as_tuple(out):
    return out if isinstance(out, (tuple, list)) else (out,)


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


def _make_function(torch, adapter):
    """The autograd.Function, which serves every kernel: it is handed it as an argument.

    Returns: a callable of (kernel, scalars, *tensors).
    """

    class FuselineFunction(torch.autograd.Function):
        """The form with the least overhead."""

        @staticmethod
        def forward(context, kernel, scalars, *inputs):
            context.kernel, context.scalars = kernel, scalars
            if kernel.gradient is not None:
                context.save_for_backward(*inputs)
            return adapter.plain(kernel, inputs, scalars)

        @staticmethod
        def backward(context, *grads):
            gradient = context.kernel.gradient
            if gradient is None:
                raise NotImplementedError(
                    f"fuseline.{context.kernel.function}: its gradient, a second derivative, is not offered; "
                    "write the operator in torch's own functions where it is needed"
                )
            needed = context.needs_input_grad[2:]
            if not any(needed):
                return (None,) * (2 + len(needed))
            inputs = context.saved_tensors
            grads = [grad if grad.dtype == inputs[0].dtype else grad.to(inputs[0].dtype) for grad in grads]
            results = _as_tuple(adapter.call(gradient, (*grads, *inputs), context.scalars, None))
            return (None, None, *(result if is_needed else None for result, is_needed in zip(results, needed)))

    are_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if are_transforms_active is None or not hasattr(torch.autograd.Function, "setup_context"):
        return FuselineFunction.apply

    class TransformableFuselineFunction(torch.autograd.Function):
        """The same in the form that torch.func's transforms ask for."""

        @staticmethod
        def forward(kernel, scalars, *inputs):
            return adapter.plain(kernel, inputs, scalars)

        @staticmethod
        def setup_context(context, inputs, output):
            context.kernel, context.scalars = inputs[:2]
            if context.kernel.gradient is not None:
                context.save_for_backward(*inputs[2:])

        backward = FuselineFunction.backward

        @staticmethod
        def vmap(info, in_dims, kernel, scalars, *tensors):
            # For operators on tensors of one shape the batch is one more dimension.
            moved = [
                tensor.unsqueeze(0).expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
                for tensor, dim in zip(tensors, in_dims[2:])
            ]
            results = adapter.call(kernel, moved, scalars, None)
            return results, (0,) * len(results) if isinstance(results, tuple) else 0

    def apply(*arguments):
        return (TransformableFuselineFunction if are_transforms_active() else FuselineFunction).apply(*arguments)

    return apply


def _working_exchange(torch, adapter):
    """The address of PyTorch's exchange table if it reads tensors rightly, else None; warns if it misreads them."""
    table = _dlpack.exchange_table(torch.Tensor)
    if table is None:
        return None
    try:
        problem = _exchange_problem(torch, adapter, table)
    except Exception as error:
        problem = f"it raised {type(error).__name__}: {error}"
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
    sample = torch.arange(60, dtype=torch.float32).reshape(5, 12)[1:4, 2:10:2].t()
    seen = _dlpack.DLTensor()
    if read(api.dltensor_from_py_object_no_sync)(sample, seen) != 0:
        return "it cannot read a tensor"
    expected = adapter.describe("sample", sample)
    if _facts(seen) != _facts(expected):
        return f"it reads {_facts(seen)} where the tensor has {_facts(expected)}"
    # The whole way once: the same kernel by both ways.
    kernel = next(kernel for kernel in KERNELS.values() if len(kernel.inputs) == len(kernel.outputs) == 1)
    scalars = (1.0,) * len(kernel.scalars)
    x = torch.linspace(-3, 3, 16)[3:]
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
