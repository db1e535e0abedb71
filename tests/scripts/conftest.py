import os
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def shell(tmp_path):
    """Runs bash code that has sourced the named files of scripts/lib, in an empty folder that is its $root."""

    def run(code, *libraries, **variables):
        sources = "".join(f'source "{ROOT}/scripts/lib/{name}.sh"\n' for name in libraries)
        script = f'set -euo pipefail\nroot="{tmp_path}"\n{sources}{code}\n'
        environment = {**os.environ, "LC_ALL": "C", **variables}
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run
