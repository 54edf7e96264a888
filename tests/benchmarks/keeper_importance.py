"""``python tests/benchmarks/keeper_importance.py``: which knobs matter, for S and for each harm.

Morris' elementary effects of every knob over its tuned range, then Sobol's total indices of the
:data:`MOST` that matter most for S, on eight scenarios of the keeper's bank: four small ones and
four with a large fan-in. Needs ``pip install SALib``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from SALib.analyze import morris, sobol
from SALib.sample import morris as morris_sample
from SALib.sample import sobol as sobol_sample

from dcqcn_gym.benchmarks.keeper.bank import bank
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.verdict import changes, scores
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.evaluated import evaluate

TRAJECTORIES, LEVELS, SOBOL_BASE, MOST = 6, 4, 16, 4
FEW = 1e-2
FIGURES = ("S", "mice's p99", "elephants' mean", "pause")
Table = npt.NDArray[np.float64]


def scenarios() -> list[Scenario]:
    """Return the eight, of a salt of their own."""
    drawn = [s for s in bank("importance", 40) if s.n_hosts <= 64]
    small = [s for s in drawn if s.n_hosts <= 20]
    return small[:4] + [s for s in drawn if s.n_hosts > 20][:4]


def figures(setting_of: Sequence[float], knobs: Sequence[str], on: Sequence[Scenario]) -> Table:
    """Return the figures of a place in the ranges, in the mean over the scenarios."""
    rows = []
    for scenario in on:
        space = KnobSpace(knobs, scenario.line_rate_bps)
        default = scenario.default_setting()
        setting = space.setting(np.asarray(setting_of), default)
        ours, theirs = (evaluate([s], [scenario], (1,))[0][0] for s in (setting, default))
        table = {c.key: c.change.mean for c in changes(ours, theirs)}
        rows.append([
            scores(ours, theirs).mean,
            np.log(max(1 + table["p99 0-100KB"], FEW)),
            np.log(max(1 + table["mean 1MB-"], FEW)),
            100 * table["pause"],
        ])  # fmt: skip
    found: Table = np.nanmean(np.array(rows, dtype=float), axis=0)
    return found


def main() -> None:
    """Print both tables."""
    on = scenarios()
    table = on[0].default_setting().table
    knobs = [name for name in table.knobs if name != "rp_max_rate"]
    problem = {"num_vars": len(knobs), "names": knobs, "bounds": [[-1.0, 1.0]] * len(knobs)}
    places = morris_sample.sample(problem, TRAJECTORIES, num_levels=LEVELS, seed=1)
    values = np.array([figures(place, knobs, on) for place in places])
    effects = [
        morris.analyze(problem, places, values[:, i], num_levels=LEVELS, seed=1)["mu_star"]
        for i in range(len(FIGURES))
    ]
    print(f"| knob, Morris' mu* of {len(places)} settings | {' | '.join(FIGURES)} |")
    order = np.argsort(-np.asarray(effects[0]))
    for i in order:
        print(f"| `{knobs[i]}` | {' | '.join(f'{effect[i]:.2f}' for effect in effects)} |")
    chosen = [knobs[i] for i in order[:MOST]]
    problem = {"num_vars": MOST, "names": chosen, "bounds": [[-1.0, 1.0]] * MOST}
    places = sobol_sample.sample(problem, SOBOL_BASE, calc_second_order=False, seed=1)
    values = np.array([figures(place, chosen, on) for place in places])
    print(f"| knob, Sobol's total index of {len(places)} settings | {' | '.join(FIGURES)} |")
    found = [
        sobol.analyze(problem, values[:, i], calc_second_order=False, seed=1)
        for i in range(len(FIGURES))
    ]
    for i, name in enumerate(chosen):
        cells = [f"{f['ST'][i]:.2f} ± {f['ST_conf'][i]:.2f}" for f in found]
        print(f"| `{name}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
