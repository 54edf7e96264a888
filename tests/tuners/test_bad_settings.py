"""What a tuner proposes and declares that is nothing of the kind: a TunerError that names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError, RunError, TunerError
from dcqcn_gym.envs.scenario.monitor import NoMonitor
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TUNERS, make_tuner

SOURCE = """
import os
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners import Tuner

class Odd(Tuner):
    name = summary = "odd"
    def ask(self): return self.context.base
    {line}
"""


def odd(tmp_path: Path, line: str) -> str:
    path = tmp_path / "odd.py"
    path.write_text(SOURCE.format(line=line))
    return f"{path}:Odd"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("def ask(self): return Setting((None,) * 20)", r"ask\(\)|None"),
        ("def ask(self): return Setting(('x',) * 20)", r"ask\(\)|'x'"),
        ("def ask(self): return Setting((1j,) * 20)", r"ask\(\)|1j"),
        ("def ask(self): return {'cluster': self.context.base, 'tor': None}", "returned NoneType"),
        ("def ask(self): raise BaseException('stop')", r"failed in ask\(\): BaseException: stop"),
        ("def ask(self): raise GeneratorExit", r"failed in ask\(\): GeneratorExit"),
        ("def ask(self): raise ValueError('\\x1b[31m')", r"ValueError: \\x1b\[31m"),
        ("def recommend(self): return Setting((None,) * 20)", r"recommend\(\)|None"),
        ("needs = None", "its needs = None; expected a set of names"),
        ("needs = {'x' * 999}", r"its needs hold the unknown name 'x{60,80}\.\.\. \(known: "),
    ],
)
def test_one_sentence(tmp_path: Path, line: str, says: str) -> None:
    spec = RunSpec(load_scenario("mini-fb-hadoop"), odd(tmp_path, line), 1, 3, "fake")
    with pytest.raises((TunerError, ConfigError), match=says) as caught:
        run(spec, tmp_path / "run.jsonl")
    assert "\n" not in str(caught.value)


def test_a_plugin_that_ends_by_a_base_exception_when_it_is_imported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be imported: BaseException: x"):
        TUNERS.load(odd(tmp_path, "raise BaseException('x')"))
    with pytest.raises(TunerError, match="cannot be made: GeneratorExit"):
        make_tuner(odd(tmp_path, "def __init__(self, settings): raise GeneratorExit"))


def test_a_file_without_a_tuner_has_none_to_offer(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("from dcqcn_gym.tuners import Tuner\n")
    with pytest.raises(ConfigError, match=r"unknown class 'Nobody'; there is none$"):
        TUNERS.load(f"{path}:Nobody")


CLOSES = """def tell(self, outcome):
        for fd in os.listdir("/proc/self/fd"):
            path = "/proc/self/fd/" + fd
            if os.path.exists(path) and os.readlink(path).endswith("run.jsonl"):
                os.close(int(fd))
"""


def test_a_plugin_that_closes_the_log(tmp_path: Path) -> None:
    here = Hosting(apart=False)
    scenario = load_scenario("mini-fb-hadoop")
    spec = RunSpec(scenario, odd(tmp_path, CLOSES), 1, 3, "fake", hosting=here)
    with pytest.raises(RunError, match=r"run.jsonl cannot be written: Bad file descriptor"):
        run(spec, tmp_path / "run.jsonl")
    assert len(read_run(tmp_path / "run.jsonl").intervals) == 1
    # in a process of its own it cannot even see it
    run(replace(spec, hosting=Hosting()), tmp_path / "run.jsonl")
    assert read_run(tmp_path / "run.jsonl").complete


def test_one_odd_tuner_does_not_stop_a_comparison(tmp_path: Path) -> None:
    tuner = odd(tmp_path, "def ask(self): return Setting((None,) * 20)")
    words = ["compare", "--scenario", "mini-fb-hadoop", "--tuners", f"default,{tuner}"]
    words += ["--seeds", "1", "--intervals", "3", "--eval-seeds", "1", "--eval-intervals", "2"]
    done = CliRunner().invoke(app, [*words, "--backend", "fake", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| `default`" in table
    assert "failed: " in table


def test_a_need_that_nothing_meets_is_an_error_at_the_start(tmp_path: Path) -> None:
    unseen = load_scenario("mini-fb-hadoop").model_copy(update={"monitor": NoMonitor()})
    needy = odd(tmp_path, "needs = {'fsd'}")
    RunSpec(load_scenario("mini-fb-hadoop"), needy, 1, 3, "fake").check()
    with pytest.raises(ConfigError, match="needs to see the flow-size distribution"):
        RunSpec(unseen, needy, 1, 3, "fake").check()
    RunSpec(unseen, "paraleon", 1, 3, "fake").check()  # it can do without, and needs nothing
