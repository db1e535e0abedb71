"""NumPy arrays.

Results are plain ``numpy.ndarray``, also of subclasses such as ``memmap`` and ``matrix``, and also for 0-dim arrays
(where NumPy's own functions return a scalar). Masked arrays are refused, since the mask would be lost.
"""

import sys

from . import _dlpack, _errors
from ._adapter import Adapter, unsupported_dtype, wrong_object

_CODES = {"i": _dlpack.INT, "u": _dlpack.UINT, "f": _dlpack.FLOAT, "c": _dlpack.COMPLEX, "b": _dlpack.BOOL}


class NumpyAdapter(Adapter):
    kind = "numpy.ndarray"

    def __init__(self, module):
        self.module = module  # numpy, or one that looks like it
        self._dtypes = {}

    def check_kind(self, name, array):
        if not isinstance(array, self.module.ndarray):
            raise wrong_object(name, array, self.kind)
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise wrong_object(name, array, "arrays without a mask, such as x.filled(value) or x.data")

    def dtype(self, name, dtype):
        """(code, bits) of a NumPy dtype."""
        known = self._dtypes.get(dtype)
        if known is None:
            if not dtype.isnative:
                raise _errors.DTypeError(
                    f"{name}: dtype is {dtype.str}, not of this machine's byte order; "
                    "accepted: native order, from x.astype(x.dtype.newbyteorder('='))"
                )
            if dtype.name == "bfloat16":  # ml_dtypes; NumPy itself has no code for it
                known = _dlpack.BFLOAT, 16
            elif dtype.kind in _CODES:
                known = _CODES[dtype.kind], dtype.itemsize * 8
            else:
                raise unsupported_dtype(name, dtype)
            self._dtypes[dtype] = known
        return known

    def compute(self, kernel, inputs, scalars, outputs, given):
        # A field of packed records may have strides that are no whole elements, which DLPack cannot say.
        inputs = [array if _has_whole_strides(array) else array.copy(order="K") for array in inputs]
        return super().compute(kernel, inputs, scalars, outputs, given)

    def describe(self, name, array):
        code_and_bits = self.dtype(name, array.dtype)
        if not _has_whole_strides(array):
            raise _errors.LayoutError(
                f"{name}: strides are {array.strides} bytes; accepted: multiples of the element size, {array.itemsize}"
            )
        strides = [stride // array.itemsize for stride in array.strides]
        return _dlpack.describe(self.address(array), array.shape, strides, code_and_bits, self.device(array))

    def address(self, array):
        return array.__array_interface__["data"][0]

    def device(self, array):
        return _dlpack.CPU, 0

    def empty_like(self, array):
        return self.module.empty_like(array, order="K", subok=False)

    def copy_like(self, array, model):
        if array.strides == model.strides:
            return array
        copied = self.empty_like(model)
        copied[...] = array
        return copied

    def assign(self, arrays, sources, message):
        for array, source in zip(arrays, sources):
            array[...] = source

    def check_output(self, name, array):
        if not array.flags.writeable:
            raise _errors.ReadOnlyError(f"{name}: is read-only; accepted: a writable array")


def _has_whole_strides(array):
    return array.itemsize == 0 or not any(stride % array.itemsize for stride in array.strides)


def make():
    """The adapter for numpy.ndarray, once NumPy is loaded."""
    return NumpyAdapter(sys.modules["numpy"])
