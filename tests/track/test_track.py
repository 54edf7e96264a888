"""Runs in the tools of others, written by the real libraries into local stores and read back."""

from __future__ import annotations

import importlib
import json
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dcqcn_gym
from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import MissingExtraError, RunError, UnknownNameError
from dcqcn_gym.core.sums import mean
from dcqcn_gym.extras.track.runs import TrackedRun, tracked_runs
from dcqcn_gym.extras.track.trackers import MLflow
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.metrics import metrics_of
from dcqcn_gym.runs.tracking import TRACKERS, check_trackers, track

INTERVALS = 6


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tracked") / "mine"
    dcqcn_gym.tune("mini-fb-hadoop", "random", out=out, intervals=INTERVALS, eval_seeds=2)
    return out


@pytest.fixture(scope="module")
def runs(tuned: Path) -> dict[str, TrackedRun]:
    return {run.name: run for run in tracked_runs(tuned)}


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()][1:-1]


def test_a_session_is_its_search_its_references_and_what_was_judged_alone(
    tuned: Path, runs: dict[str, TrackedRun]
) -> None:
    assert list(runs) == [
        "mine/evaluation/advise",
        *(f"mine/{name}" for name in ("reference/default", "reference/expert", "run")),
    ]
    run = runs["mine/run"]
    assert run.answer == json.loads((tuned / "best.json").read_text())["answer"]["title"]
    assert run.parameters["tuner"] == "random"
    assert run.parameters["scenario"] == "mini-fb-hadoop"
    recorded = lines(tuned / "run.jsonl")
    assert len(run.points) == INTERVALS
    for point, line in zip(run.points, recorded, strict=True):
        assert point.ps == line["end_ps"]
        assert point.figures["utility"] == line["utility"]
        assert point.figures["setting/kmin"] == line["setting"]["kmin"]
        assert point.figures["interval/cnps"] == line["cnps"]
    data = load_report_data(tuned)
    assert run.final["run/throughput"] == metrics_of(data.run)["throughput"]
    held_out = [metrics_of(one)["utility"] for one in data.held_out["candidate"]]
    assert run.final["held_out/utility"] == mean(held_out)
    assert not runs["mine/evaluation/advise"].points
    assert "held_out/utility" in runs["mine/evaluation/advise"].final


def test_a_log_that_grows_is_read_as_far_as_it_is(tuned: Path, tmp_path: Path) -> None:
    log = tmp_path / "mine" / "run.jsonl"
    log.parent.mkdir()
    text = (tuned / "run.jsonl").read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(text[:4]) + text[4][:50])
    (run,) = tracked_runs(log.parent)
    assert len(run.points) == 3
    assert run.key == {r.name: r for r in tracked_runs(tuned)}["mine/run"].key


def test_a_comparison_and_a_leaderboard_keep_a_run_per_entry(tuned: Path, tmp_path: Path) -> None:
    text = (tuned / "run.jsonl").read_bytes()
    for name in ("a/seed1", "a/seed1-held-out0", "b/s/online-00", "b/s/final-00"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.jsonl").write_bytes(text)
    (tmp_path / "other.jsonl").write_text('{"kind":"something else"}\n')
    found = [run.name.partition("/")[2] for run in tracked_runs(tmp_path)]
    assert found == ["a/seed1", "b/s/online-00"]
    assert all("held_out/utility" in run.final for run in tracked_runs(tmp_path))


def test_a_training_is_its_curve_and_a_start_goes_on_from_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text('{"algo": "ppo", "scenarios": [{"name": "s"}]}')
    head = "time/total_timesteps,rollout/utility,time/fps,train/loss\n"
    (tmp_path / "progress-000000000.csv").write_text(f"{head}64,0.5,10,\n128,0.6,10,2\n")
    (tmp_path / "progress-000000064.csv").write_text(f"{head}128,0.7,10,1\n192,0.8,11,1\n")
    (run,) = tracked_runs(tmp_path)
    assert run.parameters == {"algo": "ppo", "scenarios": "s"}
    assert [(p.step, p.figures["rollout/utility"]) for p in run.points] == [
        (64, 0.5), (128, 0.7), (192, 0.8),
    ]  # fmt: skip
    assert run.points[0].figures == {"rollout/utility": 0.5}  # no seconds of this machine


def test_nothing_to_track_and_unknown_names_are_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no event log"):
        list(tracked_runs(tmp_path))
    with pytest.raises(UnknownNameError, match="tensorbord"):
        check_trackers(["tensorbord:x"])


def test_a_library_that_is_not_there_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MLflow, "module", "no_such_library")
    with pytest.raises(MissingExtraError, match=r"--track mlflow.*mlflow\]"):
        check_trackers(["mlflow"])


