"""``dcqcn-gym why``: where the time of a run's flows and iterations goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.options import QuietOption

if TYPE_CHECKING:
    from dcqcn_gym.core.groups import DeviceSetting
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.extras.traffic.causes import Division
    from dcqcn_gym.runs.progress import Meter
    from dcqcn_gym.runs.table import Table

WORDS = {
    "marks": "marks (ECN)",
    "pauses": "pauses (PFC)",
    "drops": "drops",
    "collisions": "collisions of paths",
}


@dataclass(frozen=True)
class Found:
    """What a folder says was run: the setting is the one that was simulated, or recommended."""

    scenario: Scenario
    setting: DeviceSetting
    seed: int
    intervals: int


def why(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a `simulate` or `tune` run.")
    ],
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Another, to tell what differs.")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Say where the time of flows and iterations goes: marks, pauses, collisions of paths.

    Runs the setting again from time 0 without each of them, in every combination. With OTHER the
    same of a second run, and what it has more or less of each.

    Example: `dcqcn-gym why runs/default`
    """
    from dcqcn_gym.extras.traffic.causes import divide
    from dcqcn_gym.runs.interrupt import interruptible
    from dcqcn_gym.runs.progress import open_meter
    from dcqcn_gym.runs.table import print_tables

    folders = [run] if other is None else [run, other]
    asked = [read(folder) for folder in folders]
    found: list[list[Division]] = []
    with interruptible("nothing was written"), open_meter(quiet=quiet) as meter:
        for folder, one in zip(folders, asked, strict=True):
            show = partial(_show, meter, str(folder))
            found.append(divide(one.scenario, one.setting, one.seed, one.intervals, show))
    if not any(found):
        raise RunError(f"{run}: no flow and no round ended in time; expected more intervals")
    print_tables([table(f"{folder}: mean times in us", d)
                  for folder, d in zip(folders, found, strict=True)])  # fmt: skip
    for line in sentences(found[0]) if other is None else differences(*found):
        typer.echo(line)
    typer.echo(
        "One draw of traffic. rest: with none of them, what sharing the links takes; of rounds "
        "their work as well. A negative part is time that is saved.",
        err=True,
    )


def _show(meter: Meter, text: str, done: int, total: int) -> None:
    meter.show(done, total, text)


def read(folder: Path) -> Found:
    """Return what a folder of `simulate` or `tune` ran; RunError for any other."""
    from dcqcn_gym.runs.claim import STUDY_FILE

    if (folder / STUDY_FILE).is_file():
        from dcqcn_gym.runs.study import held_study

        held = held_study(folder, "simulate")
        if held is None:
            raise RunError(f"{folder} holds other runs; expected the folder of simulate or tune")
        same = held.same
        return _found(folder, same["scenario"], same["setting"], same["seed"], same["intervals"])
    if not (folder / "run.jsonl").is_file():
        raise RunError(f"{folder} holds no run; expected the folder of simulate or tune")
    from dcqcn_gym.runs.log import read_run

    log = read_run(folder)
    if log.end is None:
        raise RunError(f"{folder} has not reached its end; the command that made it continues it")
    head = log.header
    return _found(folder, head.get("scenario"), log.end["recommended"], head["seed"], None)


def _found(folder: Path, scenario: Any, setting: Any, seed: int, intervals: int | None) -> Found:
    from dcqcn_gym.core.config import validate
    from dcqcn_gym.core.groups import setting_of
    from dcqcn_gym.envs.scenario.scenario import Scenario

    if not isinstance(scenario, dict):
        raise RunError(f"{folder} does not say its scenario")
    known = validate(scenario, Scenario, source=str(folder))
    return Found(known, _plain(setting_of(setting)), seed, intervals or known.intervals)


def _plain(setting: DeviceSetting) -> DeviceSetting:
    """Return a setting for all devices as one, which `simulate` writes as a group."""
    alone = isinstance(setting, Mapping) and list(setting) == ["cluster"]
    return setting["cluster"] if alone else setting  # type: ignore[return-value]


def table(title: str, found: Sequence[Division]) -> Table:
    """Return one line a class of flows and kind of round, with the parts of its time."""
    from dcqcn_gym.runs.table import MISSING, Table

    causes = list(found[0].causes) if found else []
    columns = ("", "flows", "now", "idle network", *(WORDS[c] for c in causes), "rest")
    lines = [
        (d.name, str(d.count) if d.count else MISSING, _us(d.now),
         MISSING if d.idle is None else _us(d.idle),
         *(_signed(d.causes[c]) for c in causes), _signed(d.rest))
        for d in found
    ]  # fmt: skip
    return Table(columns, lines, title)


def sentences(found: Sequence[Division]) -> list[str]:
    """Return a sentence a line: what it takes above an idle network, and the largest cause."""
    lines = []
    for d in found:
        worst = max(d.causes, key=lambda c: d.causes[c])
        if d.causes[worst] <= 0.02 * d.now:
            said = "no cause takes more than 2 % of it"
        else:
            said = f"the largest cause is {WORDS[worst]}: {_us(d.causes[worst])} us"
        idle = "" if d.idle is None else f", {_us(d.now - d.idle)} us more than in an idle network"
        lines.append(f"{d.name}: {_us(d.now)} us{idle}; {said}")
    return lines


def differences(one: Sequence[Division], other: Sequence[Division]) -> list[str]:
    """Return a sentence for each line that both runs have: what OTHER has more or less of."""
    second = {d.name: d for d in other}
    lines = []
    for d in one:
        if (o := second.get(d.name)) is None:
            continue
        parts = [(WORDS[c], o.causes.get(c, 0.0) - d.causes[c]) for c in d.causes]
        parts.append(("rest", o.rest - d.rest + ((o.idle or 0.0) - (d.idle or 0.0))))
        said = ", ".join(f"{name} {_signed(value)}" for name, value in parts)
        lines.append(
            f"{d.name}: {_us(d.now)} to {_us(o.now)} us ({_signed(o.now - d.now)}): {said}"
        )
    return lines or ["the runs have no class of flows and no kind of round in common"]


def _us(value: float) -> str:
    """Return microseconds with a digit behind the point below 100."""
    return f"{value:.{1 if abs(value) < 100 else 0}f}".replace("-", "−")


def _signed(value: float) -> str:
    text = _us(value)
    return text if text.startswith("−") else f"+{text}"
