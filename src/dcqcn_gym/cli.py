"""The ``dcqcn-gym`` command: a table of words; what a word stands for is loaded when it is typed.

Other packages add words by the entry-point group ``dcqcn_gym.commands``: a name, and the ``Typer``
app or the function that it stands for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dcqcn_gym.core.errors import DEBUG_VARIABLE, ConfigError
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.runs.command_line import run_command

PANELS = {
    "Tune": ("tune", "report", "show", "simulate", "advise", "train", "evaluate"),
    "Bring your own": (
        "scenarios",
        "tuners",
        "knobs",
        "network",
        "traffic",
        "settings",
        "calibrate",
        "jobs",
    ),
    "Measure": ("compare", "why", "sweep", "study", "bench", "paper", "ns3"),
    "Devices": ("emit", "hw"),
}
"""The panels of ``--help``, each with its words."""

OTHERS = "Of other packages"

BUILTIN = {
    "tune": "dcqcn_gym.commands.tune:tune",
    "report": "dcqcn_gym.commands.report:report",
    "simulate": "dcqcn_gym.commands.simulate:simulate",
    "advise": "dcqcn_gym.commands.advise:advise",
    "scenarios": "dcqcn_gym.commands.tables:scenarios",
    "tuners": "dcqcn_gym.commands.tables:tuners",
    "knobs": "dcqcn_gym.commands.tables:knobs",
    "compare": "dcqcn_gym.commands.compare:compare",
    "sweep": "dcqcn_gym.commands.sweep:sweep",
    "study": "dcqcn_gym.commands.study:study",
    "emit": "dcqcn_gym.commands.emit:emit",
}
"""The words of the core; those of add-ons are in core/add_ons.py."""

COMMANDS: Registry[object] = Registry("command", "dcqcn_gym.commands", object, BUILTIN)


class _Commands(Mapping[str, Any]):
    """The commands by their words, each loaded when it is asked for."""

    def __getitem__(self, word: str) -> Any:
        # first without a look at other packages, which takes time
        if word in COMMANDS.builtin or word in COMMANDS.names():
            return _load(word)
        raise KeyError(word)

    def __iter__(self) -> Iterator[str]:
        known = [word for words in PANELS.values() for word in words]
        return iter([*known, *(word for word in COMMANDS.names() if word not in known)])

    def __len__(self) -> int:
        return len([*iter(self)])  # not list(self), which asks for the length first


class _Words(TyperGroup):
    """The group of all words."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # no command is ever added

    def list_commands(self, ctx: Any) -> list[str]:  # typer's context or click's, by its version
        """Return every word, by panel, then those of other packages."""
        return list(self.commands)


def _load(word: str) -> Any:
    """Return a word's command; one of another package that cannot be loaded says so when run."""
    panel = next((name for name, words in PANELS.items() if word in words), OTHERS)
    host = typer.Typer()
    try:
        found = COMMANDS.load_object(word)
        if isinstance(found, typer.Typer):
            host.add_typer(found, name=word, rich_help_panel=panel)
        elif callable(found):
            host.command(word, rich_help_panel=panel)(found)
        else:
            raise ConfigError(
                f"command {word!r} is {found!r}; expected a typer.Typer or a function"
            )
    except ConfigError as error:
        if panel != OTHERS:
            raise
        host.command(word, rich_help_panel=panel, help=str(error))(_raising(error))
    return typer.main.get_group(host).commands[word]


def _raising(error: ConfigError) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


app = typer.Typer(
    cls=_Words,
    name="dcqcn-gym",
    help="Tune the congestion control of RDMA networks, over an exact packet engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from dcqcn_gym.core.version import code_versions

        version, engine = code_versions().values()
        typer.echo(f"dcqcn-gym {version}, engine {engine or 'not there'}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, a plug-in's included.")
    ] = False,
) -> None:
    """Tune the congestion control of RDMA networks, over an exact packet engine."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"  # worker processes show theirs as well


def main() -> None:
    """Run the command line; ``--debug`` may stand anywhere, also behind the command."""
    words = sys.argv[1:]
    given = [word for word in words if word == "--debug"][:1]
    run_command(app, given + [word for word in words if word != "--debug"])


if __name__ == "__main__":
    main()
