"""Files made of another program's reports are those of the simulation itself, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.backends.replay import RecordingBackend
from dcqcn_gym.envs.backends.report_dict import write_reports
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.simulation.recorded import read_recorded
from dcqcn_gym.simulation.run import simulate

MINI = load_scenario("mini-fb-hadoop")
SETTING = expert_setting(MINI.line_rate_bps)
RUN: dict[str, Any] = {
    "scenario": MINI.name,
    "seed": 5,
    "setting": {row.name: row.to_si(SETTING[row.name]) for row in SETTING.table.rows},
    "cpu_s": 2.0,
    "wall_s": 3.0,
    "peak_memory_bytes": 1000,
}


LEFT = {
    "src": [0], "ordinal": [7], "dst": [3], "bytes": [5000], "start_ps": [10**9],
    "ideal_fct_ps": [10**6], "workload": [0],
}  # fmt: skip


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder as the program dcqcn-ns3 leaves it; beside it the tables of the same run."""
    recorder = RecordingBackend(FakeBackend())
    simulate(MINI, tmp_path / "direct", setting=SETTING, seed=5, intervals=4, backend=recorder)
    folder = tmp_path / "raw"
    folder.mkdir()
    write_reports(folder / "reports.jsonl", recorder.reports)
    (folder / "run.json").write_text(json.dumps(RUN))
    return folder


def command(raw: Path, *more: str) -> tuple[int, str]:
    arguments = ["simulate", "-s", MINI.name, "--reports", str(raw), "--out", str(raw / "tables")]
    done = CliRunner().invoke(app, [*arguments, *more])
    return done.exit_code, str(done.exception or done.output)


def test_the_files_are_those_of_the_simulation(raw: Path, tmp_path: Path) -> None:
    code, text = command(raw)
    assert code == 0
    assert "4 intervals" in text
    direct, tables = tmp_path / "direct", raw / "tables"
    names = sorted(f.name for f in direct.iterdir())
    assert names == sorted(f.name for f in tables.iterdir())
    for name in names:
        if name != "timing.json":
            assert (tables / name).read_bytes() == (direct / name).read_bytes()
    timing = json.loads((tables / "timing.json").read_text())
    hops = json.loads((tables / "summary.json").read_text())["packet_hops"]
    assert timing == {
        "cpu_s": 2.0, "wall_s": 3.0, "peak_memory_bytes": 1000, "packet_hops_per_cpu_s": hops / 2
    }  # fmt: skip


def test_unfinished_flows_that_the_program_told_are_counted(raw: Path) -> None:
    (raw / "run.json").write_text(json.dumps({**RUN, "unfinished": LEFT}))
    code, _ = command(raw)
    assert code == 0
    summary = json.loads((raw / "tables" / "summary.json").read_text())
    age_ps = 4 * MINI.monitor_interval_ps - 10**9
    assert summary["slowdown"]["all"]["max"] == age_ps / 10**6
    assert summary["slowdown_finished"]["all"]["max"] < 1000


@pytest.mark.parametrize(
    "more", [("--seed", "2"), ("--set", "kmin=5"), ("--intervals", "2"), ("--until-done",)]
)
def test_a_run_that_is_over_takes_no_other_options(raw: Path, more: tuple[str, ...]) -> None:
    code, text = command(raw, *more)
    assert code != 0
    assert "--reports is a run that is over" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenario": "fb-hadoop"}, "are of the scenario 'fb-hadoop'; --scenario is"),
        ({"seed": "x"}, "seed"),
        ({"sed": 1}, "sed"),
        ({"setting": {"kmin": 1}}, "the setting lacks rp_clamp_tgt_rate"),
        ({"setting": {**SETTING, "kmim": 1}}, "did you mean 'kmin'"),
        ({"unfinished": {"src": [1]}}, "unfinished.*missing"),
        ({"unfinished": {**LEFT, "src": [1, 2]}}, "columns of one length"),
        ({"unfinished": {**LEFT, "ideal_fct_ps": [0]}}, "ideal_fct_ps"),
    ],
)
def test_a_bad_run_file_is_one_sentence(raw: Path, change: dict[str, Any], message: str) -> None:
    (raw / "run.json").write_text(json.dumps({**RUN, **change}))
    with pytest.raises(ConfigError, match=message):
        read_recorded(raw, MINI)


def test_other_bad_folders_are_one_sentence(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--reports takes the folder"):
        read_recorded(tmp_path / "nowhere", MINI)
    other = load_scenario("fb-hadoop")
    (raw / "run.json").write_text(json.dumps({**RUN, "scenario": other.name}))
    with pytest.raises(ConfigError, match=r"reports of \d+ hosts; scenario 'fb-hadoop' has"):
        read_recorded(raw, other)
    for text in ("[]", "{", "[" * 100_000):
        (raw / "run.json").write_text(text)
        with pytest.raises(ConfigError, match=r"run\.json: "):
            read_recorded(raw, MINI)
    (raw / "run.json").write_text(json.dumps(RUN))
    (raw / "reports.jsonl").write_text("")
    with pytest.raises(ConfigError, match="reports of no hosts"):
        read_recorded(raw, MINI)
