"""Every recorded run behind a report, with the log that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.report.data import ReportData
from dcqcn_gym.report.metrics import mean_utility
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import RunDir

__all__ = ["RecordedRun", "recorded_runs"]


@dataclass(frozen=True)
class RecordedRun:
    """One log: what ran, on which traffic seed, what came of it, and the file beside the page."""

    setting: str
    seed: int
    intervals: int
    utility: float
    finished_flows: int
    unfinished: int
    log: Path
    """Relative to the run's directory."""


def recorded_runs(data: ReportData) -> list[RecordedRun]:
    """Return the tuned run, the references on its traffic, then the runs on fresh seeds."""
    return list(_found(data))


def _found(data: ReportData) -> Iterator[RecordedRun]:
    out = RunDir(data.directory)
    seed = int(data.run.header.get("seed", 0))
    tuner = str(data.run.header.get("tuner", "tuned"))

    def run(setting: str, seed: int, series: Series, path: Path) -> RecordedRun:
        return RecordedRun(
            setting,
            seed,
            len(series),
            mean_utility(series),
            int(series.fct_ps.size),
            series.unfinished,
            path.relative_to(data.directory),
        )

    yield run(f"{tuner}, as it searched", seed, data.run, out.log)
    for name, series in data.references.items():
        yield run(name, seed, series, out.reference(name))
    for name in sorted(data.evaluation, key=lambda n: (n != "recommended", n)):
        for fresh, series in sorted(data.evaluation[name].items()):
            yield run(
                "found" if name == "recommended" else name,
                fresh,
                series,
                out.evaluation(name, fresh),
            )
