"""Does PFC's alpha change which tuner is best? The same rows under several alphas.

Every row runs on the same traffic; what counts is the utility while the tuner acts. Under one alpha
rows are ranked by their mean over the seeds; the ranks under 1/8, the usual alpha, are the measure
of all others. ``dcqcn-gym bench alpha`` makes the table of docs/multiagent.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.benchmarks.utilities import utilities
from dcqcn_gym.core.ranks import places, rank_agreement
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.campaign import Progress
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.rows import Row, changed_scenario, evaluation_seeds
from dcqcn_gym.runs.table import Table

__all__ = ["ALPHAS", "AlphaPlan", "measure"]

ALPHAS: Mapping[str, float | str] = {
    "1/16": 0.0625,
    "1/8": 0.125,
    "1/4": 0.25,
    "1/2": 0.5,
    "computed": "computed",
}
USUAL = "1/8"


@dataclass(frozen=True)
class AlphaPlan:
    """How much is run, and where the logs go."""

    out: Path
    scenarios: tuple[str, ...] = ("mini-fb-hadoop", "mini-storm")
    tuners: tuple[str, ...] = ("default", "expert", "secn1", "paraleon", "chameleon", "acc")
    seeds: int = 5
    intervals: int = 50

    def job(self, scenario: str, alpha: str, tuner: str, seed: int) -> RunJob:
        """Return one run and where its log lies."""
        row = Row(tuner, changes={"switch": {"alpha": ALPHAS[alpha]}})
        spec = row.spec(load_scenario(scenario), seed, self.intervals, "native")
        folder = self.out / scenario / alpha.replace("/", "-") / tuner
        return RunJob(spec, folder / f"seed-{seed}.jsonl")


def measure(
    plan: AlphaPlan, workers: int | None = None, progress: Progress | None = None
) -> list[Table]:
    """Carry out what is missing in ``plan.out``; return a table per scenario.

    A cell is the mean utility over the seeds and the place in brackets; the last line is Spearman's
    rank correlation with the places under 1/8.
    """
    seeds = evaluation_seeds(1, plan.seeds)
    jobs = {
        (scenario, alpha, tuner): [plan.job(scenario, alpha, tuner, seed) for seed in seeds]
        for scenario in plan.scenarios
        for alpha in ALPHAS
        for tuner in plan.tuners
    }
    found = {key: mean(values) for key, values in utilities(jobs, workers, progress).items()}
    return [
        _table(name, plan.tuners, {a: [found[name, a, t] for t in plan.tuners] for a in ALPHAS})
        for name in plan.scenarios
    ]


def _table(name: str, tuners: Sequence[str], found: Mapping[str, Sequence[float]]) -> Table:
    ranked = {alpha: places(values) for alpha, values in found.items()}
    lines = [
        [tuner, *(f"{found[a][i]:.4f} ({ranked[a][i]})" for a in ALPHAS)]
        for i, tuner in enumerate(tuners)
    ]
    agreement = [f"{rank_agreement(found[a], found[USUAL]):+.2f}" for a in ALPHAS]
    computed = {"switch": {"alpha": "computed"}}
    shown = changed_scenario(load_scenario(name), computed, "bench alpha").alpha
    columns = [f"{a} = {shown:g}" if a == "computed" else a for a in ALPHAS]
    return Table((name, *columns), [*lines, ["same order as 1/8", *agreement]])
