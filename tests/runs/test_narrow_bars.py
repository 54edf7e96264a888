"""The bar of a long command on a narrow terminal: it may take two lines, its figures stay whole."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from dcqcn_gym.extras.learn.progress import open_train_viewer
from dcqcn_gym.runs import progress


@pytest.mark.parametrize("width", [60, 70, 100])
def test_a_narrow_terminal_cuts_no_figure(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    shown = io.StringIO()

    def console(**_: Any) -> Console:
        return Console(file=shown, force_terminal=True, width=width, color_system=None)

    monkeypatch.setattr(progress, "Console", console)
    with open_train_viewer("ppo on mini-fb-hadoop,mini-llm-alltoall", 100_000) as viewer:
        viewer.begin(0, [])
        viewer.step(12_345, 0.6789)
    last = shown.getvalue().rpartition("12345/100000")
    assert last[1]
    assert "0.6789" in shown.getvalue()
    assert "…" not in shown.getvalue()
