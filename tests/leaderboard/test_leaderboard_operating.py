"""How often ranks and tiers err, on made-up results whose answer is known."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.benchmarks.leaderboard import operating
from dcqcn_gym.benchmarks.leaderboard.harm import FIGURES
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.results import write_results

SCENARIOS, REPETITIONS, DRAWS = 20, 4, 60


def results(folder: Path, noise: float, repetitions: int = REPETITIONS) -> Path:
    """Write results of two entries whose scores and changes vary so much from run to run."""
    random = np.random.default_rng(1)
    names = [f"s{i}" for i in range(SCENARIOS)]
    rows: list[dict[str, object]] = [{"entry": "default"}]
    lines = []
    for entry in ("one", "two"):
        scores = 0.2 + noise * random.normal(size=(SCENARIOS, repetitions))
        rows.append(
            {"entry": entry, "final": {"scores": dict(zip(names, scores.tolist(), strict=True))}}
        )
        for name in names:
            for i in range(repetitions):
                of = {f"{one.name}, change_final": math.expm1(noise * random.normal())
                      for one in FIGURES}  # fmt: skip
                lines.append({"entry": entry, "scenario": name, "repetition": i, **of})
    write_results(folder, "leaderboard", rows, scenarios=[], seeds={})
    with (folder / "runs.csv").open("w") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return folder


def shares(folder: Path, table: int) -> dict[tuple[str, ...], list[float]]:
    """Return the shares of a table, in percent, by what was put in."""
    found = operating.operating_tables(folder, DRAWS)[table]
    n = max(1, found.words)
    return {tuple(row[:n]): [float(str(cell).split()[0]) for cell in row[n:]] for row in found.rows}


def test_without_noise_every_gain_is_seen_and_none_is_invented(tmp_path: Path) -> None:
    found = shares(results(tmp_path, 1e-4), 0)
    assert found["0 %",][0] <= 15
    assert [found[f"{gain} %",] for gain in (2, 5, 10)] == [[100.0]] * 3


def test_in_much_noise_few_gains_are_seen(tmp_path: Path) -> None:
    found = shares(results(tmp_path, 3.0), 0)
    assert max(share for (share,) in found.values()) < 50


def test_harm_is_found_beyond_the_limit_alone(tmp_path: Path) -> None:
    """10 % is within the limit of 25 %; 50 % on one of 20 scenarios is mild, on ten severe."""
    found = shares(results(tmp_path, 1e-4), 1)
    assert found["none", "0"] == found["+10 %", "10"] == [100.0, 0.0, 0.0]
    assert found["+50 %", "1"] == [0.0, 100.0, 0.0]
    assert found["+50 %", "10"] == found["+100 %", "1"] == [0.0, 0.0, 100.0]


def test_harm_is_planted_where_its_figure_has_a_limit(tmp_path: Path) -> None:
    """With a limit on one scenario alone, ten with harm are that one: mild."""
    folder = results(tmp_path, 1e-4)
    lines = list(csv.DictReader((folder / "runs.csv").open()))
    for line in lines:
        if line["scenario"] != "s0":
            line["99th percentile of slowdown of mice, change_final"] = ""
    with (folder / "runs.csv").open("w") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    assert shares(folder, 1)["+50 %", "10"] == [0.0, 100.0, 0.0]


def test_one_repetition_says_nothing_of_chance(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="two repetitions or more"):
        operating.operating_tables(results(tmp_path, 0.1, 1), DRAWS)


def test_halves_agree_where_entries_differ_and_not_where_they_do_not(tmp_path: Path) -> None:
    """Six entries 0.1 apart: without noise tau is 1; in much noise about 0, and no pair differs."""

    def tau(noise: float) -> list[list[str]]:
        random, names = np.random.default_rng(2), [f"s{i}" for i in range(SCENARIOS)]
        rows: list[dict[str, object]] = [{"entry": "default"}]
        for k in range(6):
            scores = 0.1 * (k + 1) + noise * random.normal(size=(SCENARIOS, REPETITIONS))
            of = dict(zip(names, scores.tolist(), strict=True))
            rows.append({"entry": f"e{k}", "final": {"scores": of}})
        write_results(tmp_path, "leaderboard", rows, scenarios=[], seeds={})
        table = operating.operating_tables(tmp_path, DRAWS)[-1]
        assert table.columns[2] == "all pairs (15)"
        return [[str(cell) for cell in row] for row in table.rows]

    assert tau(1e-4) == [[f, *["1.00 [1.00, 1.00]"] * 2] for f in ("scenarios", "repetitions")]
    for row in tau(30.0):
        assert abs(float(row[2].split()[0])) < 0.5


@pytest.mark.slow
def test_the_committed_board_is_what_others_computed() -> None:
    """Of test-v1 an independent reading found 0.89 and 0.75 over all pairs, of other halves."""
    folder = Path(__file__).parents[2] / "benchmarks/leaderboard/data/test-v1"
    scores = operating._scores(folder)
    rows = operating._halves_table(scores, 20).rows
    found = [float(str(row[2]).split()[0]) for row in rows]
    assert found == pytest.approx([0.75, 0.89], abs=0.1)
