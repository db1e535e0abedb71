"""scripts/amd-report: from end to end on a machine that is played (tests/played), and its parts."""

import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
import types

import pytest

torch = pytest.importorskip("torch")
fuseline = pytest.importorskip("fuseline")

PARTS = "archive", "checks", "figures", "main", "scrub", "steps", "summary"


@pytest.fixture
def part(root, monkeypatch):
    """Imports scripts/report/NAME.py."""
    monkeypatch.syspath_prepend(os.path.join(root, "scripts", "report"))
    for name in PARTS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield __import__
    for name in PARTS:
        sys.modules.pop(name, None)


# --- the machine ---

NODE = "cpu_cores_count 0\nunique_id 11223344556677889900\ngfx_target_version {}\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder that stands for / in the checks: a Radeon 8060S whose devices everybody may use."""
    folder = tmp_path / "machine"
    for path, text in {
        "etc/os-release": 'NAME=Ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
        "proc/cpuinfo": "processor: 0\nmodel name\t: AMD RYZEN AI MAX+ 395\n",
        "proc/meminfo": "MemTotal:       131072000 kB\n",
        "sys/module/amdgpu/version": "6.16.6\n",
        "sys/class/kfd/kfd/topology/nodes/0/properties": NODE.format(0),
        "sys/class/kfd/kfd/topology/nodes/1/properties": NODE.format(110501),
        "dev/kfd": "",
        "dev/dri/renderD128": "",
        "opt/rocm/.info/version": "7.0.1-17\n",
        "opt/rocm/lib/libamdhip64.so.7": "",
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setenv("FUSELINE_REPORT_ROOT", str(folder))
    return folder


@pytest.mark.parametrize(
    ("number", "name"), [(110501, "gfx1151"), (90010, "gfx90a"), (90402, "gfx942"), (100306, "gfx1036")]
)
def test_the_card_is_named(part, machine, number, name):
    (machine / "sys/class/kfd/kfd/topology/nodes/1/properties").write_text(NODE.format(number))
    assert part("checks").architectures() == [name]


def test_a_machine_that_has_all(part, machine):
    checks = part("checks")
    assert "Ubuntu 24.04.1 LTS" in checks.system().found and "AMD RYZEN AI MAX+ 395" in checks.system().found
    assert [check().state for check in (checks.driver, checks.render_nodes)] == ["ok", "ok"]
    assert checks.cards(checks.architectures()).state == "ok"
    assert "ROCm 7.0.1-17" in checks.runtime({"runtime": ["/x/torch/lib/libamdhip64.so"]}).found


def no_module(machine):
    os.remove(machine / "sys/module/amdgpu/version")
    os.rmdir(machine / "sys/module/amdgpu")


def no_kfd(machine):
    os.remove(machine / "dev/kfd")


def no_render_node(machine):
    os.remove(machine / "dev/dri/renderD128")


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (no_module, "driver", ("amdgpu is not loaded", "modprobe amdgpu")),
        (no_kfd, "driver", ("no /dev/kfd", "--device=/dev/kfd")),
        (no_render_node, "render_nodes", ("no /dev/dri/renderD", "--device=/dev/dri")),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(part, machine, change, check, words):
    change(machine)
    found = getattr(part("checks"), check)()
    assert found.state == "missing"
    assert all(word in found.found + found.advice for word in words), found.as_json()


def test_devices_that_the_user_may_not_open(part, machine, monkeypatch):
    checks = part("checks")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for found in (checks.driver(), checks.render_nodes()):
        assert found.state == "missing" and "by this user" in found.found
        assert "usermod -a -G" in found.advice and "render" in found.advice


def test_checks_that_throw_are_notes(part, machine, monkeypatch, tmp_path):
    checks = part("checks")

    def thrown(*arguments, **keywords):
        raise ValueError("no such thing")

    for name in ("system", "driver", "render_nodes", "groups", "cards", "runtime", "pytorch", "compiler", "disk"):
        monkeypatch.setattr(checks, name, thrown)
    monkeypatch.setattr(checks, "architectures", thrown)
    for name in ("ask_torch", "choose_compiler", "environment"):
        monkeypatch.setattr(checks, name, thrown)
    found = checks.all_checks(sys.executable, dict(os.environ), tmp_path, True)[0]
    noted = [check for check in found if "ValueError: no such thing" in check.found]
    assert len(noted) >= 9 and {check.state for check in noted} == {"note"}


def test_nodes_that_may_not_be_read(part, machine, monkeypatch):
    checks = part("checks")
    (machine / "sys/class/kfd/kfd/topology/nodes/0/properties").unlink()
    (machine / "sys/class/kfd/kfd/topology/nodes/0/properties").mkdir()  # opening it is an OSError, for root too
    assert checks.architectures() == ["gfx1151"]


def test_a_user_without_a_name(part, machine, monkeypatch):
    checks, scrub = part("checks"), part("scrub")

    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(checks.pwd, "getpwuid", unknown)
    monkeypatch.setattr(checks.grp, "getgrnam", lambda name: types.SimpleNamespace(gr_gid=-1, gr_mem=["jo"]))
    for variable in ("HOME", "USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    assert "render: not a member" in checks.groups().found
    assert scrub.Scrubber().text("text") == "text"


def test_a_program_that_cannot_be_ended_is_left_alone(part, monkeypatch, tmp_path):
    checks = part("checks")
    monkeypatch.setattr(checks.steps.os, "killpg", lambda *arguments: None)  # as of one that waits for a driver
    start = time.monotonic()
    status, said = checks.run(["sh", "-c", f"echo $$ >{tmp_path}/number; exec sleep 100"], 2)
    assert status is None and "no answer within 2 s" in said
    assert time.monotonic() - start < 60
    while not (tmp_path / "number").exists() or not (tmp_path / "number").read_text():
        time.sleep(0.1)
    os.kill(int((tmp_path / "number").read_text()), signal.SIGKILL)


def test_all_checks_have_one_limit(part, machine, tmp_path):
    checks, begun = part("checks"), []
    found, known, *_ = checks.all_checks(
        sys.executable, dict(os.environ), tmp_path, True, limit=0, begin=lambda name, seconds: begun.append(name)
    )
    assert "no time was left" in known["error"] and "PyTorch's answer" in begun
    assert {"driver", "disk", "PyTorch", "GPU compiler"} <= {check.name for check in found}
    assert checks.run(["true"]) == (0, "")  # what comes later has time again


def test_on_wsl_nobody_is_told_to_load_a_module(part, machine):
    no_module(machine)
    no_kfd(machine)
    no_render_node(machine)
    (machine / "dev/dxg").write_text("")
    checks = part("checks")
    for found in (checks.driver(), checks.render_nodes(), checks.cards([], ["gfx1100"])):
        assert found.state in ("note", "ok") and "modprobe" not in found.advice
    assert "/dev/dxg" in checks.driver().found
    assert checks.cards([], []).state == "missing"


def test_it_is_said_who_named_the_card(part, monkeypatch):
    checks = part("checks")
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "11.0.0")
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "GPU-8a2f00c1d2e3f405")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    found = checks.cards(["gfx1103"], ["gfx1100"]).found
    assert "the driver lists gfx1103" in found and "PyTorch lists gfx1100" in found
    names = {item["name"]: item["value"] for item in checks.variables()}
    assert names["HSA_OVERRIDE_GFX_VERSION"] == "11.0.0" and "ROCR_VISIBLE_DEVICES" in names
    assert "HSA_OVERRIDE_GFX_VERSION=11.0.0" in checks.environment().found


