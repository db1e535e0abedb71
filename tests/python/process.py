"""Runs Python in a process of its own."""

import os
import subprocess
import sys


def run_python(program, *options, check=True, **environment):
    """Runs a program and returns what it printed; on failure shows what it printed to both ends.

    options: of the interpreter, before the program.
    environment: variables to set, or to remove where None.
    """
    variables = {**os.environ, **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    done = subprocess.run(
        [sys.executable, *options, "-c", program], env=variables, capture_output=True, text=True, timeout=100
    )
    if check:
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
    return done
