"""Fixtures: every test that takes `device` runs on the CPU, on a GPU where PyTorch has one, and on one that is played.

The last is that of standin.py. To PyTorch its tensors are the CPU's, so `device` is "cpu"; fuseline is told that they
are a ROCm device's, and computes there.
"""

import os
import sys

import hypothesis
import pytest

try:
    import torch
except ImportError:
    torch = None

sys.path.insert(0, os.path.dirname(__file__))

# One core is often shared with other work, so no example is failed for its time.
hypothesis.settings.register_profile("fuseline", deadline=None, max_examples=60, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("fuseline")


def has_gpu():
    return torch is not None and torch.cuda.is_available()


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU that PyTorch can use")


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Several processes may share a GPU, and some tests need most of its memory: none is kept for later."""
    yield
    if has_gpu():
        torch.cuda.empty_cache()


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
_DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu), *_BY_TABLE]

# For tests that only call fuseline's functions, and differentiate nothing by PyTorch: also in memory between pages that
# crash whoever touches them. It ends at one on a device with waves of 32 lanes, and begins at one where they have 64.
everywhere = pytest.mark.parametrize("device", [*_DEVICES, *_BY_ARRAYS], indirect=True)


@pytest.fixture(params=_DEVICES)
def device(request):
    if isinstance(request.param, str):
        yield request.param
    else:
        with request.param():
            yield "cpu"


@pytest.fixture(params=["float16", "bfloat16", "float32", "float64"])
def dtype(request):
    return getattr(torch, request.param)


@pytest.fixture(params=["builtin", "exchange", "described"])
def torch_way(request, monkeypatch):
    """The three ways by which PyTorch's tensors reach C; skips where PyTorch or Python does not offer one.

    "builtin": C serves ordinary calls by itself. "exchange": Python code calls it on tensors that it reads through the
    DLPack exchange table. "described": the tensors are described to it.
    """
    from fuseline import _builtin

    way, adapter = request.param, torch_adapter()
    if way != "described" and adapter.exchange is None:
        pytest.skip("this PyTorch has no exchange table")
    if way == "builtin" and not _builtin.is_supported:
        pytest.skip("this Python lacks functions that C calls")
    if way == "described":
        monkeypatch.setattr(adapter, "exchange", None)
    adapter.serve_by_c(way == "builtin")
    yield way
    monkeypatch.undo()
    adapter.serve_by_c(True)


def torch_adapter():
    """What serves torch.Tensor."""
    import fuseline
    from fuseline import _call

    fuseline.swish(torch.ones(1))
    return _call._made["torch"]
