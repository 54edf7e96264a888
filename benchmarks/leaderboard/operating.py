"""What ranks and tiers find, and how often they err: simulated leaderboards made of real runs.

Everything is made of one leaderboard's results: S of its entries by scenario and repetition (from
``results.json``) and, where its ``runs.csv`` is there, the changes of every figure. A simulated
entry *without effect* is the default against itself: its scores are deviations of a real entry's
repetitions from that entry's mean on the scenario, the entry drawn anew for each scenario. A *gain*
adds -ln(1 - gain) to every score, a *harm* ln(1 + harm) to one figure on some scenarios.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard import ranking
from dcqcn_gym.benchmarks.leaderboard.harm import FIGURES, TIERS, Figure, chance_of, harm_of
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.resampled import groups
from dcqcn_gym.benchmarks.leaderboard.tiers import CSV_FILE
from dcqcn_gym.core.compressed_files import packed_beside, read_packed
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.sums import count
from dcqcn_gym.runs.results import read_results
from dcqcn_gym.runs.table import Table

FloatArray = npt.NDArray[np.float64]

SEED = 20240003
GAINS = (0.0, 0.02, 0.05, 0.10)
HARMS = (0.10, 0.50, 1.0)
PLACES = (0, 1, 3, 10)
RESAMPLES = 400
"""Bootstrap draws of a simulated ranking; a real one has more."""


def operating_tables(folder: Path, draws: int) -> list[Table]:
    """Return the tables for a folder of results; RunError if they hold too little."""
    scores = _scores(folder)
    noise = _noise(scores)
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED])))
    tables = [_gain_table(noise, draws, random)]
    changes = _changes(folder)
    if changes:
        tables.append(_harm_table(changes, draws, random))
    return [*tables, _halves_table(scores, draws)]


def _scores(folder: Path) -> Mapping[str, FloatArray]:
    data = read_results(folder / "results.json", "leaderboard")
    found = {
        row["entry"]: np.array(list(row["final"]["scores"].values()))
        for row in data.rows
        if row.get("final") and row["entry"] != BASELINE
    }
    most = max((one.shape[1] for one in found.values()), default=0)
    found = {name: one for name, one in found.items() if one.shape[1] == most and one.any()}
    if most < 2 or not found:
        raise RunError(f"{folder}: expected entries with two repetitions or more")
    return found


def _halves_table(scores: Mapping[str, FloatArray], draws: int) -> Table:
    """Return Kendall's tau between the orders of two halves drawn at random, its mean and range."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED, 1])))
    stack = np.array(list(scores.values()))
    rank_of = groups(scores)
    rank = np.array([rank_of[name] for name in scores])
    one, other = np.triu_indices(len(stack), 1)
    apart = rank[one] != rank[other]
    rows = []
    for axis, what in ((1, "scenarios"), (2, "repetitions")):
        taus = []
        for _ in range(draws):
            order = random.permutation(stack.shape[axis])
            halves = np.array_split(order, 2)
            figures = [stack.take(half, axis).mean(axis=(1, 2)) for half in halves]
            agree = np.prod([np.sign(f[one] - f[other]) for f in figures], axis=0)
            taus.append([_mean(agree[apart]), _mean(agree)])
        cells = (f"{np.mean(t):.2f} [{min(t):.2f}, {max(t):.2f}]" for t in np.transpose(taus))
        rows.append((what, *cells))
    title = f"Kendall's tau between halves, mean [range] of {draws} ways"
    columns = ("halves of", f"pairs in different rank groups ({count(apart.tolist())})",
               f"all pairs ({len(one)})")  # fmt: skip
    return Table(columns, rows, title, words=1)


def _mean(found: FloatArray) -> float:
    return float(found.mean()) if found.size else math.nan


def _noise(scores: Mapping[str, FloatArray]) -> FloatArray:
    """Return deviations from means over repetitions, the last axis; entries are the first.

    They are scaled as deviations of few values from their own mean are too small.
    """
    stack = np.array(list(scores.values()))
    size = stack.shape[-1]
    return np.asarray((stack - stack.mean(axis=-1, keepdims=True)) * math.sqrt(size / (size - 1)))


