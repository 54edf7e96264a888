"""A plug-in that breaks in mid-run: one clear sentence, and the log of what was before is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, RunError, TunerError, UnknownNameError
from dcqcn_gym.envs.scenario.monitor import NoMonitor
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TUNERS, make_tuner

SOURCE = """
import os
from dcqcn_gym.tuners import Tuner

class Bad(Tuner):
    name = "bad"
    summary = "breaks in its fifth interval"
    asked = 0
    {more}

    def ask(self):
        self.asked += 1
        if self.asked < 5:
            return self.context.base
        {ask}

    def tell(self, outcome):
        super().tell(outcome)
        {tell}
"""


def plugin(
    tmp_path: Path, ask: str = "return self.context.base", tell: str = "pass", more: str = ""
) -> str:
    path = tmp_path / "bad.py"
    path.write_text(SOURCE.format(ask=ask, tell=tell, more=more))
    return f"{path}:Bad"


def spec(tuner: str) -> RunSpec:
    """In this process: what supervises a plug-in in one of its own is the same."""
    scenario, here = load_scenario("mini-fb-hadoop"), Hosting(apart=False)
    return RunSpec(scenario, tuner, 1, 12, "fake", hosting=here)


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


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (r"raise ValueError('first\nsecond')", r"failed in ask\(\): ValueError: first second"),
        ("raise ValueError()", r"failed in ask\(\): ValueError$"),
        ("raise SystemExit(3)", r"failed in ask\(\): SystemExit: 3"),
        ("raise BaseException('stop')", r"failed in ask\(\): BaseException: stop"),
        ("raise GeneratorExit", r"failed in ask\(\): GeneratorExit"),
        (r"raise ValueError('\x1b[31m')", r"ValueError: \\x1b\[31m"),
    ],
)
def test_whatever_it_raises_becomes_one_sentence(tmp_path: Path, ask: str, says: str) -> None:
    with pytest.raises(TunerError, match=says) as caught:
        run(spec(plugin(tmp_path, ask)), tmp_path / "run.jsonl")
    assert "\n" not in str(caught.value)
    assert len(read_run(tmp_path / "run.jsonl").intervals) == 4


@pytest.mark.parametrize(
    ("method", "says", "kept"),
    [
        ("def recommend(self): return 1 / 0", r"failed in recommend\(\): ZeroDivision", 12),
        ("def recommend(self): return None", r"recommend\(\) returned NoneType", 12),
        ("def recommend(self): return self.context.base.replace({'pmax': float('nan')})",
         "pmax = nan", 12),
        ("def state(self): return 1 / 0", r"failed in state\(\): ZeroDivisionError", 1),
        ("def state(self): return [1]", r"state\(\) returned list; expected a dict", 1),
        ("tuning = property(lambda self: 1 / 0)", r"failed in tuning\(\)", 0),
        ("def ask(self): return {'cluster': self.context.base, 'tor': 5}", "returned int", 0),
    ],
)  # fmt: skip
def test_in_another_method(tmp_path: Path, method: str, says: str, kept: int) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        "from dcqcn_gym.tuners import Tuner\n"
        "class Other(Tuner):\n"
        "    name = summary = 'other'\n"
        "    def ask(self): return None\n"
        f"    {method}\n"
    )

    def told(line: object, state: object, repeated: bool) -> None:
        """Makes the loop ask for the state, as a display does."""

    with pytest.raises(TunerError, match=says):
        run(spec(f"{path}:Other"), tmp_path / "run.jsonl", watch=told)
    log = read_run(tmp_path / "run.jsonl")
    assert len(log.intervals) == kept
    assert not log.complete


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def __init__(self): pass", "cannot be made: TypeError"),
        ("def __init__(self, settings=None): raise OSError('no file')", "made: OSError: no file"),
        ("def __init__(self, settings=None): raise SystemExit", "cannot be made: SystemExit"),
        ("Settings = dict", "its Settings are no TunerSettings; expected a class"),
        ("ask = Tuner.ask", "abstract"),
        ("ask = Tuner.ask\n    def aks(self): pass", "lacks ask .*its 'aks' may be meant as 'ask'"),
        ("needs = None", "its needs = None; expected a set of names"),
        ("needs = 'fsd'", "its needs = 'fsd'; expected a set of names"),
        ("needs = {'fds'}", "needs hold the unknown name 'fds'; did you mean 'fsd'"),
        ("needs = {7}", "needs hold the unknown name 7"),
        ("needs = {'x' * 999}", r"its needs hold the unknown name 'x{60,80}\.\.\. \(known: "),
        ("raise SystemExit(1)", "cannot be imported: SystemExit: 1"),
        ("raise BaseException('x')", "cannot be imported: BaseException: x"),
        ("def __init__(self, settings): raise GeneratorExit", "cannot be made: GeneratorExit"),
    ],
)
def test_a_class_that_cannot_be_made(tmp_path: Path, body: str, says: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(
        "from dcqcn_gym.tuners import Tuner\n"
        "class Broken(Tuner):\n"
        "    name = summary = 'broken'\n"
        "    def ask(self): return None\n"
        f"    {body}\n"
    )
    with pytest.raises((ConfigError, TunerError), match=says) as caught:
        make_tuner(f"{path}:Broken")
    assert "broken.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_class_is_told_how_to_name_one() -> None:
    with pytest.raises(ConfigError, match=r"is a file; name its class: mine\.py:Class"):
        make_tuner("mine.py")


def test_a_file_without_a_tuner_has_none_to_offer(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("from dcqcn_gym.tuners import Tuner\n")
    with pytest.raises(ConfigError, match=r"unknown class 'Nobody'; there is none$"):
        TUNERS.load(f"{path}:Nobody")


def test_on_the_command_line(tmp_path: Path, in_threads: None) -> None:
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


CLOSES = """for fd in os.listdir("/proc/self/fd"):
            path = "/proc/self/fd/" + fd
            if os.path.exists(path) and os.readlink(path).endswith("run.jsonl"):
                os.close(int(fd))
"""


def test_a_plugin_that_closes_the_log(tmp_path: Path) -> None:
    closes = spec(plugin(tmp_path, tell=CLOSES))
    with pytest.raises(RunError, match=r"run.jsonl cannot be written: Bad file descriptor"):
        run(closes, tmp_path / "run.jsonl")
    assert len(read_run(tmp_path / "run.jsonl").intervals) == 1
    # in a process of its own it cannot even see it
    run(replace(closes, intervals=3, hosting=Hosting()), tmp_path / "run.jsonl")
    assert read_run(tmp_path / "run.jsonl").complete


def test_a_need_that_nothing_meets_is_an_error_at_the_start(tmp_path: Path) -> None:
    seen = spec(plugin(tmp_path, more='needs = {"fsd"}'))
    unseen = seen.scenario.model_copy(update={"monitor": NoMonitor()})
    seen.check()
    with pytest.raises(ConfigError, match="needs to see the flow-size distribution"):
        replace(seen, scenario=unseen).check()
    replace(spec("paraleon"), scenario=unseen).check()  # it can do without, and needs nothing
