"""bench/openmp.py: what it writes. Times themselves are nobody's to test."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def test_both_orders(root, tmp_path):
    file = tmp_path / "figures.json"
    options = ["--threads", "1", "--rounds", "1", "--calls", "2", "--json", str(file)]
    done = subprocess.run(
        [sys.executable, os.path.join(root, "bench", "openmp.py"), *options],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    cases = {(case["first"], case["op"], case["before"]): case for case in json.loads(file.read_text())["cases"]}
    operators = {operator for _, operator, _ in cases}
    assert operators == {"mul of 4194304", "mm of 512 x 512"} and len(cases) == 2 * 2 * 3
    for (first, operator, before), case in cases.items():
        silu = cases[first, operator, "silu"]
        assert case["calls"] == 2 and case["us"] >= case["us_least"] > 0
        assert case["of_silu"] == case["us"] / silu["us"], before
        assert f"{operator} after {before}" in done.stdout
