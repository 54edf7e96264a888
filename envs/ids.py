"""The ids of environments that Gymnasium knows: one per scenario of the package."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENV_VERSION = 0
"""Version in every environment id: a change of dynamics, reward or observation raises it."""
RAISED = {"tcp-incast": 1, "tcp-racks": 1}
"""Added to it for scenarios of which alone that is true; ``tests/digests/ids.txt`` is checked."""

_UPPER = {"fb": "FB", "llm": "LLM"}
_SCENARIOS = Path(__file__).parent.parent / "configs" / "scenarios"
_ENTRY = "dcqcn_gym.envs.dcqcn:DcqcnEnv"
_VECTOR_ENTRY = "dcqcn_gym.envs.vector:DcqcnVectorEnv"
_INTERVALS, _CADENCE = 280, 1
"""Defaults of a scenario's keys; a scenario is not loaded before an environment is made."""


def env_id(scenario: str) -> str:
    """Return the environment id of a scenario: ``"fb-hadoop"`` is ``"dcqcn/FBHadoop-v0"``."""
    words = (_UPPER.get(word, word[:1].upper() + word[1:]) for word in scenario.split("-"))
    return f"dcqcn/{''.join(words)}-v{ENV_VERSION + RAISED.get(scenario, 0)}"


def env_ids() -> list[str]:
    """Return every environment id of this package that is registered with Gymnasium."""
    registry = importlib.import_module("gymnasium").registry
    return [s.id for s in registry.values() if s.entry_point == _ENTRY]


def register() -> None:
    """Register the ids, each with its scenario's budget in steps as ``max_episode_steps``."""
    _register(env_id("dcqcn"), {}, None)
    for path in sorted(_SCENARIOS.glob("*.toml")):
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
        steps = math.ceil(keys.get("intervals", _INTERVALS) / keys.get("cadence", _CADENCE))
        _register(env_id(path.stem), {"scenario": path.stem}, steps)


def _register(name: str, arguments: dict[str, Any], steps: int | None) -> None:
    # not above: whoever asks for a name first would have it call register() before it is there
    gymnasium = importlib.import_module("gymnasium")
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            entry_point=_ENTRY,
            vector_entry_point=_VECTOR_ENTRY,
            max_episode_steps=steps,
            kwargs=arguments,
        )
