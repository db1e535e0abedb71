"""NumPy arrays.

Results are plain ``numpy.ndarray``, also of subclasses such as ``memmap`` and ``matrix``, and also for 0-dim arrays
(where NumPy's own functions return a scalar). Masked arrays are refused, since the mask would be lost.
"""

import sys

from . import _dlpack, _errors
from ._adapter import Adapter, unsupported_dtype, wrong_dtype, wrong_object
from ._kernels import COLUMNS, UNPACKED

_CODES = {"i": _dlpack.INT, "u": _dlpack.UINT, "f": _dlpack.FLOAT, "c": _dlpack.COMPLEX, "b": _dlpack.BOOL}


class NumpyAdapter(Adapter):
    kind = "numpy.ndarray"
    can_assign = True

    def __init__(self, module):
        self.module = module  # numpy, or one that looks like it
        self._dtypes = {}

    def check_kind(self, name, array):
        if not isinstance(array, self.module.ndarray):
            raise wrong_object(name, array, self.kind)
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise wrong_object(name, array, "arrays without a mask, such as x.filled(value) or x.data")

    def code_and_bits(self, name, dtype):
        """(code, bits) of a NumPy dtype, as DLPack has them."""
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

    def as_dtype(self, dtype):
        try:
            found = self.module.dtype(dtype)
        except TypeError:
            raise wrong_dtype(dtype) from None
        if found.kind != "f" and found.name != "bfloat16":
            raise wrong_dtype(dtype)
        return found

    def compute(self, kernel, inputs, *others):
        # A field of packed records may have strides that are no whole elements, which DLPack cannot say.
        inputs = [array if array is None or _has_whole_strides(array) else array.copy(order="K") for array in inputs]
        return super().compute(kernel, inputs, *others)

    def describe(self, name, array):
        code_and_bits = self.code_and_bits(name, array.dtype)
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

    def empty(self, like, form, dtype):
        if form is COLUMNS:
            return self.module.empty(like.shape[-1:], dtype or like.dtype)
        if form is UNPACKED and like.ndim:
            like = like[..., : like.shape[-1] // 2]
        return self.empty_like(like, dtype)

    def empty_like(self, array, dtype):
        return self.module.empty_like(array, dtype, order="K", subok=False)

    def arrange(self, array, order):
        back = sorted(order, key=order.__getitem__)
        return self.module.asarray(array.transpose(order), order="C").transpose(back)

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
