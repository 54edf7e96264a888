"""Makes the constants that hold the leaderboard's statistics to rliable and scipy: ranking.json.

rliable is no dependency of this project, not even of its tests. Once, in an environment of its own:

    python -m venv /tmp/rl && /tmp/rl/bin/pip install rliable==1.2.0 scipy==1.17.1 'pandas<3'
    /tmp/rl/bin/python tools/make_ranking_constants.py

``tests/benchmarks/test_board_ranking.py`` reads the file. The scores follow from sines and cosines,
so that no generator of random numbers has to agree.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

RESAMPLES = 50_000
LEVELS = [-0.2, -0.1, 0.0, 0.1, 0.2]


def scores(k: int, scenarios: int, repetitions: int) -> np.ndarray:
    """Return scores of entry ``k``; ``test_leaderboard_ranking.py`` has the same lines."""
    s, r = np.arange(float(scenarios))[:, None], np.arange(float(repetitions))[None, :]
    return np.sin(3.1 * s + 1.7 * r * (k + 1) + k) / 5 + 0.05 * k * np.cos(s) + 0.03 * k


def case(scenarios: int, repetitions: int) -> dict:
    """Return every figure of entries 0 to 3 on a leaderboard of some size."""
    from rliable import library, metrics
    from scipy import stats

    entries = {str(k): scores(k, scenarios, repetitions) for k in range(4)}
    # rliable wants (runs, tasks), ours are (scenarios, repetitions)
    turned = {name: values.T for name, values in entries.items()}
    pairs = {f"{a},{b}": (turned[a], turned[b]) for a in entries for b in entries if a < b}
    point, interval = library.get_interval_estimates(
        turned, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=RESAMPLES
    )
    profile, _ = library.create_performance_profile(turned, LEVELS, reps=2)
    means = {name: values.mean(axis=1) for name, values in entries.items()}
    p_values = [float(stats.wilcoxon(means[a], means["0"]).pvalue) for a in ("1", "2", "3")]
    return {
        "scenarios": scenarios,
        "repetitions": repetitions,
        "iqm": {name: float(values[0]) for name, values in point.items()},
        "interval": {name: values[:, 0].tolist() for name, values in interval.items()},
        "profile": {name: values.tolist() for name, values in profile.items()},
        "improvement": {
            name: float(metrics.probability_of_improvement(x, y)) for name, (x, y) in pairs.items()
        },
        "wilcoxon": p_values,
    }


def holm_of(p_values: list[float]) -> list[float]:
    """Return Holm's adjustment as statsmodels gives it, a dependency of rliable's."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def main() -> None:
    """Write ranking.json beside this file."""
    import rliable  # noqa: F401
    import scipy

    cases = [case(24, 10), case(12, 3), case(4, 5)]
    for one in cases:
        one["holm"] = holm_of(one["wilcoxon"])
    made = {
        "made_with": {"rliable": "1.2.0", "scipy": scipy.__version__, "numpy": np.__version__},
        "levels": LEVELS,
        "resamples": RESAMPLES,
        "cases": cases,
    }
    path = Path(__file__).parents[1] / "tests" / "leaderboard" / "ranking.json"
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
