"""A plug-in that breaks in mid-run: one clear sentence, and the log of what was before is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.envs.scenarios import load_scenario
from dcqcn_gym.errors import ConfigError, DcqcnGymError, TunerError, UnknownNameError
from dcqcn_gym.loop import RunSpec, run
from dcqcn_gym.record import read_run
from dcqcn_gym.tuners import make_tuner

SOURCE = """
from dcqcn_gym.tuners import Tuner

class Bad(Tuner):
    name = "bad"
    summary = "breaks in its fifth interval"
    asked = 0

    def ask(self):
        self.asked += 1
        if self.asked < 5:
            return self.context.base
        {ask}

    def tell(self, outcome):
        super().tell(outcome)
        {tell}
"""


def plugin(tmp_path: Path, ask: str = "return self.context.base", tell: str = "pass") -> str:
    path = tmp_path / "bad.py"
    path.write_text(SOURCE.format(ask=ask, tell=tell))
    return f"{path}:Bad"


def spec(tuner: str) -> RunSpec:
    return RunSpec(load_scenario("mini-fb-hadoop"), tuner, 1, 12, "fake")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ("return 1 / 0", r"failed in ask\(\): ZeroDivisionError: division by zero"),
        ("return self.context.base.replace({'pmax': float('nan')})", "pmax = nan .*0 to 1"),
        ("return self.context.base.replace({'kmin': float('inf')})", "kmin = inf"),
        ("return self.context.base.replace({'pmax': 1.5})", "pmax = 1.5 .*expected 0 to 1"),
        ("return {'rp_ai_rate': 5}", r"ask\(\) returned dict; expected a .*Setting"),
        ("return self.context.base.replace({'rp_ai': 5})", "did you mean 'rp_ai_rate'"),
        ("import numpy as np; return self.context.space.setting(np.full(3, 0.0),"
         " self.context.base)", r"an action has shape \(3,\); expected \(14,\)"),
    ],
)  # fmt: skip
def test_in_ask(tmp_path: Path, ask: str, says: str) -> None:
    log = tmp_path / "run.jsonl"
    with pytest.raises(DcqcnGymError, match=says) as caught:
        run(spec(plugin(tmp_path, ask)), log)
    assert "\n" not in str(caught.value)
    kept = read_run(log)
    assert len(kept.intervals) == 4
    assert not kept.complete


def test_in_tell(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    tuner = plugin(tmp_path, tell="self.asked >= 5 and [][0]")
    with pytest.raises(TunerError, match=r"failed in tell\(\): IndexError"):
        run(spec(tuner), log)
    assert len(read_run(log).intervals) == 5


def test_on_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", plugin(tmp_path, "return 7")]
    arguments += ["--backend", "fake", "--intervals", "12", "--eval-seeds", "0", "--quiet"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    assert isinstance(done.exception, TunerError)
    assert "returned int" in str(done.exception)
    assert len(read_run(out).intervals) == 4


@pytest.mark.parametrize(
    ("name", "near"),
    [("cma-es", "cmaes"), ("naive_sa", "naive-sa"), ("drucb", "dr-ucb"), ("cameleon", "chameleon")],
)
def test_unknown_names_come_with_near_matches(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean .*'{near}'"):
        make_tuner(name)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("tpe", {"startups": "3"}, "did you mean 'startup'"),
        ("cmaes", {"sigma": "-1"}, "sigma.*greater than 0"),
        ("nsga2", {"population": "1"}, "population.*greater than or equal to 2"),
        ("dr-ucb", {"xi": "0.5"}, "xi.*greater than 0.5"),
        ("dr-ucb", {"gamma": "1"}, "gamma.*less than 1"),
        ("chameleon", {"beta": "nan"}, "beta.*finite"),
        ("ars", {"episode": "0"}, "episode.*greater than or equal to 1"),
        ("naive-sa", {"guided": "perhaps"}, "guided"),
    ],
)
def test_bad_arguments_of_the_searches(name: str, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_tuner(name, arguments)
