"""A setting per group of devices from ask to emit: log, recommendation, resume, held-out seeds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.device_commands import emit
from dcqcn_gym.core.errors import ConfigError, TunerError, UnknownNameError
from dcqcn_gym.core.groups import cluster_setting, setting_of
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report import build_report
from dcqcn_gym.report.tuning import tune
from dcqcn_gym.runs.log import RunDir, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.progress import QuietViewer
from dcqcn_gym.runs.session import Evaluation
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.simulation.run import parse_assignments
from programs import runs_in_threads

PER_TIER = """
from dcqcn_gym.tuners.base import Proposal, Tuner, TunerContext

class PerTier(Tuner[Proposal]):
    name = "per-tier"
    summary = "random thresholds, its own for every group that the scenario sets apart"

    def start(self, context: TunerContext) -> None:
        super().start(context)
        self._random = context.generator()

    def ask(self) -> Proposal:
        return {group: self._draw() for group in ("cluster", *self.context.groups)}

    def _draw(self):
        kmin = round(self._random.uniform(20, 200), 1)
        return self.context.base.replace({"kmin": kmin, "kmax": 4 * kmin})
"""

MINI = load_scenario("mini-fb-hadoop")
TIERS = MINI.model_copy(update={"groups": ("tor", "spine")})
RATE = MINI.line_rate_bps
BASE = default_setting(RATE)


@pytest.fixture
def tuner(tmp_path: Path) -> str:
    (tmp_path / "per_tier.py").write_text(PER_TIER)
    return f"{tmp_path}/per_tier.py:PerTier"


def session(out: Path, tuner: str, backend: str, *, resume: bool = False) -> None:
    spec = RunSpec(TIERS, tuner, 1, 6, backend)
    evaluation = Evaluation(seeds=1, intervals=2)
    with runs_in_threads():
        tune(spec, RunDir(out), evaluation=evaluation, viewer=QuietViewer(), resume=resume)


def contents(out: Path) -> dict[str, bytes]:
    paths = [p for p in out.rglob("*") if p.is_file() and p.name != "timing.json"]
    return {str(p.relative_to(out)): p.read_bytes() for p in paths}


@pytest.mark.parametrize("backend", ["fake", pytest.param("native", marks=pytest.mark.slow)])
def test_from_ask_to_emit(backend: str, tuner: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    session(out, tuner, backend)
    log = read_run(out)
    assert [list(line["setting"]) for line in log.intervals] == [["cluster", "tor", "spine"]] * 6
    scored = max(log.intervals, key=lambda line: line["utility"])
    assert log.end is not None
    assert log.end["recommended"] == scored["setting"]
    best = json.loads((out / "best.json").read_text())
    assert best["candidate"] == scored["setting"]
    assert list(best["changed"]) == ["cluster", "tor", "spine"]
    assert set(best["changed"]["tor"]) == {"kmin", "kmax"}
    held_out = read_run(out / "evaluation" / "recommended-seed1001000.jsonl")
    assert [line["setting"] for line in held_out.intervals] == [scored["setting"]] * 2
    script = emit(setting_of(best["candidate"]), "sonic")
    for group in ("cluster", "tor", "spine"):
        kmin = round(scored["setting"][group]["kmin"] * 1000)
        assert f"green_min_threshold {kmin} " in section(script, group, tmp_path)
    page = build_report(out).read_text(encoding="utf-8")
    assert "cluster, tor, spine" in page


def section(script: str, group: str, tmp_path: Path) -> str:
    """Run the script for one group against a tool that prints its words."""
    tool = tmp_path / "sonic-db-cli"
    tool.write_text('#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GROUP": group}
    done = subprocess.run(
        ["sh", "-eu", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("backend", ["fake", pytest.param("native", marks=pytest.mark.slow)])
def test_resumed_to_equal_bytes(backend: str, tuner: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    session(out, tuner, backend)
    whole = contents(out)
    lines = (out / "run.jsonl").read_bytes().splitlines(keepends=True)
    (out / "run.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:50])
    (out / "best.json").unlink()
    session(out, tuner, backend, resume=True)
    assert contents(out) == whole


def test_on_the_command_line(tuner: str, tmp_path: Path, in_threads: None) -> None:
    words = ["tune", "--scenario", "mini-fb-hadoop", "--tuner", "fixed", "--backend", "fake"]
    words += ["--tuner-arg", 'groups={"tor": {"kmin": 50}}', "--intervals", "2", "--quiet"]
    words += ["--eval-seeds", "0", "--no-report", "--out", str(tmp_path / "o")]
    assert CliRunner().invoke(app, words).exit_code == 0
    words = ["emit", str(tmp_path / "o"), "--format", "sonic", "--force"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "green_min_threshold 50000 " in section(done.stdout, "tor", tmp_path)
    assert "green_min_threshold 100000 " in section(done.stdout, "cluster", tmp_path)


def test_forms_for_hosts_leave_groups_of_switches_out() -> None:
    setting = {"cluster": BASE, "tor": BASE.replace({"kmin": 50})}
    assert emit(setting, "mlxconfig") == emit(BASE, "mlxconfig")
    assert emit(setting, "debugfs") == emit(BASE, "debugfs")
    own = emit({**setting, "nic:3": BASE.replace({"rp_ai_rate": 9})}, "debugfs")
    assert '"nic:3")' in own
    assert '"tor")' not in own
    done = subprocess.run(
        ["sh", "-c", own], env={"GROUP": "nic:4"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "expected one of: cluster, nic:3" in done.stderr


PROPOSES = """
from dcqcn_gym.tuners import Tuner

