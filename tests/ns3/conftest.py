"""Fixtures of the bridge's tests."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bridge_helpers import toy_command
from scheme_jobs import ROOT, build

from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.extras.ns3.bridge.link import Deadlines


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


@pytest.fixture(scope="session")
def scheme_programs() -> tuple[Path, Path]:
    """Return the native player and the ns-3 program, with every scheme and the toy.

    The build takes minutes, so it is kept, and workers of one session wait for each other. It lies
    as deep as the builds of ``.ci``: their compiled files are then found by ccache, which tells
    files by their way from the build to the source.
    """
    folder = ROOT / "build" / "scheme-programs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(folder)
