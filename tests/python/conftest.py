"""Fixtures: every test that takes `device` runs on each of devices.py."""

import os

import hypothesis
import pytest

from devices import DEVICES, has_gpu, torch, torch_adapter

# One core is often shared with other work, so no example is failed for its time.
hypothesis.settings.register_profile("fuseline", deadline=None, max_examples=60, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("fuseline")


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Several processes may share a GPU, and some tests need most of its memory: none is kept for later."""
    yield
    if has_gpu():
        torch.cuda.empty_cache()


@pytest.fixture(params=DEVICES)
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
