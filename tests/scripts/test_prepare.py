"""scripts/prepare where it cannot go on, and its steps."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def tools(tmp_path):
    """A folder of programs for PATH: make(name, code) adds a shell script, link(name...) the system's own."""

    class Tools:
        path = str(tmp_path / "tools")

        def make(self, name, code="exit 0"):
            file = os.path.join(self.path, name)
            with open(file, "w", encoding="utf-8") as script:
                script.write(f"#!/bin/sh\n{code}\n")
            os.chmod(file, 0o755)

        def link(self, *names):
            for name in names:
                os.symlink(shutil.which(name), os.path.join(self.path, name))

    tools = Tools()
    os.mkdir(tools.path)
    tools.link("bash", "sh", "sed", "sort", "grep", "mkdir", "dirname", "tail", "df", "awk", "head", "tr")
    return tools


BAD_FOLDERS = ["with space", "a'b", 'a"b', "a$b", "a#b", "a&b", "a;b", "a(b)", "a\\b", "a:b", "a%b", "a,b", "a~b"]


@pytest.mark.parametrize("name", BAD_FOLDERS)
def test_folder_names_that_make_cannot_handle_are_refused_before_anything_is_done(root, tmp_path, name):
    clone = tmp_path / name
    shutil.copytree(os.path.join(root, "scripts"), clone / "scripts")
    result = subprocess.run([str(clone / "scripts" / "prepare")], capture_output=True, text=True)
    assert result.returncode == 1
    assert "make and libtool cannot handle" in result.stderr
    assert str(clone) in result.stderr
    assert os.listdir(clone) == ["scripts"]


def test_a_plain_folder_name_is_accepted(shell):
    result = shell(
        'root=/home/who/a-b_c.d+e/1; venv=$root/.venv; source "$LIB"; check_folder', "steps", LIB=lib("build")
    )
    assert result.returncode == 0, result.stderr


def lib(name):
    return os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "lib", name + ".sh"))


def test_configured_source_folder_is_refused(shell, tmp_path):
    (tmp_path / "config.status").write_text("")
    result = shell('venv=$root/.venv; source "$LIB"; check_folder', "steps", LIB=lib("build"))
    assert result.returncode == 1
    assert "make distclean" in result.stderr


def test_without_rights_it_says_what_to_install(shell, tools):
    tools.make("id", "echo 1000")
    tools.make("sudo", "exit 1")
    tools.make("apt-get", "exit 1")
    tools.make("apt-cache", "echo 'clang-19 - C compiler'; echo 'Candidate: 1'")
    result = shell("install_packages logs python3 tests", "steps", "packages", PATH=tools.path)
    assert result.returncode == 1
    assert "needs root" in result.stderr
    line = next(line for line in result.stderr.splitlines() if "apt-get install" in line)
    for package in (
        "gcc libc6-dev make autoconf automake libtool pkg-config python3-venv libcmocka-dev g++ clang-19 lld-19".split()
    ):
        assert f" {package}" in line, package


def test_without_apt_it_says_what_is_lacking(shell, tools):
    result = shell("install_packages logs python3", "steps", "packages", PATH=tools.path)
    assert result.returncode == 1
    assert "no apt-get" in result.stderr
    for name in ("a C compiler", "autoconf", "libtool", "pkg-config", "Python 3.9"):
        assert name in result.stderr


@pytest.mark.parametrize(
    ("user", "expected"), [("0", "apt-get"), ("1000", "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get")]
)
def test_root_and_sudo_install(shell, tools, tmp_path, user, expected):
    calls = tmp_path / "calls"
    tools.link("env")
    tools.make("id", f"echo {user}")
    tools.make("sudo", f'echo sudo "$@" >>{calls}; [ "$2" = true ] || {{ shift; exec "$@"; }}')
    tools.make("apt-get", f'echo apt-get "$@" >>{calls}')
    result = shell("apt_install make gcc", "steps", "packages", PATH=tools.path)
    assert result.returncode == 0, result.stderr
    lines = calls.read_text().splitlines()
    assert lines[0].startswith(expected)
    assert lines[-1].startswith("apt-get -y --no-install-recommends")
    assert lines[-1].endswith("install make gcc")


def test_newest_clang_that_is_complete_is_chosen(shell, tools):
    tools.make(
        "apt-cache",
        """case $* in
        *search*) echo 'clang-14 - x'; echo 'clang-20 - x'; echo 'clang-19 - x'; echo 'clang-9 - x' ;;
        *lld-20*) echo 'Candidate: (none)' ;;
        *) echo 'Candidate: 1'; head -c 200000 /dev/zero | tr '\\0' '\\n' ;; # no reader may stop half way
        esac""",
    )
    result = shell("find_gpu_compiler; echo ${missing_optional[*]}", "steps", "packages", PATH=tools.path)
    assert result.stdout.strip() == "clang-19 lld-19 clang-tools-19 llvm-19"


@pytest.mark.parametrize(("version", "expected"), [(17, ""), (15, "clang-19 lld-19 clang-tools-19 llvm-19")])
def test_clang_at_hand_is_kept_if_new_enough(shell, tools, version, expected):
    for name in ("clang++", "ld.lld", "clang-offload-bundler", "llvm-objcopy"):
        tools.make(f"{name}-{version}")
    tools.make("apt-cache", "echo 'clang-19 - x'; echo 'Candidate: 1'")
    result = shell("find_gpu_compiler; echo ${missing_optional[*]}", "steps", "packages", PATH=tools.path)
    assert result.stdout.strip() == expected


def test_step_that_fails_shows_the_end_of_its_log(shell):
    result = shell("run_step building some.log sh -c 'echo first; exit 3' || echo status $?", "steps")
    assert "building: FAILED (exit status 3)" in result.stdout
    assert "The end of some.log:\n    | first" in result.stdout
    assert "status 3" in result.stdout


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("cc: error: No space left on device", "The disk is full"),
        ("W: Could not resolve 'some.host'", "The network, or the package index"),
        ("ERROR: No matching distribution found for torch==2.13.0", "has no version for this Python"),
        ("E: Could not get lock /var/lib/dpkg/lock", "Another program is installing packages"),
    ],
)
def test_well_known_failures_are_explained(shell, message, reason):
    result = shell('run_step installing some.log sh -c "echo \\"$MESSAGE\\"; exit 1" || true', "steps", MESSAGE=message)
    assert reason in result.stdout


def test_step_that_succeeds_is_quiet(shell, tmp_path):
    result = shell("run_step building some.log echo words", "steps")
    assert "words" not in result.stdout
    assert (tmp_path / "some.log").read_text() == "words\n"


def test_step_has_no_input(shell):
    assert "done" in shell("run_step reading some.log cat </dev/zero", "steps").stdout


def test_amd_gpu_is_named(shell, tmp_path):
    # 110501 is how the driver writes gfx1151, and 90010 gfx90a.
    for number, name in ((110501, "gfx1151"), (90010, "gfx90a"), (100306, "gfx1036")):
        code = f"echo 'gfx_target_version {number}' | name_amd_gpu"
        assert shell(code, "steps", "python").stdout.strip() == name
    assert shell("echo 'gfx_target_version 0' | name_amd_gpu", "steps", "python").stdout == ""
