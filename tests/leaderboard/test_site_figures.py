"""Figures of the leaderboard's site, drawn from a committed leaderboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.figures import entries_on_scenario, utility
from dcqcn_gym.benchmarks.leaderboard.site.tables import facts
from dcqcn_gym.benchmarks.leaderboard.verification import Verification

DATA = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "data"


def lines(text: str) -> tuple[int, int]:
    """Return how many lines of the default and of the entry itself are drawn."""
    return text.count('class="series default"'), text.count('class="series tuned"')


def test_the_utility_is_drawn_beside_that_of_the_default() -> None:
    """One line of each on every scenario; one for the default itself, or where it is missing."""
    (suite,) = load_suites([DATA / "season-1"])
    default = suite.entry(BASELINE)
    assert default is not None
    other = next(one for one in suite.entries if one.complete and one.name != BASELINE)
    n = len(suite.scenarios)
    assert n > 1
    assert lines(utility(suite, other)) == (n, n)
    assert lines(utility(suite, default)) == (n, 0)
    alone = replace(suite, entries=[one for one in suite.entries if one.name != BASELINE])
    assert lines(utility(alone, other)) == (0, n)


def test_a_long_name_leaves_room_on_a_telephone_and_the_page_has_the_verifiers_figure() -> None:
    (suite,) = load_suites([DATA / "season-1"])
    entry = next(one for one in suite.entries if one.complete and one.name != BASELINE)
    assert "R on the verifier's seeds" not in dict(facts(suite, entry))
    scores = {"reported": Score(value=0.5, low=0.25, high=0.75),
              "fresh": Score(value=-0.125, low=-0.25, high=0.0)}  # fmt: skip
    judged = replace(
        entry,
        name="second_climber-SecondClimber",
        verification=Verification(status="verified", date="", files_sha256="", risks=scores),
    )
    told = dict(facts(suite, judged))
    assert told["R on the verifier's seeds"] == "\u22120.125 [\u22120.250, +0.000]"
    drawn = entries_on_scenario(replace(suite, entries=[judged]), 0)
    assert ">second_climb…condClimber<" in drawn
