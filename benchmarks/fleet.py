"""What it costs to tune a real network: safety rules, devices' rounding, what collectors can tell.

Three small studies with the same machinery: PARALEON (and a random search) on mini-fb-hadoop, a few
seeds, every row on the same traffic; then what each recommends on fresh traffic, scored by S
against the default. ``dcqcn-gym bench fleet STUDY --write docs/hardware.md`` makes the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.statistics import estimate, paired_change
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.verdict import Measured, pooled, scores
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.device_units import setting_on_devices
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.campaign import Progress, carry_out, raise_failures
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.recorded import Ran, RunJob, fresh_jobs
from dcqcn_gym.runs.rows import Row, evaluation_seeds, reference_settings
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.table import Table, point, with_interval

__all__ = ["STUDIES", "FleetPlan", "FleetRow", "markdown", "produce"]

_LIMITS: Mapping[str, Any] = {"max_step": 0.25}
_CANARY: Mapping[str, Any] = {**_LIMITS, "canary": {}, "abort": {"max_drops": 0}}


@dataclass(frozen=True)
class FleetRow:
    """One line: a row of the comparison and the backend that it runs on."""

    row: Row
    backend: str = "native"


def _safety() -> list[FleetRow]:
    rows = []
    for tuner in ("paraleon", "random"):
        rows.append(Row(tuner, given_name=tuner))
        for what, rules in (("limited steps", _LIMITS), ("with a canary", _CANARY)):
            rows.append(Row("safe", {"tuner": tuner, **rules}, given_name=f"{tuner}, {what}"))
    rows.append(Row("do-nothing", given_name="nothing changed"))
    return [FleetRow(row) for row in rows]


def _devices() -> list[FleetRow]:
    row = Row("paraleon", given_name="native")
    return [
        FleetRow(row),
        FleetRow(Row("paraleon", given_name="native-devices"), "native-devices"),
    ]


def _collectors() -> list[FleetRow]:
    kinds = ("elastic", "exact", "sflow", "ipfix", "queue-pairs", "none")
    return [
        FleetRow(Row("paraleon", changes={"monitor": {"kind": kind}}, given_name=kind))
        for kind in kinds
    ]


STUDIES = {"safety": _safety, "devices": _devices, "collectors": _collectors}
"""Name of a study -> its rows; differences are to the first row of the same tuner."""


@dataclass(frozen=True)
class FleetPlan:
    """What is run."""

    study: str
    out: Path
    scenario: str = "mini-fb-hadoop"
    seeds: int = 5
    intervals: int = 100
    fresh: int = 5
    """Fresh seeds for each recommendation, of 20 intervals."""

    def rows(self) -> list[FleetRow]:
        """Return the rows; UnknownNameError for a study that there is not."""
        if self.study not in STUDIES:
            raise UnknownNameError("study", self.study, STUDIES)
        return STUDIES[self.study]()

    def tuned(self, row: FleetRow, seed: int) -> Path:
        """Return where the log of a tuning run lies."""
        return self.out / _folder(row.row.name) / f"tuned-seed{seed}.jsonl"

    def judged(self, name: str, seed: int, fresh: int) -> Path:
        """Return where the log of a recommendation on fresh traffic lies."""
        return self.out / _folder(name) / f"seed{seed}-fresh{fresh}.jsonl"


def _folder(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "-")


def produce(plan: FleetPlan, workers: int = 1, progress: Progress | None = None) -> None:
    """Make every log that is missing or unfinished; RunError names what failed."""
    scenario = load_scenario(plan.scenario)
    jobs: list[RunJob] = []
    rows: dict[Path, tuple[FleetRow, int]] = {}
    default = reference_settings(scenario)["default"]
    for seed in range(1, plan.seeds + 1):
        for row in plan.rows():
            path = plan.tuned(row, seed)
            rows[path] = row, seed
            jobs.append(RunJob(row.row.spec(scenario, seed, plan.intervals, row.backend), path))
        jobs += _judging(plan, scenario, "default", seed, default)
    for job in jobs:
        job.path.parent.mkdir(parents=True, exist_ok=True)

    def judge(job: RunJob, ran: Ran) -> list[RunJob]:
        if job.path not in rows:
            return []
        row, seed = rows[job.path]
        wanted: DeviceSetting = ran.recommended
        if row.backend == "native-devices":  # as devices would hold it
            wanted = {name: setting_on_devices(s) for name, s in by_group(wanted)}
        return _judging(plan, scenario, row.row.name, seed, wanted)

    raise_failures(carry_out(jobs, workers=workers, then=judge, progress=progress))


def _judging(
    plan: FleetPlan, scenario: Scenario, name: str, seed: int, setting: DeviceSetting
) -> list[RunJob]:
    base = RunSpec(scenario, "fixed", seed, 20)
    fresh = evaluation_seeds(seed, plan.fresh)
    return fresh_jobs(base, setting, fresh, 20, lambda one: plan.judged(name, seed, one))


def _pooled(plan: FleetPlan, name: str, seed: int) -> Measured:
    """Return what a recommendation did on all its fresh seeds, as one."""
    fresh = evaluation_seeds(seed, plan.fresh)
    paths = [plan.judged(name, seed, one) for one in fresh]
    return pooled([measured(Series.of(read_run(path))) for path in paths])


def markdown(plan: FleetPlan) -> str:
    """Return the table of a study as Markdown, with the command that makes it."""
    seeds = range(1, plan.seeds + 1)
    default = [_pooled(plan, "default", seed) for seed in seeds]
    first: dict[str, tuple[list[float], list[Measured]]] = {}
    lines = []
    for row in plan.rows():
        logs = [read_run(plan.tuned(row, seed)) for seed in seeds]
        utility = [[x["utility"] for x in log.intervals if not x["idle"]] for log in logs]
        online = [mean(u) for u in utility]
        group = str(row.row.tuner_args.get("tuner", row.row.tuner))
        ours = [_pooled(plan, row.row.name, seed) for seed in seeds]
        against, theirs = first.setdefault(group, (online, ours))
        same = against is online
        gain = None if same else paired_change(online, against)
        lines.append([
            row.row.name, point(estimate(online)), with_interval(gain, "+.4f", style="brackets"),
            point(estimate([min(u) for u in utility])),
            point(estimate([_everywhere(log.intervals) for log in logs]), ".0f"),
            point(estimate([_wire(log.intervals) for log in logs]), ",.0f"),
            with_interval(scores(ours, default), "+.3f", style="brackets"),
            with_interval(None if same else scores(ours, theirs), "+.3f", style="brackets"),
        ])  # fmt: skip
    table = Table(COLUMNS, lines)
    return (
        f"`dcqcn-gym bench fleet {plan.study}`: {plan.scenario}, {plan.intervals} intervals, seeds "
        f"1 to {plan.seeds}; recommendations on {plan.fresh} fresh seeds each. Brackets: 95 % "
        f"confidence (Student's t), paired by seed.\n\n{table.markdown()}\n"
    )


COLUMNS = (
    "row", "utility while tuning", "against the first of its tuner", "worst interval",
    "settings on all devices", "monitoring, bytes an interval", "S of what it recommends",
    "against the first of its tuner",
)  # fmt: skip


def _everywhere(intervals: Sequence[Mapping[str, Any]]) -> float:
    """Return how many settings were in force on all devices alike."""
    whole = (str(x["setting"]) for x in intervals if "cluster" not in x["setting"])
    return float(len(set(whole)))


def _wire(intervals: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean bytes of flow-size monitoring per interval."""
    return count(int(x["wire"]["fsd_bytes"]) for x in intervals) / len(intervals)
