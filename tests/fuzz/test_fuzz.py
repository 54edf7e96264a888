"""Random bad input: an answer in one line, or success; never a traceback."""

from __future__ import annotations

import pytest
from fuzz_harness import fuzz
from fuzzers import FUZZERS


@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_ends_in_a_traceback(name: str) -> None:
    outcome = fuzz(name, FUZZERS[name], range(500))
    assert not outcome.failures, "\n".join(report for _, report in outcome.failures[:3])
    assert outcome.refused > 50  # the input is bad indeed
    assert outcome.accepted > 5  # and not all of it


def test_a_traceback_is_noticed() -> None:
    def breaks(random: object, folder: object) -> None:
        raise KeyError("x")

    outcome = fuzz("breaks", breaks, range(3))
    assert len(outcome.failures) == 3
