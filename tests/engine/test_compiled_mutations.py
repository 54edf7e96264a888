"""One changed word in a compiled scenario is refused or changes nothing."""

from __future__ import annotations

import pytest
from mutated_texts import run, texts

from dcqcn_gym._core import same_scenario  # noqa: TID251 - the tests of this folder are about it


@pytest.mark.parametrize("cases", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_no_word_is_lost_in_silence(cases: int) -> None:
    counts, wrong = run(cases, seed=1)
    assert not wrong, "\n".join(wrong[:5])
    assert counts["refused"] > 0.8 * cases
    assert counts["equal"] >= 1  # such as a '#' behind the last word


def test_another_number_is_another_scenario() -> None:
    assert texts()
    for source, text in texts().items():
        assert same_scenario(text, text), source
        assert not same_scenario(
            text,
            text.replace(" alpha=0.125 ", " alpha=0.25 ", 1).replace(
                " alpha=1.0 ", " alpha=0.25 ", 1
            ),
        ), source
