"""bench/several_gpus.py: what it computes and writes. Times themselves are nobody's to test."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def run(root, *arguments, **environment):
    program = os.path.join(root, "bench", "several_gpus.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(
        [sys.executable, program, *arguments], capture_output=True, text=True, env=environment, timeout=200
    )


def test_without_a_second_gpu(root, tmp_path):
    """It says so, and so does what it writes."""
    file = tmp_path / "figures.json"
    done = run(root, "--json", str(file), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PyTorch finds 0 GPU(s) here; this compares two or more")
    figures = json.loads(file.read_text())
    assert figures["gpus"] == 0 and figures["cases"] == [] and figures["summary"] is None


def test_played_gpus(root, tmp_path):
    """Threads and processes run and answer."""
    file = tmp_path / "figures.json"
    options = "--cpu 2 --op swiglu --rows 1 --rounds 1 --seconds 0.01".split()
    done = run(root, *options, "--json", str(file), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    cases = {(case["direction"], case["dtype"]): case for case in figures["cases"]}
    assert set(cases) == {(way, dtype) for way in ("forward", "backward") for dtype in ("bfloat16", "float32")}
    assert cases["forward", "float32"]["bytes"] == 3 * 14_336 * 4
    assert cases["backward", "bfloat16"]["bytes"] == 5 * 14_336 * 2
    for case in (*figures["cases"], *figures["small"]):
        for way in ("threads", "processes"):
            assert case[way]["share"] > 0 and 0 <= case[way]["overlap"] <= 1
            assert len(case[way]["calls_per_second"]) == len(case["alone"]) == 2
    for way in ("threads", "processes"):
        assert figures["summary"][way]["lowest"] == min(case[way]["share"] for case in figures["cases"])
        assert f"{way}: lowest share" in done.stdout


def test_share(root, monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(root, "bench"))
    import several_gpus

    alone = [(0.0, 1.0, 1.0), (5.0, 7.0, 2.0)]  # 100 and 50 calls per second
    at_once = [(10.0, 12.0, 2.0), (11.0, 13.0, 1.0)]  # 50 and 50; by events 50 and 100
    found = several_gpus.share(alone, at_once, 100)
    assert found["share"] == pytest.approx(100 / 150) and found["share_by_events"] == pytest.approx(1)
    assert found["overlap"] == pytest.approx(1 / 3) and found["calls_per_second"] == [50, 50]
    figures = [{"threads": {"share": share}, "processes": {"share": 1.0}} for share in (0.9, 1.0)]
    assert several_gpus.summary(figures) == {
        "threads": {"lowest": 0.9, "mean": pytest.approx(0.95), "reached": False},
        "processes": {"lowest": 1.0, "mean": 1.0, "reached": True},
    }


def test_median_of_an_even_number_of_rounds(root, monkeypatch):
    """Lies between the two in the middle."""
    monkeypatch.syspath_prepend(os.path.join(root, "bench"))
    import several_gpus

    shares = 0.96, 1.0, 0.9, 0.98
    rounds = [
        {"share": share, "share_by_events": 2 * share, "overlap": 1.0, "calls_per_second": [share, 10 * share]}
        for share in shares
    ]
    found = several_gpus.median_of(rounds)
    assert found["share"] == pytest.approx(0.97) and found["share_by_events"] == pytest.approx(1.94)
    assert found["calls_per_second"] == pytest.approx([0.97, 9.7]) and found["overlap"] == 1
    assert found["shares"] == list(shares)
    assert several_gpus.median_of(rounds[:3])["share"] == 0.96
