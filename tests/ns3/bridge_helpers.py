"""The toy peer's command."""

from __future__ import annotations

import sys
from pathlib import Path

TOY = Path(__file__).with_name("toy_peer.py")


def toy_command(fault: str = "none") -> list[str]:
    """Return the command of the toy peer."""
    return [sys.executable, str(TOY), f"--fault={fault}"]
