"""What "make check-emulated" asks for, and what it makes of the tests' output: without the emulator itself."""

import importlib
import os
import struct
import sys

import pytest


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "emulated"))
    try:
        return importlib.import_module("check")
    finally:
        del sys.path[0]


@pytest.fixture
def build(tmp_path, monkeypatch, check):
    """A machine that lacks nothing: (the build folder, the emulator's)."""
    name, code = b"hipv4-amdgcn-amd-amdhsa--gfx1100", b"code"
    place = 32 + 24 + len(name)
    bundle = struct.pack("<Q3Q", 1, place, len(code), len(name)) + name + code
    for path, content in (
        (".libs/libfuseline.so", b"\x7fELF" + b"__CLANG_OFFLOAD_BUNDLE__" + bundle),
        ("tinygrad/test/mockgpu/amd/emu.py", b""),
        ("bin/clang", b"#!/bin/sh\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(content)
    (tmp_path / "bin/clang").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(check.sys, "version_info", (3, 11))
    return tmp_path


def options(check, build, *more, tinygrad="tinygrad"):
    return check.parse(["--build", str(build), "--tinygrad", str(build / tinygrad) if tinygrad else "", *more])


def test_nothing_is_wanting(check, build):
    assert check.needs(options(check, build, "--targets", "gfx1100")) is None


@pytest.mark.parametrize("folder, found", [("", "TINYGRAD=FOLDER"), ("bin", "bin has no test/mockgpu/amd/emu.py")])
def test_the_emulator_is_asked_for_with_the_commit_that_was_tried(check, build, folder, found):
    want = check.needs(options(check, build, "--targets", "gfx1100", tinygrad=folder))
    assert found in want and check.TRIED in want


def test_a_target_without_code_is_an_error_and_not_a_skip(check, build, capsys):
    assert check.main(["--build", str(build), "--tinygrad", str(build / "tinygrad")]) == 2
    error = capsys.readouterr().err
    assert "code for gfx1151 in" in error and "has it for gfx1100" in error and "--with-hip-targets" in error


def test_clang_and_python_are_asked_for(check, build, monkeypatch):
    monkeypatch.setattr(check.sys, "version_info", (3, 10))
    assert "Python 3.11" in check.needs(options(check, build, "--targets", "gfx1100"))
    monkeypatch.setattr(check.sys, "version_info", (3, 11))
    (build / "bin/clang").unlink()
    assert "clang in PATH" in check.needs(options(check, build, "--targets", "gfx1100"))


def test_errors_are_read_from_what_the_tests_print(check):
    device = "a device with waves of 32 lanes"
    text = f"""
[       OK ] sizes
# forward swish {device} float16 beta 1: 0.4979 ulp at 0x1.30cp+0; 0.5 below the normal numbers
# backward gelu {device} float32 beta 1: 0.8539 ulp of the larger of dx and dy; worst 8.1e-08 (textbook 9e-08)
# swiglu {device} float64 beta 1.702 limit 2.5 offset 1: y 2.3784, dgate 3.5835, dup 1.8032 ulp
# ddy swish {device} bfloat16 beta 1: worst 0.00390625 (textbook 0.004) at 0x1p+0
# column_sum float32: 0.4990 ulp
"""
    assert list(check.figures(text)) == [
        ("swish_forward", "float16", 0.4979),
        ("gelu_backward", "float32", 0.8539),
        ("swiglu_forward", "float64", 2.3784),
        ("swiglu_backward, dgate", "float64", 3.5835),
        ("swiglu_backward, dup", "float64", 1.8032),
        ("swish_double_backward", "bfloat16", 0.5),
        ("column_sum", "float32", 0.499),
    ]


def test_only_code_for_amd_is_loaded(check):
    with pytest.raises(check.machine.Fault, match="not an ELF file for AMD"):
        check.machine.CodeObject(b"\x7fELF" + bytes(14) + b"\x3e\0" + bytes(60))
