"""Scenarios with their own knobs, ranges or scheme: what a policy of a training is exported for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import layout_name
from dcqcn_gym.extras.learn.spec import TrainSpec
from dcqcn_gym.tuners.policy import FIRST_LAYOUT

MINI = Path("configs/scenarios/mini-fb-hadoop.toml")
OTHERS = {
    "usual": "",
    "two": 'knobs = ["kmin", "kmax"]',
    "back": 'knobs = ["kmax", "kmin"]',
    "narrow": "knobs = { kmin = [20, 50] }",
    "wide": "knobs = { kmin = [5, 100] }",
    "dear": "knobs = { kmin = [20, 50], pfc_alpha = [0.0625, 0.5] }",
    "timely": 'scheme = "timely"',
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return scenario files by name, alike but for one line."""
    found = {}
    for name, line in OTHERS.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(f"{line}\n{MINI.read_text()}")
        found[name] = str(path)
    return found


def spec(*scenarios: str, algo: str = "ppo") -> TrainSpec:
    return TrainSpec(algo, scenarios, backend="fake")


@pytest.mark.parametrize("name", OTHERS)
def test_the_space_is_that_of_the_scenario(name: str, files: dict[str, str]) -> None:
    there = DcqcnEnv(files[name], "fake").space
    assert spec(files[name]).space() == there
    spec(files[name], files[name], algo="dqn").check()


def test_another_line_rate_is_no_other_space(files: dict[str, str]) -> None:
    spec(files["usual"], "fb-hadoop", "mini-llm-alltoall").check()
    assert layout_name(spec("fb-hadoop").space()) == FIRST_LAYOUT


def test_the_shipped_policies_train_on_scenarios_that_fit_together() -> None:
    spec(*map(str, sorted((CONFIGS / "suites" / "learn-v1").glob("[0-9]*.toml")))).check()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("usual", "two", r"other knobs to turn \(np_.*, rp_.*"),
        ("two", "back", r"other knobs to turn \(the same in another order\)"),
        ("usual", "narrow", r"other ranges of kmin;"),
        ("narrow", "wide", r"other ranges of kmin;"),
        ("narrow", "dear", r"knob tables of 'dcqcn' and 'dcqcn\+pfc_alpha'"),
        ("usual", "timely", r"knob tables of 'dcqcn' and 'timely'"),
    ],
)
def test_scenarios_that_do_not_fit_together_are_named(
    one: str, other: str, expected: str, files: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        spec(files[one], files[one], files[other]).check()
    said = str(caught.value)
    assert re.search(expected, said), said
    assert f"scenarios '{files[one]}' and '{files[other]}' cannot train one policy" in said
