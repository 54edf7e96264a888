"""The project does not grow past its limits, which are in ``tests/size.toml``."""

from __future__ import annotations

import pytest

from size import FIGURES, limits


@pytest.mark.parametrize("name", FIGURES)
def test_the_project_stays_within_its_limits(name: str) -> None:
    of = limits()[name]
    found = FIGURES[name]()
    assert found > 0 or of["target"] == 0, "nothing was counted"
    assert found <= of["limit"], f"{of['what']}: lower it, or give a reason in tests/size.toml"


def test_every_limit_belongs_to_a_figure() -> None:
    assert set(limits()) == set(FIGURES)
