"""Fixtures: every test that takes `device` runs on the CPU, and on a GPU where PyTorch has one."""

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


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_gpu)])
def device(request):
    return request.param


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
