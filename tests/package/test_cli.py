"""The command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from dcqcn_gym import __version__
from dcqcn_gym.cli import main
from dcqcn_gym.core.knobs import KNOBS, Setting, default_setting
from dcqcn_gym.core.version import engine_digest
from dcqcn_gym.envs.scenario.scenario import scenario_names
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.progress import LiveViewer, PlainViewer, _Figures
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.testing.tuner_case import TunerCase
from dcqcn_gym.tuners import TUNERS
from programs import runs_in_threads

QUICK = ["--scenario", "mini-fb-hadoop", "--backend", "fake", "--intervals", "6"]
FEW = ["--eval-seeds", "2", "--eval-intervals", "3"]


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dcqcn-gym", *words])
    with pytest.raises(SystemExit) as end, runs_in_threads():
        main()
    return int(end.value.code or 0)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """One tuned run: its directory, what it printed and what it said."""
    out = tmp_path_factory.mktemp("session") / "run"
    words = ["tune", *QUICK, *FEW, "--out", str(out), "--tuner", "paraleon"]
    done = subprocess.run(
        [sys.executable, "-m", "dcqcn_gym.cli", *words], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    again = subprocess.run(
        [sys.executable, "-m", "dcqcn_gym.cli", "emit", str(out), "--format=debugfs", "--force"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return out, again.stdout, done.stderr


def test_tune_writes_its_files(session: tuple[Path, str, str]) -> None:
    out = session[0]
    files = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())
    held_out = [
        f"evaluation/{name}-seed{seed}.jsonl"
        for name in ("advise", "default", "expert", "recommended")
        for seed in (1001000, 1001001)
    ]
    same = ["reference/default.jsonl", "reference/expert.jsonl"]
    whole = ["best.json", "report.html", "results.json", "run.jsonl", "timing.json"]
    assert [file for file in files if file != "results.parquet"] == sorted(whole + held_out + same)


def test_references_run_on_the_same_traffic(session: tuple[Path, str, str]) -> None:
    out = session[0]
    tuned, default = read_run(out), read_run(out / "reference" / "default.jsonl")
    assert default.header["seed"] == tuned.header["seed"]
    assert default.header["scenario"] == tuned.header["scenario"]
    first = [{k: v for k, v in run.intervals[0].items() if k != "wire"} for run in (default, tuned)]
    assert first[0] == first[1]  # PARALEON begins with the default
    assert {json.dumps(line["setting"]) for line in default.intervals} == {
        json.dumps(default.intervals[0]["setting"])
    }


def test_best_says_what_was_found(session: tuple[Path, str, str]) -> None:
    out = session[0]
    best = json.loads((out / "best.json").read_text())
    end = read_run(out).end
    assert end is not None
    assert best["candidate"] == end["recommended"]
    recommended = Setting.of(best["candidate"])
    for name, change in best["changed"].items():
        assert change["candidate"] == best["candidate"][name]
        assert change["unit"] == KNOBS[name].unit
    held_out = best["utility_on_held_out_seeds"]
    assert held_out["seeds"] == [1001000, 1001001]
    for name in ("candidate", "default", "expert"):
        file = "recommended" if name == "candidate" else name
        logs = [read_run(out / "evaluation" / f"{file}-seed{s}.jsonl") for s in held_out["seeds"]]
        assert [r.end["mean_utility"] for r in logs if r.end] == held_out["per_seed"][name]
        assert all(len(r.intervals) == 3 for r in logs)
    measured = read_run(out / "evaluation" / "recommended-seed1001000.jsonl").intervals[0]
    assert Setting.of(measured["setting"]) == recommended


def test_progress_is_plain_and_emit_is_alone_on_stdout(session: tuple[Path, str, str]) -> None:
    _, printed, said = session
    assert printed.count("echo ") == 17
    lines = [line for line in said.splitlines() if line.startswith("interval ")]
    assert len(lines) == 6
    for part in ("interval 1/6", "t=6.0 ms", "U=0.", "best=0.", "default=", "throughput=", "RTT="):
        assert part in lines[0]
    assert "\x1b" not in said
    assert "Cannot tell: " in said  # six intervals find nothing


def test_timings_stay_outside_the_log(session: tuple[Path, str, str]) -> None:
    out = session[0]
    timing = json.loads((out / "timing.json").read_text())
    assert timing["run"]["intervals"] == 6
    assert timing["run"]["tuner_cpu_s"] <= timing["run"]["cpu_s"] + 0.01
    assert b"cpu_s" not in (out / "run.jsonl").read_bytes()


def test_quiet_says_the_answer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*QUICK, "--out", str(tmp_path / "run"), "--quiet", "--no-report", "--eval-seeds"]
    assert call(monkeypatch, "tune", *words, "1") == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("Cannot tell: the logs do not tell ")
    assert said.err.count("\n") == 1
    # none was asked for
    words[words.index("--out") + 1] += "-unjudged"
    assert call(monkeypatch, "tune", *words, "0") == 0
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "run" / "report.html").exists()


def test_force_replaces_and_monitor_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*QUICK, "--eval-seeds", "0", "--out", str(tmp_path), "--quiet", "--no-report"]
    assert call(monkeypatch, "tune", *words) == 0
    assert call(monkeypatch, "tune", *words, "--force", "--monitor", "none") == 0
    assert read_run(tmp_path).header["scenario"]["monitor"]["kind"] == "none"


def test_tuner_arguments_are_recorded_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*QUICK, "--eval-seeds", "0", "--out", str(tmp_path), "--quiet", "--no-report"]
    given = ["--tuner-arg", "iterations=3", "--tuner-arg", "mutate_from=best"]
    assert call(monkeypatch, "tune", *words, *given) == 0
    assert read_run(tmp_path).header["tuner_args"] == {"iterations": 3, "mutate_from": "best"}


@pytest.mark.parametrize("name", ["scenarios", "tuners", "knobs"])
def test_tables_hold_every_row(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, name) == 0
    shown = capsys.readouterr().out
    rows = {"scenarios": scenario_names(), "tuners": TUNERS.names(), "knobs": list(KNOBS)}[name]
    for row in rows:
        assert f" {row} " in shown


def test_scenarios_checks_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Path(__file__).parents[2] / "configs" / "scenarios" / "mini-fb-hadoop.toml"
    assert call(monkeypatch, "scenarios", str(good)) == 0
    assert capsys.readouterr().out == f"{good}: OK\n"
    bad = tmp_path / "bad.toml"
    bad.write_text("[topology]\nkind = 'star'\n")
    assert call(monkeypatch, "scenarios", str(bad)) == 2
    assert str(bad) in capsys.readouterr().err


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    engine = engine_digest()[:16] or "not there"
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"dcqcn-gym {__version__}, engine {engine}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, typer, dcqcn_gym.cli as c; dict(typer.main.get_command(c.app).commands); "
        "print([m for m in ('matplotlib', 'scipy', 'pydantic', 'dcqcn_gym._core', 'jinja2') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_viewers_show_the_same_figures(tmp_path: Path) -> None:
    """The panel and the lines, fed with a real run, show U, best, default, network."""
    scenario = TunerCase().scenario()
    default_log = tmp_path / "default.jsonl"
    run(RunSpec(scenario, "default", 1, 5, "fake"), default_log)
    default = dict(default_setting(scenario.line_rate_bps))
    screen, plain = io.StringIO(), io.StringIO()
    wide = Console(file=screen, force_terminal=True, width=160)
    live = Live(console=wide, auto_refresh=False)
    panel = LiveViewer(live, _Figures(default_log, default), 5, "toy")
    lines = PlainViewer(Console(file=plain, width=80), _Figures(default_log, default), 5, "toy")

    def watch(line: dict[str, object], state: dict[str, object], repeated: bool) -> None:
        panel.interval(line, state, repeated)
        lines.interval(line, state, repeated)

    panel.begin()
    lines.begin()
    with live:
        run(RunSpec(scenario, "paraleon", 1, 5, "fake"), tmp_path / "run.jsonl", watch=watch)
        panel.waiting(1, 2)
        live.refresh()
    u = read_run(default_log).intervals[4]["utility"]
    for text in (screen.getvalue(), plain.getvalue()):
        assert f"{u:.4f}" in text
        for part in ("Gb/s", " us", "%"):
            assert part in text
    for part in ("temperature", "rp_ai_rate="):
        assert part in screen.getvalue()
    assert "rp_ai_rate=" not in plain.getvalue()
    assert len(plain.getvalue().splitlines()) == 1 + 5


def test_a_path_of_thousands_of_characters_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["report"], ["emit"], ["scenarios"]):
        assert call(monkeypatch, *words, "x" * 5000) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: xxx")
        assert len(said) < 400
