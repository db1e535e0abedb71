"""Where the tests run: on the CPU, on a GPU where PyTorch has one, and on one that is played; and what some need.

The last is that of standin.py. To PyTorch its tensors are the CPU's, so the fixture `device` gives "cpu"; fuseline is
told that they are a ROCm device's, and computes there.

Tests import from here and not from conftest.py: every folder's has that name, and one process may run several folders.
"""

import pytest

try:
    import torch
except ImportError:
    torch = None


def has_gpu():
    return torch is not None and torch.cuda.is_available()


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU that PyTorch can use")
needs_compile = pytest.mark.skipif(
    not hasattr(getattr(torch, "compiler", None), "substitute_in_graph"), reason="needs PyTorch 2.6 or newer"
)


def _played():
    """Parameters of `device` for those of standin.py: (by PyTorch's exchange table, by objects with __dlpack__)."""
    if torch is None:
        return [], []
    import standin

    def parameter(name, number, enter, *arguments):
        reason = standin.why_not(number)
        id = f"{standin.ARCHITECTURES[number]} by {name}"
        return pytest.param(
            lambda: enter(number, *arguments), id=id, marks=pytest.mark.skipif(reason is not None, reason=str(reason))
        )

    standin.table()  # before fuseline meets its first tensor
    return (
        [parameter("table", 0, standin.tensors)],
        [parameter("dlpack", 0, standin.arrays, True), parameter("dlpack", 1, standin.arrays, False)],
    )


_BY_TABLE, _BY_ARRAYS = _played()
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu), *_BY_TABLE]

# For tests that only call fuseline's functions, and differentiate nothing by PyTorch: also in memory between pages that
# crash whoever touches them. It ends at one on a device with waves of 32 lanes, and begins at one where they have 64.
everywhere = pytest.mark.parametrize("device", [*DEVICES, *_BY_ARRAYS], indirect=True)


def torch_adapter():
    """What serves torch.Tensor."""
    import fuseline
    from fuseline import _call

    fuseline.swish(torch.ones(1))
    return _call._made["torch"]
