"""An exporter for each library, imported when it is asked for.

Figures carry the simulated time where a library takes one, so that no clock enters. Where nothing
else is given, a library writes where its own environment variables say.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dcqcn_gym.core.sums import mean
from dcqcn_gym.extras.track.runs import TERMS, Figures, TrackedRun, tracked_runs
from dcqcn_gym.runs.tracking import Tracker

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

PROJECT = "dcqcn-gym"
"""Experiment or project of all runs, unless the library's own variables name another."""


class TensorBoard(Tracker):
    """Event files below a folder, by default ``tensorboard`` in that of the runs."""

    module = "tensorboardX"
    extra = "tensorboard"

    def export(self, folder: Path, place: str) -> str:
        """Write event files anew, a folder for each run."""
        from tensorboardX import SummaryWriter

        root, count = Path(place) if place else folder / "tensorboard", 0
        for run in tracked_runs(folder):  # TensorBoard shows the names of all folders on the way
            at = root / run.name if place else root.joinpath(*Path(run.name).parts[1:])
            for old in at.glob("events.out.tfevents.*"):
                old.unlink()
            with SummaryWriter(str(at)) as writer:
                rows = (f"| {key} | {value} |" for key, value in run.parameters.items())
                writer.add_text("parameters", "\n".join(["| name | value |", "|---|---|", *rows]))
                if run.answer:
                    writer.add_text("answer", run.answer)
                for point in run.points:
                    for key, value in point.figures.items():
                        writer.add_scalar(key, value, point.step, walltime=point.ps * 1e-12)
                for key, value in run.final.items():
                    writer.add_scalar(key, value, run.steps)
            count += 1
        return f"runs written: {count}; tensorboard --logdir {root}"


class MLflow(Tracker):
    """Runs of an experiment at a tracking server, or in a local store."""

    module = "mlflow"
    extra = "mlflow"

    def export(self, folder: Path, place: str) -> str:
        """Log every run, into the one of the same key if there is one: nothing stands twice."""
        import mlflow
        from mlflow.entities import Metric, Param
        from mlflow.utils.validation import MAX_METRICS_PER_BATCH, MAX_PARAMS_TAGS_PER_BATCH

        client = mlflow.MlflowClient(tracking_uri=place or None)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else client.create_experiment(name)
        count = 0
        for run in tracked_runs(folder):
            query = f"tags.`dcqcn_gym.key` = '{run.key}'"
            there = client.search_runs([experiment], query, max_results=1)
            if there:
                to = there[0].info.run_id
            else:
                tags = {"dcqcn_gym.key": run.key}
                to = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
            if run.answer:
                client.set_tag(to, "answer", run.answer)
            params = [Param(key, str(value)[:6000]) for key, value in run.parameters.items()]
            metrics = [
                Metric(key, value, point.ps // 10**9, point.step)
                for point in run.points
                for key, value in point.figures.items()
            ]
            metrics += [Metric(key, value, 0, run.steps) for key, value in run.final.items()]
            for i in range(0, len(params), MAX_PARAMS_TAGS_PER_BATCH):
                client.log_batch(to, params=params[i : i + MAX_PARAMS_TAGS_PER_BATCH])
            for i in range(0, len(metrics), MAX_METRICS_PER_BATCH):
                client.log_batch(to, metrics=metrics[i : i + MAX_METRICS_PER_BATCH])
            client.set_terminated(to)
            count += 1
        return f"runs written: {count}, in experiment {name} at {client.tracking_uri}"


class WeightsAndBiases(Tracker):
    """Runs of a project; ``WANDB_MODE=offline`` keeps them in files on this machine."""

    module = "wandb"
    extra = "wandb"

    def export(self, folder: Path, place: str) -> str:
        """Log every run under its key as id; ``place`` is a project."""
        import wandb

        project, count, mode = place or os.environ.get("WANDB_PROJECT", PROJECT), 0, ""
        settings = wandb.Settings(
            console="off", silent=True, disable_git=True, x_disable_stats=True, x_disable_meta=True
        )
        for run in tracked_runs(folder):
            asked = dict(run.parameters)
            with wandb.init(
                project=project, id=run.key, name=run.name, config=asked, settings=settings
            ) as to:
                for point in run.points:
                    to.log(point.figures, step=point.step)
                to.summary.update({**run.final, **({"answer": run.answer} if run.answer else {})})
                mode = "offline, `wandb sync` sends them" if to.offline else "online"
            count += 1
        wandb.teardown()  # its process ends, and with it the last write
        return f"runs written: {count}, in project {project}, {mode}"


class Optuna(Tracker):
    """A study for each run in an Optuna storage, for Optuna's plots and its dashboard.

    A trial is a setting as long as it was in force, its value the mean utility meanwhile; for
    ``nsga2``, which searches for them, the three terms.
    """

    module = "optuna"
    extra = "optuna"

    def export(self, folder: Path, place: str) -> str:
        """Write the studies of all runs anew."""
        import optuna

        storage, count, without = place or "sqlite:///optuna.db", 0, 0
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        for run in tracked_runs(folder):
            trials = list(_trials(run))
            if not trials:
                without += 1
                continue
            name = f"{run.name} {run.key[:6]}"
            if name in optuna.get_all_study_names(storage):
                optuna.delete_study(study_name=name, storage=storage)
            values = _values_of(run)
            study = optuna.create_study(
                storage=storage, study_name=name, directions=["maximize"] * len(values)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ExperimentalWarning
                study.set_metric_names(values)
            for key, value in {**run.parameters, "answer": run.answer}.items():
                study.set_user_attr(key, value)
            study.add_trials(trials)
            count += 1
        return (
            f"studies written: {count}; optuna-dashboard {storage} (runs without a search, so "
            f"without trials: {without})"
        )


def _values_of(run: TrackedRun) -> list[str]:
    """Return the names of a trial's values."""
    terms = [f"term/{name}" for name in TERMS]
    return terms if run.parameters.get("tuner") == "nsga2" else ["utility"]


def _trials(run: TrackedRun) -> Iterator[FrozenTrial]:
    """Yield a trial for every stretch of intervals with traffic under one setting.

    Knobs that never move are no parameters.
    """
    from optuna import create_trial
    from optuna.distributions import FloatDistribution

    busy = [point.figures for point in run.points if "utility" in point.figures]
    names = [key for key in busy[0] if key.startswith("setting/")] if busy else []
    knobs = {key: {one[key] for one in busy} for key in names}
    moving = {key: FloatDistribution(min(at), max(at)) for key, at in knobs.items() if len(at) > 1}
    if not moving:
        return

    def setting(figures: Figures) -> Figures:
        return {key: figures[key] for key in moving}

    for at, stretch in groupby(busy, setting):
        rows = list(stretch)
        means = {key: mean([row[key] for row in rows]) for key in rows[0] if key not in moving}
        yield create_trial(
            params={key.removeprefix("setting/"): value for key, value in at.items()},
            distributions={key.removeprefix("setting/"): of for key, of in moving.items()},
            values=[means[key] for key in _values_of(run)],
            user_attrs={key: value for key, value in means.items() if "setting/" not in key},
        )
