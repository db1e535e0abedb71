"""python -m fuseline info"""

import json
import subprocess
import sys

import pytest

import fuseline
from fuseline import __main__


def test_json(capsys):
    assert __main__.main(["info", "--json"]) == 0
    printed = capsys.readouterr().out
    known = json.loads(printed)
    assert {"version", "operators", "cpu", "gpu"} <= set(known)
    assert known["version"] == fuseline.__version__
    assert "swish" in known["operators"]
    assert known["cpu"]["variant"] in ("base", "avx2", "avx512") and known["cpu"]["threads"] >= 1
    gpu = known["gpu"]
    assert isinstance(gpu["targets"], list) and all(isinstance(target, str) for target in gpu["targets"])
    assert gpu["runtime"] is None or isinstance(gpu["runtime"], str)
    assert isinstance(gpu["devices"], list)
    for device in gpu["devices"]:
        assert {"index", "kind", "architecture", "supported"} <= set(device)


def test_table(capsys):
    assert __main__.main(["info"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines() if not line.startswith("GPU"))
    assert lines["fuseline"] == fuseline.__version__
    assert lines["operators"] == ", ".join(fuseline.info()["operators"])
    assert lines["library"] == fuseline._library.path


def test_table_names_every_device(capsys, monkeypatch):
    known = fuseline.info()
    known["gpu"] = {
        "targets": ["gfx1151", "ptx_75"],
        "runtime": "/opt/libamdhip64.so.6",
        "error": None,
        "devices": [
            {"index": 0, "kind": "rocm", "architecture": "gfx1151", "supported": True},
            {"index": 1, "kind": "rocm", "architecture": "gfx803", "supported": False},
        ],
    }
    monkeypatch.setattr(__main__, "info", lambda: known)
    __main__.main(["info"])
    printed = capsys.readouterr().out
    for text in ("gfx1151, ptx_75", "/opt/libamdhip64.so.6", "gfx1151 (rocm), supported", "gfx803 (rocm), no code"):
        assert text in printed


def test_as_a_module():
    command = [sys.executable, "-m", "fuseline", "info", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["version"] == fuseline.__version__
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["info", "--yaml"]])
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        __main__.main(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m fuseline" in capsys.readouterr().err
