"""Tells PyTorch's compiler what to trace in place of the functions that C serves, which it cannot look into.

The compiler is a large module that most programs never load, and that others load after this package: so the telling
waits for its import.
"""

import importlib.abc
import importlib.util
import sys

_COMPILER = "torch._dynamo"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds nothing itself; has a function called once a module is loaded."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path, target=None):
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            self._then()

        spec.loader.exec_module = load_and_tell
        return spec


def when_loaded(then):
    """Calls a function when PyTorch's compiler is loaded; at once if it is."""
    if _COMPILER in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _AfterImport(_COMPILER, then))
