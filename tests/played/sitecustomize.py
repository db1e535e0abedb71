"""For tests of scripts/amd-report: every Python process that has this folder on its path is on a machine with a Radeon.

The ROCm runtime is tests/standin's, which runs the kernels; PyTorch's tensors are labelled as its memory, as for the
tests that take `device`. Nothing is made of results: what fuseline computes is computed. FUSELINE_PLAYED_STEPS, JSON,
makes programs fail: {"part of the command line": {"print": text, "sleep": seconds, "exit": status}}.
"""

import atexit
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import sys
import time
import types

_TESTS = pathlib.Path(__file__).resolve().parents[1]


def _command_line():
    with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as file:
        return file.read().replace("\0", " ")


def _play_steps():
    for part, what in json.loads(os.environ.get("FUSELINE_PLAYED_STEPS", "{}")).items():
        if part in _command_line():
            print(what.get("print", ""), flush=True)
            time.sleep(what.get("sleep", 0))
            os._exit(what.get("exit", 0))


def _play_torch(torch):
    """What scripts/report/ask_torch.py asks; to all other programs PyTorch is the one that it is."""
    if "ask_torch.py" not in _command_line():
        return
    card = types.SimpleNamespace(
        name="Played Radeon",
        gcnArchName="gfx1151:sramecc-:xnack-",
        total_memory=64 << 30,
        multi_processor_count=20,
        warp_size=32,
    )
    torch.version.hip = "7.0.1"
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_properties = lambda index: card


_entered = []


def _play_fuseline(fuseline):
    if "pytest" not in sys.modules:  # there the fixture does it, for the tests that ask for it
        sys.path.append(str(_TESTS / "python"))
        import standin

        standin.table()
        runtime, why_none = standin.find()
        if runtime is None:
            print(f"played: {why_none}", flush=True)
            return
        _entered.append(standin.tensors(0))  # kept, as it ends when nobody knows it
        _entered[0].__enter__()
        atexit.register(lambda: print(f"played: {runtime.kernels_run()} kernels", flush=True))


_PLAYED = {"torch": _play_torch, "fuseline": _play_fuseline}


class _Loader(importlib.abc.Loader):
    """Another loader, and what is to be done after it."""

    def __init__(self, loader, done):
        self._loader, self._done = loader, done

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._done(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in _PLAYED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, _PLAYED[name])
        return spec


_play_steps()
sys.meta_path.insert(0, _Finder())
