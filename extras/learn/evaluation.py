"""Trained policies beside other tuners on held-out traffic, as a study: the same seeds for all.

A policy acts in every interval, as it would in deployment; a static tuner keeps its setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dcqcn_gym.comparison.plan import Plan, Trials
from dcqcn_gym.comparison.tables import paired_results
from dcqcn_gym.core.config import validate
from dcqcn_gym.runs.entries import label
from dcqcn_gym.runs.results import plain
from dcqcn_gym.tuners.policy import shipped_policies


def evaluation(
    policies: Sequence[str],
    scenarios: Sequence[str],
    beside: Sequence[str] = ("default", "expert", "do-nothing"),
    **values: object,
) -> Plan:
    """Return the plan of policies by name, file or a training's directory; ConfigError.

    ``values`` are further keys of :class:`Plan`.
    """
    shipped = shipped_policies()
    named = [(text, text if text in shipped else _short(Path(text))) for text in policies]
    entries: list[Mapping[str, object]] = [
        {"name": name, "tuner": "policy", "tuner_args": {"file": text}} for text, name in named
    ]
    entries += [{"name": label(name), "tuner": name} for name in beside]
    backend = values.pop("backend", "native")
    data = {
        "description": "Trained policies beside other tuners on held-out traffic.",
        "traffic": "held-out",
        "seeds": 5,
        "intervals": 100,
        "cases": [{"scenario": name} for name in scenarios],
        "entries": [{**entry, "backend": backend} for entry in entries],
        "tables": [{"kind": "held-out", "against": [label(name) for name in beside]}],
    }
    return validate({**data, **values}, Plan, source="evaluate")


def _short(path: Path) -> str:
    """Return a file's name, or that of a training's directory."""
    named = path.parent if path.name == "policy.npz" else path
    return named.absolute().name.removesuffix(".npz")


def as_json(plan: Plan, trials: Trials) -> str:
    """Return plan and rows as JSON."""
    found = [
        {
            "scenario": case.title, "name": row.name, "utility": row.utility,
            "gain": row.utility_gain, "slowdown": row.slowdown["mean"], "p99": row.slowdown["p99"],
            "slowdown_finished": row.slowdown_finished["mean"],
            "p99_finished": row.slowdown_finished["p99"], "unfinished": row.unfinished,
        }
        for case in plan.cases for row in paired_results(plan, case, trials)
    ]  # fmt: skip
    return json.dumps(plain({"plan": plan.model_dump(mode="json"), "rows": found}), indent=2)
