"""The command that makes a run again, from the first line of its log."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from dcqcn_gym.envs.scenario.scenario import load_scenario, scenario_names
from dcqcn_gym.tuners.base import argument_text

HARDWARE = "hardware"


def command_again(header: Mapping[str, Any], out: str) -> str:
    """Return the words to type; a scenario of somebody's own is marked by a comment."""
    backend, _, given = str(header.get("backend")).partition(":")
    words, note = _scenario_words(header)
    program = [
        "dcqcn-gym",
        *(["hw", "tune", "--fleet", given] if backend == HARDWARE else ["tune"]),
    ]
    words = [*program, *words, "--tuner", str(header.get("tuner"))]
    words += ["--seed", str(header.get("seed")), "--intervals", str(header.get("intervals"))]
    for name, value in (header.get("tuner_args") or {}).items():
        if value is not None:  # nothing was given
            words += ["--tuner-arg", f"{name}={argument_text(value)}"]
    if backend not in ("native", HARDWARE):
        words += ["--backend", str(header.get("backend"))]
    return shlex.join([*words, "--out", out]) + note


def _scenario_words(header: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return what names the scenario, and a comment if it is none of the package's."""
    found = header.get("scenario")
    scenario: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    name = str(scenario.get("name"))
    if name in scenario_names():
        ours = load_scenario(name).model_dump(mode="json")
        monitor = scenario.get("monitor")
        if ours == scenario:
            return ["--scenario", name], ""
        if isinstance(monitor, Mapping) and ours == {**scenario, "monitor": ours["monitor"]}:
            return ["--scenario", name, "--monitor", str(monitor.get("kind"))], ""
    return ["--scenario", f"{name}.toml"], "  # the file whose content is in line 1 of run.jsonl"
