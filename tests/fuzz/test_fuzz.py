"""Random bad input: an answer in one line, or success; never a traceback."""

from __future__ import annotations

import pytest
from fuzz_harness import fuzz
from fuzzers import FUZZERS


@pytest.mark.parametrize("cases", [100, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FUZZERS)
def test_no_input_ends_in_a_traceback(name: str, cases: int) -> None:
    outcome = fuzz(name, FUZZERS[name], range(cases))
    assert not outcome.failures, "\n".join(report for _, report in outcome.failures[:3])
    assert outcome.refused > cases / 10  # the input is bad indeed
    assert outcome.accepted > cases / 100  # and not all of it


def test_a_traceback_is_noticed() -> None:
    def breaks(random: object, folder: object) -> None:
        raise KeyError("x")

    outcome = fuzz("breaks", breaks, range(3))
    assert len(outcome.failures) == 3
