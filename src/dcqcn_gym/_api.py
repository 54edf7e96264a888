"""The functions of ``dcqcn_gym`` itself: what the commands do, in one call each."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.comparison.compare import plan_and_remarks, startable, study_of
from dcqcn_gym.comparison.results import EntryResult, results_of
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.traffic_choice import chosen_for
from dcqcn_gym.report.tuning import tune as _tune
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.pool import cpu_count
from dcqcn_gym.runs.progress import NotebookViewer, QuietViewer, in_notebook
from dcqcn_gym.runs.session import Evaluation
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.trials import carry_out


def make(scenario: str | Path | Scenario = "fb-hadoop", **arguments: Any) -> DcqcnEnv:
    """Return the environment of a scenario; ``arguments`` are those of :class:`DcqcnEnv`."""
    return DcqcnEnv(scenario, **arguments)


def tune(
    scenario: str | Path | Scenario,
    tuner: str = "paraleon",
    *,
    out: str | Path,
    seed: int = 1,
    intervals: int | None = None,
    eval_seeds: int | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Tune on a scenario into the folder ``out``, as ``dcqcn-gym tune``; return ``best.json``.

    ``intervals``: the budget (None: the scenario's); ``eval_seeds``: held-out seeds to judge by
    (None: 5). As there, what is None fits a short trace, of a long one the busiest stretch is
    taken, and what was chosen is warned of. A notebook's cell shows a bar.
    """
    chosen = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    found = chosen_for(chosen, intervals, eval_seeds, None)
    _warn(found.said)
    budget, seeds, judged, _ = found.asked
    spec = RunSpec(found.scenario, tuner, seed, budget, tuner_args=dict(arguments or {}))
    name = f"{chosen.name}, {tuner}"
    viewer = NotebookViewer(name, budget) if in_notebook() else QuietViewer()
    return _tune(spec, RunDir(Path(out)), evaluation=Evaluation(seeds, judged), viewer=viewer)


def compare(
    scenarios: Sequence[str],
    tuners: Sequence[str],
    *,
    out: str | Path,
    seeds: int = 5,
    intervals: int | None = None,
) -> dict[str, list[EntryResult]]:
    """Compare tuners on the same traffic, as ``dcqcn-gym compare``; return a table a scenario."""
    given = {"scenarios": scenarios, "tuners": tuners, "seeds": seeds, "intervals": intervals}
    wanted, said = plan_and_remarks({k: value for k, value in given.items() if value is not None})
    _warn(said)
    plan, _ = startable(wanted)
    study = study_of(plan, Path(out))
    study.begin(Path(out))
    trials = study.jobs.values()
    return results_of(trials, carry_out(trials, cpu_count()))


def _warn(said: Iterable[str]) -> None:
    for line in said:
        warnings.warn(line, stacklevel=3)
