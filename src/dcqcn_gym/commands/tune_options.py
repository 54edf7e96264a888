"""Options shared by `tune` and `hw tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

TunerOption = Annotated[str, typer.Option(help="A name from `dcqcn-gym tuners`, or path.py:Class.")]
TunerArgOption = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="Argument of the tuner; repeatable.")
]
IntervalsOption = Annotated[
    int | None, typer.Option(min=1, help="Monitor intervals; default: the scenario's budget.")
]
SafeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Put the tuner behind these limits, canary and abort rules (TOML)."
    ),
]


def safely(tuner: str, values: dict[str, Any], file: Path | None) -> tuple[str, dict[str, Any]]:
    """Return tuner and arguments as they run: behind ``safe`` with the limits of a file, if any.

    Raises ConfigError, which begins with the file, for what it must not hold.
    """
    if file is None:
        return tuner, values
    from dcqcn_gym.tuners.safe_settings import safe_arguments

    return "safe", safe_arguments(file, tuner, values)
