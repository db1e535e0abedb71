"""What all array libraries share: how a kernel is called, and what is done about strides that it cannot walk."""

import re

from . import _dlpack, _errors
from ._kernels import COLUMN_SUM, COLUMNS
from ._library import last_error
from ._overlap import Footprint

DTYPES = "float16, bfloat16, float32, float64"


class Adapter:
    """How one array library's arrays are read and made. One instance serves all calls.

    Subclasses supply ``check_kind``, ``describe``, ``empty``, ``arrange`` and ``as_dtype``, and override the rest where
    the library needs it.
    """

    #: what users call the arrays, for messages
    kind = "array"
    #: True if `assign` works
    can_assign = False

    def check_kind(self, name, array):
        """Raises if the array is none of this library's, or of a kind that cannot be read."""
        raise NotImplementedError

    def describe(self, name, array):
        """A DLTensor of the array, which the caller keeps alive. Raises a fuseline error that names the argument."""
        raise NotImplementedError

    def empty(self, like, form, dtype):
        """A new array on the device of another.

        Args:
            like: the other array.
            form: how its shape follows: see ``_kernels``.
            dtype: of this library; None for the other's.

        Returns: the array, dense, in the other's dimension order where it has one.
        """
        raise NotImplementedError

    def arrange(self, array, order):
        """The array itself if it is dense with its axes in this order, outermost first; else a copy that is."""
        raise NotImplementedError

    def as_dtype(self, dtype):
        """This library's object for the dtype, or name of one, that a user asks for."""
        raise NotImplementedError

    def shape(self, array):
        return tuple(array.shape)

    def strides(self, array):
        """In any unit: they are only compared with each other."""
        return array.strides

    def dtype(self, array):
        return array.dtype

    def split(self, array, count):
        """Views of a one-dimensional array's equal parts."""
        width = array.shape[0] // count
        return [array[k * width : (k + 1) * width] for k in range(count)]

    def can_copy(self, array):
        """True if `empty` and `arrange` work on arrays of this device."""
        return True

    def assign(self, arrays, sources, message):
        """Copies results into the user's arrays, whatever their strides; or raises a LayoutError with the message."""
        raise _errors.LayoutError(message)

    def stream(self, array):
        """The stream to work on, as a pointer; None on the CPU."""
        return None

    def check_output(self, name, array):
        """Raises if the user's output may not be written."""

    # --- from a call to C ---

    def call(self, kernel, inputs, scalars, out=None, dtype=None, wanted=None):
        """Checks the arguments and runs a kernel, into `out` or new arrays.

        Args:
            inputs: None in the place of an optional one that is absent.
            dtype: of new results, as users name it; None for that of the inputs.
            wanted: see ``Kernel.results``.

        Returns: the result, or a tuple of them where the call has several.
        """
        for operand, array in zip(kernel.inputs, inputs):
            if array is not None or not operand.is_optional:
                self.check_kind(operand.name, array)
        results = kernel.results(inputs, wanted)
        outputs, names = None, {}
        if out is not None:
            if dtype is not None:
                raise _errors.ArgumentError("dtype: is given with out, which has one; accepted: None")
            outputs = (out,) if len(results) == 1 else out
            names = output_names(results, out)
            for name, array in zip(names.values(), outputs):
                self.check_kind(name, array)
                self.check_output(name, array)
        elif dtype is not None:
            dtype = self.as_dtype(dtype)
        try:
            outputs = self.compute(kernel, inputs, scalars, results, outputs, names, dtype)
        except _errors.DTypeError as error:
            raise error if dtype is None else _about_dtype(error, results) from None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compute(self, kernel, inputs, scalars, results, outputs, names, dtype):
        """Runs a kernel on arguments of the right kind.

        Args:
            results: what the kernel is to compute.
            outputs: where these go; None for new arrays.
            names: {the C library's name: the user's} for the outputs if they are the user's, else empty.
            dtype: of new outputs.

        Returns: the outputs.
        """
        if outputs is None:
            outputs = self.new_outputs(kernel, inputs, results, dtype)
        else:
            self.check_sums(kernel, inputs, scalars, results, outputs, names)
        outputs = self.run(kernel, inputs, scalars, results, outputs, names)
        self.add_sums(kernel, inputs, results, outputs, names)
        return outputs

    def new_outputs(self, kernel, inputs, results, dtype):
        return [self.empty(inputs[result.like], kernel.form(result, inputs), dtype) for result in results]

    def run(self, kernel, inputs, scalars, results, outputs, names):
        """Runs a kernel into `outputs`; where strides cannot be walked, once more on copies.

        Returns: the outputs; others than were passed if those were not the user's and had to be replaced.
        """
        status = self.launch(kernel, inputs, scalars, kernel.placed(inputs, outputs), names)
        lead = inputs[kernel.lead]
        if status == _errors.STATUS_LAYOUT and self.can_copy(lead):
            message = rename(last_error(), names)
            attempts = [(dimension_order(self.strides(lead)), False), (None, False)]
            if names:
                computed = [k for k, result in enumerate(results) if not result.summed]
                self.check_memory(kernel, inputs, scalars, results, outputs, names, computed)
                attempts.insert(0, (dimension_order(self.strides(outputs[0])), True))  # if only inputs are at fault
            for order, is_direct in attempts:
                copies = [self.copied(operand, array, order) for operand, array in zip(kernel.inputs, inputs)]
                targets = [
                    output
                    if is_direct or result.summed
                    else self.empty(copies[result.like], kernel.form(result, inputs), self.dtype(output))
                    for result, output in zip(results, outputs)
                ]
                status = self.launch(kernel, copies, scalars, kernel.placed(inputs, targets), names)
                if status != _errors.STATUS_LAYOUT:
                    break
            if status == 0 and names and not is_direct:
                self.assign([outputs[k] for k in computed], [targets[k] for k in computed], message)
            elif not names:
                outputs = targets
        self.check_status(status, names)
        return outputs

    def copied(self, operand, array, order):
        """An input, dense in some order of its axes; None is the order in which they are."""
        if array is None:
            return None
        count = len(self.shape(array))
        if order is None or len(order) != count:
            order = range(count)
        return self.arrange(array, list(order))

    def launch(self, kernel, inputs, scalars, outputs, names):
        """Calls the C function that borrows described tensors, absent ones being None. Returns its status."""
        read = [
            None if array is None else self.describe(operand.name, array)
            for operand, array in zip(kernel.inputs, inputs)
        ]
        written = [
            None if array is None else self.describe(names.get(output.name, output.name), array)
            for output, array in zip(kernel.outputs, outputs)
        ]
        return kernel.borrow(*read, *scalars, self.stream(inputs[kernel.lead]), *written)

    # --- column sums of outputs ---

    def add_sums(self, kernel, inputs, results, outputs, names):
        """Computes the results that are column sums of the other ones."""
        for result, target in zip(results, outputs):
            if result.summed:
                placed = kernel.placed(inputs, outputs)
                summed = [k for k in result.summed if placed[k] is not None]
                for k, part in zip(summed, self.split(target, len(summed))):
                    called = {"x": kernel.outputs[k].name, "sum": result.name}
                    called = {name: names.get(ours, ours) for name, ours in called.items()}
                    self.run(COLUMN_SUM, (placed[k],), (), COLUMN_SUM.outputs, [part], called)

    def check_sums(self, kernel, inputs, scalars, results, outputs, names):
        """Raises if the user's outputs for column sums do not fit, before anything is written."""
        summed = [k for k, result in enumerate(results) if result.summed]
        for k in summed:
            result, output, model = results[k], outputs[k], inputs[results[k].like]
            name, like = names[result.name], kernel.inputs[result.like].name
            shape, expected = self.shape(output), self.shape(model)
            if shape != expected:
                raise _errors.ShapeError(
                    f"{name}: shape is {shape}, but {like} is {expected}; accepted: the same shape"
                )
            dtype, expected = self.dtype(output), self.dtype(model)
            if dtype != expected:
                raise _errors.DTypeError(
                    f"{name}: dtype is {dtype}, but {like} is {expected}; accepted: the same dtype"
                )
            device = _dlpack.device_text(self.describe(name, output))
            expected = _dlpack.device_text(self.describe(like, model))
            if device != expected:
                raise _errors.DeviceError(f"{name} is on {device}, but {like} is on {expected}; accepted: one device")
        if summed:
            self.check_memory(kernel, inputs, scalars, results, outputs, names, summed)
        for k in summed:
            strides = self.strides(outputs[k])
            if not self.can_assign and len(strides) == 1 and self.shape(outputs[k])[0] > 1 and strides != (1,):
                raise _errors.LayoutError(f"{names[results[k].name]}: strides are {strides}; accepted: (1,)")

    def check_memory(self, kernel, inputs, scalars, results, outputs, names, checked):
        """Raises if outputs of the user's share memory in a way that C refuses where it learns of them.

        Args:
            checked: the indices of these outputs. The others are taken to be right among themselves.
        """
        given = []
        for k, (operand, array) in enumerate(zip(kernel.inputs, inputs)):
            if array is not None:
                whole = Footprint(self.describe(operand.name, array))
                parts = [whole]
                if k == kernel.lead and kernel.is_packed(inputs) and whole.shape:
                    half = whole.shape[-1] // 2
                    first, step = (1, 2) if kernel.alternates(scalars) else (half, 1)
                    parts += [whole.part(0, half, step), whole.part(first, half, step)]
                given.append((names.get(operand.name, operand.name), whole, parts))
        targets = [names[result.name] for result in results]
        written = [Footprint(self.describe(name, output)) for name, output in zip(targets, outputs)]
        for k in checked:
            name, output = targets[k], written[k]
            if output.overlaps_itself():
                raise _errors.OverlapError(
                    f"{name}: strides are {output.strides} for shape {output.shape}, so that its elements overlap; "
                    "accepted: elements apart from each other"
                )
            for other, whole, parts in given:
                is_same = results[k].form is not COLUMNS and any(output.is_same(part) for part in parts)
                if not is_same and output.shares_memory(whole):
                    raise _errors.OverlapError(
                        f"{name}: overlaps {other} in memory without being the same elements; accepted: exactly the "
                        "same memory, or apart"
                    )
            for j, other in enumerate(targets):
                if j != k and output.shares_memory(written[j]):
                    raise _errors.OverlapError(
                        f"{name}: overlaps {other} in memory; accepted: outputs apart from each other"
                    )

    @staticmethod
    def check_status(status, names):
        """Raises the exception of a status other than 0."""
        if status:
            raise _errors.from_status(status, rename(last_error(), names))


