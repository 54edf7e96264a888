"""DCQCN tuning as a Gymnasium environment over an exact packet engine.

Importing this package registers ``dcqcn/Dcqcn-v0`` (any scenario) and one environment id per
scenario that comes with it, so ``gymnasium.make("dcqcn_gym:dcqcn/FBHadoop-v0")`` works; as long as
nobody imports Gymnasium, it waits with that. Nothing heavy is imported before an environment is
made.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from dcqcn_gym import _late

__version__ = "0.1.0"

_LATER = {
    "compare": "_api",
    "default_setting": "core.knobs",
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

__all__ = ["__version__", "env_id", "env_ids", "parallel_env"]
__all__ += sorted(_LATER)

ENV_VERSION = 0
"""Version in every environment id: a change of dynamics, reward or observation bumps it."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


_NAMESPACE = "dcqcn"
_UPPER = {"fb": "FB", "llm": "LLM"}
_SCENARIOS = Path(__file__).parent / "configs" / "scenarios"


def env_id(scenario: str) -> str:
    """Return the environment id of a scenario: ``"fb-hadoop"`` is ``"dcqcn/FBHadoop-v0"``."""
    words = (_UPPER.get(word, word[:1].upper() + word[1:]) for word in scenario.split("-"))
    return f"{_NAMESPACE}/{''.join(words)}-v{ENV_VERSION}"


def env_ids() -> list[str]:
    """Return every environment id of this package that is registered with Gymnasium."""
    import gymnasium

    return [s.id for s in gymnasium.registry.values() if s.entry_point == _ENTRY]


def parallel_env(scenario: Any = "fb-hadoop", **arguments: Any) -> Any:
    """Return a PettingZoo ``ParallelEnv``: one agent per switch, port, NIC or group of devices.

    The arguments are those of :class:`dcqcn_gym.envs.parallel.AgentsEnv`. Raises
    :class:`~dcqcn_gym.core.errors.MissingExtraError` without the extra ``multiagent``.
    """
    # nothing heavy before an environment is made
    parallel = importlib.import_module("dcqcn_gym.envs.parallel")
    return parallel.parallel_env(scenario, **arguments)


_ENTRY = "dcqcn_gym.envs.dcqcn:DcqcnEnv"
_VECTOR_ENTRY = "dcqcn_gym.envs.vector:DcqcnVectorEnv"


def _register() -> None:
    """Register the ids by name only; classes are loaded by ``gymnasium.make``."""
    import gymnasium

    ids: dict[str, dict[str, str]] = {env_id("dcqcn"): {}}
    ids |= {env_id(p.stem): {"scenario": p.stem} for p in sorted(_SCENARIOS.glob("*.toml"))}
    for name, arguments in ids.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name, entry_point=_ENTRY, vector_entry_point=_VECTOR_ENTRY, kwargs=arguments
            )


_late.after_import("gymnasium", _register)
