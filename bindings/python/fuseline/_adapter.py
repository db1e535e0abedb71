"""What all array libraries share: how a kernel is called, and what is done about strides that it cannot walk."""

import re
from ctypes import byref

from . import _errors
from ._library import last_error

_DTYPES = "accepted: float16, bfloat16, float32, float64"


class Adapter:
    """How one array library's arrays are read and made. One instance serves all calls.

    Subclasses supply ``describe``, ``empty_like`` and ``copy_like``, and override the rest where the library needs it.
    """

    #: what users call the arrays, for messages
    kind = "array"

    def describe(self, name, array):
        """A DLTensor of the array, which the caller keeps alive. Raises a fuseline error that names the argument."""
        raise NotImplementedError

    def empty_like(self, array):
        """A new array of the same shape, dtype and device; dense, in the array's dimension order where it has one."""
        raise NotImplementedError

    def can_copy(self, array):
        """True if `empty_like` and `copy_like` work on arrays of this device."""
        return True

    def copy_like(self, array, model):
        """The array itself if it has the strides of `model`; else a copy of it that has."""
        raise NotImplementedError

    def assign(self, arrays, sources, message):
        """Copies results into the user's arrays, whatever their strides; or raises a LayoutError with the message."""
        raise _errors.LayoutError(message)

    def stream(self, array):
        """The stream to work on, as a pointer; None on the CPU."""
        return None

    def check_output(self, name, array):
        """Raises if the user's output may not be written."""

    def check_kind(self, name, array):
        """Raises if the array is none of this library's, or of a kind that cannot be read."""
        raise NotImplementedError

    def call(self, kernel, inputs, scalars, out):
        """Checks the arguments and runs a kernel, into `out` or new arrays.

        Returns: the output, or a tuple of them where the kernel has several.
        """
        for name, array in zip(kernel.inputs, inputs):
            self.check_kind(name, array)
        outputs, names = None, ()
        if out is not None:
            outputs = (out,) if len(kernel.outputs) == 1 else out
            names = output_names(kernel, outputs)
            for name, array in zip(names, outputs):
                self.check_kind(name, array)
                self.check_output(name, array)
        outputs = self.compute(kernel, inputs, scalars, outputs, names)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute(self, kernel, inputs, scalars, outputs, given):
        """Runs a kernel on arguments of the right kind.

        Args:
            outputs: None for new ones.
            given: the names of the outputs if they are the user's, else empty.

        Returns: the outputs.
        """
        if outputs is None:
            outputs = [self.empty_like(inputs[source]) for source in kernel.like]
        return self.run(kernel, inputs, scalars, outputs, given)

    def run(self, kernel, inputs, scalars, outputs, given):
        """Runs a kernel into `outputs`; where strides cannot be walked, once more on copies.

        Returns: the outputs; others than were passed if those were not the user's and had to be replaced.
        """
        status = self.launch(kernel, inputs, scalars, outputs, given)
        if status == _errors.STATUS_LAYOUT and self.can_copy(inputs[kernel.like[0]]):
            message = last_error()
            dense = self.empty_like(inputs[kernel.like[0]])
            copies = [self.copy_like(array, dense) for array in inputs]
            targets = [dense] + [self.empty_like(dense) for _ in outputs[1:]]
            status = self.launch(kernel, copies, scalars, targets, given)
            if status == 0 and given:
                self.assign(outputs, targets, rename_outputs(message, kernel, given))
            else:
                outputs = targets
        self.check_status(status, kernel, given)
        return outputs

    def launch(self, kernel, inputs, scalars, outputs, given):
        """Calls the C function that borrows described tensors. Returns its status."""
        described = [self.describe(name, array) for name, array in zip(kernel.inputs, inputs)]
        results = [self.describe(name, array) for name, array in zip(given or kernel.outputs, outputs)]
        stream = self.stream(inputs[kernel.like[0]])
        return kernel.borrow(*map(byref, described), *scalars, stream, *map(byref, results))

    @staticmethod
    def check_status(status, kernel, given):
        """Raises the exception of a status other than 0."""
        if status:
            raise _errors.from_status(status, rename_outputs(last_error(), kernel, given))


def output_names(kernel, outputs):
    """What to call the outputs that the user passed as `out`."""
    if len(kernel.outputs) == 1:
        return ("out",)
    if not isinstance(outputs, (tuple, list)) or len(outputs) != len(kernel.outputs):
        names = ", ".join(kernel.outputs)
        raise _errors.ObjectError(
            f"out: is {type_name(outputs)}; accepted: a tuple of {len(kernel.outputs)} arrays ({names})"
        )
    return tuple(f"out[{k}]" for k in range(len(outputs)))


def rename_outputs(message, kernel, given):
    """The C library's message, with its names for the outputs replaced by the user's."""
    for name, users in zip(kernel.outputs, given):
        message = re.sub(rf"\b{name}\b", users, message)
    return message


def wrong_object(name, value, accepted):
    """The error for an argument of the wrong type."""
    return _errors.ObjectError(f"{name}: is {type_name(value)}; accepted: {accepted}")


def type_name(value):
    """A value's type as users write it: torch.Tensor, list."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def unsupported_dtype(name, dtype):
    """The error for an element type that DLPack has no code for."""
    return _errors.DTypeError(f"{name}: dtype is {dtype}; {_DTYPES}")