def test_no_card_and_no_runtime(part, machine, monkeypatch):
    checks = part("checks")
    assert checks.cards([]).state == "missing"
    (machine / "opt/rocm/lib/libamdhip64.so.7").unlink()
    monkeypatch.delenv("FUSELINE_GPU_RUNTIME", raising=False)
    found = checks.runtime({})
    assert found.state == "missing" and "libamdhip64.so" in found.found and "FUSELINE_GPU_RUNTIME" in found.advice


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"python": "3.12.3", "error": "ModuleNotFoundError: No module named 'torch'"}, "none that works"),
        ({"python": "3.12.3", "version": "2.13.0+cpu", "hip": None}, "is not built for ROCm"),
        ({"python": "3.12.3", "version": "2.9.1+rocm7.0", "hip": "7.0", "available": False}, "sees no GPU"),
    ],
)
def test_pytorch_that_will_not_do(part, known, words):
    found = part("checks").pytorch("/some/python", known)
    assert found.state == "missing" and words in found.found and found.advice


def test_pytorch_is_asked(part):
    known = part("checks").ask_torch(sys.executable, dict(os.environ))
    assert known["version"] == torch.__version__ and known["hip"] == torch.version.hip
    assert "exit status" in part("checks").ask_torch("/bin/false", dict(os.environ))["error"]


COMPILER = """#!/bin/sh
case "$*" in *--offload-arch=gfx1151*) exit 1 ;; esac
"""


def test_compiler_that_does_not_know_the_card(part, tmp_path, monkeypatch):
    compiler = tmp_path / "hipcc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    monkeypatch.setenv("HIPCC", str(compiler))
    checks = part("checks")
    assert checks.compiler(checks.choose_compiler(["gfx1100"], {})).state == "ok"
    found = checks.compiler(checks.choose_compiler(["gfx1100", "gfx1151"], {}))
    assert found.state == "missing" and "none builds for gfx1151" in found.found and "hipcc" in found.advice


ONLY = """#!/bin/sh
for known in {}; do case "$* " in *"--offload-arch=$known "*) exit 0 ;; esac; done
exit 1
"""


def compiler_for(path, *known):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ONLY.format(" ".join(known)))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("known", "wanted", "built", "left_out"),
    [
        (["gfx1100", "gfx1103"], ["gfx1103", "gfx1100"], ["gfx1100", "gfx1103"], []),
        (["gfx1100"], ["gfx1103", "gfx1100"], ["gfx1100"], ["gfx1103"]),
        (["gfx1100", "gfx11-generic"], ["gfx1103"], ["gfx1100", "gfx11-generic"], ["gfx1103"]),
        (["gfx1030", "gfx10-3-generic"], ["gfx1036"], ["gfx1030", "gfx10-3-generic"], ["gfx1036"]),
        (["gfx900"], ["gfx1103"], [], ["gfx1103"]),
    ],
)
def test_the_build_is_for_what_the_compiler_takes(part, tmp_path, monkeypatch, known, wanted, built, left_out):
    monkeypatch.setenv("HIPCC", compiler_for(tmp_path / "hipcc", *known))
    checks = part("checks")
    choice = checks.choose_compiler(wanted, {})
    assert (choice.targets, choice.left_out) == (built, left_out)
    found = checks.compiler(choice)
    assert found.state == ("missing" if left_out else "ok") and all(name in found.found for name in left_out + built)


