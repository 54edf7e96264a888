"""What people see of the rule and the keeper: the command, the shipped file, log and page."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.bank import fit
from dcqcn_gym.benchmarks.leaderboard.categories import category_of
from dcqcn_gym.cli import app
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.page import build_report
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.rule import rule_file

MINI = load_scenario("mini-fb-hadoop")


def test_the_command_prints_values_reasons_and_territory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(NativeBackend, "open")  # nothing may be simulated
    done = CliRunner().invoke(app, ["advise", "--scenario", "mini-fb-hadoop"])
    assert done.exit_code == 0, done.output
    floor = int(rule_file().terms.floor_share * 25_000)
    assert f"rp_min_rate = {floor} Mb/s (default 1): 15 hosts" in done.output
    assert "tried on 10 to 400 Gb/s" in done.output
    assert "never tried" not in done.output


def test_it_says_what_was_never_tried() -> None:
    done = CliRunner().invoke(app, ["advise", "--scenario", "fat-tree-1024"])
    assert "never tried: hosts = 1024 (tried: 12 to 128)" in done.output
    assert "rp_time_reset" not in done.output


def test_the_shipped_file_is_what_the_fit_writes() -> None:
    """The search itself takes four minutes: docs/measured/keeper.md."""
    shipped = (CONFIGS / "tuners" / "advise.toml").read_text()
    terms = rule_file().terms.model_dump()
    assert fit.text_of(terms) == shipped
    assert all(low <= terms[name] <= high for name, (low, high, _) in fit.RANGES.items())


def test_the_fit_goes_where_the_worth_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the default's slow recovery, which harms with this floor, on one scenario."""
    others = {name: (first, first * 1.001, first) for name, (_, _, first) in fit.RANGES.items()}
    ranges = {**others, "time_reset_us": (5, 301, 300)}
    monkeypatch.setattr(fit, "RANGES", ranges)
    ground = fit.FitGround([MINI.model_copy(update={"intervals": 5})], (1,))
    start = {name: first for name, (_, _, first) in ranges.items()}
    found = fit.found_terms(ground, generations=2)
    assert all(found[name] == pytest.approx(first, 0.01) for name, first in start.items()
               if name != "time_reset_us")  # fmt: skip
    assert found["time_reset_us"] < 250
    assert ground.worth(found).value > ground.worth(start).value + 0.1


def test_harm_costs_from_half_a_limit_on() -> None:
    worth = fit.Worth({"a": 0.5, "b": 0.5}, {"a": {"pause": 0.4}, "b": {"pause": 1.0, "p99": 9.0}})
    assert worth.score == 0.5
    assert worth.crossed == 1
    assert worth.value == pytest.approx(0.5 - (fit.PRICE + 3 * fit.PRICE) / 2)


def test_log_and_page_hold_the_decisions(tmp_path: Path) -> None:
    run(RunSpec(MINI, "keeper", 1, 3, "fake"), tmp_path / "run.jsonl")
    end = read_run(tmp_path / "run.jsonl").end
    assert end is not None
    (said,) = end["decisions"]
    assert said.startswith("after 0 intervals: the rule's setting is held")
    page = build_report(tmp_path).read_text()
    assert "What keeper decided" in page
    assert "the fabric is of the kind that it was tried on" in page


def test_a_tuner_without_decisions_leaves_no_word_of_them(tmp_path: Path) -> None:
    run(RunSpec(MINI, "advise", 1, 3, "fake"), tmp_path / "run.jsonl")
    assert "decisions" not in (tmp_path / "run.jsonl").read_text()
    assert "decided" not in build_report(tmp_path).read_text()


PLUGIN = """
from dcqcn_gym.tuners import Tuner

class Talker(Tuner):
    name = "talker"
    summary = "says what it knows of the fabric"

    def ask(self):
        return None

    @property
    def decisions(self):
        return [f"{self.context.fabric.hosts} hosts"]
"""


@pytest.mark.parametrize("apart", [False, True])
def test_a_plug_in_knows_the_fabric_and_is_heard(tmp_path: Path, apart: bool) -> None:
    (tmp_path / "talker.py").write_text(PLUGIN)
    name, hosting = f"{tmp_path / 'talker.py'}:Talker", Hosting(apart=apart)
    run(RunSpec(MINI, name, 1, 2, "fake", {}, hosting), tmp_path / "run.jsonl")
    end = read_run(tmp_path / "run.jsonl").end
    assert end is not None
    assert end["decisions"] == ["16 hosts"]


def test_both_stand_among_what_was_searched_before() -> None:
    assert {category_of("advise"), category_of("keeper")} == {"pre-trained"}
    assert category_of("default-min-rate") == "static"
