"""After a "no" nothing hands a setting out unasked: ``emit``, scripts, ``best.json``, ``hw``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.device_commands import emit as emit_setting
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.commands.fleet import _setting_in
from dcqcn_gym.report.tuning import tune
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.progress import open_viewer
from dcqcn_gym.runs.session import Evaluation
from dcqcn_gym.runs.spec import RunSpec
from verdict_cases import CASES, write_case

MINI = load_scenario("mini-fb-hadoop")
FORMS = ("mlxconfig", "debugfs", "sonic", "eos", "nvue")


def a_case(name: str, root: Path) -> Path:
    """Write a case whose log holds a scenario that can be read."""
    write_case(name, root)
    log = RunDir(root).log
    head, *rest = log.read_text().splitlines()
    line = json.loads(head)
    line["scenario"] = MINI.model_dump(mode="json")
    log.write_text("\n".join([json.dumps(line), *rest, ""]))
    return root


def emit(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["emit", *words])
    if isinstance(done.exception, RunError):  # `main` prints it and exits with 2
        return 2, str(done.exception)
    return done.exit_code, done.output


@pytest.mark.parametrize("name", ["starved-elephants", "nothing-gained", "one-trace"])
def test_emit_refuses_what_is_not_recommended(name: str, tmp_path: Path) -> None:
    run = str(a_case(name, tmp_path / "run"))
    code, said = emit(run)
    assert (code, said.count("\n")) == (2, 0)
    assert CASES[name].said in said
    assert "--force" in said
    assert emit(run, "--rollback")[0] == 0


@pytest.mark.parametrize("name", ["starved-elephants", "clear-gain"])
def test_every_script_begins_with_the_recommendation(name: str, tmp_path: Path) -> None:
    run = str(a_case(name, tmp_path / "run"))
    force = [] if name == "clear-gain" else ["--force"]
    scripts = [emit(run, "--format", form, *force) for form in FORMS]
    refused = "" if name == "clear-gain" else "NOT RECOMMENDED. "
    for code, script in scripts:
        assert code == 0
        assert script.startswith(f"# {refused}{CASES[name].said}")
    code, every = emit(run, *force)
    heads = [part.splitlines()[1] for part in every.split("## ")[1:]]
    assert heads == [script.splitlines()[0] for _, script in scripts]


def tuned(scenario: Scenario, out: Path) -> dict[str, object]:
    spec = RunSpec(scenario, "default", 1, 3, "fake", {})
    with open_viewer("", 3, out / "none", {}, quiet=True) as viewer:
        return tune(spec, RunDir(out), evaluation=Evaluation(2, 3), viewer=viewer)


def test_best_json_does_not_say_recommended_after_a_no(tmp_path: Path, in_threads: None) -> None:
    tuned(MINI, tmp_path / "run")
    best = json.loads((tmp_path / "run" / "best.json").read_text())
    assert best["answer"]["action"] != "deploy"
    assert best["candidate"]["kmin"] == MINI.default_setting()["kmin"]
    assert "recommended" not in best


def test_the_script_holds_the_best_of_what_was_tried(tmp_path: Path) -> None:
    """What was found is worse and the experts' setting better: its commands need no --force."""
    code, script = emit(str(a_case("expert-better", tmp_path / "run")), "--format", "mlxconfig")
    assert code == 0
    assert script == emit_setting(
        expert_setting(), "mlxconfig", said=script.splitlines()[0].removeprefix("# ")
    )
    assert script.startswith("# Deploy the experts' setting: ")


def test_a_fleet_takes_what_is_not_recommended_with_force_alone(tmp_path: Path) -> None:
    best = tmp_path / "best.json"
    held = {"answer": {"action": "keep", "title": "Keep it"}}
    best.write_text(json.dumps({**held, "candidate": dict(default_setting())}))
    with pytest.raises(ConfigError, match=r"does not recommend its setting \(Keep it\)"):
        _setting_in(best, force=False)
    assert _setting_in(best, force=True) == default_setting()
    best.write_text(json.dumps({**held, "recommended": dict(default_setting())}))
    assert _setting_in(best, force=False) == default_setting()
