"""Tuners against each other on the same traffic: the plan of ``compare``, from its options.

What is given adds to the comparison that a folder holds, so that its folder alone continues it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dcqcn_gym.comparison.plan import Case, Plan
from dcqcn_gym.comparison.results import baseline_of
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, MissingExtraError, RunError
from dcqcn_gym.core.traffic_check import window_of
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.traffic_choice import (
    ChosenTraffic,
    SessionLength,
    as_chosen,
    choose,
    fitted,
    length_of,
    remarks,
)
from dcqcn_gym.runs.entries import label
from dcqcn_gym.runs.options import SCENARIO, SEEDS
from dcqcn_gym.runs.study import Study, held_study
from dcqcn_gym.runs.trials import Trial
from dcqcn_gym.tuners import TUNERS

KIND = "compare"
NEED_ARGUMENTS = ("fixed", "policy")


def all_tuners() -> tuple[str, ...]:
    """Return every registered tuner but those that mean nothing without arguments."""
    return tuple(name for name in TUNERS.names() if name not in NEED_ARGUMENTS)


def held_plan(out: Path) -> Plan | None:
    """Return the plan of the comparison in a folder, if there is one; RunError if it is damaged."""
    held = held_study(out, KIND)
    try:
        return None if held is None else validate(held.plan, Plan, source=f"{out}: its plan")
    except ConfigError as error:
        raise RunError(f"{error}; give another --out, or --force to replace it") from None


def plan_of(given: Mapping[str, Any], held: Plan | None = None) -> Plan:
    """Return the plan of what is given, the rest by default or as the folder holds it.

    Keys are ``scenarios``, ``tuners``, ``seeds``, ``intervals``, ``eval_seeds``, ``eval_intervals``
    and ``backend``. Raises RunError for fewer seeds than there are, and ConfigError.
    """
    known: dict[str, Any] = {} if held is None else _options(held)
    if held is not None:
        known["cases"] = {case.scenario: case.model_dump() for case in held.cases}
    for key in ("seeds", "eval_seeds"):
        if given.get(key, known.get(key, 0)) < known.get(key, 0):
            raise RunError(
                f"--{key.replace('_', '-')} {given[key]}: the comparison has {known[key]}, and "
                "what is given adds to it; give as many or more, or another --out"
            )
    scenarios, tuners = (
        tuple(dict.fromkeys((*known.get(key, ()), *given.get(key, ()))))
        for key in ("scenarios", "tuners")
    )
    scenarios = scenarios or (SCENARIO,)
    tuners = tuners or all_tuners()
    in_service = {baseline_of(load_scenario(name)) for name in scenarios}
    tuners = (*sorted(in_service - set(tuners)), *tuners)
    usual = {"seeds": SEEDS, "eval_seeds": 2, "eval_intervals": 25, "backend": "native"}
    all_of = {**usual, **known, **given}
    backend = all_of["backend"]
    data = {
        "description": "tuners on the same traffic",
        "intervals": all_of.get("intervals") or load_scenario(scenarios[0]).intervals,
        "seeds": all_of["seeds"],
        "held_out_seeds": all_of["eval_seeds"],
        "held_out_intervals": all_of["eval_intervals"],
        "cases": [known.get("cases", {}).get(name, {"scenario": name}) for name in scenarios],
        "entries": [{"name": label(tuner), "tuner": tuner, "backend": backend} for tuner in tuners],
        "tables": [{"kind": "held-out"}],
    }
    return validate(data, Plan, source=KIND)


def plan_and_remarks(
    given: Mapping[str, Any], held: Plan | None = None, window: str | None = None
) -> tuple[Plan, list[str]]:
    """Return :func:`plan_of` with what is judged of each scenario's traffic, and what to say.

    Lengths follow a short trace where none is given. A scenario that ``held`` has stays as it is.
    """
    plan, said = plan_of(given, held), []
    asked = SessionLength(plan.intervals, plan.judged_seeds, plan.held_out_intervals, plan.seeds)
    fit = held is None and not given.keys() & {"intervals", "eval_seeds", "eval_intervals"}
    window_ms = window_of(window)
    there = set() if held is None else {case.scenario for case in held.cases}
    if window is not None and there:
        raise ConfigError("--window: the comparison is there; give another --out, or --force")
    for case in plan.cases if fit else ():
        asked, words = fitted(as_chosen(case.loaded, window_ms, None), asked)
        said += [f"{case.title}: {words}"] if words else []
    cases = []
    for case in plan.cases:
        if case.scenario in there:
            held_as = case.window_ms, case.scale
            found = ChosenTraffic(case.loaded, asked, *held_as, tuple(_held(case, asked)))
        else:
            found = choose(case.loaded, asked, window_ms=window_ms)
        cases.append(case.model_dump() | {"window_ms": found.window_ms, "scale": found.scale})
        said += [f"{case.title}: {line}" for line in found.said]
    changed = plan.changed(
        intervals=asked.intervals,
        held_out_seeds=asked.parts // plan.seeds,
        held_out_intervals=asked.part_intervals,
        cases=cases,
    )
    return changed, said


def _held(case: Case, asked: SessionLength) -> Iterator[str]:
    """Yield what is to be said of a scenario that a comparison has already."""
    yield from remarks(case.loaded, asked)
    needs = length_of(case.loaded, asked)
    if case.window_ms is None or needs is None:
        return
    begin, end = case.window_ms
    yield f"judged: {begin:.6g} to {end:.6g} ms of the trace"
    if needs.needed_ms > end - begin:
        yield (
            f"the comparison was begun on these {end - begin:.6g} ms, and so many seeds need "
            f"{needs.needed_ms:.6g}: some share a part; another --out takes a longer stretch"
        )


def _options(plan: Plan) -> dict[str, Any]:
    """Return the options that a plan was made of."""
    return {
        "scenarios": [case.scenario for case in plan.cases],
        "tuners": [entry.tuner for entry in plan.entries],
        "seeds": plan.seeds,
        "intervals": plan.intervals,
        "eval_seeds": plan.held_out_seeds,
        "eval_intervals": plan.held_out_intervals,
        "backend": plan.entries[0].backend,
    }


def command_of(plan: Plan, out: Path) -> str:
    """Return the command that makes a comparison."""
    words = ["dcqcn-gym", "compare"]
    for key, value in _options(plan).items():
        name = key.removesuffix("s") if key == "scenarios" else key.replace("_", "-")
        words += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join([*words, "--out", str(out)])


def study_of(plan: Plan, out: Path, deadline_s: float | None = None) -> Study[Trial]:
    """Return the study; every seed has later parts of a trace of its own.

    ``deadline_s`` bounds a decision of a plug-in.
    """
    trials = plan.trials(out, deadline_s=deadline_s, sharing=plan.seeds)
    return plan.study(KIND, trials, command_of(plan, out))


def startable(plan: Plan, *, everything: bool = False) -> tuple[Plan, list[str]]:
    """Try every start; return the plan and what is to be said of tuners that cannot start.

    With ``everything``, those whose packages are missing or broken are left out. A plug-in that was
    named and is broken stays: its runs fail, each with its reason, and the others run. Our own
    tuners have to run. Raises ConfigError; writes nothing.
    """
    names, notes = [entry.name for entry in plan.entries], []
    for place, ((_, name), several) in enumerate(plan.trials(Path()).items()):
        tuner = several[0].spec.tuner
        ours = tuner in TUNERS.builtin
        if name not in names or (not ours and place >= len(plan.entries)):
            continue
        try:
            several[0].spec.check()
        except DcqcnGymError as error:
            TUNERS.check_name(tuner)  # a misspelt name is no broken plug-in
            if ours and not (everything and isinstance(error, MissingExtraError)):
                raise
            if everything:
                names.remove(name)
                notes.append(f"{tuner} was left out: {error}")
            else:
                notes.append(f"{tuner} cannot start: {error}")
    able = [entry.model_dump() for entry in plan.entries if entry.name in names]
    return plan.changed(entries=able), notes