def test_the_compiler_of_rocm_s_wheels(part, tmp_path, monkeypatch):
    monkeypatch.delenv("HIPCC", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent:/bin:/usr/bin")
    packages = tmp_path / "lib/python3.12/site-packages"
    compiler = compiler_for(packages / "_rocm_sdk_devel/lib/llvm/bin/clang++", "gfx1999")
    checks = part("checks")
    for runtime in ("_rocm_sdk_core/lib/libamdhip64.so.7", "torch/lib/libamdhip64.so"):
        choice = checks.choose_compiler(["gfx1999"], {"runtime": [str(packages / runtime)]})
        assert (choice.compiler, choice.targets) == (compiler, ["gfx1999"])


def test_a_full_disk(part, tmp_path, monkeypatch):
    checks = part("checks")
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1 << 30}))
    found = checks.disk(tmp_path)
    assert found.state == "missing" and "1.0 GiB" in found.found


# --- names ---

# What logs may say of a machine, its user and others: (text, what may be left of it).
TELLING = [
    ("error in {home}/torch/lib/x.py", "error in [home]/torch/lib/x.py"),
    ("/home/somebody/src and /Users/somebody", "/home/[user]/src and /Users/[user]"),
    ("/tmp/pytest-of-planteduser/0 by PlantedUser", "/tmp/pytest-of-[user]/0 by [user]"),
    ("on planted-host-7.lan: up", "on [host].lan: up"),
    ("GPU-8a2f00c1d2e3f405 is device 0", "[number] is device 0"),
    ("uuid 0f8fad5b-d9cb-469f-a165-70867728950e", "uuid [number]"),
    ("Serial Number: PCB0123-456", "Serial Number: [number]"),
    ("unique_id = 11223344556677889900", "unique_id = [number]"),
    ("link/ether 52:54:00:12:34:56", "link/ether [address]"),
    ("from 192.168.1.17 and 10.0.0.5", "from [address] and [address]"),
    ("mail planted.user@example.org", "mail [address]"),
    ("uuid 0f8fad5bd9cb469fa16570867728950e and 0x0F8FAD5BD9CB469FA16570867728950E", "uuid [number] and [number]"),
    (
        "Looking in indexes: https://jo:pass/word@wheels.corp.example:8443/simple",
        "Looking in indexes: https://[address]:8443/simple",
    ),
    ("git clone ssh://git@code.corp.example/x", "git clone ssh://[address]/x"),
    (
        "Downloading http://wheels.corp.example/a.whl http://wheels:80/b",
        "Downloading http://[address]/a.whl http://[address]:80/b",
    ),
    ("HTTPSConnectionPool(host='wheels.corp.example', port=443)", "HTTPSConnectionPool(host='[address]', port=443)"),
    ("Failed to resolve 'wheels.corp.example'", "Failed to resolve '[address]'"),
    ("inet 203.0.113.7/24, 203.0.113.8:8080", "inet [address]/24, [address]:8080"),
    ("fe80::1ff:fe23:4567:890a, 2001:db8::7 and 2001:db8:1:2:3:4:5:6", "[address], [address] and [address]"),
    ("/mnt/big disk/x, /mnt/disk/thesis/x.py:3, /media/jo/usb", "[folder] disk/x, [folder]:3, [folder]"),
]
# What is not to be touched.
TELLING_NOTHING = """gfx 10.3.0, numpy 2.4.6, memcpy@GLIBC_2.14, hipcc 5.2.21153, 0x52F, float32, 127.0.0.1, us, root
HIP 5.2.21153.0, driver 6.16.6.1, from 2.4.6.1 to 2.4.7.0; 12:34:56; c10::cuda, std::fe, at::native, abc::2001
0.12345678901234567890123456789012; https://github.com/ROCm/ROCm/issues, https://pytorch.org/docs, https://matplotlib.org/
commit 28b84931aa0c3f4d5e6f708192a3b4c5d6e7f809, /usr/lib/mnt, tests/test_values.py::test_x[gfx1151 by table]"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    home = tmp_path / "homes" / "planteduser"
    home.mkdir(parents=True)
    for name, value in {"USER": "planteduser", "LOGNAME": "planteduser", "HOSTNAME": "planted-host-7.lan"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.parametrize(("text", "left"), TELLING)
def test_what_tells_who_and_where_is_taken_out(part, planted, text, left):
    text = text.format(home=planted)
    scrubber = part("scrub").Scrubber()
    assert scrubber.finds_in(text.encode())
    assert scrubber.text(text) in (left, left.replace("[host].lan", "[host]"))
    assert not scrubber.finds_in(scrubber.text(text).encode())


def test_what_tells_nothing_stays(part, planted):
    assert part("scrub").Scrubber().text(TELLING_NOTHING) == TELLING_NOTHING


def test_folders_and_short_names(part, planted, monkeypatch):
    monkeypatch.setenv("USER", "us")
    scrubber = part("scrub").Scrubber({"/opt/x/clone": "[fuseline]"})
    assert scrubber.text("/opt/x/clone/lib of us, status") == "[fuseline]/lib of [user], status"
    assert scrubber.text("/opt/x/clone2") == "/opt/x/clone2"
    assert scrubber.value({"us": [1, "by us"]}) == {"us": [1, "by [user]"]}


def test_keys_are_scrubbed_and_none_is_lost(part, planted):
    value = {"planteduser": 1, "in /mnt/disk/a": 2, "in /mnt/disk/b": 3, "op": {"PlantedUser": 4}}
    found = part("scrub").Scrubber().value(value)
    assert found == {"[user]": 1, "in [folder]": 2, "in [folder] (2)": 3, "op": {"[user]": 4}}


def test_names_are_taken_out_before_texts_are_cut(part, planted):
    archive_module = part("archive")
    archive = archive_module.Archive(part("scrub").Scrubber())
    beginning = archive_module._LOG_BEGINNING
    archive.add_text("a.txt", "x" * (beginning - 8) + " planteduser" + "y" * 400_000)
    assert b"plant" not in archive.members["a.txt"]


def test_messages_of_tests_are_cut_after_their_names_are_taken_out(part, planted):
    main, archive = part("main"), part("archive").Archive(part("scrub").Scrubber())
    message = "x" * 1994 + " planteduser" + "y" * 100
    report = {"failed_tests": [{"test": "a", "message": message}], "skipped_tests": [{"reason": message, "count": 2}]}
    main.cut(found := archive.scrubbed(report))
    assert len(found["failed_tests"][0]["message"]) == 2000 and "plant" not in json.dumps(found)


def test_folders_of_the_python_and_of_pytorch(part, planted):
    main = part("main")
    folders = {"prefixes": ["/opt/jos/ai", "/usr"], "torch": "/opt/jos/packages/torch"}
    scrubber = part("scrub").Scrubber(main.folders_of_python("/opt/jos/bin/python", folders))
    text = "/opt/jos/ai/lib/x.py /opt/jos/packages/torch/y.py /opt/jos/packages/z.py /opt/jos/bin/python /usr/lib/x"
    assert scrubber.text(text) == "[python]/lib/x.py [torch]/y.py [packages]/z.py [python] /usr/lib/x"
    assert "/opt/jos" not in scrubber.text(text)


def test_the_python_is_asked_for_its_folders(part):
    found = part("checks").ask_folders(sys.executable, dict(os.environ))
    assert sys.prefix in found["prefixes"] and sys.base_prefix in found["prefixes"]
    assert found["torch"] == os.path.dirname(torch.__file__)
    assert part("checks").ask_folders("/bin/false", dict(os.environ)) == {"prefixes": [], "torch": None}


def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + b"\0\0\0\0"


PNG = b"\x89PNG\r\n\x1a\n"


def test_members_that_still_name_somebody_are_left_out(part, planted, tmp_path):
    archive = part("archive").Archive(part("scrub").Scrubber())
    files = {
        "good.png": PNG + chunk(b"IDAT", b"us planteduser"),
        "bad.png": PNG + chunk(b"tEXt", b"by planteduser"),
        "no.png": b"text",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        archive.add_picture(name, tmp_path / name)
    assert list(archive.members) == ["good.png"] and archive.left_out == ["bad.png", "no.png"]


def test_json_is_scrubbed_in_its_values(part, planted, monkeypatch):
    monkeypatch.setenv("USER", "us")
    archive = part("archive").Archive(part("scrub").Scrubber())
    archive.add_json("a.json", {"us": 1.5, "log": [f"{planted}/x of us"]})
    assert json.loads(archive.members["a.json"]) == {"us": 1.5, "log": ["[home]/x of [user]"]}


def test_archive_tells_nothing_by_itself(part, tmp_path, planted):
    archive = part("archive").Archive(part("scrub").Scrubber())
    archive.add_text("a.txt", "x")
    archive.write(str(tmp_path / "of-planteduser.tar.gz"), "folder")
    with tarfile.open(tmp_path / "of-planteduser.tar.gz") as found:
        (member,) = found.getmembers()
    assert (member.name, member.uname, member.gname, member.uid, member.mtime) == ("folder/a.txt", "", "", 0, 0)
    assert b"planteduser" not in (tmp_path / "of-planteduser.tar.gz").read_bytes()


def test_long_logs_keep_both_ends(part):
    text = part("archive").shorten("A" + "x" * 500_000 + "Z")
    assert text[0] == "A" and text[-1] == "Z" and len(text) < 300_000 and "left out" in text


# --- steps ---


@pytest.fixture
def run_step(part, tmp_path):
    steps = part("steps")

    def run(command, limit=20):
        log = str(tmp_path / "step.txt")
        result = steps.run("name", "title", command, limit, log, dict(os.environ), tmp_path, steps.Progress())
        return result, pathlib.Path(log).read_text()

    return run


def test_step_that_passes_and_one_that_fails(run_step):
    result, log = run_step(["sh", "-c", "echo out; echo err >&2"])
    assert (result.status, log) == ("passed", "out\nerr\n")
    result, _ = run_step(["sh", "-c", "exit 7"])
    assert (result.status, result.reason) == ("failed", "exit status 7")
    result, _ = run_step(["sh", "-c", "kill -SEGV $$"])
    assert (result.status, result.reason) == ("failed", "killed by SIGSEGV")
    result, _ = run_step(["/no/such/program"])
    assert result.status == "failed" and "could not be started" in result.reason


def is_alive(number):
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_step_that_overruns_is_ended_with_what_it_started(run_step, part, monkeypatch):
    steps = part("steps")
    monkeypatch.setattr(steps, "_GRACE", tuple((number, 0.3) for number, _ in steps._GRACE))
    start = time.monotonic()
    result, log = run_step(["sh", "-c", "trap '' INT TERM; sleep 100 & echo $!; wait; sleep 100"], limit=3)
    assert result.status == "stopped" and "after 3 s, its limit" in result.reason
    assert time.monotonic() - start < 30
    assert not is_alive(int(log))


OUTCOMES = """{"test": "a"}
{"test": "a", "outcome": "passed", "seconds": 1, "message": ""}
{"test": "a", "outcome": "failed", "seconds": 1, "message": "at its end"}
{"test": "b", "outcome": "skipped", "seconds": 1, "message": "Skipped: needs two GPUs"}
{"test": "c", "outcome": "passed", "seconds": 1, "message": ""}
{"test": "e", "outcome": "skipped", "seconds": 1, "message": "no CuPy"}
{"test": "f", "outcome": "skipped", "seconds": 1, "message": "no CuPy"}
{"test": "g", "outcome": "passed", "seconds": 1, "message": ""}
{"test": "d"}
{"test": "d", "out"""


def test_outcomes_of_a_run_that_died(part, tmp_path):
    (tmp_path / "outcomes").write_text(OUTCOMES)
    found = part("figures").Outcomes(tmp_path / "outcomes")
    assert found.counts == (2, 1, 3)
    assert found.unfinished == "d"
    assert found.failed == [{"test": "a", "message": "at its end"}]
    assert found.reasons == [{"reason": "needs two GPUs", "count": 1}, {"reason": "no CuPy", "count": 2}]
    assert part("figures").Outcomes(tmp_path / "none").counts == (0, 0, 0)


def test_tests_that_ran_out_of_time_did_not_fail(part, tmp_path):
    steps, main, figures = part("steps"), part("main"), part("figures")
    passed = '{"test": "a", "at": 1}\n{"test": "a", "outcome": "passed", "seconds": 1, "message": ""}\n'
    failed = '{"test": "b", "at": 2}\n{"test": "b", "outcome": "failed", "seconds": 1, "message": ""}\n'
    begun = '{"test": "c", "at": 50}\n'
    for text, ended, status in (
        (passed + begun, 60, "out of time"),
        (passed + begun, 50 + main.TEST_LIMIT + 1, "stopped"),  # that test hangs
        (passed + failed + begun, 60, "stopped"),
        (begun, 60, "stopped"),
    ):
        (tmp_path / "outcomes").write_text(text)
        result = steps.Result("gpu-tests", "title", "stopped", "stopped after 200 s, its limit")
        result.ended = ended
        main.judge_tests(result, figures.Outcomes(tmp_path / "outcomes"))
        assert result.status == status
    result = steps.Result("gpu-tests", "title", "stopped", "its limit")
    result.ended = 60
    (tmp_path / "outcomes").write_text(passed + begun)
    main.judge_tests(result, figures.Outcomes(tmp_path / "outcomes"))
    assert "ran out of time: 1 passed, 0 failed" in result.reason
    assert main.Report.exit_status(types.SimpleNamespace(results=[result])) == 5 and "  5  " in main.EPILOG


def test_c_tests_that_ran_out_of_time_did_not_fail_if_that_on_the_gpu_ended(part, tmp_path):
    steps, main = part("steps"), part("main")
    (tmp_path / "tests").mkdir()
    for ended, counts, status in (
        (False, (3, 0, 0), "stopped"),
        (True, (3, 0, 0), "out of time"),
        (True, (3, 1, 0), "stopped"),
    ):
        if ended:
            (tmp_path / "tests/test_on_gpu.trs").write_text(":test-result: PASS\n")
        result = steps.Result("c-tests", "title", "stopped", "its limit")
        result.counts = counts
        main.judge_c_tests(result, str(tmp_path))
        assert result.status == status


def test_no_test_takes_the_time_of_all(part, machine, tmp_path, monkeypatch):
    main = part("main")
    report = main.Report(main.parse(quiet_report(main, tmp_path)))
    called = {}
    monkeypatch.setattr(report, "add", lambda name, title, command, *rest, **more: called.update(more, command=command))
    report.test([], "")
    assert called["environment"]["PYTEST_TIMEOUT"] == str(main.TEST_LIMIT) == "30"
    files = {os.path.basename(name)[:-3] for name in called["command"] if name.endswith(".py")}
    assert {"test_gpu", "test_values", "test_torch"} <= files and "test_compile" not in files


@pytest.mark.parametrize(
    ("statuses", "failed_cases", "expected"),
    [
        (["passed", "out of time"], 0, 5),
        (["skipped", "out of time"], 0, 5),
        (["failed", "out of time"], 0, 1),
        (["passed"], 0, 0),
        (["passed", "failed"], 0, 1),
        (["passed", "stopped"], 0, 1),
        (["passed"], 1, 1),
        (["passed", "skipped"], 0, 3),
        (["skipped", "failed"], 0, 1),
    ],
)
def test_exit_status(part, statuses, failed_cases, expected):
    steps, main = part("steps"), part("main")
    report = types.SimpleNamespace(results=[steps.Result("name", "title", status) for status in statuses])
    report.results[0].counts = (5, failed_cases, 0)
    assert main.Report.exit_status(report) == expected


def test_figures_of_the_tutorial_stand_beside_the_card_s(part):
    case = {"op": "swish", "direction": "step", "dtype": "float32", "shape": [67108864], "us": 6000.0, "gbps": 223.7}
    case.update(of_copy=0.97, against={"eager": 2.5})
    forward = {**case, "direction": "forward", "us": 3000.0, "of_copy": 0.91}
    times = part("figures").tutorial_times([forward, case])
    assert times == [{"elements": 67108864, "fused_ms": 6.0, "eager_ms": 15.0, "ratio": 2.5}]
    summary = part("summary")
    report = {"tutorial": times, "bench": {"tutorial": [forward, case]}}
    lines = [" ".join(line.split()) for line in [*summary._tutorial(report), *summary._bench(report)]]
    assert "the tutorial, on a Radeon 8060S (gfx1151) 14.52 ms 6.88 ms 2.11x" in lines
    assert "this card, 67.1M elements 15.00 ms 6.00 ms 2.50x" in lines
    assert "tutorial: swish step float32 67108864 6000.0 223.7 97.0%" in lines
    assert "of copy: lowest 91.0%, median 97.0%, highest 97.0%" in lines


def test_every_test_file_is_named_once(part, root):
    main = part("main")
    names = {path.stem for path in pathlib.Path(root, "tests", "python").glob("test_*.py")}
    listed = [*main.FIRST_TESTS, *main.LAST_TESTS, *main.NOT_RUN]
    assert len(set(listed)) == len(listed) and set(listed) <= names


@pytest.mark.parametrize(
    "arguments",
    [["--step-limit", "x=1"], ["--step-limit", "info=x"], ["--skip", "x"], ["--library", "/no"], ["--build", "/no"]],
)
def test_wrong_options(part, arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        part("main").parse(arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err


# --- the folder ---


def environment_at(folder):
    """A Python environment as --python may name it: its python is a link, as in a venv."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    (folder / "bin/python").symlink_to(os.path.realpath(sys.executable))
    return str(folder / "bin/python")


def test_the_work_goes_into_a_folder_of_our_own(part, tmp_path):
    python = environment_at(tmp_path / "ai/venv")
    for name in ("build", "logs", "files"):
        (tmp_path / "ai" / name).mkdir()
        (tmp_path / "ai" / name / "mine").write_text("")
    main = part("main")
    options = main.parse(["--work", str(tmp_path / "ai"), "--python", python])
    assert options.work == str(tmp_path / "ai/fuseline-report")
    main.make_folders(main.Report(options))
    assert os.path.exists(python) and all((tmp_path / "ai" / name / "mine").exists() for name in ("build", "logs"))
    assert (tmp_path / "ai/fuseline-report/logs").is_dir()
    (tmp_path / "ai/fuseline-report/logs/old.txt").write_text("")
    main.make_folders(main.Report(options))  # a second report
    assert not (tmp_path / "ai/fuseline-report/logs/old.txt").exists()


def test_a_folder_that_is_not_ours_stays(part, tmp_path, capsys):
    (tmp_path / "fuseline-report/logs").mkdir(parents=True)
    (tmp_path / "fuseline-report/logs/mine").write_text("")
    main = part("main")
    with pytest.raises(SystemExit):
        main.parse(["--work", str(tmp_path)])
    assert "--work" in capsys.readouterr().err and (tmp_path / "fuseline-report/logs/mine").exists()


@pytest.mark.parametrize("link", [False, True])
def test_a_python_that_would_be_deleted_is_refused(part, tmp_path, capsys, link):
    python = environment_at(tmp_path / "fuseline-report/venv")
    (tmp_path / "fuseline-report" / part("main").MARKER).write_text("")
    if link:
        (tmp_path / "other").symlink_to(tmp_path / "fuseline-report/venv")
        python = str(tmp_path / "other/bin/python")
    with pytest.raises(SystemExit):
        part("main").parse(["--work", str(tmp_path), "--python", python])
    assert "--work" in capsys.readouterr().err and os.path.exists(python)


@pytest.mark.parametrize("script", ["environment.sh", "build.sh"])
def test_the_scripts_delete_nothing_without_the_marker(root, tmp_path, script):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/mine").write_text("")
    command = [os.path.join(root, "scripts", "report", script), str(tmp_path / "folder"), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "not made by" in done.stderr and (tmp_path / "folder/mine").exists()


# --- what goes wrong in the report itself ---


def quiet_report(main, tmp_path, *more):
    return [
        "--work",
        str(tmp_path),
        "--output",
        str(tmp_path / "output"),
        "--python",
        sys.executable,
        "--installed",
        *more,
    ]


def members_in(folder):
    members = {}
    for path in pathlib.Path(folder).glob("*.tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
            for member in archive.getmembers():
                members[member.name.partition("/")[2]] = archive.extractfile(member).read()
    return members


@pytest.mark.parametrize("broken", ["look", "prepare", "as_json", "commit", "info"])
def test_the_archive_is_written_after_any_exception(part, machine, tmp_path, monkeypatch, broken, capsys):
    main = part("main")

    def thrown(*arguments, **keywords):
        raise ValueError("no such thing")

    monkeypatch.setattr(main.Report, broken, thrown)
    monkeypatch.setattr(main.checks, "ask_torch", lambda *arguments: {"error": "not asked"})
    status = main.main(quiet_report(main, tmp_path, "--limit", "0"))
    members = members_in(tmp_path / "output")
    assert status == 1 and "ValueError: no such thing" in members["summary.txt"].decode()
    assert json.loads(members["report.json"])


def test_the_archive_is_written_when_figures_make_no_sense(part, machine, tmp_path, monkeypatch):
    main = part("main")
    monkeypatch.setattr(main.checks, "ask_torch", lambda *arguments: {"error": "not asked"})
    monkeypatch.setattr(main.summary, "text", lambda report: 1 / 0)
    assert main.main(quiet_report(main, tmp_path, "--limit", "0")) == 1
    assert "ZeroDivisionError" in members_in(tmp_path / "output")["summary.txt"].decode()


def heed_interrupts():
    """Tests that run in the background of a shell were told to ignore them, and so would be what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_the_archive_is_written_when_the_report_is_ended(root, machine, planted, tmp_path, number):
    python = tmp_path / "python"  # one that hangs as a step, and says who it is
    python.write_text(f'#!/bin/sh\ncase "$*" in *venv*) echo $$ >{tmp_path}/begun; exec sleep 300 ;; esac\nexit 1\n')
    python.chmod(0o755)
    command = [sys.executable, os.path.join(root, "scripts/report/main.py"), "--installed", "--python", str(python)]
    command += ["--work", str(tmp_path / "work"), "--output", str(tmp_path / "output")]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        while not (tmp_path / "begun").exists() or not (tmp_path / "begun").read_text().strip():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.1)
        os.kill(process.pid, getattr(signal, number))
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    members = members_in(tmp_path / "output")
    assert process.returncode == 1 and "interrupted" in members["summary.txt"].decode(), output
    assert not is_alive(int((tmp_path / "begun").read_text()))


def test_the_commit_of_a_clone_of_another_owner(part, machine, tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    clone.mkdir()
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    main = part("main")
    report = main.Report(main.parse(quiet_report(main, tmp_path)))
    monkeypatch.setattr(main, "ROOT", str(clone))
    report.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"  # git's own, for its tests
    assert report.commit() == commit


def test_report_and_archive_are_of_the_card_that_was_tested(part, machine, tmp_path, monkeypatch):
    main = part("main")
    devices = [{"name": f"Card {name}", "architecture": f"{name}:xnack-"} for name in ("gfx1100", "gfx1036")]
    answer = {"python": "3", "version": "2", "hip": "7", "available": True, "devices": devices, "runtime": []}
    monkeypatch.setattr(main.checks, "ask_torch", lambda *arguments: answer)
    monkeypatch.setattr(main.Report, "commit", lambda self: "0123456789ab")
    main.main(quiet_report(main, tmp_path, "--limit", "0"))
    (path,) = (tmp_path / "output").glob("*.tar.gz")
    assert path.name.startswith("fuseline-report-gfx1100-2")
    summary = members_in(tmp_path / "output")["summary.txt"].decode()
    assert "Card gfx1100, gfx1100" in summary and "the first of 2 devices, and the only one that is tested" in summary
    assert "0123456789ab" in summary and "the driver lists gfx1151" in summary


# --- from end to end ---


@pytest.fixture
def report(root, tmp_path, machine, planted):
    """Runs scripts/amd-report on the machine; returns (the process, {member of its archive: bytes})."""

    def run(*options, steps=None, **environment):
        search = [os.path.join(root, "tests", "played"), os.environ.get("PYTHONPATH")]
        command = [
            os.path.join(root, "scripts", "amd-report"),
            "--python",
            sys.executable,
            "--installed",
            "--device",
            "cpu",
        ]
        command += [
            "--work",
            str(tmp_path / "work"),
            "--output",
            str(tmp_path / "output"),
            *options,
        ]
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, search)),
            "FUSELINE_PLAYED_STEPS": json.dumps(steps or {}),
            "FUSELINE_STANDIN": standin_folder(root),
            **environment,
        }
        done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=200)
        members = members_in(tmp_path / "output")
        assert members, done.stdout + done.stderr
        return done, members

    return run


