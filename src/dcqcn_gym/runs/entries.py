"""What is compared with what: entries, references, and the seeds of held-out traffic.

An entry is a tuner with its arguments and what it changes of the scenario: monitor, scheme,
groups. Its name becomes a folder, so two entries of one name are refused: one would
overwrite the other's logs. The same holds for scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.monitor import shared_options
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.rule import advise

REFERENCES = ("default", "expert")
"""The settings that every run is compared with."""

_SEED_BLOCK = 1_000_000  # above every seed that people give, so that held-out traffic is new
FIRST_TRAINING_SEED = 2**31
"""Seeds of traffic from here on are those of trainings."""


def evaluation_seeds(seed: int, count: int) -> list[int]:
    """Return ``count`` seeds of held-out traffic, the same for all tuners run with ``seed``."""
    return [_SEED_BLOCK + 1000 * seed + k for k in range(count)]


def reference_settings(scenario: Scenario) -> dict[str, Setting]:
    """Return the settings of :data:`REFERENCES` at the scenario's line rate, in its knobs."""
    rate, base = scenario.line_rate_bps, scenario.initial_setting()
    found = {name: make(rate, base.table) for name, make in _REFERENCE_SETTINGS.items()}
    return {name: keeping_optional(setting, base) for name, setting in found.items()}


def tried_settings(scenario: Scenario) -> dict[str, Setting]:
    """Return what is judged on held-out seeds besides what a search finds.

    The references, ``yours`` (the table ``[initial]``) and ``advise`` (what the rule says); not
    one that equals an earlier one.
    """
    found, base = reference_settings(scenario), scenario.initial_setting()
    rule = advise(facts_of(scenario), found["default"]).setting
    for name, setting in (("yours", base), ("advise", keeping_optional(rule, base))):
        if setting not in found.values():
            found[name] = setting
    return found


_REFERENCE_SETTINGS = {"default": default_setting, "expert": expert_setting}


def label(tuner: str) -> str:
    """Return a tuner's name for tables and folders; ``dir/file.py:Class`` becomes file-Class."""
    path, separator, attribute = tuner.rpartition(":")
    return _file_name(f"{Path(path).stem}-{attribute}" if separator else tuner)


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)


@dataclass(frozen=True)
class Entry:
    """One line of a comparison; ``changes`` are scenario fields, tables by key.

    ``Entry("paraleon", changes={"monitor": {"kind": "exact"}})`` is PARALEON with exact counters.
    """

    tuner: str
    tuner_args: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    given_name: str = ""

    @property
    def name(self) -> str:
        """The given name, or the tuner's and whatever is changed."""
        found = [*_leaves(self.tuner_args), *_leaves(self.changes)]
        words = [_file_name(f"{key}-{value}") for key, value in found]
        return self.given_name or "+".join([label(self.tuner), *words])

    def spec(self, scenario: Scenario, seed: int, intervals: int, backend: str) -> RunSpec:
        """Return the entry's run on a scenario."""
        changed = changed_scenario(scenario, self.changes, f"entry {self.name}")
        return RunSpec(changed, self.tuner, seed, intervals, backend, dict(self.tuner_args))


def _leaves(table: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield key, value


def changed_scenario(scenario: Scenario, changes: Mapping[str, Any], source: str) -> Scenario:
    """Return the scenario with some fields replaced, tables merged key by key, and checked.

    Raises ConfigError that begins with ``source``.
    """
    if not changes:
        return scenario
    old = _freed(scenario, changes) if "scheme" in changes else scenario.model_dump(mode="json")
    monitor = changes.get("monitor")
    if (
        isinstance(monitor, Mapping)
        and monitor.get("kind", scenario.monitor.kind) != scenario.monitor.kind
    ):
        old["monitor"] = shared_options(scenario.monitor, str(monitor["kind"]))
    return validate(_merged(old, changes), Scenario, source=source)


def _freed(scenario: Scenario, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario's dump without what belongs to a scheme that is replaced by another."""
    old, scheme = scenario.model_dump(mode="json"), changes["scheme"]
    name = scheme.get("name") if isinstance(scheme, Mapping) else scheme
    if name in (None, scenario.scheme.name) and name != "mix":
        return old
    if scenario.knobs == scenario.table.tuned:
        del old["knobs"]  # so that those of the new scheme are tuned
    del old["scheme"]
    return old


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(old[key], value)
        if isinstance(value, Mapping) and isinstance(old.get(key), Mapping)
        else value
        for key, value in new.items()
    }
    return {**old, **both}


MOST_RUNS = 200_000
"""Of one command: their jobs are held in memory, about 2 kB each."""


def check_runs(runs: int, asked: str) -> None:
    """Raise ConfigError for more runs than one command takes; ``asked``: what they come from."""
    if runs > MOST_RUNS:
        raise ConfigError(
            f"{asked} are {runs} runs; expected at most {MOST_RUNS}, so give fewer of them"
        )


def unique(kinds: str, found: Iterable[tuple[str, str, object]]) -> None:
    """Raise ConfigError if two of ``found`` (what was given, its name, its content) share a name.

    Their logs would lie in one folder and overwrite each other.
    """
    seen: dict[str, tuple[str, object]] = {}
    for given, name, content in found:
        if name in seen:
            other, before = seen[name]
            what = "are the same: give one" if before == content else "differ: rename one"
            raise ConfigError(
                f"{kinds} {other!r} and {given!r} are both called {name!r} and {what} of them"
            )
        seen[name] = given, content
