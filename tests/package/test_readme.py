"""Every block of the README that is marked ``<!-- run -->`` runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- run -->\n```(\w+)\n(.*?)```", README, re.DOTALL)


def test_there_is_something_to_run() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "python"}


def test_the_two_commands_come_first() -> None:
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert first is not None
    assert first[1].split("\n")[:2] == ["make tune", "make test"]


@pytest.mark.slow
def test_blocks_run_in_order_in_an_empty_folder(tmp_path: Path) -> None:
    env = dict(os.environ, MPLBACKEND="Agg")
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    assert BLOCKS
    for language, text in BLOCKS:
        command = ["bash", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
        run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
