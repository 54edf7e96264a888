"""``--track``: what a command recorded, exported to a tool in which people watch their runs.

The logs stay the only store; a tracker reads them once a command is done, or later, or while they
grow (``dcqcn-gym report DIR --track NAME``). Trackers are plug-ins: add-ons and other packages
bring them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dcqcn_gym.core.errors import (
    DcqcnGymError,
    MissingExtraError,
    RunError,
    in_one_line,
)
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.runs.options import OUTPUT_PANEL

TrackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="NAME[:PLACE]",
        help="Export to tensorboard, mlflow, wandb or optuna; repeatable.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]


class Tracker:
    """A tool of others that shows runs. Exporting the same logs again replaces or repeats them.

    ``module`` is the library that must be installed, ``extra`` the pip extra that brings it.
    """

    module: ClassVar[str]
    extra: ClassVar[str]

    def export(self, folder: Path, place: str) -> str:
        """Export every log below ``folder``; return in words where to look.

        ``place`` is what was given behind the name, or "": as the library itself is configured.
        The library may raise what it likes.
        """
        raise NotImplementedError


TRACKERS: Registry[Tracker] = Registry("tracker", "dcqcn_gym.trackers", Tracker, {})


def check_trackers(names: Sequence[str] | None) -> None:
    """Raise ConfigError for a name that is not registered, or MissingExtraError; imports little."""
    for name in names or ():
        word = name.partition(":")[0]
        tracker = TRACKERS.load(word)
        if importlib.util.find_spec(tracker.module) is None:
            raise MissingExtraError(f"--track {word}", tracker.extra)


def track(folder: Path, names: Sequence[str] | None) -> None:
    """Export what lies in ``folder`` to each tracker, and say where.

    Raises RunError, in one sentence, if a library fails: the logs are there whatever it does.
    """
    check_trackers(names)
    for name in names or ():
        word, _, place = name.partition(":")
        try:
            words = TRACKERS.load(word)().export(folder, place)
        except DcqcnGymError:
            raise
        except Exception as error:  # a library of others, its server, its disk
            raise RunError(
                f"--track {name} failed: {in_one_line(error)}; everything is in {folder}, and "
                f"`dcqcn-gym report {folder} --track {name}` tries again"
            ) from error
        typer.echo(f"{word}: {words}", err=True)
