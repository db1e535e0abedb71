"""The table of kernels: what each takes and gives. Every C signature and every call is made from it."""

from ctypes import c_double, c_int
from numbers import Real
from typing import NamedTuple

# The shape of a tensor, told from that of another one.
SAME = "same"
COLUMNS = "columns"  # one dimension: the other one's last extent, or that of both halves of what is multiplied
UNPACKED = "unpacked"  # the same, but half the last extent where the other one holds two tensors in one


class Scalar(NamedTuple):
    """A number or a choice among the arguments.

    Attributes:
        name: of the argument, in Python.
        accepted: the type that users may pass.
        python_type: what it is converted to.
        c_type: what the C function takes.
    """

    name: str
    accepted: type = Real
    python_type: type = float
    c_type: type = c_double


class _BooleanType(type):
    def __instancecheck__(cls, value):
        kind = type(value)
        return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


class Boolean(metaclass=_BooleanType):
    """What True and False are instances of; NumPy's too, which are no bool."""


_BETA = Scalar("beta")
_INTERLEAVED = Scalar("interleaved", Boolean, bool, c_int)


class Input(NamedTuple):
    """A tensor that a kernel reads.

    Attributes:
        name: of the argument, in C and in Python.
        form: its shape, told from that of the kernel's leading input.
        is_optional: True if None may stand in its place.
    """

    name: str
    form: str = SAME
    is_optional: bool = False


class Output(NamedTuple):
    """A tensor that a kernel makes.

    Attributes:
        name: of the argument in C.
        like: the index of the input whose dtype it has, unless another is asked for, and whose shape tells its own.
            Absent where that input is.
        form: its shape, told from that of this input.
        summed: empty for what C computes; else the indices of the outputs whose column sums it holds, one after the
            other, computed when those are there.
    """

    name: str
    like: int
    form: str = SAME
    summed: tuple = ()


class Kernel:
    """One kernel of the C library.

    Attributes:
        name: stem of its C functions: ``fuseline_<name>``, ``..._objects`` and so on.
        function: the name of the public Python function, for messages.
        inputs: in the order of the C arguments.
        scalars: which follow the inputs.
        outputs: which come last, in the order of the C arguments.
        sums: more outputs, which are column sums of those.
        lead: the index of the input that leads: its type, device and layout are the call's.
        is_plain: True if every call has one result, of the leading input's shape, and every input is there.
        second: the index of the optional input without which the leading one holds two tensors; None if it never does.
        gradient: the kernel that computes the gradients of the inputs, from those of the outputs and then the
            inputs; None where there is none.
        fused: of a gated unit's backward, whose inputs' gradients ``_gated_second`` computes: the kernel that does so
            where there is no bias; else None.
        activation: then, the forward kernel of the unit's activation, of which they are composed where there is one;
            None for relu, which has none.
        is_differentiable: True if either holds.
        borrow, objects: the ctypes functions; ``_library`` sets them.
    """

    def __init__(self, name, function, inputs, scalars, outputs, lead=None, second=None, gradient=None, fused=None):
        self.name = name
        self.function = function
        self.inputs = inputs
        self.scalars = scalars
        self.outputs = tuple(output for output in outputs if not output.summed)
        self.sums = tuple(output for output in outputs if output.summed)
        self.lead = self.outputs[0].like if lead is None else lead
        self.is_plain = (
            not any(operand.is_optional for operand in inputs) and len(outputs) == 1 and outputs[0].form is SAME
        )
        self.second = second
        self.gradient = gradient
        self.fused = fused
        self.activation = None
        self.is_differentiable = gradient is not None or fused is not None
        self.borrow = None
        self.objects = None

    def is_packed(self, inputs):
        """True if the leading input holds two tensors."""
        return self.second is not None and inputs[self.second] is None

    def alternates(self, scalars):
        """True if a leading input that holds two tensors has their elements by turns."""
        return any(scalar is _INTERLEAVED and value for scalar, value in zip(self.scalars, scalars))

    def form(self, output, inputs):
        """The form of an output in a call: nothing has to be unpacked where nothing is packed."""
        return SAME if output.form is UNPACKED and not self.is_packed(inputs) else output.form

    def results(self, inputs, wanted=None):
        """The outputs that a call has, in order.

        Args:
            inputs: of the call, None where one is absent.
            wanted: for each input whether what is like it is wanted; None for all. Only column sums are left out for
                it: C computes its outputs together.
        """
        made = [output for output in self.outputs if inputs[output.like] is not None]
        for output in self.sums:
            if inputs[output.like] is not None and (wanted is None or wanted[output.like]):
                made.append(output)
        return made

    def placed(self, inputs, outputs):
        """The outputs that C computes, out of a call's results, with None in the place of those that are absent."""
        present = iter(outputs)
        return [None if inputs[output.like] is None else next(present) for output in self.outputs]


