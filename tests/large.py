"""The largest scenarios: what goes over all of them takes these with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

LARGE = frozenset(
    {"fat-tree-1024", "job-dense-1024", "nccl-alltoall-128", "osu-alltoall-40", "plus-clos-2410"}
)
"""Together 80 % of the time of all; ``make test`` runs each in ``core/test_digests.py`` alone."""


def large_are_slow(names: Iterable[str], scenarios: Iterable[str] | None = None) -> list[Any]:
    """Return parameters, those of a large scenario marked as slow.

    ``scenarios`` are those of the ``names``, which by default they are themselves.
    """
    names = list(names)
    of = names if scenarios is None else list(scenarios)
    return [
        pytest.param(name, marks=pytest.mark.slow) if scenario in LARGE else name
        for name, scenario in zip(names, of, strict=True)
    ]
