"""``dcqcn-gym tune``: tune a scenario and judge what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcqcn_gym.core.errors import ConfigError, MissingExtraError
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import same_command
from dcqcn_gym.runs.options import (
    OUTPUT_PANEL,
    SCENARIO,
    TUNER_PANEL,
    VERDICT_PANEL,
    BackendOption,
    DeadlineOption,
    ForceOption,
    OutOption,
    QuietOption,
    ScenarioOption,
    SeedOption,
    WindowOption,
    pairs_in,
)
from dcqcn_gym.runs.tracking import TrackOption, check_trackers, track

if TYPE_CHECKING:
    from rich.console import Console

    from dcqcn_gym.envs.backends import Backend
    from dcqcn_gym.runs.log import RunDir
    from dcqcn_gym.runs.plugin_host import Hosting
    from dcqcn_gym.runs.spec import RunSpec


TunerOption = Annotated[
    str,
    typer.Option(
        help="A name from `dcqcn-gym tuners`, or path.py:Class.", rich_help_panel=TUNER_PANEL
    ),
]
TunerArgOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="K=V", help="Argument of the tuner; repeatable.", rich_help_panel=TUNER_PANEL
    ),
]
IntervalsOption = Annotated[
    int | None, typer.Option(min=1, help="Monitor intervals; default: the scenario's budget.")
]
SafeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Put the tuner behind these limits, canary and abort rules (TOML).",
        rich_help_panel=TUNER_PANEL,
    ),
]


def tune(
    out: OutOption,
    scenario: ScenarioOption = SCENARIO,
    tuner: TunerOption = "paraleon",
    seed: SeedOption = 1,
    intervals: IntervalsOption = None,
    backend: BackendOption = "native",
    tuner_arg: TunerArgOption = None,
    safe: SafeOption = None,
    tuner_deadline: DeadlineOption = None,
    monitor: Annotated[
        str | None, typer.Option(metavar="KIND", help="Replaces the scenario's flow-size monitor.")
    ] = None,
    eval_seeds: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=999,
            help="Held-out seeds for the recommended setting; default: 5, or what a trace has room "
            "for.",
            rich_help_panel=VERDICT_PANEL,
        ),
    ] = None,
    eval_intervals: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Intervals per held-out seed; default: 5 to 20.",
            rich_help_panel=VERDICT_PANEL,
        ),
    ] = None,
    window: WindowOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report/--no-report", help="Write OUT/report.html.", rich_help_panel=OUTPUT_PANEL
        ),
    ] = True,
    trackers: TrackOption = None,
) -> None:
    """Tune DCQCN for a scenario and compare with NVIDIA's default and the experts' setting.

    Writes OUT/run.jsonl (every interval), OUT/best.json (the setting and its verdict) and
    OUT/report.html. The same command continues what is unfinished in OUT.

    Example: `dcqcn-gym tune --scenario fb-hadoop --tuner keeper --out runs/keeper`
    """
    from dcqcn_gym.envs.backends import cautions_of
    from dcqcn_gym.envs.scenario.monitor import with_kind
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.report.traffic_choice import chosen_for
    from dcqcn_gym.runs.log import RunDir
    from dcqcn_gym.runs.plugin_host import Hosting
    from dcqcn_gym.runs.spec import RunSpec

    check_trackers(trackers)
    chosen = load_scenario(scenario)
    if monitor is not None:
        own = with_kind(chosen.monitor, monitor, source="--monitor")
        chosen = chosen.model_copy(update={"monitor": own})
    for warning in () if quiet else chosen.warnings:
        typer.echo(f"warning: {warning}", err=True)
    found = chosen_for(chosen, intervals, eval_seeds, eval_intervals, window)
    for line in () if quiet else found.said:
        typer.echo(line, err=True)
    n, seeds, judged, _ = found.asked
    made = _made_backend(backend)
    hosting = Hosting() if tuner_deadline is None else Hosting(tuner_deadline)
    runs, values = safely(tuner, tuner_arguments(tuner, tuner_arg or [], hosting), safe)
    spec = RunSpec(found.scenario, runs, seed, n, backend, values, hosting)
    for line in () if quiet else cautions_of(made, found.scenario):
        typer.echo(f"warning: {line}", err=True)
    run_dir = RunDir(out)
    with claim(out, "tune", force=force):
        _session(spec, run_dir, seeds, judged, force, quiet)
        page = _report(out) if report else None
    _answer(run_dir, page, quiet, asked=eval_seeds != 0)
    track(out, trackers)


def _made_backend(backend: str) -> Backend:
    from dcqcn_gym.envs.backends import make_backend

    if backend.partition(":")[0] == "hardware":
        raise ConfigError(
            "one fleet cannot carry the runs that `dcqcn-gym tune` compares with; use "
            "`dcqcn-gym hw tune --fleet FILE`"
        )
    return make_backend(backend)


def tuner_arguments(
    tuner: str, arguments: list[str], hosting: Hosting | None = None
) -> dict[str, Any]:
    """Return the settings of a tuner from ``K=V`` texts; raise ConfigError for a wrong one."""
    from dcqcn_gym.runs.plugin_host import Hosting, described
    from dcqcn_gym.tuners.base import parse_value

    given = {k: parse_value(text) for k, text in pairs_in(arguments, "--tuner-arg").items()}
    return described(tuner, given, hosting or Hosting())


def safely(tuner: str, values: dict[str, Any], file: Path | None) -> tuple[str, dict[str, Any]]:
    """Return tuner and arguments as they run: behind ``safe`` with the limits of a file, if any.

    Raises ConfigError, which begins with the file, for what it must not hold.
    """
    if file is None:
        return tuner, values
    from dcqcn_gym.tuners.safe_settings import safe_arguments

    return "safe", safe_arguments(file, tuner, values)


def _session(
    spec: RunSpec, out: RunDir, seeds: int, eval_intervals: int, force: bool, quiet: bool
) -> None:
    from dcqcn_gym.report.tuning import tune
    from dcqcn_gym.runs.progress import open_viewer
    from dcqcn_gym.runs.session import Evaluation

    title = f"{spec.scenario.name} · {spec.tuner} · seed {spec.seed}"
    default = spec.scenario.default_setting()
    resume = out.log.exists() and not force
    try:
        with open_viewer(
            title, spec.intervals, out.reference("default"), default, quiet=quiet
        ) as viewer:
            evaluation = Evaluation(seeds, eval_intervals)
            tune(spec, out, evaluation=evaluation, viewer=viewer, resume=resume, force=force)
    except KeyboardInterrupt:
        if out.log.exists():
            typer.echo(
                f"interrupted; {out.log} holds every finished interval: {same_command(force)} "
                f"continues it, `dcqcn-gym report {out.root}` shows it",
                err=True,
            )
        else:
            typer.echo("interrupted during the warm-up; nothing was recorded", err=True)
        raise typer.Exit(130) from None


def _report(out: Path) -> Path | None:
    from dcqcn_gym.report import build_report

    try:
        return build_report(out)
    except MissingExtraError as error:
        typer.echo(f"no report was written: {error}", err=True)
        return None


def _answer(out: RunDir, page: Path | None, quiet: bool, *, asked: bool) -> None:
    """Print one table and one sentence, the answer, then where it lies: as the page begins.

    The sentence is also printed where everything else is quiet: it is what was asked for.
    """
    from rich.console import Console

    from dcqcn_gym.report.answer import answer_of
    from dcqcn_gym.report.data import load_report_data
    from dcqcn_gym.runs.table import print_tables

    best = answer_of(load_report_data(out.root))
    console = Console(stderr=True)
    if best.rows and not quiet:
        print_tables([best.table()], err=True)
    if asked or not quiet:  # without held-out traffic no answer was asked for
        _say(console, f"{best.answer.title}.")
    if best.answer.calibrated and not quiet:
        _say(console, best.answer.calibrated)
    if quiet:
        return
    if best.answer.next_step:
        _say(console, f"next: {best.answer.next_step.replace('DIR', str(out.root))}")
    _say(console, f"settings: {out.best}")
    if page is not None:
        _say(console, f"report: {page}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True, highlight=False)
