"""Suites are frozen: their files are what the generator drew, and an edited one is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.leaderboard.generator import (
    INTERVALS,
    KINDS,
    NEXT_KINDS,
    SEASON_INTERVALS,
    DrawnScenario,
    draw,
    draw_season,
)
from dcqcn_gym.benchmarks.leaderboard.salted_choices import choose, number, shuffled
from dcqcn_gym.benchmarks.leaderboard.season import write_suite
from dcqcn_gym.benchmarks.leaderboard.suite import SUITES, load_suite, suite_names
from dcqcn_gym.core.config import read_toml
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import Scenario

KEPT = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "data"


@pytest.mark.parametrize(
    "name",
    [
        "smoke",
        "learn-v1",
        "dev-v1",
        "dev-v2",
        "test-v2",
        "season-1",
        "stress-v1",
        "jobs-v1",
    ],
)
def test_every_scenario_is_valid_and_watched_by_the_sketch(name: str) -> None:
    suite = load_suite(name)
    for one in suite.file.scenarios:
        scenario = suite.scenarios[one.name]
        assert scenario.name == one.name
        assert scenario.monitor.kind == "elastic"
        assert scenario.intervals == suite.file.intervals
        assert all(0 <= phase < suite.file.intervals for phase in one.phases)
    assert len({one.digest for one in suite.file.scenarios}) == len(suite.scenarios)


def test_the_next_suites_can_have_tcp_and_the_frozen_ones_have_none() -> None:
    """The kinds of today are drawn as ever, which the files of the suites hold, whatever comes."""
    assert list(NEXT_KINDS)[:-1] == list(KINDS)
    for index in range(len(KINDS)):
        assert draw("salt", index, 100, kinds=NEXT_KINDS) == draw("salt", index, 100)
        assert "classes" not in draw("salt", index, 100).table
    drawn = draw("salt", len(KINDS), 100, kinds=NEXT_KINDS)
    scenario = Scenario.model_validate({"name": drawn.name, **drawn.table})
    assert [(one.priority, one.transport) for one in scenario.classes] == [(3, "roce"), (0, "tcp")]
    assert {one.priority for one in scenario.workloads} == {3, 0}
    assert scenario.switch.lossless == (3, 4)


def test_sizes_of_the_suites() -> None:
    assert suite_names() == [
        "dev-v1",
        "dev-v2",
        "jobs-v1",
        "learn-v1",
        "season-1",
        "smoke",
        "stress-v1",
        "test-v2",
    ]
    assert {name: len(load_suite(name).file.scenarios) for name in suite_names()} == {
        "dev-v1": 12, "dev-v2": 42, "jobs-v1": 8, "learn-v1": 12, "season-1": 42,
        "smoke": 3, "stress-v1": 16, "test-v2": 42,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["dev-v2", "test-v2"])
def test_files_are_what_is_drawn(name: str) -> None:
    suite = load_suite(name)
    for one in suite.file.scenarios:
        drawn = draw(name, int(one.name[:3]), INTERVALS)
        assert drawn.name == one.name
        assert drawn.table == read_toml(suite.folder / f"{one.name}.toml")
        assert list(drawn.phases) == list(one.phases)
        assert drawn != draw(f"{name}'s other", int(one.name[:3]), INTERVALS)


def test_the_first_season_is_what_the_salt_drew_that_was_fixed_before() -> None:
    """The salt stands in its results, its digest in the README of the commit before it ran."""
    salt = json.loads((KEPT / "season-1" / "study.json").read_text())["same"]["salt"]
    fixed = hashlib.sha256(f"{salt}\n".encode()).hexdigest()
    assert fixed in (KEPT.parent / "README.md").read_text()
    suite = load_suite("season-1")
    kept = {one.name: read_toml(suite.folder / f"{one.name}.toml") for one in suite.file.scenarios}
    tried: list[str] = []

    def moved(one: DrawnScenario) -> float:
        tried.append(one.name)
        return float(one.table == kept.get(one.name))

    drawn = draw_season(salt, len(kept), moved)
    assert [(one.name, one.table) for one in drawn] == list(kept.items())
    assert len({name.partition("-")[2] for name in kept}) == len(kept) == 42
    assert f"; {len(tried) - 42} of {len(tried)} scenarios were rejected" in suite.file.description


def test_what_is_written_is_loaded(tmp_path: Path) -> None:
    drawn = [draw("salt", index, 12) for index in range(13)]
    write_suite(tmp_path, "mine", drawn, intervals=12, final_intervals=6, repetitions=2)
    suite = load_suite(str(tmp_path))
    assert list(suite.scenarios) == [one.name for one in drawn]
    assert (suite.file.final_intervals, suite.file.repetitions) == (6, 2)


def test_test_and_dev_share_no_scenario() -> None:
    dev, test = (load_suite(f"{name}-v2").file.scenarios for name in ("dev", "test"))
    assert not {e.digest for e in dev} & {e.digest for e in test}


def test_what_policies_learned_on_stands_in_no_ranking() -> None:
    def networks(name: str) -> list[tuple[object, ...]]:
        parts = (s.model_dump() for s in load_suite(name).scenarios.values())
        return [(p["topology"], p["workloads"]) for p in parts]

    learned = networks("learn-v1")
    names = ("smoke", "dev-v1", "dev-v2", "test-v2", "season-1")
    ranked = [network for name in names for network in networks(name)]
    assert [network for network in learned if network in ranked] == []


def test_an_edited_scenario_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(SUITES / "smoke", folder)
    path = next(folder.glob("00-*.toml"))
    path.write_text(path.read_text().replace("load = 0.", "load = 0.0"))
    with pytest.raises(ConfigError, match=r"is not the scenario of suite 'smoke'.*frozen"):
        _ = load_suite(str(folder)).scenarios


def test_a_misspelt_suite_gets_a_near_match() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'test-v"):
        load_suite("test-v9")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(SUITES / "smoke", folder)
    next(folder.glob("01-*.toml")).unlink()
    with pytest.raises(ConfigError, match=r"01-.*no such file"):
        _ = load_suite(str(folder)).scenarios


def test_draws_are_the_same_everywhere() -> None:
    # printf 'a\x1fb' | sha256sum
    assert number("a", "b") == 0xF04CDCED9736A69D
    assert choose("abc", "salt", 1) == "abc"[number("salt", 1) % 3]
    assert sorted(shuffled(range(9), "x")) == list(range(9))


def test_a_season_has_no_scenario_twice_and_none_on_which_nothing_moves() -> None:
    """Which are still follows from their tables; 42 places, three draws of each kind."""
    asked: list[str] = []

    def moved(one: DrawnScenario) -> float:
        asked.append(one.name)
        return 0.5 if one.table["switch"]["buffer_bytes"] > 4_000_000 else 0.01

    drawn = draw_season("a salt", 42, moved)
    places = [one.name.partition("-") for one in drawn]
    assert [number for number, _, _ in places] == [f"{i:03d}" for i in range(42)]
    assert len({rest for _, _, rest in places}) == 42
    assert all(one.table["switch"]["buffer_bytes"] > 4_000_000 for one in drawn)
    assert len(asked) > 42  # some were rejected
    kinds = list(NEXT_KINDS)
    assert all(one.name.endswith(kinds[i % len(kinds)]) for i, one in enumerate(drawn))
    assert {one.table["intervals"] for one in drawn} == {SEASON_INTERVALS}
    assert SEASON_INTERVALS > 280
    assert drawn == draw_season("a salt", 42, moved)
    assert drawn != draw_season("another", 42, moved)


def test_a_salt_on_which_nothing_moves_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="scenario 0: none of 100 attempts is new and can be"):
        draw_season("a salt", 3, lambda _: 0.0)
