"""Kernels as operators that PyTorch knows by name: ``torch.ops.fuseline.<kernel>``.

They are for whatever looks at operators rather than run them: ``torch.compile``, ``torch.export``, FakeTensor, tracers,
tensor subclasses. An ordinary call does not come here, since the dispatcher's way into Python costs more than the call.
"""

from . import _builtin
from ._differentiation import as_tuple, call_on_batch, gradients
from ._kernels import KERNELS


class RegisteredOperators:
    """All kernels, registered once.

    Each operator takes the kernel's inputs and scalars, a dtype for the results, and which results are wanted (see
    ``Kernel.results``). It returns a tensor where every call has one result, else a list of those that the call has.
    """

    def __init__(self, torch, adapter):
        self._torch = torch
        self._adapter = adapter
        # Operators live as long as this object.
        self._library = torch.library.Library("fuseline", "DEF")
        for kernel in KERNELS.values():
            self._define(kernel)
        for kernel in KERNELS.values():
            self._differentiate(kernel)

    def call(self, kernel, inputs, scalars, out=None, dtype=None, wanted=None):
        """Runs a kernel by its registered operator. The arguments are ``Adapter.call``'s."""
        made = self.operator(kernel)(*inputs, *scalars, dtype, wanted)
        return _finished(made, out)

    def operator(self, kernel):
        return getattr(self._torch.ops.fuseline, kernel.name).default

    def traced(self, kernel):
        """What a compiler is to trace in place of the function of a kernel that ``_call.function_of`` makes."""
        operator, taken = self.operator(kernel), len(kernel.inputs) + len(kernel.scalars)
        dtypes = {name: getattr(self._torch, name) for name in ("float16", "bfloat16", "float32", "float64")}

        def function(*arguments):
            out, dtype = arguments[taken], arguments[taken + 1]
            dtype = dtypes.get(dtype, dtype) if isinstance(dtype, str) else dtype
            return _finished(operator(*arguments[:taken], dtype, None), out)

        return function

    def _define(self, kernel):
        library, torch, adapter = self._library, self._torch, self._adapter
        inputs, taken = len(kernel.inputs), len(kernel.inputs) + len(kernel.scalars)
        is_single = len(kernel.outputs) + len(kernel.sums) == 1
        library.define(_schema(kernel, is_single), tags=(torch.Tag.pt2_compliant_tag,))

        def run(*arguments):
            operands, scalars = arguments[:inputs], arguments[inputs:taken]
            made = adapter.plain(kernel, operands, scalars, None, *arguments[taken:])
            return made if is_single else as_tuple(made)

        def fake(*arguments):
            operands = arguments[:inputs]
            dtype, wanted = (*arguments[taken:], None, None)[:2]
            made = adapter.new_outputs(kernel, operands, kernel.results(operands, wanted), dtype)
            return made[0] if is_single else made

        for key in ("CPU", "CUDA"):
            library.impl(kernel.name, _builtin.implementation(kernel, "operator", run), key)
        torch.library.register_fake(f"fuseline::{kernel.name}", fake, lib=library)
        torch.library.register_vmap(f"fuseline::{kernel.name}", self._vmap_rule(kernel, taken, is_single), lib=library)

    def _vmap_rule(self, kernel, taken, is_single):
        inputs = len(kernel.inputs)

        def rule(info, in_dims, *arguments):
            operands, scalars = arguments[:inputs], arguments[inputs:taken]
            dtype, wanted = (*arguments[taken:], None, None)[:2]
            count, dims = info.batch_size, in_dims[:inputs]
            made = call_on_batch(self._torch, self.call, kernel, count, dims, operands, scalars, dtype, wanted)
            return (made[0], 0) if is_single else (list(made), [0] * len(made))

        return rule

    def _differentiate(self, kernel):
        count, taken = len(kernel.inputs), len(kernel.inputs) + len(kernel.scalars)

        def keep(ctx, inputs, output):
            ctx.scalars = inputs[count:taken]
            ctx.save_for_backward(*inputs[:count])

        def backward(context, *grads):
            grads = grads[0] if isinstance(grads[0], (list, tuple)) else grads
            needed = context.needs_input_grad
            made = gradients(self.call, kernel, grads, context.saved_tensors, context.scalars, needed[:count])
            return (*made, *(None,) * (len(needed) - count))

        try:
            from torch._library import autograd

            # As register_autograd below makes it, with a shorter way for calls that nothing differentiates.
            general = autograd.make_autograd_impl(self.operator(kernel), autograd.Info(backward, keep))
            first = _builtin.implementation(kernel, "autograd", general)
            self._library.impl(kernel.name, first, "Autograd", with_keyset=True)
        except (ImportError, AttributeError, TypeError):
            name = f"fuseline::{kernel.name}"
            self._torch.library.register_autograd(name, backward, setup_context=keep, lib=self._library)


def _schema(kernel, is_single):
    inputs = [f"Tensor{'?' * operand.is_optional} {operand.name}" for operand in kernel.inputs]
    scalars = [f"{'bool' if scalar.python_type is bool else 'float'} {scalar.name}" for scalar in kernel.scalars]
    arguments = ", ".join([*inputs, *scalars, "ScalarType? dtype=None", "bool[]? wanted=None"])
    return f"{kernel.name}({arguments}) -> Tensor{'' if is_single else '[]'}"


def _finished(made, out):
    """What a user gets: the result or a tuple of them, in `out` if that is given."""
    if isinstance(made, (list, tuple)):
        made = made[0] if len(made) == 1 else tuple(made)
    if out is None:
        return made
    for target, source in zip(out, made) if isinstance(made, tuple) else ((out, made),):
        target.copy_(source)
    return out
