"""Options that mean the same in every command: one name, one text, one default."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, quote

SCENARIO = "mini-fb-hadoop"
"""The scenario of a command that was given none."""
SEEDS = 5
"""Traffic seeds, from 1 on, of a command that was given no number of them."""

TUNER_PANEL, VERDICT_PANEL, OUTPUT_PANEL = "The tuner", "The verdict", "Output"
"""Panels of a command's ``--help``."""

_OUT = typer.Option("--out", metavar="DIR", help="Folder for what the command writes.")
OutOption = Annotated[Path, _OUT]
OptionalOut = Annotated[Path | None, _OUT]
_OUT_FILE = typer.Option("--out", metavar="FILE", help="File that the command writes.")
OutFileOption = Annotated[Path, _OUT_FILE]
OptionalOutFile = Annotated[Path | None, _OUT_FILE]
ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Replace what OUT holds.", rich_help_panel=OUTPUT_PANEL),
]
DeployOption = Annotated[
    bool, typer.Option("--force", help="Take a setting that is not recommended, too.")
]
ScenarioOption = Annotated[
    str,
    typer.Option(
        "--scenario", "-s", metavar="NAME", help="One of `dcqcn-gym scenarios`, or a TOML file."
    ),
]
_SCENARIOS = typer.Option(
    "--scenario",
    "-s",
    metavar="NAME,...",
    help=f"Names or TOML files, separated by commas; default: {SCENARIO}.",
    show_default=False,
)
ScenariosOption = Annotated[str, _SCENARIOS]
OptionalScenarios = Annotated[str | None, _SCENARIOS]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**31 - 1, help="The same seed gives the same bytes."),
]
_SEEDS_OPTION = typer.Option(
    "--seeds",
    min=1,
    max=999,
    help=f"Number of traffic seeds; default: {SEEDS}, or those of the study.",
    show_default=False,
)
SeedsOption = Annotated[int, _SEEDS_OPTION]
OptionalSeeds = Annotated[int | None, _SEEDS_OPTION]
_BACKEND = typer.Option(
    help="native (default); fluid is faster and not exact, fake a toy.", show_default=False
)
BackendOption = Annotated[str, _BACKEND]
OptionalBackend = Annotated[str | None, _BACKEND]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Worker processes; default: one per CPU.")
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="FROM:TO",
        help="Of a trace only flows from here to there, in s; default: the busiest.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=OUTPUT_PANEL)
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        "--tuner-deadline",
        metavar="S",
        help="Longest decision of a plug-in, in s; default: 300, of `bench verify` 60.",
        rich_help_panel=TUNER_PANEL,
    ),
]
BinsOption = Annotated[
    str | None, typer.Option(help="Slowdowns by the sizes of a paper too: acc or paraleon.")
]
CurvesOption = Annotated[
    bool,
    typer.Option("--fct-cdf", help="Write fct-cdf.csv as well: curves of completion times."),
]


def names_in(text: str, option: str) -> tuple[str, ...]:
    """Return names that commas separate; ConfigError, naming ``option``, for none and for twice."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise ConfigError(f"{option} {quote(text)}: expected names separated by commas, none empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{option}: {', '.join(twice)} is given twice; expected each once")
    return names


def pairs_in(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return the values of ``KEY=VALUE`` by key; ConfigError, naming ``option``, for bad ones."""
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ConfigError(f"{option} {quote(text)} is not of the form key=value")
        if key in found:
            raise ConfigError(f"{option} {quote(key)} is given twice; expected every one once")
        found[key] = value
    return found
