"""How PyTorch differentiates a kernel, and maps it over batches: what holds for every way to call one."""

from . import _builtin
from ._gated_second import second_gradients
from ._kernels import COLUMNS, KERNELS


def gradients(call, kernel, grads, inputs, scalars, needed):
    """The gradients of a kernel's inputs.

    Args:
        call: runs a kernel, as ``Adapter.call`` does.
        grads: those of its results.
        needed: for each input whether its gradient is needed.

    Returns: one for each input, None where it is not needed.
    """
    if kernel.fused is not None:
        return second_gradients(call, kernel, grads, inputs, scalars, needed)
    if kernel.gradient is None:
        raise _refusal(kernel)
    results = [None] * len(inputs)
    if not any(needed):
        return results
    arguments = *grads, *inputs
    offset = len(grads)
    wanted = (*(False,) * offset, *needed)
    made = as_tuple(call(kernel.gradient, arguments, scalars, None, None, wanted))
    for result, tensor in zip(kernel.gradient.results(arguments, wanted), made):
        if wanted[result.like]:
            results[result.like - offset] = tensor
    return results


def _refusal(kernel):
    return NotImplementedError(
        f"fuseline.{kernel.function}: its gradient, such as a higher derivative, is not offered; "
        "write the operator in torch's own functions where it is needed"
    )


def tangent(torch, adapter, kernel, inputs, context, tangents):
    """The directional derivative of a kernel's result, or a tuple of those of its results; for forward mode.

    Every operator is elementwise, so it is the sum of the inputs' tangents, each times the gradient for a result's
    gradient of ones.

    Args:
        context: of the forward, with the scalars, the result's dtype, and which results were wanted.
        tangents: of the inputs, None where it is 0.
    """
    if kernel.fused is not None:
        return _tangents_of_gradient(adapter.call, kernel, inputs, context.scalars, tangents, context.wanted)
    if kernel.gradient is None:
        raise _refusal(kernel)
    scalars = context.scalars
    (result,) = adapter.new_outputs(kernel, inputs, kernel.results(inputs), context.dtype)
    arguments = torch.ones_like(result), *inputs
    unwanted = (False,) * len(arguments)
    slopes = as_tuple(adapter.call(kernel.gradient, arguments, scalars, None, None, unwanted))
    # A bias is added to each row of what the slopes are of.
    shifts = [t for t, operand in zip(tangents, kernel.inputs) if operand.form is COLUMNS and t is not None]
    shifts = shifts[0].chunk(len(slopes)) if shifts else [None] * len(slopes)
    terms = []
    for slope, shift, output in zip(slopes, shifts, kernel.gradient.results(arguments, unwanted)):
        direction = tangents[output.like - 1]
        if direction is not None or shift is not None:
            direction = shift if direction is None else direction if shift is None else direction + shift
            terms.append((slope.float() if slope.element_size() == 2 else slope) * direction)
    total = sum(terms[1:], terms[0])
    if kernel.is_packed(inputs):
        total = total.unflatten(-1, (-1, 2)).sum(-1) if scalars[0] else total.unflatten(-1, (2, -1)).sum(-2)
    return total.to(result.dtype)


def _tangents_of_gradient(call, kernel, inputs, scalars, tangents, wanted):
    """Those of the results of a gated unit's backward kernel.

    In dy the results are linear. In gate, up and bias their derivatives are dy times the second derivatives of the
    unit, which are symmetric: so the tangents may stand where the results' gradients do in backward differentiation.
    """
    of_dy, *others = tangents
    total = [None] * len(inputs)
    if any(direction is not None for direction in others):
        grads = [direction for direction, array in zip(others, inputs[1:]) if array is not None]
        total = second_gradients(call, kernel, grads, inputs, scalars, [array is not None for array in inputs])
    outputs = kernel.results(inputs, wanted)
    if of_dy is not None:
        for output, made in zip(outputs, as_tuple(call(kernel, (of_dy, *inputs[1:]), scalars, None, None, wanted))):
            total[output.like] = made if total[output.like] is None else total[output.like] + made
    return tuple(total[output.like] for output in outputs)


