"""What every test process needs."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from programs import runs_in_threads

# a shell that starts pytest in the background makes it, and all that it starts, ignore Ctrl-C;
# some tests interrupt a child as a person would
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# pytest loads readline, which puts the terminal's width into the environment of children: tables
# in a pipe would be as narrow
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

THIRDS = ("test_conformance.py", "test_env.py", "test_ids.py")
"""Files that run a kit on everything that is registered: a third of each is fast."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark two thirds of the kits' tests as slow, in turns: each test is fast for some member."""
    seen: Counter[str] = Counter()
    for item in items:
        if item.path.name in THIRDS and (item.cls is not None or hasattr(item, "callspec")):
            seen[item.path.name] += 1
            if seen[item.path.name] % 3:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def in_threads() -> Iterator[None]:
    """Commands carry out their runs in threads."""
    with runs_in_threads():
        yield
