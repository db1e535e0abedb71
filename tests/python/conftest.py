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