def make_functions(torch, adapter):
    """The autograd.Functions: one for each kernel, and one for torch.func's transforms, which is handed the kernel.

    Returns: a callable of (kernel, scalars, dtype, wanted, inputs), the last four as ``Adapter.call`` has them.
    """

    def gradients_in(context, kernel, grads, needed):
        if not kernel.is_differentiable:
            raise _refusal(kernel)
        inputs = context.saved_tensors
        # Where C did the forward, the result has the leading input's dtype, and scalars were kept if there are any.
        dtype, scalars = getattr(context, "dtype", inputs[kernel.lead].dtype), getattr(context, "scalars", ())
        grads = [grad if grad.dtype == dtype else grad.to(dtype) for grad in grads]
        return gradients(adapter.call, kernel, grads, inputs, scalars, needed)

    def make(kernel):
        inputs, taken = len(kernel.inputs), len(kernel.inputs) + len(kernel.scalars)

        # In the form with the least overhead, and called by C where that serves the call. The arguments are inputs,
        # scalars, and then a dtype and which results are wanted, unless neither is asked for.

        def forward(context, *arguments):
            operands, scalars = arguments[:inputs], arguments[inputs:taken]
            result = adapter.plain(kernel, operands, scalars, None, *arguments[taken:])
            if kernel.is_differentiable:
                context.scalars, context.dtype = scalars, as_tuple(result)[0].dtype
                context.wanted = arguments[taken + 1] if len(arguments) > taken else None
                context.save_for_backward(*operands)
                context.save_for_forward(*operands)
            return result

        def backward(context, *grads):
            made = gradients_in(context, kernel, grads, context.needs_input_grad[:inputs])
            return (*made, *(None,) * (taken + 2 - inputs))

        def jvp(context, *tangents):
            saved = context.saved_tensors
            return tangent(torch, adapter, kernel, saved, context, tangents[:inputs])

        forward, backward = _builtin.differentiable(kernel, forward, backward)
        name = "".join(part.title() for part in kernel.function.split("_"))
        function = type(
            name,
            (torch.autograd.Function,),
            {
                "forward": staticmethod(forward),
                "backward": staticmethod(backward),
                "jvp": staticmethod(jvp),
                "__module__": __package__,
            },
        )
        _builtin.serve_function(kernel, _bare_apply(torch, function), getattr(function, "_backward_cls", None))
        return function

    functions = {kernel.name: make(kernel) for kernel in KERNELS.values()}
    are_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if are_transforms_active is None or not hasattr(torch.autograd.Function, "setup_context"):
        are_transforms_active = _no_transforms

    class TransformableFuselineFunction(torch.autograd.Function):
        """The form that torch.func's transforms ask for."""

        @staticmethod
        def forward(kernel, options, *inputs):
            return adapter.plain(kernel, inputs, options[0], None, *options[1:])

        @staticmethod
        def setup_context(context, inputs, output):
            context.kernel, (context.scalars, _, context.wanted) = inputs[:2]
            if context.kernel.is_differentiable:
                context.dtype = as_tuple(output)[0].dtype
                context.save_for_backward(*inputs[2:])
                context.save_for_forward(*inputs[2:])

        @staticmethod
        def backward(context, *grads):
            return (None, None, *gradients_in(context, context.kernel, grads, context.needs_input_grad[2:]))

        @staticmethod
        def jvp(context, kernel, options, *tangents):
            return tangent(torch, adapter, context.kernel, context.saved_tensors, context, tangents)

        @staticmethod
        def vmap(info, in_dims, kernel, options, *tensors):
            scalars, dtype, wanted = options
            count, dims = info.batch_size, in_dims[2:]
            made = call_on_batch(torch, adapter.call, kernel, count, dims, tensors, scalars, dtype, wanted)
            return (made, (0,) * len(made)) if len(made) > 1 else (made[0], 0)

    def apply(kernel, scalars, dtype, wanted, inputs):
        if are_transforms_active():
            return TransformableFuselineFunction.apply(kernel, (scalars, dtype, wanted), *inputs)
        return functions[kernel.name].apply(*inputs, *scalars, dtype, wanted)

    return apply


def _bare_apply(torch, function):
    """What an autograd.Function's ``apply`` comes to when none of torch.func's transforms is active."""
    bare = getattr(super(torch.autograd.Function, function), "apply", None)
    return function.apply if bare is None else bare


def call_on_batch(torch, call, kernel, count, dims, tensors, scalars, dtype, wanted):
    """A kernel on a batch of calls.

    Args:
        call: runs a kernel, as ``Adapter.call`` does.
        count: of the calls.
        dims: for each input the dimension that the batch is, None where all calls have the same.

    Returns: a tuple of the results, with the batch as their first dimension.
    """
    batched = [operand for operand, dim in zip(kernel.inputs, dims) if dim is not None]
    results = kernel.results(tensors, wanted)
    if any(operand.form is COLUMNS for operand in batched) or any(
        result.summed or result.form is COLUMNS for result in results
    ):
        # What belongs to all rows of one call cannot be computed for several calls at once.
        made = [as_tuple(call(kernel, one, scalars, None, dtype, wanted)) for one in _unbatched(count, dims, tensors)]
        return tuple(torch.stack(pieces)[:count] for pieces in zip(*made))
    # For the others, the batch is one more dimension.
    moved = [_with_batch(count, *given) for given in zip(kernel.inputs, dims, tensors)]
    return as_tuple(call(kernel, moved, scalars, None, dtype, wanted))


def as_tuple(out):
    return out if isinstance(out, (tuple, list)) else (out,)


def _no_transforms():
    return False


def _unbatched(count, dims, tensors):
    """The inputs of each single call in a batch of them; of an empty batch those of one, which are zeros."""
    if count == 0:
        yield [tensor if dim is None else tensor.sum(dim) for dim, tensor in zip(dims, tensors)]
    for k in range(count):
        yield [tensor if dim is None else tensor.select(dim, k) for dim, tensor in zip(dims, tensors)]


def _with_batch(count, operand, dim, tensor):
    """An input with the batch as its first dimension."""
    if tensor is None or operand.form is COLUMNS:
        return tensor
    return tensor.unsqueeze(0).expand(count, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
