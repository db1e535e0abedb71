"""AMD's own runtime on a machine without a device, from Python: one clear error, and everything else goes on.

Each program runs in a process of its own, also the one that looks whether the tests can run: in pytest's process the
stand-in may be the runtime. Skipped where AMD's is missing or shows a device, or another's does. The same in C, and
more of it, is in tests/test_real_runtime.c.
"""

import json
import os
import sys

import pytest

from process import run_python

HERE = os.path.dirname(__file__)
ENVIRONMENT = {"FUSELINE_GPU_RUNTIME": None, "AMD_LOG_LEVEL": None}

LOOK = """
import ctypes
import fuseline

def why_not():
    if not any(target.startswith("gfx") for target in fuseline.info()["gpu"]["targets"]):
        return "fuseline is built without AMD code"
    for number in (7, 6, 5):
        try:
            ctypes.CDLL(f"libamdhip64.so.{number}")
        except OSError:
            continue
        return "there is a GPU" if fuseline.info()["gpu"]["devices"] else ""
    return "there is no libamdhip64"

print(why_not(), end="")
"""


REASON = run_python(LOOK, **ENVIRONMENT)
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

PROGRAM = """
import numpy
import fuseline
from producers import Memory, Producer

ROCM = (10, 0)

def mapped():
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "/libamdhip64.so" in line})

def refused():
    x, out = (Producer(Memory([1.5] * 8, device=ROCM), device=ROCM) for _ in range(2))
    try:
        fuseline.swish(x, out=out)
    except fuseline.DeviceError as error:
        assert isinstance(error, (NotImplementedError, BufferError))
        assert (x.memory.deleted, out.memory.deleted) == (1, 1)
        assert list(out.memory.values) == [1.5] * 8
        return str(error)

def cpu():
    y = fuseline.swish(numpy.array([1.5], numpy.float32))
    assert abs(y[0] - 1.2263616) < 1e-6
"""

TORCH = """
import torch
x = torch.full((4,), 1.5, requires_grad=True)
y = fuseline.swish(x)
y.sum().backward()
assert abs(y.detach() - 1.2263616).max() < 1e-6 and abs(x.grad - 1.0413).max() < 1e-3
assert (torch.ones(3, 3) @ torch.ones(3, 3)).sum() == 27
"""


def run(program):
    done = run_python(program, check=False, **ENVIRONMENT, PYTHONPATH=os.pathsep.join([HERE, *sys.path]))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def test_one_clear_error_and_the_rest_goes_on():
    """Nothing is printed; tensors are given back, and not written; the runtime is opened at the first, not before."""
    printed = run(
        PROGRAM
        + """
cpu()
assert mapped() == []
first = refused()
assert len(mapped()) == 1
assert refused() == first
print(first)
cpu()
"""
        + TORCH
    )
    assert "tensors are on ROCm device 0, but " in printed
    assert "libamdhip64.so" in printed and "shows 0 device(s)" in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize("order", ["torch first", "torch last"])
def test_import_order_does_not_matter(order):
    """F18: with the runtime in the process; the other of its users is PyTorch, here one that has no use for it."""
    parts = [TORCH.replace("import torch", "import fuseline, torch"), PROGRAM + "assert refused(); cpu()\n"]
    run("".join(parts if order == "torch first" else parts[::-1]) + "assert refused(); cpu()\n")


def test_one_copy_is_mapped():
    """J14: where the process has the runtime already, that is the one."""
    run(
        PROGRAM
        + """
import ctypes
for number in (7, 6, 5):
    try:
        ctypes.CDLL(f"libamdhip64.so.{number}")
        break
    except OSError:
        pass
(before,) = mapped()
assert refused()
assert mapped() == [before]
"""
    )


def test_fork():
    """N8: workers of a process that has looked for a device, and found none, are no worse off than it."""
    run(
        PROGRAM
        + """
import os
first = refused()
child = os.fork()
if child == 0:
    same = refused() == first
    cpu()
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    )


def test_info():
    """The command names the runtime and its path, and says that there is no device."""
    main = "import sys; sys.argv = ['fuseline', 'info'{}]; from fuseline.__main__ import main; main()"
    lines = dict(line.split("  ", 1) for line in run(main.format("")).splitlines() if line.startswith("GPU "))
    assert os.path.basename(lines["GPU runtime"].strip()).startswith("libamdhip64.so.")
    assert os.path.exists(lines["GPU runtime"].strip())
    assert lines["GPU devices"].strip() == "none"
    gpu = json.loads(run(main.format(", '--json'")))["gpu"]
    assert gpu["runtime"] == lines["GPU runtime"].strip()
    assert gpu["devices"] == [] and gpu["error"] is None
