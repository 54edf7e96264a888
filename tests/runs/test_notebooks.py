"""What notebooks show of runs and settings."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.runs.log import Run


def test_runs_and_settings_show_themselves_in_notebooks() -> None:
    run = Run(Path("x"), {"scenario": {"name": "<b>"}, "tuner": "tpe", "intervals": 9})
    shown = run._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "0 of 9" in shown
    assert "not known" in shown
    assert "<td>kmin<td>321<td>KB" in default_setting(1e11).replace(kmin=321)._repr_html_()
