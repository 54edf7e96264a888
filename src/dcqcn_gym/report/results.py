"""``results.json`` of a tuned run: the figures of its page for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcqcn_gym.core.statistics import estimate, paired_change
from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.headline import mean_utility
from dcqcn_gym.runs.results import write_results
from dcqcn_gym.runs.rows import REFERENCES

__all__ = ["write_run_results"]


def write_run_results(data: ReportData, page: Mapping[str, Any]) -> Path:
    """Write what the page shows into the run's directory; ``page`` are the values it was made of.

    One row per setting: default, expert and the recommended one. What was drawn per interval is in
    the run's log.
    """
    header = data.run.header
    scenario, tuner = header.get("scenario"), str(header.get("tuner", ""))
    return write_results(
        data.directory,
        "tune",
        [_row(data, name) for name in (*REFERENCES, "recommended")],
        scenarios=[scenario] if isinstance(scenario, Mapping) else [],
        tuners={tuner: (tuner, header.get("tuner_args") or {})},
        seeds={"run": [header.get("seed", 0)], "fresh": data.seeds},
        figures={
            "headline": page["headline"],
            "notes": page["notes"],
            "finished": data.finished,
            "intervals": len(data.run),
            "slowdown_while_tuning": page["during"],
            "slowdown_on_fresh_seeds": page["fresh"],
            "unfinished_while_tuning": dict(page["during_unfinished"]),
            "unfinished_on_fresh_seeds": dict(page["fresh_unfinished"]),
            "collectives": page["collectives"],
            "setting": [
                {"knob": row.knob.name, "unit": row.knob.unit, "default": row.default,
                 "expert": row.expert, "found": row.found}
                for _, rows in page["knob_groups"] for row in rows
            ],
        },
    )  # fmt: skip


def _row(data: ReportData, name: str) -> dict[str, Any]:
    during = data.run if name == "recommended" else data.references.get(name)
    fresh = {
        of: [mean_utility(data.evaluation[of][seed]) for seed in data.seeds]
        for of in {name, *REFERENCES}
        if data.seeds
    }
    return {
        "name": name,
        "utility_while_tuning": None if during is None else mean_utility(during),
        "utility_on_fresh_seeds": estimate(fresh[name]) if fresh else None,
        "per_seed": fresh.get(name, []),
        **{
            f"against_{of}": paired_change(fresh[name], fresh[of])
            for of in REFERENCES
            if fresh and of != name
        },
    }
