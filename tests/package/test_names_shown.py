"""Names and texts of strangers, shown: never markup, never HTML, never an escape sequence."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from unittest import mock

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dcqcn_gym.cli import app, main
from dcqcn_gym.commands.tune import _answer
from dcqcn_gym.comparison.compare import plan_of
from dcqcn_gym.comparison.results import EntryResult
from dcqcn_gym.comparison.text import markdown
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knob_names import knob_name
from dcqcn_gym.core.knobs import KNOBS, Setting, default_setting
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.runs.interrupt import same_command
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.markdown import code, plain
from dcqcn_gym.runs.progress import _plain
from dcqcn_gym.simulation.run import parse_assignments
from verdict_cases import write_case

MINI = Path(__file__).parents[2] / "configs" / "scenarios" / "mini-fb-hadoop.toml"
QUICK = ["--backend", "fake", "--intervals", "3", "--eval-seeds", "0", "--no-report", "--quiet"]


@pytest.mark.parametrize("name", ["../../../escape", "[/x]", "/tmp/abs", "\\u001b[31m"])
def test_a_name_writes_nothing_outside(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "{name}"\n' + MINI.read_text())
    out = tmp_path / "deep" / "out"
    for words in (["tune", *QUICK], ["compare", "--tuners", "default", "--backend", "fake"]):
        done = CliRunner().invoke(app, [*words, "--scenario", str(path), "--out", str(out)])
        assert isinstance(done.exception, ConfigError)
        assert "name: " in str(done.exception)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["mine.toml"]


def test_paths_of_odd_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = RunDir(write_case("clear-gain", tmp_path / "[red]"))
    _answer(out, tmp_path / "[/y]" / "report.html", quiet=False, asked=True)
    said = capsys.readouterr().err.replace("\n", "")
    assert "[red]" in said
    assert "[/y]" in said


def test_what_a_tuner_shows_cannot_steer_the_terminal() -> None:
    for value in ("\x1b[31m", object(), "y" * 1000, [10**5000], float("nan"), None):
        assert "\x1b" not in _plain(value)
        assert len(_plain(value)) <= 80
    console = Console(file=io.StringIO())
    console.print(_plain("[/x]"), markup=False)


def test_markdown_shows_it_as_it_is() -> None:
    assert plain("<b>x</b> [a](b) | *c*\n`d`") == (r"&lt;b>x&lt;/b> \[a\](b) \| \*c\* \`d\`")
    assert code("a`b|c\x1b") == "`a'b¦c\\x1b`"


def test_errors_in_the_table_are_text() -> None:
    plan = plan_of({"tuners": ("x",), "intervals": 3})
    none = Estimate(float("nan"), None, None, 0)
    row = EntryResult(
        "x", 0, none, None, none, (), none, none, none, none, 0.0,
        error="<script>alert(1)</script> | [y](z)",
    )  # fmt: skip
    name = plan.cases[0].title
    text = markdown(plan, {name: [row]}, ["<img src=x>"], Path("out"))
    assert "<script" not in text
    assert "<img" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["kmin=300", "kmin=400"], "--set names kmin more than once"),
        (["rp_ai_rate=5", "RPG_AI_RATE=7"], "--set names rp_ai_rate more than once"),
        (["y" * 9999], r"'y{60,80}\.\.\. is not of the form"),
    ],
)
def test_assignments(words: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_assignments(words, default_setting(), 100e9)


def test_the_names_of_the_vendor_are_names() -> None:
    for row in KNOBS.values():
        for other in (row.mlxconfig, row.debugfs):
            assert other is None or knob_name(other) == row.name
    setting = parse_assignments(["RPG_AI_RATE_P1=50", "RPG_GD=12"], default_setting(), 100e9)
    assert isinstance(setting, Setting)
    assert setting["rp_ai_rate"] == 50
    assert setting["rp_gd"] == 12


def test_an_argument_of_a_tuner_is_given_once(tmp_path: Path) -> None:
    words = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", "fixed", *QUICK]
    words += ["--tuner-arg", "kmin=300", "--tuner-arg", "kmin=400", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ConfigError)
    assert "--tuner-arg 'kmin' is given twice" in str(done.exception)


def test_how_to_continue_names_no_option_that_was_not_given() -> None:
    assert same_command(False) == "the same command"
    assert same_command(True) == "the same command without --force"


def test_an_unknown_choice(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["dcqcn-gym", "tune", "--out", str(tmp_path / "x"), "--track", "cisco"]
    with mock.patch.object(sys, "argv", words), pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: unknown tracker 'cisco' (known: mlflow, optuna, tensorboard, ")
    assert not (tmp_path / "x").exists()
