"""The playthroughs in tests/golden are what the engine does today."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from golden_runs import golden_names, main, playthrough

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

pytest.importorskip("dcqcn_gym._core")


@pytest.mark.parametrize("name", golden_names())
def test_playthrough(name: str) -> None:
    """After a wanted change: `python tools/golden_runs.py tests/golden`; read the diff."""
    assert playthrough(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_belongs_to_a_scenario() -> None:
    assert {p.stem for p in GOLDEN.glob("*.txt")} == set(golden_names())


def test_one_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main([os.fspath(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.txt"))) == len(golden_names())
