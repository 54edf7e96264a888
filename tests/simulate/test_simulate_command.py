"""`simulate`, `report` and `bench` as a person types them: exit codes, files, one sentence."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from programs import called
from synthetic_run import write_run


def test_flow_list_on_the_engine(tmp_path: Path) -> None:
    flows = tmp_path / "in.csv"
    flows.write_text("src,dst,bytes,start_ns\n0,1,1000000,0\n2,1,5000,1500.5\n")
    out = tmp_path / "out"
    done = called("simulate", "--scenario", "mini-fb-hadoop", "--flows", flows, "--out", out)
    assert done.returncode == 0, done.stderr
    with (out / "flows.csv").open(newline="") as handle:
        rows = {(row["src"], row["dst"]): row for row in csv.DictReader(handle)}
    assert rows["2", "1"]["start_ns"] == "1500.5"
    assert all(float(r["fct_ns"]) >= float(r["ideal_fct_ns"]) for r in rows.values())
    summary = json.loads((out / "summary.json").read_text())
    assert summary["finished_flows"] == 2
    assert summary["unfinished_flows"] == 0
    assert summary["delivered_bytes"] == 1_005_000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--scenario", "mini-fb-hadop"), "did you mean 'mini-fb-hadoop'"),
        (("--scenario", "mini-fb-hadoop", "--set", "kmn=3"), "did you mean 'kmin'"),
        (("--scenario", "mini-fb-hadoop", "--set", "RPG_AI_RAT=3"), "did you mean 'rp_ai_rate'"),
        (
            ("--scenario", "mini-fb-hadoop", "--set", "kmin=3", "--set", "kmin=3"),
            "--set names kmin more than once; give each knob one value",
        ),
        (("--scenario", "mini-fb-hadoop", "--until-done"), "never ends"),
        (("--scenario", "mini-fb-hadoop", "--until-done", "--intervals", "3"), "exclude"),
        (("--scenario", "mini-fb-hadoop", "--flows", "missing.csv"), "no such file"),
        (
            ("--scenario", "mini-fb-hadoop", "--flows", "LATE"),
            "line 1: start_ns = 3.7e+13; expected 0",
        ),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    late = tmp_path / "late.csv"
    late.write_text("0,1,1000,37000000000000\n")  # 37,000 s
    given = [str(late) if word == "LATE" else word for word in words]
    done = called("simulate", *given, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_report_command(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=3, flows=20)
    done = called("report", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run / "report.html")
    assert called("report", tmp_path / "nothing").returncode == 2


def test_ctrl_c_says_that_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dcqcn_gym.simulation.run.simulate", cut)
    words = ["simulate", "--scenario", "mini-fb-hadoop", "--out", str(tmp_path / "x")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130
    assert "interrupted; nothing was written" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_collective_without_a_finished_round_says_what_one_needs(tmp_path: Path) -> None:
    words = ["simulate", "--scenario", "mini-llm-alltoall", "--intervals", "1"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "a")])
    needed = re.search(r"no round of the all-to-all .* one takes about (\d+)", done.output)
    assert needed is not None, done.output
    enough = str(2 * int(needed[1]))
    done = CliRunner().invoke(app, [*words[:-1], enough, "--out", str(tmp_path / "b")])
    assert (done.exit_code, "no round" in done.output) == (0, False)
