"""Commands look at the page or file they are to write before they measure what goes into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.core.errors import RunError
from programs import program_of


@pytest.mark.parametrize("words", [("paper", "monitors"), ("study", "recommended")], ids=" ".join)
def test_a_page_without_the_marks_is_refused_before_anything_runs(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    out = ("--out", str(tmp_path / "out"))
    found = CliRunner().invoke(*program_of([*words, *out, "--write", str(page)]))
    assert isinstance(found.exception, RunError), found.output
    assert "lacks the marks" in str(found.exception)
    assert list(tmp_path.iterdir()) == [page]
