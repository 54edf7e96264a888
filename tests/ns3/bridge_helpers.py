"""The toy peer's command, and a look at processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

TOY = Path(__file__).with_name("toy_peer.py")


def toy_command(fault: str = "none") -> list[str]:
    """Return the command of the toy peer."""
    return [sys.executable, str(TOY), f"--fault={fault}"]


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Wait until the process has ended (or is a zombie that somebody else will reap)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
