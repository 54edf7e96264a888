"""The copy of the tree that recipes of one file share."""

from __future__ import annotations

import pytest
from copied import Copy


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Return a copy in which all of them are carried out."""
    return Copy(tmp_path_factory.mktemp("copied"))


@pytest.fixture
def tree(copied: Copy) -> Copy:
    copied.changed.clear()
    return copied