class Mine(Tuner):
    name = summary = "mine"

    def ask(self):
        base = self.context.base
        return {ask}

    def recommend(self):
        base = self.context.base
        return {recommend}
"""


@pytest.mark.parametrize(
    ("call", "groups", "says"),
    [
        ("ask", "{'cluster': base, 'tors': base}", "unknown group .* 'tors'; did you mean 'tor'"),
        ("ask", "{'cluster': base, 7: base}", "group 7 is of type int; expected a text"),
        ("ask", "{'cluster': base, 'switch:99': base}", "'switch:99' names no .*switches 16 to 19"),
        ("ask", "{'tor': base}", "needs a Setting for the group 'cluster'"),
        ("ask", "{'cluster': base, 'tor': base.replace({'pmax': 2.0})}", "group 'tor': pmax = 2"),
        ("ask", "{'cluster': base, 'tor': None}", "returned NoneType"),
        ("recommend", "{'cluster': base, 'switch:99': base}", "'switch:99' names no device"),
        ("recommend", "{'cluster': base, 'tor': None}", "returned NoneType"),
    ],
)
def test_wrong_groups_are_one_sentence(call: str, groups: str, says: str, tmp_path: Path) -> None:
    words = {"ask": "base", "recommend": "base", call: groups}
    (tmp_path / "mine.py").write_text(PROPOSES.replace("{ask}", words["ask"])
                                      .replace("{recommend}", words["recommend"]))  # fmt: skip
    name = f"{tmp_path}/mine.py:Mine"
    with pytest.raises(TunerError, match=f"tuner '{name}'.*{says}") as caught:
        run(RunSpec(MINI, name, 1, 3, "fake"), tmp_path / "run.jsonl")
    assert "\n" not in str(caught.value)
    assert len(read_run(tmp_path / "run.jsonl").intervals) == (0 if call == "ask" else 3)


def test_a_proposal_cannot_be_changed_afterwards(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dcqcn_gym.tuners import Tuner\n"
        "class Mine(Tuner):\n"
        "    name = summary = 'mine'\n"
        "    def ask(self):\n"
        "        self.kept = {'cluster': self.context.base}\n"
        "        return self.kept\n"
        "    def tell(self, outcome):\n"
        "        super().tell(outcome)\n"
        "        self.kept['tor'] = None\n"
    )
    run(RunSpec(MINI, f"{tmp_path}/mine.py:Mine", 1, 3, "fake"), tmp_path / "run.jsonl")
    assert {len(line["setting"]) for line in read_run(tmp_path / "run.jsonl").intervals} == {1}


def test_settings_of_files_and_of_the_command_line() -> None:
    flat = dict(BASE)
    assert setting_of(flat) == BASE
    grouped = {"cluster": BASE, "tor": BASE.replace({"kmin": 50})}
    assert setting_of({name: dict(s) for name, s in grouped.items()}) == grouped
    with pytest.raises(ConfigError, match="'cluster'"):
        setting_of({"tor": flat})
    given = parse_assignments(["tor:kmin=50", "rp_ai_rate=9", "switch:16:pmax=0.5"], BASE, RATE)
    assert not isinstance(given, Setting)
    assert list(given) == ["cluster", "tor", "switch:16"]
    assert cluster_setting(given)["kmin"] == flat["kmin"]
    assert given["tor"]["kmin"] == 50
    assert {s["rp_ai_rate"] for s in given.values()} == {9}
    assert given["switch:16"]["pmax"] == 0.5
    with pytest.raises(UnknownNameError, match="did you mean 'spine'"):
        parse_assignments(["spin:kmin=50"], BASE, RATE)
    with pytest.raises(ConfigError, match="--set tor: pmax = 3"):
        parse_assignments(["tor:pmax=3"], BASE, RATE)
