"""The browser that tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import browser


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as one:
        yield one
