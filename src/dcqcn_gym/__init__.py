"""DCQCN tuning as a Gymnasium environment over an exact packet engine.

Importing this package registers ``dcqcn/Dcqcn-v0`` (any scenario) and one environment id per
scenario that comes with it, so ``gymnasium.make("dcqcn_gym:dcqcn/FBHadoop-v0")`` works; as long as
nobody imports Gymnasium, it waits with that. Nothing heavy is imported before an environment is
made.
"""

from __future__ import annotations

import importlib
from typing import Any

from dcqcn_gym import _late

_LATER = {
    "__version__": "core.version",
    "compare": "_api",
    "default_setting": "core.knobs",
    "env_id": "envs.ids",
    "env_ids": "envs.ids",
    "expert_setting": "core.knobs",
    "load_scenario": "envs.scenario.scenario",
    "make": "_api",
    "objective": "report.objective",
    "read_run": "runs.log",
    "scenario_names": "envs.scenario.scenario",
    "simulate": "simulation.run",
    "tune": "_api",
    "DcqcnGymError": "core.errors",
    "Scenario": "envs.scenario.scenario",
    "Setting": "core.knobs",
    "Tuner": "tuners",
}
"""Where names are that are imported when somebody asks; ``__init__.pyi`` says their types."""

__all__ = ["parallel_env"]
__all__ += sorted(_LATER)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


def parallel_env(scenario: Any = "fb-hadoop", **arguments: Any) -> Any:
    """Return a PettingZoo ``ParallelEnv``: one agent per switch, port, NIC or group of devices.

    The arguments are those of :class:`dcqcn_gym.extras.learn.parallel.AgentsEnv`. Raises
    :class:`~dcqcn_gym.core.errors.MissingExtraError` without the extra ``multiagent``.
    """
    # nothing heavy before an environment is made
    parallel = importlib.import_module("dcqcn_gym.extras.learn.parallel")
    return parallel.parallel_env(scenario, **arguments)


def _register() -> None:
    ids = importlib.import_module("dcqcn_gym.envs.ids")
    ids.register()


_late.after_import("gymnasium", _register)
