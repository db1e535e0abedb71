"""What one call costs the host: 16 elements, so that hardly anything but the call is measured.

    python bench/call_cost.py [--device cpu|cuda] [--rounds 5] [--calls 2000] [--no-extension] [--json FILE]

Ways to the same operator, interleaved in one process; the figure is the best round's mean:
    built-in     torch.nn.functional.silu; for swiglu there is none
    eager        the expression in PyTorch's functions
    extension    a C++ extension (pybind11) under an autograd.Function written in Python, as tutorials have it; built
                 here from the source below where a C++ compiler, torch's headers and, for a GPU, nvcc are there
    capsules     fuseline on objects that have nothing but __dlpack__, into an `out`
    fuseline     the call as users write it

On a GPU the time is the host's alone: the calls are queued, and the device is waited for between rounds. At the end, on
a GPU, a whole training step of swiglu at 4096 x 4096 in bfloat16, to the device's end: the host's time or the device's,
whichever is more. torch.compile and Liger-Kernel are beside it where they are there.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import partial
from typing import NamedTuple

import torch
from torch.nn import functional

import fuseline

ELEMENTS = 16
STEP = 4096, 4096

EXTENSION = r"""
#include <torch/extension.h>

extern "C" void launch_forward(const float *x, float *y, int n);
extern "C" void launch_backward(const float *dy, const float *x, float *dx, int n);

static torch::Tensor forward(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    launch_forward(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.numel());
    return y;
}

static torch::Tensor backward(torch::Tensor dy, torch::Tensor x)
{
    dy = dy.contiguous();
    auto dx = torch::empty_like(x);
    launch_backward(dy.data_ptr<float>(), x.data_ptr<float>(), dx.data_ptr<float>(), (int)x.numel());
    return dx;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.def("forward", &forward);
    module.def("backward", &backward);
}
"""

LOOPS = r"""
#include <cmath>

static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

extern "C" void launch_forward(const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] * sigmoid(x[i]);
}

extern "C" void launch_backward(const float *dy, const float *x, float *dx, int n)
{
    for (int i = 0; i < n; i++) {
        float s = sigmoid(x[i]);
        dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
    }
}
"""

KERNELS = r"""
__global__ void forward_kernel(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] / (1 + expf(-x[i]));
}

__global__ void backward_kernel(const float *dy, const float *x, float *dx, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float s = 1 / (1 + expf(-x[i]));
        dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
    }
}

extern "C" void launch_forward(const float *x, float *y, int n) { forward_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }

extern "C" void launch_backward(const float *dy, const float *x, float *dx, int n)
{
    backward_kernel<<<(n + 255) / 256, 256>>>(dy, x, dx, n);
}
"""


def build_extension(device, folder):
    """The C++ extension as a module; raises RuntimeError that says what is missing."""
    from torch.utils import cpp_extension

    compiler, name = shutil.which(os.environ.get("CXX", "c++")), "fuseline_bench_extension"
    nvcc = shutil.which("nvcc") if device == "cuda" and not torch.version.hip else None
    if compiler is None or (device == "cuda" and nvcc is None):
        raise RuntimeError("there is no C++ compiler" if compiler is None else "there is no nvcc")
    sources = {"extension.cpp": EXTENSION, "kernels.cu" if nvcc else "loops.cpp": KERNELS if nvcc else LOOPS}
    for file, text in sources.items():
        with open(os.path.join(folder, file), "w") as opened:
            opened.write(text)
    includes = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    libraries = cpp_extension.library_paths()
    if nvcc:
        run([nvcc, "-O2", "-Xcompiler", "-fPIC", "-c", "kernels.cu", "-o", "launch.o"], folder)
        home = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        libraries = [*libraries, os.path.join(home, "lib64")]
    else:
        run([compiler, "-O2", "-fPIC", "-c", "loops.cpp", "-o", "launch.o"], folder)
    abi = int(torch.compiled_with_cxx11_abi())
    flags = ["-O2", "-fPIC", "-std=c++20", f"-DTORCH_EXTENSION_NAME={name}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    flags += [f"-I{path}" for path in includes]
    links = [f"-L{path}" for path in libraries] + ["-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
    links += ["-lcudart"] if nvcc else []
    output = os.path.join(folder, name + ".so")
    run([compiler, "-shared", *flags, "extension.cpp", "launch.o", *links, "-o", output], folder)
    spec = importlib.util.spec_from_file_location(name, output)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:1])} failed: {done.stderr[-400:]}")


def function_of(extension):
    """The extension as tutorials wrap it."""

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return extension.forward(x)

        @staticmethod
        def backward(context, dy):
            (x,) = context.saved_tensors
            return extension.backward(dy, x)

    return Swish.apply


class Carrier:
    """An array that has nothing but the DLPack protocol."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **keywords):
        return self._tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def with_capsules(x):
    y = torch.empty_like(x)
    fuseline.swish(Carrier(x), out=Carrier(y))
    return y


