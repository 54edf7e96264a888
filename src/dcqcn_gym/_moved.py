"""The paths that modules had in release 0.1: they lead to the new ones, with a warning.

docs/public-names.md lists what to import from where. The next release drops this file.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

__all__ = ["MOVED", "install"]

_ROOMS = {
    "core": (
        "errors", "config", "registry", "knobs", "space", "interval", "utility", "statistics",
        "collectives", "overhead",
    ),
    "runs": ("loop", "bookkeeping", "pool", "progress"),
    "simulate": ("trace", "tracer"),
    "hw": ("emit",),
}  # fmt: skip

MOVED = {
    f"dcqcn_gym.{name}": f"dcqcn_gym.{r}.{name}" for r, names in _ROOMS.items() for name in names
}
"""Old path to new path."""
MOVED |= {
    "dcqcn_gym.record": "dcqcn_gym.runs.log",
    "dcqcn_gym.run_spec": "dcqcn_gym.runs.spec",
    "dcqcn_gym.tuning": "dcqcn_gym.runs.session",
    "dcqcn_gym.result_files": "dcqcn_gym.simulate.files",
    "dcqcn_gym.envs.scenarios": "dcqcn_gym.envs.scenario.scenario",
    **{f"dcqcn_gym.envs.{n}": f"dcqcn_gym.envs.scenario.{n}"
       for n in ("compile", "tables", "topology", "workloads")},
}  # fmt: skip


class _Redirect(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in MOVED:
            return None
        warnings.warn(
            f"{name} is now {MOVED[name]}; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module itself, so that its classes are the same under both paths."""
        return importlib.import_module(MOVED[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do: the module was executed under its own name."""


def install() -> None:
    """Make the old paths importable; further calls change nothing."""
    if not any(isinstance(finder, _Redirect) for finder in sys.meta_path):
        sys.meta_path.append(_Redirect())
