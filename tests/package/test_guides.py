"""What the guides for operators, RL and tuner authors print is typed here, so it cannot rot.

A block under ``<!-- run -->`` runs in an empty folder after those before it; under
``<!-- run if NAME -->`` only where that module or program is installed. One under
``<!-- file NAME -->`` is that file. One under ``<!-- needs devices -->`` needs what no test
machine has, and is not run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = ("operators", "rl", "tuner-authors", "hardware", "reference/public-names")
NEEDS = {"hardware": "redis-server"}
BLOCK = re.compile(r"<!-- (run|file)(?: ([^>\n]+?))? -->\n```(\w*)\n(.*?)```", re.DOTALL)
NOT_HERE = re.compile(r"<!-- needs devices -->\n```sh\n.*?```", re.DOTALL)
Block = tuple[str, str, str, str]


def blocks(guide: str) -> list[Block]:
    """Return (run or file, argument, language, text) of every marked block of a guide."""
    return BLOCK.findall((DOCS / f"{guide}.md").read_text(encoding="utf-8"))


def carry_out(block: Block, folder: Path) -> None:
    """Write or run one block."""
    what, argument, language, text = block
    if what == "file":
        (folder / argument).write_text(text, encoding="utf-8")
        return
    name = argument.removeprefix("if ")
    if name and importlib.util.find_spec(name) is None and shutil.which(name) is None:
        return
    env = dict(os.environ, MPLBACKEND="Agg", MINARI_DATASETS_PATH=str(folder / "minari"))
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    command = ["bash", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES)
def test_guide_runs_in_order_in_an_empty_folder(guide: str, tmp_path: Path) -> None:
    if shutil.which(NEEDS.get(guide, "bash")) is None:
        pytest.skip(f"{NEEDS[guide]} is not installed")
    try:
        for block in blocks(guide):
            carry_out(block, tmp_path)
    finally:
        if (tmp_path / "fabric.pid").exists():  # a block that failed leaves it running
            with suppress(ProcessLookupError):
                os.kill(int((tmp_path / "fabric.pid").read_text()), signal.SIGTERM)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_of_a_guide_is_in_a_block_that_is_run(guide: str) -> None:
    text = (DOCS / f"{guide}.md").read_text(encoding="utf-8")
    unmarked = re.findall(r"^```(sh|python)\n", NOT_HERE.sub("", BLOCK.sub("", text)), re.MULTILINE)
    assert blocks(guide)
    assert not unmarked


def test_the_operators_guide_ends_with_a_way_back(tmp_path: Path) -> None:
    scripts = [text for what, _, _, text in blocks("operators") if what == "run"]
    assert "rollback.sh" in scripts[-1]
