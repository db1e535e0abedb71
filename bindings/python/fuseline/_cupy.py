"""CuPy arrays: on the array's device and CuPy's current stream there."""

import sys

from . import _dlpack, _errors, _gpu_runtime
from ._adapter import wrong_object
from ._numpy import NumpyAdapter


class CupyAdapter(NumpyAdapter):
    kind = "cupy.ndarray"

    def __init__(self, module):
        super().__init__(module)
        is_hip = module.cuda.runtime.is_hip
        self._device_type = _dlpack.ROCM if is_hip else _dlpack.CUDA
        linked = getattr(sys.modules.get("cupy_backends.cuda.api.runtime"), "__file__", None)
        # Why all arrays are refused; None if they are not.
        self._gpu_problem = _gpu_runtime.tell("CuPy", [linked]) if is_hip and linked else None

    def check_kind(self, name, array):
        if not isinstance(array, self.module.ndarray):
            raise wrong_object(name, array, self.kind)
        if self._gpu_problem is not None:
            raise _errors.GpuRuntimeError(self._gpu_problem)

    def address(self, array):
        return array.data.ptr

    def device(self, array):
        return self._device_type, array.device.id

    def compute(self, kernel, inputs, *others):
        with inputs[kernel.lead].device:  # where results are allocated, and whose current stream is meant
            return super().compute(kernel, inputs, *others)

    def stream(self, array):
        return self.module.cuda.get_current_stream().ptr

    def empty_like(self, array, dtype):
        return self.module.empty_like(array, dtype, order="K")

    def check_output(self, name, array):
        """CuPy has no read-only arrays."""


def make():
    """The adapter for cupy.ndarray, once CuPy is loaded."""
    return CupyAdapter(sys.modules["cupy"])
