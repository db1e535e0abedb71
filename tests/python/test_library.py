"""Finding, loading and declaring the C library; what an import does and does not do."""

import ctypes
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch

import fuseline
from fuseline import _errors, _library
from process import run_python

PACKAGE = pathlib.Path(fuseline.__file__).parent
LIBRARY = pathlib.Path(_library.path)
HEADERS = pathlib.Path(__file__).parents[2] / "include" / "fuseline"

# A copy of the package is used where files must stand beside it.
copied = pytest.fixture(lambda tmp_path: shutil.copytree(PACKAGE, tmp_path / "fuseline"))


def prototypes():
    """name -> (return type, [argument types]) of every function declared in the public headers."""
    found = {}
    for header in sorted(HEADERS.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        for declared in re.finditer(r"FUSELINE_API\s+([^;()]*?)(fuseline_\w+)\s*\(([^;]*)\);", text):
            returned, name, arguments = (part.strip() for part in declared.groups())
            arguments = " ".join(arguments.split())
            found[name] = returned, [] if arguments == "void" else [part.strip() for part in arguments.split(",")]
    return found


def c_kind(declared):
    """What kind of value a C declaration passes."""
    if "*" in declared:
        return "pointer"
    for word in ("double", "uint64_t", "ptrdiff_t", "size_t", "fuseline_status", "fuseline_packing", "void"):
        if word in declared:
            return {"fuseline_status": "enum", "fuseline_packing": "enum"}.get(word, word)
    raise AssertionError(declared)


def ctypes_kind(kind):
    if kind is None:
        return "void"
    known = {ctypes.c_double: "double", ctypes.c_size_t: "size_t", ctypes.c_int: "enum"}
    known[ctypes.c_ssize_t] = "ptrdiff_t"
    if kind in known:
        return known[kind]
    assert kind in (ctypes.c_void_p, ctypes.c_char_p, ctypes.py_object) or hasattr(kind, "contents"), kind
    return "pointer"


@pytest.mark.skipif(not HEADERS.is_dir(), reason="the headers are not beside the tests")
def test_every_prototype_is_declared():
    """N1: every exported function has argument and result types, as the headers have them."""
    in_headers = prototypes()
    assert len(in_headers) >= 20
    assert set(in_headers) == set(_library.PROTOTYPES) == set(_library.functions)
    for name, (returned, arguments) in in_headers.items():
        function = _library.functions[name]
        assert function.argtypes is not None, name
        assert ctypes_kind(function.restype) == c_kind(returned), name
        kinds = ["size_t" if kind == "uint64_t" else kind for kind in map(c_kind, arguments)]
        assert list(map(ctypes_kind, function.argtypes)) == kinds, name


@pytest.mark.skipif(not HEADERS.is_dir(), reason="the headers are not beside the tests")
def test_statuses_equal_the_header():
    text = (HEADERS / "status.h").read_text()
    statuses = {int(value): name for name, value in re.findall(r"(FUSELINE_(?:OK|ERROR_\w+)) = (\d+)", text)}
    assert sorted(statuses) == list(range(len(_errors.BY_STATUS)))
    name_of = _library.functions["fuseline_status_string"]
    for value, name in statuses.items():
        assert name_of(value).decode() == name
        if value:
            words = name.replace("FUSELINE_ERROR_", "").replace("_", "").lower()
            assert words in type(_errors.from_status(value, "")).__name__.lower()
    assert type(_errors.from_status(99, "")) is fuseline.Error


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (fuseline.DTypeError, [TypeError]),
        (fuseline.ObjectError, [TypeError]),
        (fuseline.ArgumentError, [ValueError]),
        (fuseline.ShapeError, [ValueError]),
        (fuseline.LayoutError, [ValueError]),
        (fuseline.OverlapError, [ValueError]),
        (fuseline.ReadOnlyError, [ValueError]),
        (fuseline.VersionError, [BufferError]),
        (fuseline.ExchangeError, [BufferError]),
        (fuseline.DeviceError, [NotImplementedError, BufferError]),
        (fuseline.ArchitectureError, [fuseline.DeviceError]),
        (fuseline.GpuRuntimeError, [RuntimeError]),
        (fuseline.HostMemoryError, [MemoryError]),
    ],
)
def test_exceptions(error, bases):
    for base in (fuseline.Error, *bases):
        assert issubclass(error, base)


