"""The table of kernels: what each takes and gives. Every C signature and every call is made from it."""


class Kernel:
    """One kernel of the C library.

    Attributes:
        name: stem of its C functions: ``fuseline_<name>``, ``..._objects`` and so on.
        inputs: names of its input tensors, in the order of the C arguments.
        scalars: names of its real scalars, which follow the inputs.
        outputs: names of its output tensors, which come last.
        like: for each output, the index of the input whose shape and dtype it has. The first of these inputs leads:
            its type, device and layout are the call's.
        function: the name of the public Python function, for messages.
        gradient: the kernel that computes the gradients of the inputs, from those of the outputs and then the
            inputs; None where it is not offered.
        borrow, objects: the ctypes functions; ``_library`` sets them.
    """

    def __init__(self, name, function, inputs, scalars, outputs, gradient=None):
        self.name = name
        self.function = function
        self.inputs = inputs
        self.scalars = scalars
        self.outputs = tuple(outputs)
        self.like = tuple(inputs.index(source) for source in outputs.values())
        self.gradient = gradient
        self.borrow = None
        self.objects = None


# In outputs, each name stands with the input that it is shaped like.
_SWISH_BACKWARD = Kernel("swish_backward", "swish_backward", inputs=("dy", "x"), scalars=("beta",), outputs={"dx": "x"})
_SWISH_FORWARD = Kernel(
    "swish_forward", "swish", inputs=("x",), scalars=("beta",), outputs={"y": "x"}, gradient=_SWISH_BACKWARD
)

KERNELS = {kernel.name: kernel for kernel in (_SWISH_FORWARD, _SWISH_BACKWARD)}
