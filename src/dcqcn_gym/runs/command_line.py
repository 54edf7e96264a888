"""Running a command line: what was typed ends in a result or in one sentence.

Exit codes: 0 done, 2 something that was given is wrong (or a run failed), 130 Ctrl-C or
SIGTERM.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer

from dcqcn_gym.core.errors import DEBUG_VARIABLE, DcqcnGymError, printable


def run_command(app: Callable[[Sequence[str]], Any], words: Sequence[str]) -> None:
    """Run what was typed; every expected error is one line on standard error.

    A kill (SIGTERM, as a batch system sends) ends a command as Ctrl-C does, saying what is kept.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of ASCII shows a table all the same
        sys.stdout.reconfigure(errors="replace")
    try:
        app(words)  # ends by SystemExit
    except DcqcnGymError as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        typer.echo(f"error: {_short(printable(str(error)))}", err=True)
        sys.exit(2)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        typer.echo(f"error: {_short(name)}{error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _short(text: str) -> str:
    """Return a message whose longest words, such as a path of thousands of characters, are cut."""
    return re.sub(r"(\S{100})\S{300,}(\S{100})", r"\1...\2", text)
