"""``dcqcn-gym emit``: what a run recommends, as commands for NICs and switches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.options import DeployOption


def emit(
    directory: Annotated[Path, typer.Argument(help="Directory of a `tune` run.", metavar="DIR")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="mlxconfig, debugfs, sonic, eos, nvue, ansible, or all.",
        ),
    ] = "all",
    changed_only: Annotated[
        bool,
        typer.Option("--changed-only", help="Only knobs that differ from before the run."),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="The way back instead: to the setting before the run."),
    ] = False,
    force: DeployOption = False,
) -> None:
    """Print the recommended setting of DIR as shell commands; nothing runs again.

    That is the best of everything tried. Where none is to be deployed, --force prints the one of
    "a choice", else the candidate that the search came to.

    Example: `dcqcn-gym emit runs/keeper --format mlxconfig`
    """
    from dcqcn_gym.report.answer import answer_of
    from dcqcn_gym.report.data import load_report_data
    from dcqcn_gym.runs.commands import commands
    from dcqcn_gym.runs.log import RunDir, read_run

    log = RunDir(directory).log
    if not log.is_file():
        raise RunError(f"{directory} holds no run: expected the event log {log}")
    run, said = read_run(log), ""
    commands(run, form, changed_only=changed_only, rollback=rollback)  # or why there are none
    best = answer_of(load_report_data(directory))
    if not rollback:
        if not best.deploys and not force:
            raise RunError(
                f"{directory} recommends no setting ({best.answer.title}); --force prints the "
                "candidate all the same"
            )
        said = best.answer.title if best.deploys else f"NOT RECOMMENDED. {best.answer.title}"
        said += f" ({best.answer.calibrated})" if best.answer.calibrated else ""
    text = commands(
        run, form, of=best.setting, changed_only=changed_only, rollback=rollback, said=said
    )
    typer.echo(text, nl=False)
