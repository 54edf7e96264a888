"""``results.json`` of a tuned run: the figures of its page for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.metrics import mean_utility
from dcqcn_gym.report.paired import paired_rows
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.rows import REFERENCES

__all__ = ["write_run_results"]


def write_run_results(data: ReportData, page: Mapping[str, Any]) -> Path:
    """Write what the page shows into the run's directory; ``page`` are the values it was made of.

    One row per setting on fresh seeds: default, expert and what was found. What was drawn per
    interval is in the run's log.
    """
    header = data.run.header
    runs = data.fresh
    tuned = {**data.references, "tuned": data.run}
    scenario, tuner = header.get("scenario"), str(header.get("tuner", ""))
    return write_results(
        data.directory,
        "tune",
        paired_rows(runs, REFERENCES),
        scenarios=[scenario] if isinstance(scenario, Mapping) else [],
        tuners={tuner: (tuner, header.get("tuner_args") or {})},
        seeds={"run": [header.get("seed", 0)], "fresh": data.seeds},
        figures={
            "verdict": page["headline"],
            "judged": page["judged"],
            "notes": page["notes"],
            "finished": data.finished,
            "intervals": len(data.run),
            "utility_while_tuning": {name: mean_utility(one) for name, one in tuned.items()},
            "utility_per_seed": {n: list(map(mean_utility, found)) for n, found in runs.items()},
            "slowdown_while_tuning": page["during"],
            "slowdown_on_fresh_seeds": page["fresh"],
            "unfinished_while_tuning": dict(page["during_unfinished"]),
            "unfinished_on_fresh_seeds": dict(page["fresh_unfinished"]),
            "collectives": page["collectives"],
            "applications": page["more"]["applications"],
            "network": page["more"]["network"],
            "setting": [
                {"knob": row.knob.name, "unit": row.knob.unit, "default": row.default,
                 "expert": row.expert, "found": row.found}
                for _, rows in page["knob_groups"] for row in rows
            ],
        },
    )  # fmt: skip