def _unary(function, scalars=(), family=None):
    """The three kernels of y = a(x)."""
    family = family or function
    x, dy = Input("x"), Input("dy")
    double_backward = Kernel(
        f"{family}_double_backward",
        f"{function}_double_backward",
        (Input("ddx"), dy, x),
        scalars,
        outputs=(Output("ddy", like=1), Output("dx", like=2)),
    )
    backward = Kernel(
        f"{family}_backward",
        f"{function}_backward",
        (dy, x),
        scalars,
        outputs=(Output("dx", like=1),),
        gradient=double_backward,
    )
    forward = Kernel(f"{family}_forward", function, (x,), scalars, (Output("y", like=0),), gradient=backward)
    return forward, backward, double_backward


def _gated(function, scalars=(), family=None):
    """The three kernels of y = a(gate) * up."""
    family = family or function
    two = Input("gate"), Input("up", is_optional=True)
    pair = *two, Input("bias", COLUMNS, is_optional=True)
    scalars = _INTERLEAVED, *scalars
    double_backward = Kernel(
        f"{family}_double_backward",
        f"{function}_double_backward",
        (Input("ddgate"), Input("ddup", is_optional=True), Input("dy", UNPACKED), *two),
        scalars,
        outputs=(Output("ddy", like=2), Output("dgate", like=3), Output("dup", like=4)),
        lead=3,
        second=4,
    )
    backward = Kernel(
        f"{family}_backward",
        f"{function}_backward",
        (Input("dy", UNPACKED), *pair),
        scalars,
        outputs=(Output("dgate", like=1), Output("dup", like=2), Output("dbias", like=3, summed=(0, 1))),
        second=2,
        fused=double_backward,
    )
    forward = Kernel(
        f"{family}_forward", function, pair, scalars, (Output("y", 0, UNPACKED),), second=1, gradient=backward
    )
    return forward, backward, double_backward


COLUMN_SUM = Kernel("column_sum", "column_sum", (Input("x"),), (), (Output("sum", 0, COLUMNS),))

# The ruler, by how many tensors are read and written: what other kernels are measured by.
COPIES = {
    (reads, writes): Kernel(
        f"copy_{reads}_{writes}",
        "copy",
        tuple(Input(name) for name in "abc"[:reads]),
        (),
        tuple(Output(name, like=0) for name in "yz"[:writes]),
    )
    for reads, writes in ((1, 1), (2, 1), (3, 2))
}

KERNELS = {
    kernel.name: kernel
    for kernels in (
        _unary("swish", (_BETA,)),
        _unary("gelu"),
        _unary("gelu", family="gelu_tanh"),
        _unary("relu2"),
        _gated("swiglu", (_BETA, Scalar("limit"), Scalar("offset"))),
        _gated("geglu"),
        _gated("geglu", family="geglu_tanh"),
        _gated("reglu"),
        COPIES.values(),
        (COLUMN_SUM,),
    )
    for kernel in kernels
}

for _unit, _activation in (("swiglu", "swish"), ("geglu", "gelu"), ("geglu_tanh", "gelu_tanh")):
    KERNELS[f"{_unit}_backward"].activation = KERNELS[f"{_activation}_forward"]
