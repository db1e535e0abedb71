"""Which copy of AMD's runtime serves which framework, where a process has several.

Each program is a process of its own. The runtimes are copies of the stand-in's library. Frameworks are played by what
is asked of them: a folder with a library that is linked to a copy, as PyTorch's wheels have it, and for CuPy a module.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import standin
from process import run_python

_, _REASON = standin.find()
pytestmark = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))

PROGRAM = """
import ctypes, os, sys, types
import numpy, torch
import fuseline
from fuseline import _call
from producers import Memory, Producer

def load(path):
    return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)

def in_use():
    return fuseline.info()["gpu"]["runtime"]

kept = []  # what is queued runs later, or never

def rocm():
    # a tensor on a ROCm device, of no known framework
    x, out = (Producer(Memory([1.5] * 8, device=(10, 0)), device=(10, 0)) for _ in range(2))
    kept.extend((x, out))
    return fuseline.swish(x, out=out)

def error_of(function, *arguments):
    try:
        function(*arguments)
    except fuseline.GpuRuntimeError as error:
        return str(error)

def play_torch(folder):
    # a build for ROCm, that is in this folder
    load(folder + "/torch/lib/libamdhip64.so")
    load(folder + "/torch/lib/libc10_hip.so")
    torch.version.hip = "7.0"
    torch.__file__ = folder + "/torch/__init__.py"

def play_cupy(folder):
    load(folder + "/cupy/libamdhip64.so.7")
    load(folder + "/cupy/runtime.so")
    class ndarray: pass
    cupy = types.ModuleType("cupy")
    cupy.ndarray = ndarray
    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(is_hip=True))
    sys.modules["cupy"] = cupy
    backend = types.ModuleType("cupy_backends.cuda.api.runtime")
    backend.__file__ = folder + "/cupy/runtime.so"
    sys.modules[backend.__name__] = backend
    return ndarray()

def meet_torch():
    fuseline.swish(torch.ones(3))
    return _call._made["torch"]

class OnGpu:
    is_cuda = True
    device = torch.device("cpu")

folder = os.environ["FOLDER"]
"""


@pytest.fixture
def folder(tmp_path):
    """Three copies of the runtime: the system's, PyTorch's and CuPy's; and what is linked to each of the last two."""
    compiler = shutil.which(os.environ.get("CC", "").split(" ")[0] or "cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    contents = pathlib.Path(standin.find()[0].path).read_bytes()
    source = tmp_path / "linked.c"
    source.write_text("int hipInit(unsigned); int linked(void) { return hipInit(0); }\n")
    for copy, linked in (
        ("system/libamdhip64.so", None),
        ("torch/lib/libamdhip64.so", "torch/lib/libc10_hip.so"),
        ("cupy/libamdhip64.so.7", "cupy/runtime.so"),
    ):
        path = tmp_path / copy
        path.parent.mkdir(parents=True)
        # Each with a soname of its own, so that what is linked to one is not given another that happens to be loaded.
        soname = b"libamdhip64.so." + copy[:1].encode()
        path.write_bytes(contents.replace(b"libamdhip64.so.7", soname))
        if linked is not None:
            command = [compiler, "-shared", "-fPIC", "-o", tmp_path / linked, source, path]
            subprocess.run(command, check=True)
    return tmp_path


def run(folder, program):
    here = os.path.dirname(__file__)
    run_python(
        PROGRAM + program,
        PYTHONPATH=os.pathsep.join([here, *sys.path]),
        FOLDER=str(folder),
        FUSELINE_GPU_RUNTIME=None,
    )


def test_frameworks_copy_is_used_though_there_is_another(folder):
    """J14, J16: both are loaded; PyTorch's own library tells which is its."""
    run(
        folder,
        """
load(folder + "/system/libamdhip64.so")
play_torch(folder)
assert "2 copies" in error_of(rocm)  # nobody has said whose tensor it is
meet_torch()
rocm()
assert in_use() == folder + "/torch/lib/libamdhip64.so"
""",
    )


def test_framework_that_comes_after_the_first_gpu_call(folder):
    """J14, F18: the system's copy is in use; PyTorch's tensors on a GPU are refused, those on the CPU are not."""
    run(
        folder,
        """
os.environ["FUSELINE_GPU_RUNTIME"] = folder + "/system/libamdhip64.so"  # as what the system's search would find
rocm()
del os.environ["FUSELINE_GPU_RUNTIME"]
play_torch(folder)
adapter = meet_torch()
problem = error_of(adapter.stream, OnGpu)
assert problem.startswith("PyTorch's arrays belong to another copy of the ROCm runtime than is in use: "), problem
assert folder + "/torch/lib/libamdhip64.so" in problem and folder + "/system/libamdhip64.so" in problem
assert adapter.exchange is None
assert "2 copies" in error_of(rocm)
x = torch.full((3,), 1.5, requires_grad=True)
fuseline.swish(x).sum().backward()
assert abs(x.grad - 1.0413).max() < 1e-3
""",
    )


def test_user_who_names_a_copy_is_obeyed(folder):
    run(
        folder,
        """
os.environ["FUSELINE_GPU_RUNTIME"] = folder + "/system/libamdhip64.so"
play_torch(folder)
rocm()
assert in_use() == folder + "/system/libamdhip64.so"
adapter = meet_torch()
rocm()
assert adapter._gpu_problem is None and adapter.exchange is not None
""",
    )


def test_two_frameworks_with_copies_of_their_own(folder):
    """The second one's arrays are refused once the first one's copy is in use; all are while none is."""
    run(
        folder,
        """
array = play_cupy(folder)
play_torch(folder)
meet_torch()
rocm()
assert in_use() == folder + "/torch/lib/libamdhip64.so"
problem = error_of(fuseline.swish, array)
assert problem.startswith("CuPy's arrays belong to another copy"), problem
assert folder + "/cupy/libamdhip64.so.7" in problem and in_use() in problem
rocm()
""",
    )
    run(
        folder,
        """
array = play_cupy(folder)
play_torch(folder)
meet_torch()
_call._adapter_of("cupy")
assert "2 copies" in error_of(rocm)
""",
    )


def test_nothing_is_opened_for_it(folder):
    """N6: PyTorch's tensors on the CPU bring no runtime in."""
    run(
        folder,
        """
torch.version.hip = "7.0"
torch.__file__ = folder + "/torch/__init__.py"
meet_torch()
with open("/proc/self/maps") as maps:
    assert "hip" not in maps.read().replace(folder, "").replace("fuseline", "")
""",
    )
