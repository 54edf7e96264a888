"""Compare two settings on the same traffic: what ``simulate --against`` runs.

The other setting runs first, into a folder that is thrown away; only its summary and its intervals
are read. One pair of runs is one draw of traffic: it says what happened here, not how sure that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.knobs import Setting, dcqcn_paper_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.entries import reference_settings
from dcqcn_gym.simulation.page import ComparedRun, series_of
from dcqcn_gym.simulation.run import simulate

AGAINST: Mapping[str, Callable[[Scenario], Setting]] = {
    "default": lambda scenario: reference_settings(scenario)["default"],
    "expert": lambda scenario: reference_settings(scenario)["expert"],
    "dcqcn-paper": lambda scenario: keeping_optional(
        dcqcn_paper_setting(scenario.line_rate_bps), scenario.initial_setting()
    ),
    "initial": lambda scenario: scenario.initial_setting(),
}
"""The settings that a simulation can be compared with, by name."""


def other_setting(name: str, scenario: Scenario) -> Setting:
    """Return the setting to compare with; UnknownNameError if there is none of that name.

    Raises ConfigError for one of another scheme than the scenario's.
    """
    if name not in AGAINST:
        raise UnknownNameError("setting of --against", name, AGAINST)
    return AGAINST[name](scenario)


def run_against(
    name: str, scenario: Scenario, *, seed: int, intervals: int | None, backend: str | Backend
) -> ComparedRun:
    """Run the scenario under the setting of that name, as :func:`simulate` does."""
    setting = other_setting(name, scenario)
    with TemporaryDirectory(prefix="dcqcn-gym-against-") as folder:
        out = Path(folder) / "run"
        summary = simulate(
            scenario, out, setting=setting, seed=seed, intervals=intervals, backend=backend
        )
        return ComparedRun(name, summary, series_of(out / "intervals.csv"))
