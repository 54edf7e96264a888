"""The words of the command line: loaded when typed, those of other packages among them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dcqcn_gym.cli import BUILTIN, COMMANDS, PANELS, app
from dcqcn_gym.core.add_ons import ADD_ONS
from hand_made import install_plugin

GROUP = "dcqcn_gym.commands"


def test_every_word_has_one_panel() -> None:
    words = [word for panel in PANELS.values() for word in panel]
    assert len(words) == len(set(words))
    assert set(words) == set(BUILTIN) | set(ADD_ONS[GROUP])


ALONE = """
import importlib, os, sys
import gymnasium, numpy, pydantic, typer  # so that each child has to load modules of ours alone
for target in sys.argv[1:]:
    if not os.fork():
        module, _, name = target.partition(":")
        assert getattr(importlib.import_module(module), name) is not None
        os._exit(0)
    if os.wait()[1]:
        print(target)
"""


def test_what_an_add_on_brings_is_there() -> None:
    """Each is loaded by a process that has nothing else of ours."""
    targets = sorted({target for group in ADD_ONS.values() for target in group.values()})
    done = subprocess.run([sys.executable, "-c", ALONE, *targets], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_word_loads_no_other() -> None:
    code = (
        "import sys; from dcqcn_gym.cli import COMMANDS; COMMANDS.load_object('emit'); "
        "print([m for m in sys.modules if m.startswith('dcqcn_gym.') and '.commands.' in m "
        "or m.startswith(('dcqcn_gym.hw', 'dcqcn_gym.extras', 'dcqcn_gym.benchmarks'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dcqcn_gym.commands.emit']"


def test_another_package_adds_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_words.py").write_text(
        "import typer\napp = typer.Typer(help='Theirs.')\n"
        "@app.command()\ndef one():\n    print('one of theirs')\n"
        "@app.command()\ndef two():\n    print('two')\n"
        "def greet(name: str):\n    print('hello', name)\n"
        "number = 3\n"
    )
    words = {
        "theirs": "their_words:app", "greet": "their_words:greet", "tune": "their_words:greet",
        "number": "their_words:number", "gone": "not_there:app",
    }  # fmt: skip
    install_plugin(tmp_path, "theirs", GROUP, words)
    monkeypatch.syspath_prepend(tmp_path)
    run = CliRunner().invoke
    assert run(app, ["theirs", "one"]).output == "one of theirs\n"
    assert run(app, ["greet", "you"]).output == "hello you\n"
    shown = run(app, ["--help"]).output
    assert "Of other packages" in shown
    assert "Theirs." in shown
    for word in ("number", "gone"):
        error = str(run(app, [word]).exception)
        assert word in error
        assert f" {word} " in shown
    assert COMMANDS.source("tune")[0].name == "tune.py"  # a built-in cannot be replaced


def leaves(command: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with the words that are typed for it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        yield from leaves(one, f"{words} {name}".strip())


LEAVES = dict(leaves(typer.main.get_command(app)))


def test_no_command_is_hidden() -> None:
    assert not [words for words, one in LEAVES.items() if one.hidden]


@pytest.mark.parametrize("words", LEAVES)
def test_its_help_has_an_example_that_can_be_typed(words: str) -> None:
    found = re.findall(r"Example: `dcqcn-gym ([^`]*)`", LEAVES[words].help)
    assert len(found) == 1
    assert found[0].startswith(words)
    name = words.rpartition(" ")[2]
    with LEAVES[words].make_context(name, shlex.split(found[0][len(words) :])):
        pass  # an option that there is not raises
