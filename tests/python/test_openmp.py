"""One OpenMP runtime, one pool of threads: PyTorch's and ours, whichever comes first, and beside scikit-learn's own.

Each order is a process of its own. What one costs the other in time is bench/openmp.py's to measure.
"""

import functools
import json
import os
import re

import pytest

from process import run_python

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not list its threads")

THREADS = 3

PROGRAM = f"""
import importlib, json, os, re, sys, time
import numpy

THREADS = {THREADS}
VALUES = numpy.linspace(-8, 8, 1 << 20, dtype=numpy.float32)
EXACT = VALUES / (1 + numpy.exp(-VALUES.astype(float)))
SOURCE = VALUES[: 1 << 18].reshape(512, 512)


def runtimes():
    with open("/proc/self/maps") as maps:
        code = [line.split(maxsplit=5)[-1].strip() for line in maps if "x" in line.split()[1]]
    return {{path for path in code if re.match(r"lib(gomp|iomp5|omp)(-[0-9a-f]+)?[.]so", os.path.basename(path))}}


def threads():
    return len(os.listdir("/proc/self/task"))


def settled(expected):
    # A thread that a smaller team does not need ends by itself.
    deadline = time.monotonic() + 10
    while threads() != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return threads()


def agree(y):
    assert numpy.allclose(y, EXACT, rtol=1e-6, atol=1e-7)


def use_fuseline():
    agree(fuseline.swish(VALUES))
    if "torch" in sys.modules:
        agree(fuseline.swish(torch.from_numpy(VALUES)).numpy())


def use_torch():
    x = torch.from_numpy(VALUES)
    agree(torch.nn.functional.silu(x).numpy())
    assert torch.equal(torch.mul(x, 2), x + x)
    torch.mm(*[torch.from_numpy(SOURCE)] * 2)


def use_sklearn():
    from sklearn.cluster import KMeans

    points = numpy.random.default_rng(0).normal(size=(20_000, 2)) + [[0, 0], [50, 50]] * 10_000
    assert abs(KMeans(2, n_init=1, random_state=0).fit(points).cluster_centers_ - 25).max() > 20


uses, steps = [], {{}}
for name in sys.argv[1:]:
    before = runtimes()
    globals()[name] = importlib.import_module(name)
    if name == "torch":
        torch.set_num_threads(THREADS)
    uses.append(globals()["use_" + name])
    idle = threads()
    uses[-1]()
    steps[name] = {{"runtimes": sorted(runtimes() - before), "threads": threads() - idle}}

for use in uses:
    use()
start = most = threads()
for _ in range(40):
    for use in uses:
        use()
        most = max(most, threads())

# Calls of ours alone, on as many threads as PyTorch was told.
teams = {{}}
for count in (2, 5, THREADS):
    torch.set_num_threads(count)
    fuseline.swish(VALUES)
    teams[count] = settled(start + count - THREADS) - start + THREADS
print(json.dumps({{"steps": steps, "growth": most - start, "teams": teams}}))
"""

ORDERS = [
    ("torch", "fuseline"),
    ("fuseline", "torch"),
    ("sklearn", "torch", "fuseline"),
    ("sklearn", "fuseline", "torch"),
    ("torch", "sklearn", "fuseline"),
    ("fuseline", "sklearn", "torch"),
]


@functools.cache
def report_of(order):
    program = f"import sys\nsys.argv[1:] = {list(order)}\n{PROGRAM}"
    return json.loads(run_python(program, OMP_NUM_THREADS=str(THREADS), OPENBLAS_NUM_THREADS="1"))


def soname(path):
    return re.match(r"[^.]+\.so(\.\d+)?", os.path.basename(path))[0]


@pytest.fixture(params=ORDERS, ids=" ".join)
def report(request):
    """What was found in an order; skips where the two ask for runtimes of different names.

    They do where a wheel of PyTorch's brings its runtime under a name of its own, and in a build of ours by clang.
    """
    pytest.importorskip("torch")
    if "sklearn" in request.param:
        pytest.importorskip("sklearn")
    first = {library: report_of((library, other)) for library, other in (ORDERS[0], ORDERS[1])}
    asked = {name: [soname(path) for path in found["steps"][name]["runtimes"]] for name, found in first.items()}
    if asked["torch"] != asked["fuseline"]:
        pytest.skip(f"PyTorch asks for {asked['torch']}, fuseline for {asked['fuseline']}")
    return report_of(request.param)


def test_second_library_takes_the_first_ones_runtime(report):
    steps = report["steps"]
    first, second = (steps[name] for name in steps if name != "sklearn")
    assert second["runtimes"] == []
    if len(steps) == 2:
        assert len(first["runtimes"]) == 1


def test_second_library_takes_the_first_ones_threads(report):
    steps = report["steps"]
    first, second = (steps[name] for name in steps if name != "sklearn")
    assert second["threads"] == 0
    if len(steps) == 2:
        assert first["threads"] == THREADS - 1


def test_threads_do_not_grow_over_many_calls(report):
    assert report["growth"] == 0


def test_torch_set_num_threads_is_ours_too(report):
    assert report["teams"] == {"2": 2, "5": 5, "3": 3}
