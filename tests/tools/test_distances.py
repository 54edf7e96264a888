"""Distances: what the profile of a card closes; the page is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("dcqcn_gym._core")

from distances import PARTS, Row, card_rows

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return card_rows()


def test_the_profile_is_nearer_to_the_card(rows: list[Row]) -> None:
    for row in rows:
        assert row.profile is not None
        assert abs(row.profile - row.there) < abs(row.here[0] - row.there), row.what
    near = [row for row in rows if not row.what.startswith("2:1")]
    assert len(near) == 6
    for row in near:
        assert row.profile == pytest.approx(row.there, rel=0.1), row.what


def test_the_page_is_what_the_command_prints(rows: list[Row]) -> None:
    page = (ROOT / "docs/measured/distances.md").read_text(encoding="utf-8")
    for row in [*rows, *PARTS["hand"][1]()]:
        line = next(text for text in page.splitlines() if text.startswith(f"| {row.what} |"))
        cells = row.cells(card=row.profile is not None)
        assert [cell.strip() for cell in line.strip("| ").split(" | ")] == list(cells)