def standin_folder(root):
    return os.environ.get("FUSELINE_STANDIN") or os.path.join(root, "build", "tests", "standin")


@pytest.fixture
def build_tree(root):
    folder = os.path.dirname(os.path.dirname(standin_folder(root)))
    if not os.path.exists(os.path.join(standin_folder(root), "libamdhip64.so")):
        pytest.skip("make check has built no stand-in runtime")
    if "gfx1151" not in fuseline.info()["gpu"]["targets"]:
        pytest.skip("fuseline is built without code for gfx1151")
    return folder


def names_somebody(data):
    """What a member says of what was planted, or of the machine that this test really runs on."""
    text = data.decode("utf-8", "replace").lower()
    names = ["planted", "somebody", "11223344556677889900", "8a2f00c1d2e3f405", "/homes/"]
    names += [socket.gethostname()] if len(socket.gethostname()) >= 5 else []
    return [name for name in names if name.lower() in text]


def test_a_report_of_a_played_radeon(report, build_tree):
    bench = "tutorial=--op swish --direction step --numel 5000,20000 --against eager,builtin --runs 3"
    tests = "gfx1151 and table and (test_tutorial_numbers or test_derivative_at_zero)"
    done, members = report(
        "--bench",
        bench,
        "--build",
        build_tree,
        "--c-tests",
        "tests/test_errors tests/test_on_gpu",
        "--tests",
        tests,
        "--test-files",
        "test_values",
    )
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown
    logs = {
        f"logs/{name}.txt"
        for name in ("environment", "info", "tutorial", "bench-tutorial", "pictures", "gpu-tests", "c-tests")
    }
    assert set(members) == {"summary.txt", "report.json", "pictures/bench-tutorial.png", *logs}
    assert members["pictures/bench-tutorial.png"].startswith(PNG)
    for name, data in members.items():
        assert not names_somebody(data), name

    found = json.loads(members["report.json"])
    cases = {step["name"]: step["cases"] for step in found["steps"]}
    assert cases["tutorial"] == {"passed": 11, "failed": 0, "skipped": 0}
    # Forward and backward of five inputs and of 0: that many of them on the device that is played.
    assert "played: 4 kernels" in members["logs/tutorial.txt"].decode()
    assert re.search(r"played: [1-9]\d+ kernels", members["logs/bench-tutorial.txt"].decode())
    said = members["logs/gpu-tests.txt"].decode()
    assert f"{cases['gpu-tests']['passed']} passed" in said and cases["gpu-tests"]["passed"] > 1
    assert f"{cases['c-tests']['passed']} passed, 0 failed" in members["logs/c-tests.txt"].decode()
    total = {kind: sum(counted[kind] for counted in cases.values() if counted) for kind in found["cases"]}
    assert found["cases"] == total
    assert {"index": 0, "kind": "rocm", "architecture": "gfx1151", "supported": True} in found["info"]["gpu"]["devices"]
    assert all(check["state"] != "missing" for check in found["checks"] if check["name"] != "disk"), found["checks"]

    assert found["c_tests_ran_on"] == "the first device of the stand-in runtime"
    assert "# swish float32: forward" in members["logs/c-tests.txt"].decode()

    summary = members["summary.txt"].decode()
    assert f"{total['passed']} passed, 0 failed, {total['skipped']} skipped" in summary
    assert "Played Radeon, gfx1151" in summary and "ROCm 7.0.1" in summary
    lines = [" ".join(line.split()) for line in summary.splitlines()]
    assert "the tutorial, on a Radeon 8060S (gfx1151) 14.52 ms 6.88 ms 2.11x" in lines
    first, second = found["bench"]["tutorial"]
    for case in (first, second):
        ours, theirs, ratio = case["us"] / 1e3, case["us"] / 1e3 * case["against"]["eager"], case["against"]["eager"]
        count = case["shape"][0] / 1e6
        assert f"this card, {count:.1f}M elements {theirs:.2f} ms {ours:.2f} ms {ratio:.2f}x" in lines
        speed = f"{case['us']:.1f} {case['gbps']:.1f} {100 * case['of_copy']:.1f}%"
        assert any(
            line.startswith(f"tutorial: swish step float32 {case['shape'][0]}") and line.endswith(speed)
            for line in lines
        )
    assert summary.strip() in done.stdout