def _drawn(noise: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return one entry without effect: runs drawn, with replacement, scenario by scenario.

    All figures of a run come from the same one, and those of a scenario from one real entry.
    """
    entries, scenarios, *figures, repetitions = noise.shape
    whose = random.integers(entries, size=scenarios)
    within = random.integers(repetitions, size=(scenarios, *[1] * len(figures), repetitions))
    drawn = noise[whose, np.arange(scenarios)]
    return np.asarray(np.take_along_axis(drawn, within, axis=-1))


def _gain_table(noise: FloatArray, draws: int, random: np.random.Generator) -> Table:
    rows = []
    kept, ranking.RESAMPLES = ranking.RESAMPLES, RESAMPLES
    try:
        for gain in GAINS:
            above = [_above(_drawn(noise, random) - math.log1p(-gain)) for _ in range(draws)]
            rows.append((f"{100 * gain:g} %", _share(above)))
    finally:
        ranking.RESAMPLES = kept
    title = f"ranked above the default, of {draws} simulated entries"
    return Table(("gain on every scenario", "share, % (95 % interval)"), rows, title, words=1)


def _above(scores: FloatArray) -> bool:
    found = groups({"entry": scores, BASELINE: np.zeros_like(scores)})
    return found["entry"] < found[BASELINE]


def _share(found: Sequence[bool]) -> str:
    """Return a share with Wilson's interval, in percent."""
    n, p, z = len(found), count(found) / len(found), 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return f"{100 * p:.1f} [{100 * max(0.0, middle - half):.1f}, {100 * (middle + half):.1f}]"


def _changes(folder: Path) -> dict[str, FloatArray]:
    """Return the final changes of every entry, of shape (scenarios, figures, repetitions)."""
    path = folder / CSV_FILE
    if not path.exists() and packed_beside(path) is None:
        return {}
    found: dict[str, dict[str, list[list[float]]]] = {}
    for line in csv.DictReader(read_packed(path).splitlines()):
        if line["entry"] == BASELINE:
            continue
        runs = found.setdefault(line["entry"], {}).setdefault(line["scenario"], [])
        runs.append([_change(figure, line[f"{figure.name}, change_final"]) for figure in FIGURES])
    arrays = {
        name: np.array([np.transpose(runs) for runs in scenarios.values()])
        for name, scenarios in found.items()
        if len({len(runs) for runs in scenarios.values()}) == 1
    }
    most = max((one.shape[2] for one in arrays.values()), default=0)
    return {name: one for name, one in arrays.items() if one.shape[2] == most > 1}


def _change(figure: Figure, text: str) -> float:
    if not text:
        return math.nan
    return math.log1p(float(text)) if figure.ratio else float(text)


def _harm_table(
    changes: Mapping[str, FloatArray], draws: int, random: np.random.Generator
) -> Table:
    """Return how often harm of the p99 of mice is found, by its size and number of scenarios."""
    chance = chance_of(changes, list(changes))
    known = {name: np.nan_to_num(one) for name, one in changes.items()}
    noise = _noise({name: one for name, one in known.items() if one.any()})
    mice = next(k for k, figure in enumerate(FIGURES) if "99th" in figure.name)
    limited = np.flatnonzero(np.isfinite([c[:, mice, 0] for c in changes.values()]).all(axis=0))
    rows = []
    for harm in HARMS:
        for places in PLACES if harm == HARMS[0] else PLACES[1:]:
            tiers = []
            for _ in range(draws):
                drawn = _drawn(noise, random)
                drawn[random.permutation(limited)[:places], mice] += math.log1p(harm)
                tiers.append(harm_of(drawn, chance).tier)
            label = f"+{100 * harm:g} %" if places else "none"
            shares = (_share([t == tier for t in tiers]) for tier in TIERS)
            rows.append((label, str(places), *shares))
    title = f"tier of {draws} simulated entries whose p99 of mice is longer on some scenarios"
    columns = ("harm", "scenarios", "none, %", "mild, %", "severe, %")
    return Table(columns, rows, title, words=2)