def test_a_store_that_fails_leaves_the_runs_and_says_how_to_try_again(
    tuned: Path, tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed")
    with pytest.raises(RunError, match=r"nowhere.*report .*mine --track optuna.*tries again"):
        track(tuned, [f"optuna:nowhere://{tmp_path}"])


def test_every_tracker_is_in_the_help_of_its_option() -> None:
    text = CliRunner().invoke(app, ["report", "--help"], env={"COLUMNS": "200"}).output
    for name in TRACKERS.builtin:
        assert name in text


def test_tensorboard_reads_back_every_figure(
    tuned: Path, runs: dict[str, TrackedRun], tmp_path: Path
) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # the second one replaces the first
        track(tuned, [f"tensorboard:{tmp_path}"])
    for name, run in runs.items():
        (file,) = (tmp_path / name).glob("events*")
        read = EventAccumulator(str(file), {"scalars": 0})
        read.Reload()
        wanted = {key for point in run.points for key in point.figures} | set(run.final)
        assert set(read.Tags()["scalars"]) == wanted
    read = EventAccumulator(str(tmp_path / "mine/run"), {"scalars": 0})
    read.Reload()
    points = runs["mine/run"].points
    events = read.Scalars("utility")
    assert [e.step for e in events] == [p.step for p in points]
    assert [e.value for e in events] == pytest.approx([p.figures["utility"] for p in points])
    assert [e.wall_time for e in events] == pytest.approx([p.ps * 1e-12 for p in points])


def test_mlflow_reads_back_every_figure_once(
    tuned: Path, runs: dict[str, TrackedRun], tmp_path: Path
) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    from mlflow import MlflowClient

    store = f"sqlite:///{tmp_path}/mlflow.db"
    for _ in range(2):  # the second one changes nothing
        track(tuned, [f"mlflow:{store}"])
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("dcqcn-gym")
    assert experiment is not None
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(found) == set(runs)
    one, run = found["mine/run"], runs["mine/run"]
    assert one.data.params == {key: str(value) for key, value in run.parameters.items()}
    assert one.data.tags["answer"] == run.answer
    history = client.get_metric_history(one.info.run_id, "setting/kmin")
    assert [(m.step, m.timestamp, m.value) for m in history] == [
        (p.step, p.ps // 10**9, p.figures["setting/kmin"]) for p in run.points
    ]
    for key, value in run.final.items():
        assert one.data.metrics[key] == value


def wandb_records(file: Path) -> Iterator[Any]:
    """Yield what a file of an offline run holds: a log of LevelDB's form behind seven bytes."""
    wandb_internal_pb2: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    data, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 2**15 - at % 2**15 < 7:
            at += 2**15 - at % 2**15
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, last
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def test_weights_and_biases_keeps_every_figure_offline(
    tuned: Path, runs: dict[str, TrackedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    track(tuned, ["wandb:mine"])
    files = {file.stem: file for file in tmp_path.rglob("*.wandb")}
    assert set(files) == {f"run-{run.key}" for run in runs.values()}
    run, utility = runs["mine/run"], []
    for record in wandb_records(files[f"run-{run.key}"]):
        if record.WhichOneof("record_type") == "history":
            row = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item}
            utility.append((row["_step"], row["utility"]))
    assert utility == [(p.step, p.figures["utility"]) for p in run.points]


def test_a_tuner_on_an_optuna_storage_is_a_study_of_its_settings(
    tuned: Path, tmp_path: Path
) -> None:
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    store = f"sqlite:///{tmp_path}/optuna.db"
    for _ in range(2):  # the second one replaces the first
        track(tuned, [f"optuna:{store}"])
    (name,) = optuna.get_all_study_names(store)
    study = optuna.load_study(study_name=name, storage=store)
    recorded = lines(tuned / "run.jsonl")
    assert [t.value for t in study.trials] == [line["utility"] for line in recorded]
    assert [t.params["kmin"] for t in study.trials] == [
        line["setting"]["kmin"] for line in recorded
    ]
    assert study.best_value == max(line["utility"] for line in recorded)
    assert "rp_threshold" not in study.trials[0].params  # it never moves


@pytest.mark.parametrize(
    ("tuner", "values"), [("tpe", 1), pytest.param("nsga2", 3, marks=pytest.mark.slow)]
)
def test_a_storage_of_optuna_leaves_the_log_as_it_is(
    tuner: str, values: int, tmp_path: Path
) -> None:
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    words = ["tune", "--tuner", tuner, "--intervals", "4", "--eval-seeds", "0", "--quiet"]
    words += ["--backend", "fake", "--no-report"]
    logs = []
    for name, more in {
        "with": ["--track", f"optuna:sqlite:///{tmp_path}/o.db"],
        "without": [],
    }.items():
        out = tmp_path / name
        found = CliRunner().invoke(app, [*words, "--out", str(out), *more])
        assert found.exit_code == 0, found.output
        logs.append((out / "run.jsonl").read_bytes())
    assert logs[0] == logs[1]
    with sqlite3.connect(tmp_path / "o.db") as base:
        assert base.execute("select count(*) from trials").fetchone() == (4,)
    (name,) = optuna.get_all_study_names(f"sqlite:///{tmp_path}/o.db")
    study = optuna.load_study(study_name=name, storage=f"sqlite:///{tmp_path}/o.db")
    assert len(study.directions) == values
    assert len(study.best_trials) >= 1
