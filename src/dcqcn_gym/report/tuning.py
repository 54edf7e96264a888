"""A whole tuning session, and what it comes to: ``best.json``.

:mod:`dcqcn_gym.runs.session` writes logs and knows no verdict; here the report reads them.
"""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.scenario.scenario import scenario_digest
from dcqcn_gym.report.answer import answer_of
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.runs.entries import REFERENCES, evaluation_seeds
from dcqcn_gym.runs.log import Line, RunDir, write_json
from dcqcn_gym.runs.recorded import end_of
from dcqcn_gym.runs.results import plain, tuner_digest
from dcqcn_gym.runs.session import Evaluation, Viewer, record_session
from dcqcn_gym.runs.spec import RunSpec


def tune(
    spec: RunSpec,
    out: RunDir,
    *,
    evaluation: Evaluation,
    viewer: Viewer,
    resume: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Carry out a session in ``out`` and return what ``best.json`` holds.

    Arguments and errors are those of :func:`~dcqcn_gym.runs.session.record_session`.
    """
    record_session(spec, out, evaluation=evaluation, viewer=viewer, resume=resume, force=force)
    best = best_of(out, evaluation)
    write_json(out.best, best)
    return best


def best_of(out: RunDir, evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of best.json, from the logs alone.

    ``candidate`` is what the search came to. ``recommended`` is the best of everything that was
    tried, if that is to be deployed; ``choice`` the one of "a choice".
    """
    data = load_report_data(out.root)
    best = answer_of(data)
    key = "recommended" if best.deploys else "choice"
    end, default = end_of(out.log), end_of(out.reference("default"))["recommended"]
    candidate, header = end["recommended"], data.run.header
    return {
        "versions": code_versions(),
        "scenario": header["scenario"]["name"],
        "tuner": header["tuner"],
        "seed": header["seed"],
        "intervals": end["intervals"],
        "answer": plain(best.answer.data()),
        **({} if best.setting is None else {key: dict(best.setting)}),
        "candidate": candidate,
        "changed": _changed(candidate, default, data.knob_table),
        "utility_while_tuning": {
            "tuned": end["mean_utility"],
            **{n: end_of(out.reference(n))["mean_utility"] for n in REFERENCES},
        },
        "utility_on_held_out_seeds": _held_out(header["seed"], out, evaluation),
        "scenario_sha256": scenario_digest(header["scenario"]),
        "tuner_sha256": tuner_digest(header["tuner"], header["tuner_args"]),
    }


def _held_out(seed: int, out: RunDir, evaluation: Evaluation) -> dict[str, Any]:
    """Return the utilities on held-out seeds, of the candidate and of the references."""
    drawn = evaluation_seeds(seed, evaluation.seeds)
    # of a trace there may be fewer parts than seeds
    seeds = [seed for seed in drawn if out.evaluation("recommended", seed).exists()]
    logs = {"candidate": "recommended", **{name: name for name in REFERENCES}}
    held_out = {
        shown: [end_of(out.evaluation(name, s))["mean_utility"] for s in seeds]
        for shown, name in logs.items()
    }
    return {
        "seeds": seeds,
        "intervals": evaluation.intervals,
        "mean": {n: _mean(values) for n, values in held_out.items()},
        "per_seed": held_out,
    }


def _changed(recommended: Line, default: Line, table: KnobTable) -> Line:
    """Return the knobs that differ from the default, per group if the recommendation is."""
    if "cluster" in recommended:
        return {group: _changed(values, default, table) for group, values in recommended.items()}
    return {
        name: {"default": default[name], "candidate": value, "unit": table[name].unit}
        for name, value in recommended.items()
        if value != default[name]
    }


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return mean(known) if known else None
