"""Logs of an earlier schema: reported and continued like today's; their line 1 stays as it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report import build_report
from dcqcn_gym.runs.log import SCHEMA, RunDir, read_run
from dcqcn_gym.runs.loop import RunSpec
from dcqcn_gym.runs.progress import QuietViewer
from dcqcn_gym.runs.session import Evaluation, tune
from dcqcn_gym.runs.upgrade import upgraded

OLD = Path(__file__).with_name("schema1")
"""Recorded by the program of schema 1: paraleon, seed 3, 6 intervals of the fake backend."""

MINI = load_scenario("mini-fb-hadoop")
SPEC = RunSpec(MINI, "paraleon", 3, 6, "fake")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "out")
    return tmp_path / "out"


def resume(out: Path, spec: RunSpec = SPEC) -> None:
    tune(
        spec, RunDir(out), evaluation=Evaluation(seeds=0), viewer=QuietViewer(), resume=True
    )  # fmt: skip


def test_the_recording_is_of_the_old_schema() -> None:
    first = json.loads((OLD / "run.jsonl").read_text().splitlines()[0])
    assert first["schema"] == 1 < SCHEMA
    assert "rp" in first["scenario"]
    assert "scheme" not in first["scenario"]


def test_its_header_is_read_as_todays() -> None:
    header = read_run(OLD).header
    assert header == json.loads(json.dumps(SPEC.header()))
    assert Scenario.model_validate(header["scenario"]) == MINI


@pytest.mark.parametrize("rp", ["nic", "paper"])
def test_the_reaction_point_is_kept(rp: str) -> None:
    first = json.loads((OLD / "run.jsonl").read_text().splitlines()[0])
    first["scenario"]["rp"] = rp
    assert Scenario.model_validate(first["scenario"]).rp == rp
    assert Scenario.model_validate(upgraded(first)["scenario"]).rp == rp


def test_a_report_is_made_of_it(out: Path) -> None:
    assert "mini-fb-hadoop" in build_report(out).read_text(encoding="utf-8")


def test_an_interrupted_one_is_continued(out: Path) -> None:
    log = out / "run.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:4]) + whole[4][:100])
    resume(out)
    now = log.read_bytes().splitlines(keepends=True)
    assert now[:-1] == whole[:-1]
    assert json.loads(now[-1])["end"]["recommended"] == json.loads(whole[-1])["end"]["recommended"]


def test_a_finished_one_is_left_as_it_is(out: Path) -> None:
    before = (out / "run.jsonl").read_bytes()
    resume(out)
    assert (out / "run.jsonl").read_bytes() == before


def test_another_reaction_point_is_named(out: Path) -> None:
    paper = MINI.model_copy(update={"scheme": MINI.scheme.model_copy(update={"rp": "paper"})})
    with pytest.raises(RunError, match=r'scenario\.scheme\.rp = "nic", now it is "paper"'):
        resume(out, RunSpec(paper, "paraleon", 3, 6, "fake"))
