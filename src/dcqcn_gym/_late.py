"""Run a function when another package is imported, without importing it.

Gymnasium takes a quarter of a second to import; commands that make no environment do without.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


def after_import(name: str, call: Callable[[], None]) -> None:
    """Call now if module ``name`` is there already, else right after its first import."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Waiting(name, call))


class _Waiting(importlib.abc.MetaPathFinder):
    """Lets the others find the module, and puts itself behind its loader; once."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name, self._call = name, call

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, self._call)
        return spec


class _Calling(importlib.abc.Loader):
    """Another loader, and a call after it."""

    def __init__(self, loader: importlib.abc.Loader, call: Callable[[], None]) -> None:
        self._loader, self._call = loader, call

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module as it would have been, then call."""
        if module.__spec__ is not None:  # what looks for its files asks the loader
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call()
