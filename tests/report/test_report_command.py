"""The command on a report's page makes the same run again."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.commands.tune import tuner_arguments
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.command import command_again
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.tuners import BUILTIN

SHORT = ["--backend", "fake", "--intervals", "2", "--eval-seeds", "0", "--quiet", "--no-report"]


def header(out: Path) -> dict[str, Any]:
    return dict(read_run(out / "run.jsonl").header)


def words_of(out: Path) -> list[str]:
    words = shlex.split(command_again(header(out), "again"), comments=True)
    assert words[:2] == ["dcqcn-gym", "tune"]
    return words[1:]


def test_a_run_is_made_again_by_the_words_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_threads: None
) -> None:
    """Text, number, nothing, list and table as arguments, and another monitor."""
    monkeypatch.chdir(tmp_path)
    arguments = ["mutate_from=best", "groups={}", "rp_ai_rate=12.5"]
    for tuner, given in {"paraleon": arguments[:1], "fixed": arguments[1:]}.items():
        words = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", tuner, "--monitor", "elastic"]
        words += ["--out", tuner, *SHORT]
        for text in given:
            words += ["--tuner-arg", text]
        assert CliRunner().invoke(app, words).exit_code == 0
        again = words_of(Path(tuner))
        assert again[again.index("--monitor") + 1] == "elastic"
        again[-1] = f"{tuner}-again"
        done = CliRunner().invoke(app, [*again, "--eval-seeds", "0", "--quiet", "--no-report"])
        assert done.exit_code == 0, done.output
        logs = [Path(folder) / "run.jsonl" for folder in (tuner, f"{tuner}-again")]
        assert logs[0].read_bytes() == logs[1].read_bytes()


@pytest.mark.parametrize("tuner", BUILTIN)
def test_the_arguments_of_every_tuner_are_read_as_they_are_written(tuner: str) -> None:
    arguments = tuner_arguments(tuner, [])
    scenario = load_scenario("mini-fb-hadoop").model_dump(mode="json")
    first = {"scenario": scenario, "tuner": tuner, "seed": 1, "intervals": 1, "backend": "native"}
    words = shlex.split(command_again({**first, "tuner_args": arguments}, "again"))
    given = [value for flag, value in itertools.pairwise(words) if flag == "--tuner-arg"]
    assert tuner_arguments(tuner, given) == arguments


def test_a_scenario_of_ones_own_is_a_file_and_a_fleet_is_named(tmp_path: Path) -> None:
    scenario = load_scenario("mini-fb-hadoop").model_dump(mode="json")
    first = {"tuner": "random", "seed": 1, "intervals": 2, "backend": "native"}
    own = command_again({**first, "scenario": {**scenario, "name": "mine"}}, "o")
    assert own.startswith("dcqcn-gym tune --scenario mine.toml --tuner random")
    assert own.endswith("--out o  # the file whose content is in line 1 of run.jsonl")
    other = command_again({**first, "scenario": {**scenario, "cadence": 7}}, "o")
    assert "--scenario mini-fb-hadoop.toml" in other
    fleet = {**first, "scenario": scenario, "backend": "hardware:fleet.toml"}
    assert command_again(fleet, "o").startswith("dcqcn-gym hw tune --fleet fleet.toml --scenario")