def test_a_report_where_much_goes_wrong(report, machine, planted):
    no_kfd(machine)
    telling = "\n".join(text.format(home=planted) for text, _ in TELLING)
    done, members = report(
        "--step-limit",
        "bench=1",
        "--tests",
        "gfx1151 and test_tutorial_numbers",  # which is skipped without a stand-in
        "--test-files",
        "test_values",
        steps={
            "tutorial_checks.py": {"print": f"  a   DIFFERS\n{telling}\nthe last words", "exit": 3},
            "fuseline bench": {"sleep": 60},
        },
        FUSELINE_STANDIN="/nonexistent",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(members["report.json"])
    steps = {step["name"]: step for step in found["steps"]}
    statuses = {name: step["status"] for name, step in steps.items()}
    assert statuses["tutorial"] == "failed" and steps["tutorial"]["reason"] == "exit status 3"
    assert steps["tutorial"]["cases"]["failed"] == 1 and found["cases"]["failed"] == 1
    assert statuses["bench:tutorial"] == "stopped" and "after 1 s, its limit" in steps["bench:tutorial"]["reason"]
    assert statuses["gpu-tests"] == "failed" and "no case of it passed" in steps["gpu-tests"]["reason"]
    assert steps["gpu-tests"]["cases"]["skipped"] > 0
    assert statuses["c-tests"] == "skipped" and "no build tree" in steps["c-tests"]["reason"]
    assert statuses["environment"] == "passed"
    assert "    | the last words" in done.stdout
    missing = {check["name"]: check for check in found["checks"] if check["state"] == "missing"}
    assert (
        "no /dev/kfd" in missing["driver"]["found"] and missing["driver"]["advice"] in members["summary.txt"].decode()
    )
    assert (
        "[home]" in members["logs/tutorial.txt"].decode() and "the last words" in members["logs/tutorial.txt"].decode()
    )
    for name, data in members.items():
        assert not names_somebody(data), name


def test_without_time_everything_is_left_out_and_said(report, machine):
    done, members = report("--limit", "0")
    assert done.returncode == 3
    found = json.loads(members["report.json"])
    assert {step["status"] for step in found["steps"]} == {"skipped"}
    reasons = {step["name"]: step["reason"] for step in found["steps"]}
    others = {"pictures": "nothing was measured", "c-tests": "no build tree"}
    assert all(others.get(name, "was over") in reason for name, reason in reasons.items()), reasons