def dimension_order(strides):
    """The axes from the outermost to the innermost."""
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def output_names(results, out):
    """{the C library's name: the user's} for what the user passed as `out`."""
    if len(results) == 1:
        return {results[0].name: "out"}
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        found = f"has {len(out)} items" if isinstance(out, (tuple, list)) else f"is {type_name(out)}"
        names = ", ".join(result.name for result in results)
        raise _errors.ObjectError(f"out: {found}; accepted: a tuple of {len(results)} arrays ({names})")
    return {result.name: f"out[{k}]" for k, result in enumerate(results)}


def rename(message, names):
    """The C library's message, with its names for arguments replaced by the user's."""
    if not names:
        return message
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], message)


def wrong_object(name, value, accepted):
    """The error for an argument of the wrong type."""
    return _errors.ObjectError(f"{name}: is {type_name(value)}; accepted: {accepted}")


def type_name(value):
    """A value's type as users write it: torch.Tensor, list."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def unsupported_dtype(name, dtype):
    """The error for an element type that DLPack has no code for."""
    return _errors.DTypeError(f"{name}: dtype is {dtype}; accepted: {DTYPES}")


def _about_dtype(error, results):
    """An error about a new result's dtype, which is the argument `dtype` to the user."""
    return _errors.DTypeError(str(error).replace(f"{results[0].name}: dtype is", "dtype: is", 1))


def wrong_dtype(dtype):
    """The error for a `dtype` that no result can have."""
    return _errors.DTypeError(f"dtype: is {dtype!r}; accepted: {DTYPES}, or this library's own objects for them")
