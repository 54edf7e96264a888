"""A few kills of ``tools/kills.py``; ``tools/kills.txt`` is the result of a hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "tools" / "kills.py"


@pytest.mark.slow
def test_killed_commands_go_on_to_equal_bytes() -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--kills", "3", "--seed", "7"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("0 left alive")
