"""Whose PyTorch .venv uses: an owner's own build is shared, never replaced."""

import os
import shutil
import subprocess
import sys
import venv

import pytest


@pytest.fixture
def ask(root):
    """Runs scripts/lib/environment.py with a Python; returns its status and output."""

    def run(python, *arguments):
        script = os.path.join(root, "scripts", "lib", "environment.py")
        result = subprocess.run([python, script, *arguments], capture_output=True, text=True)
        assert not result.stderr, result.stderr
        return result.returncode, result.stdout.strip()

    return run


def add_package(python_folder, name, version):
    """Puts an empty package into the environment, as an installer would leave it."""
    version_folder = "python{}.{}".format(*sys.version_info[:2])
    packages = os.path.join(python_folder, "lib", version_folder, "site-packages")
    os.makedirs(os.path.join(packages, name))
    with open(os.path.join(packages, name, "__init__.py"), "w", encoding="utf-8") as file:
        file.write(f"__version__ = {version!r}\n")
    os.makedirs(os.path.join(packages, f"{name}-{version}.dist-info"))
    with open(os.path.join(packages, f"{name}-{version}.dist-info", "METADATA"), "w", encoding="utf-8") as file:
        file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def version_seen(python, name):
    return subprocess.check_output([python, "-c", f"import {name}; print({name}.__version__)"], text=True).strip()


@pytest.fixture
def owner(tmp_path):
    """An environment of the owner's with a PyTorch for ROCm; returns its Python."""
    folder = str(tmp_path / "owner")
    venv.create(folder, with_pip=False, symlinks=True)
    add_package(folder, "torch", "2.9.1+rocm7.1")
    add_package(folder, "numpy", "1.26.4")
    return os.path.join(folder, "bin", "python")


@pytest.fixture(scope="module")
def environment_with_pip(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("environment"))
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


@pytest.fixture
def ours(environment_with_pip, tmp_path):
    return shutil.copytree(environment_with_pip, str(tmp_path / "ours"), symlinks=True)


def test_own_torch_is_found(ask, owner):
    assert ask(owner, "torch") == (0, "2.9.1+rocm7.1")


def test_no_torch(ask, ours):
    assert ask(os.path.join(ours, "bin", "python"), "torch") == (0, "")


def test_torch_that_is_too_old_does_not_count(ask, tmp_path):
    folder = str(tmp_path / "old")
    venv.create(folder, with_pip=False, symlinks=True)
    add_package(folder, "torch", "1.12.1")
    assert ask(os.path.join(folder, "bin", "python"), "torch") == (0, "")


def test_packages_of_another_environment_are_shared(ask, owner, ours, tmp_path):
    python = os.path.join(ours, "bin", "python")
    requirements = tmp_path / "requirements.txt"
    lines = "torch==2.13.0", "numpy==2.4.6 # pinned", "missing==1", "absent==1; python_version < '3'"
    requirements.write_text("\n".join(lines))
    assert ask(python, "met", str(requirements)) == (1, "torch==2.13.0\nnumpy==2.4.6\nmissing==1")

    assert ask(owner, "share", ours)[0] == 0
    assert version_seen(python, "torch") == "2.9.1+rocm7.1"
    assert version_seen(python, "numpy") == "1.26.4"
    # What the owner has counts as it is; only what is missing is installed, and the owner's versions are held.
    assert ask(python, "met", str(requirements)) == (1, "missing==1")
    assert ask(python, "wanted", str(requirements)) == (0, "missing\nnumpy")
    owned = ask(python, "owned", ours)[1].splitlines()
    assert "numpy==1.26.4" in owned
    assert not any(line.startswith(("torch", "pip")) for line in owned)


def test_our_own_packages_come_first(ask, owner, ours):
    python = os.path.join(ours, "bin", "python")
    ask(owner, "share", ours)
    add_package(ours, "numpy", "2.0.0")
    assert version_seen(python, "numpy") == "2.0.0"


def test_included_requirements_count(ask, ours, tmp_path):
    (tmp_path / "a.txt").write_text("-r b.txt\nfirst\n")
    (tmp_path / "b.txt").write_text("second>=1\n")
    status, output = ask(os.path.join(ours, "bin", "python"), "met", str(tmp_path / "a.txt"))
    assert (status, output.splitlines()) == (1, ["second>=1", "first"])


def test_environment_is_kept_while_it_is_whole_and_remade_when_it_is_not(shell, tmp_path, environment_with_pip, root):
    """An environment made by half, one whose Python is gone, and one that was moved are remade; a whole one is kept."""
    (tmp_path / "scripts").symlink_to(os.path.join(root, "scripts"))
    (tmp_path / "requirements.txt").write_text("pip\n")
    mark = tmp_path / ".venv" / "mark"

    def prepare():
        code = f'python=$(base_python); prepare_python "$root/logs" "$python" {tmp_path}/requirements.txt'
        # A Python of its own, so that what is installed beside this one does not count.
        python = os.path.join(environment_with_pip, "bin", "python")
        result = shell(code, "steps", "packages", "python", FUSELINE_PYTHON=python, FUSELINE_TORCH="")
        assert result.returncode == 0, result.stdout + result.stderr
        kept = mark.exists()
        mark.write_text("")
        return kept

    assert not prepare()
    assert prepare()
    os.remove(tmp_path / ".venv" / "fuseline-environment")
    assert not prepare()
    os.remove(tmp_path / ".venv" / "bin" / "python")
    assert not prepare()
    record = tmp_path / ".venv" / "fuseline-environment"
    record.write_text(record.read_text().replace(f"folder={tmp_path}", "folder=/elsewhere"))
    assert not prepare()
    assert prepare()


def test_python_in_our_own_environment_is_refused(shell, tmp_path):
    result = shell("base_python", "steps", "packages", "python", FUSELINE_PYTHON=f"{tmp_path}/.venv/bin/python")
    assert result.returncode == 1
    assert "cannot be in it" in result.stderr


def test_python_that_is_not_there_is_refused(shell):
    result = shell("base_python", "steps", "packages", "python", FUSELINE_PYTHON="/nowhere/python")
    assert result.returncode == 1
    assert "not a program" in result.stderr