def ways_of(extension):
    """{operator: {way: function of its tensors}}, and how many tensors."""
    swish = {
        "built-in": functional.silu,
        "eager": lambda x: x * torch.sigmoid(x),
        "extension": extension,
        "capsules": with_capsules,
        "fuseline": fuseline.swish,
    }
    swiglu = {"eager": lambda gate, up: functional.silu(gate) * up, "fuseline": fuseline.swiglu}
    return {"swish": (1, swish), "swiglu": (2, swiglu)}


class Case(NamedTuple):
    """Ways to do one thing.

    Attributes:
        calls: {way: call without arguments}.
        to_the_end: whether a GPU's work is measured too, and not the call alone.
    """

    operator: str
    mode: str
    calls: dict
    to_the_end: bool = False


def cases(operators, device):
    """Yields what is measured of single calls."""
    gradient = torch.ones(ELEMENTS, device=device)
    backward = torch.autograd.backward
    for operator, (count, ways) in operators.items():
        plain = [torch.randn(ELEMENTS, device=device) for _ in range(count)]
        leaves = [tensor.clone().requires_grad_() for tensor in plain]

        def step(way, leaves=leaves):
            def run():
                for leaf in leaves:
                    leaf.grad = None
                backward(way(*leaves), gradient)

            return run

        ways = {name: way for name, way in ways.items() if way is not None}
        yield Case(operator, "no grad", {name: partial(way, *plain) for name, way in ways.items()})
        ways = {name: way for name, way in ways.items() if name != "capsules"}
        yield Case(operator, "forward", {name: partial(way, *leaves) for name, way in ways.items()})
        yield Case(operator, "forward and backward", {name: step(way) for name, way in ways.items()})


def step_case():
    """The last case."""
    leaves = [torch.randn(STEP, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(2)]
    gradient = torch.randn(STEP, device="cuda", dtype=torch.bfloat16)

    def eager(gate, up):
        return functional.silu(gate) * up

    ways = {"eager": eager, "compile": torch.compile(eager), "fuseline": fuseline.swiglu}
    try:
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction

        ways["liger"] = LigerSiLUMulFunction.apply
    except ImportError:
        print("without Liger-Kernel, which is not installed", file=sys.stderr)

    def step(way):
        def run():
            for leaf in leaves:
                leaf.grad = None
            way(*leaves).backward(gradient)

        return run

    calls = {}
    for name, way in ways.items():
        calls[name] = step(way)
        try:
            calls[name]()
        except Exception as error:  # a compiler is missing, say
            del calls[name]
            print(f"without {name}: {type(error).__name__}", file=sys.stderr)
    return Case("swiglu", f"step at {STEP[0]} x {STEP[1]}, bfloat16, to its end", calls, to_the_end=True)


def measure(calls, rounds, count, device, to_the_end=False):
    """{way: microseconds}: the best of several rounds, one way after the other in each."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        for _ in range(50):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                call()
            if to_the_end:
                torch.cuda.synchronize()
            best[name] = min(best[name], (time.perf_counter() - start) / count * 1e6)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2000, help="calls in a round")
    parser.add_argument("--no-extension", action="store_true", help="do not build the C++ extension")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    extension = None
    if not options.no_extension:
        print("building the C++ extension ...", file=sys.stderr, flush=True)
        try:
            extension = function_of(build_extension(options.device, tempfile.mkdtemp()))
        except RuntimeError as error:
            print(f"without the C++ extension: {error}", file=sys.stderr)
    found = []
    measured = [*cases(ways_of(extension), options.device)] + ([step_case()] if options.device == "cuda" else [])
    for operator, mode, calls, to_the_end in measured:
        print(f"{operator}, {mode} ...", end="\r", file=sys.stderr, flush=True)
        count = min(options.calls, 500) if to_the_end else options.calls
        times = measure(calls, options.rounds, count, options.device, to_the_end)
        peer = "built-in" if "built-in" in times else "eager"
        print(f"{operator}, {mode}, {options.device}".ljust(50))
        for way, us in times.items():
            print(f"    {way:12} {us:8.2f} us   {us / times[peer]:5.2f} of {peer}")
            found.append(
                {
                    "op": operator,
                    "mode": mode,
                    "device": options.device,
                    "way": way,
                    "us": us,
                    "ratio": us / times[peer],
                }
            )
    if options.json:
        name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
        head = {"card": name, "torch": torch.__version__, "fuseline": fuseline.__version__, "elements": ELEMENTS}
        with open(options.json, "w") as file:
            json.dump({**head, "calls": found}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
