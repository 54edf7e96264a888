"""What the tests of the bridge share: the toy peer's command and a look at processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("zmq", reason="the extra [ns3] is not installed")
pytest.importorskip("google.protobuf", reason="the extra [ns3] is not installed")

from dcqcn_gym.envs.backends.ns3 import Ns3Backend
from dcqcn_gym.envs.backends.ns3_bridge.link import Deadlines

TOY = Path(__file__).with_name("toy_peer.py")


def toy_command(fault: str = "none") -> list[str]:
    """Return the command of the toy peer."""
    return [sys.executable, str(TOY), f"--fault={fault}"]


@pytest.fixture
def toy() -> Iterator[Callable[..., Ns3Backend]]:
    """Make backends over the toy peer; closes all of them at the end."""
    made: list[Ns3Backend] = []

    def make(fault: str = "none", **options: object) -> Ns3Backend:
        backend = Ns3Backend(command=toy_command(fault), **options)  # type: ignore[arg-type]
        made.append(backend)
        return backend

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def quick() -> Deadlines:
    """Deadlines of a few seconds, for peers that never answer."""
    return Deadlines(connect_s=3.0, init_s=3.0, step_s=1.0, close_s=1.0)


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