def test_pointers_above_32_bits():
    """N1: addresses pass whole, with bit 31 set and above 2^32."""
    view = _library.functions["fuseline_tensor_view"]
    assert not view(None)
    x = torch.empty(3)
    from fuseline import _dlpack

    for address in (0x7FFF_8B83_E7D0, 0x0000_8000_0000, (1 << 47) + 8):
        described = _dlpack.describe(address, (3,), (1,), (2, 32), (1, 0))
        assert described.data == address
        other = _dlpack.describe(address + 4, (3,), (1,), (2, 32), (1, 0))
        status = _library.functions["fuseline_swish_forward"](described, 1.0, None, other)
        assert type(_errors.from_status(status, "")) is fuseline.OverlapError, "not the address that was passed"
    assert x.shape == (3,)


def test_calls_that_enter_python_keep_its_lock():
    """N4: the exchange table is only ever called with Python's lock held."""
    for name, function in _library.functions.items():
        holds_lock = bool(function._flags_ & ctypes.pythonapi._FuncPtr._flags_ & 4)  # FUNCFLAG_PYTHONAPI
        assert holds_lock == (name.endswith("_objects") or name == "fuseline_capsule_destructor"), name


# --- where it is looked for ---


def import_from(folder, **environment):
    return run_python(
        "import fuseline; print(fuseline._library.path)",
        check=False,
        PYTHONPATH=str(folder),
        **{"FUSELINE_LIBRARY": None, **environment},
    )


def write_config(package, directory):
    (package / "_config.py").write_text(f'LIBRARY_DIRECTORY = "{directory}"\nLIBRARY_NAME = "{_library.SONAME}"\n')


def decoy(folder, symbols=()):
    """A library of the same name that lacks functions."""
    source = folder / "decoy.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in symbols) or "int decoy;\n")
    path = folder / _library.SONAME
    compiler = shutil.which(os.environ.get("CC", "").split(" ")[0] or "cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{_library.SONAME}", "-o", path, source], check=True)
    return path


def test_beside_the_package(copied, tmp_path):
    """The layout of a wheel; and preferred to what was installed."""
    shutil.copy(LIBRARY, copied / _library.SONAME)
    write_config(copied, tmp_path / "elsewhere")
    done = import_from(tmp_path)
    assert done.stdout.strip() == str(copied / _library.SONAME), done.stderr


def test_where_it_was_installed(copied, tmp_path):
    """N9, N11: the recorded folder and versioned name, not what the system's search finds, nor a .so link."""
    prefix = tmp_path / "lib"
    prefix.mkdir()
    shutil.copy(LIBRARY, prefix / _library.SONAME)
    write_config(copied, prefix)
    (tmp_path / "decoy").mkdir()
    decoy(tmp_path / "decoy")
    done = import_from(tmp_path, LD_LIBRARY_PATH=str(tmp_path / "decoy"))
    assert done.stdout.strip() == str(prefix / _library.SONAME), done.stderr


def test_environment_variable_wins(copied, tmp_path):
    shutil.copy(LIBRARY, copied / _library.SONAME)
    done = import_from(tmp_path, FUSELINE_LIBRARY=str(LIBRARY))
    assert done.stdout.strip() == str(LIBRARY), done.stderr


def test_system_search(copied, tmp_path):
    (copied / "_config.py").unlink(missing_ok=True)
    (tmp_path / "system").mkdir()
    shutil.copy(LIBRARY, tmp_path / "system" / _library.SONAME)
    done = import_from(tmp_path, LD_LIBRARY_PATH=str(tmp_path / "system"))
    assert done.stdout.strip() == _library.SONAME, done.stderr


def test_every_failure_is_told(copied, tmp_path):
    (tmp_path / "system").mkdir()
    decoy(tmp_path / "system", ["fuseline_version"])
    (copied / _library.SONAME).write_text("no library\n")
    write_config(copied, "/nonexistent/lib")
    done = import_from(tmp_path, LD_LIBRARY_PATH=str(tmp_path / "system"))
    assert done.returncode != 0
    assert "ImportError: fuseline could not load its C library. Tried:" in done.stderr
    for told in (
        rf"{copied}/{_library.SONAME} \(beside the package\): .*(invalid ELF|file too short)",
        rf"/nonexistent/lib/{_library.SONAME} \(installed\): no such file",
        rf"{_library.SONAME} \(system search\): lacks the function fuseline_\w+: another version",
    ):
        assert re.search(told, done.stderr), done.stderr


