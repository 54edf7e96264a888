"""Suites are frozen: their files are what the generator drew, and an edited one is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.leaderboard import make_suites
from dcqcn_gym.benchmarks.leaderboard.blind import tells_apart
from dcqcn_gym.benchmarks.leaderboard.draw import choose, number, shuffled
from dcqcn_gym.benchmarks.leaderboard.generator import FABRICS, THIRDS, draw_scenarios
from dcqcn_gym.benchmarks.leaderboard.kinds import KINDS, NEXT_KINDS, draw
from dcqcn_gym.benchmarks.leaderboard.make_suites import PUBLIC, Recipe, final_recipe, write_suite
from dcqcn_gym.benchmarks.leaderboard.suite import SUITES, load_suite, suite_names
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import Scenario


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("recipe", PUBLIC, ids=lambda recipe: recipe.name)
def test_files_are_what_is_drawn(tmp_path: Path, recipe: Recipe) -> None:
    write_suite(recipe, tmp_path / "drawn")
    assert files(tmp_path / "drawn") == files(SUITES / recipe.name)


@pytest.mark.parametrize(
    "name",
    [
        "smoke",
        "learn-v1",
        "dev-v1",
        "dev-v2",
        "test-v1",
        "test-v2",
        "paper-v1",
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
        "paper-v1",
        "smoke",
        "stress-v1",
        "test-v1",
        "test-v2",
    ]
    assert {name: len(load_suite(name).file.scenarios) for name in suite_names()} == {
        "dev-v1": 12, "dev-v2": 42, "jobs-v1": 8, "learn-v1": 12, "paper-v1": 4, "smoke": 3,
        "stress-v1": 16, "test-v1": 24, "test-v2": 42,
    }  # fmt: skip


@pytest.mark.parametrize("salt", ["test-v1", "another"])
def test_a_suite_of_24_holds_every_fabric_and_kind_of_traffic(salt: str) -> None:
    drawn = draw_scenarios(salt, 24, 130)
    assert {third: sum(d.third == third for d in drawn) for third in THIRDS} == dict.fromkeys(
        THIRDS, 8
    )
    names = " ".join(d.name for d in drawn)
    kinds = {maker.__name__.strip("_") for third in THIRDS.values() for maker in third}
    assert all(word in names for word in {*FABRICS, *kinds})
    assert len({str(d.table) for d in drawn}) == 24


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_test_and_dev_share_no_scenario(version: str) -> None:
    dev, test = (load_suite(f"{name}-{version}").file.scenarios for name in ("dev", "test"))
    assert not {e.digest for e in dev} & {e.digest for e in test}


def test_what_policies_learned_on_stands_in_no_ranking() -> None:
    def networks(name: str) -> list[tuple[object, ...]]:
        parts = (s.model_dump() for s in load_suite(name).scenarios.values())
        return [(p["topology"], p["workloads"]) for p in parts]

    learned = networks("learn-v1")
    ranked = [w for name in ("smoke", "dev-v1", "test-v1", "paper-v1") for w in networks(name)]
    assert [network for network in learned if network in ranked] == []


def test_the_salt_alone_decides() -> None:
    one, two = (final_recipe(salt).scenarios() for salt in ("secret", "secret"))
    assert one == two
    assert one != final_recipe("Secret").scenarios()


def test_a_scenario_that_tells_no_settings_apart_is_found() -> None:
    scenarios = load_suite("test-v1").scenarios
    found = {name: tells_apart(scenarios[name]) for name in list(scenarios)[9:12]}
    assert [name for name, apart in found.items() if not apart] == ["11-fast-uplinks-alltoall"]


def test_a_new_suite_with_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were published before stay: see the test of their files."""
    new = Recipe("smoke-v2", "a new suite", "smoke", 3, 20, 2, 1, 10)
    monkeypatch.setattr(make_suites, "PUBLIC", (new,))
    with pytest.raises(ConfigError, match="suite 'smoke-v2': 02-fat-tree-alltoall: the experts'"):
        make_suites.main(tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(make_suites, "PUBLIC", (replace(new, name="smoke"),))
    make_suites.main(tmp_path)
    assert (tmp_path / "smoke" / "suite.toml").exists()


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