def test_environment_variable_that_names_nothing(tmp_path):
    """Whoever names a file gets that one or an error, never another."""
    done = import_from(PACKAGE.parent, FUSELINE_LIBRARY="/nonexistent/libfuseline.so")
    assert done.returncode != 0
    assert "/nonexistent/libfuseline.so (environment variable FUSELINE_LIBRARY): no such file" in done.stderr
    assert "beside the package" not in done.stderr


def test_python_without_pydll():
    """N14"""
    done = run_python("import ctypes; pythonapi = ctypes.pythonapi; del ctypes.PyDLL; import fuseline", check=False)
    assert done.returncode != 0
    assert "ImportError: fuseline needs ctypes.PyDLL" in done.stderr


# --- what an import does ---


def test_import_loads_no_framework():
    loaded = run_python("import fuseline, sys; print(*sys.modules)").split()
    assert "fuseline" in loaded
    assert not {"torch", "numpy", "jax", "jaxlib", "cupy", "ml_dtypes", "tvm_ffi"} & set(loaded)


def test_import_touches_no_gpu():
    """N6: no runtime is mapped by an import, nor by a call on the CPU."""
    program = """
import array, fuseline
from producers import Memory, Producer
fuseline.swish(Producer(Memory([1.0, 2.0])))
maps = open("/proc/self/maps").read()
print([name for name in ("libamdhip64", "libcuda.so", "libcudart", "libhsa") if name in maps])
"""
    path = os.pathsep.join([str(PACKAGE.parent), os.path.dirname(__file__)])
    assert run_python(program, PYTHONPATH=path).strip() == "[]"


@pytest.mark.parametrize("order", ["import fuseline, torch", "import torch, fuseline"])
def test_import_order_does_not_matter(order):
    """F18, on the CPU's side: both orders give the same values, also for other operators of torch."""
    program = f"""
{order}
x = torch.linspace(-2, 2, 10, requires_grad=True)
fuseline.swish(x).sum().backward()
w = torch.linspace(-2, 2, 10, requires_grad=True)
torch.nn.functional.silu(w).sum().backward()
assert torch.allclose(x.grad, w.grad), (x.grad, w.grad)
assert (torch.ones(3, 3) @ torch.ones(3, 3)).sum() == 27
"""
    run_python(program)


def test_development_mode_and_warnings_as_errors():
    """N4: no resource is left open, no deprecated call is made, in the interpreter's strict mode."""
    program = """
import threading
import numpy, torch, fuseline
def work():
    for _ in range(50):
        fuseline.swish(numpy.ones(3, numpy.float32))
        x = torch.ones(3, requires_grad=True)
        fuseline.swish(x).sum().backward()
        numpy.from_dlpack(fuseline.swish(numpy.ones(3).__dlpack__()))
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("fine")
"""
    options = [
        "-W",
        "error::DeprecationWarning:fuseline",
        "-W",
        "error::ResourceWarning",
        "-W",
        "error::RuntimeWarning",
    ]
    assert run_python(program, "-X", "dev", *options).strip() == "fine"
    strict = "import fuseline; from fuseline import __main__; print(fuseline.__version__)"
    assert run_python(strict, "-W", "error", "-X", "dev").strip() == fuseline.__version__


def test_capsule_that_outlives_the_interpreters_modules():
    """A capsule still alive at the end is freed by C, when no Python code can run any more."""
    program = """
import sys, fuseline, numpy
capsule = fuseline.swish(numpy.ones(3).__dlpack__()).__dlpack__()
sys.modules["kept"] = capsule
tensor = fuseline.swish(numpy.ones(3).__dlpack__())
"""
    done = run_python(program, "-X", "dev", check=False)
    assert done.returncode == 0 and done.stderr == ""


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", fuseline.__version__)
    assert fuseline.info()["version"] == fuseline.__version__
    assert sys.version_info >= (3, 9)


@pytest.mark.parametrize("name", [name for name in fuseline.__all__ if not name[0].isupper()])
def test_docstrings_are_whole(name):
    """Each function says of each of its arguments what it is, and when it raises; nothing is left to be filled in."""
    function = getattr(fuseline, name)
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^ +(\w+, )*{parameter}(, \w+)*: ", function.__doc__, re.MULTILINE), parameter
    assert not re.search(r"[{}]", function.__doc__)
    assert "Returns:" in function.__doc__ and ("Raises:" in function.__doc__ or name == "info")
