"""A dry run of a fleet is a handful of rows: places of a switch and devices that change alike."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.hw.commands.fleet import _setting_in
from dcqcn_gym.hw.commands.output import PLACES, Output


def line(place: str, before: str, after: str, shared: tuple[str, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(
        place=place, before=before, after=after, unit="bytes", needs_reset=False, shared_by=shared
    )


def test_forty_switches_of_eighteen_ports_are_one_row_a_colour(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ports = [f"Ethernet{4 * i}" for i in range(18)]
    own = [
        line(f"WRED_PROFILE|{port}/{colour}_min_threshold", "100000", "18000")
        for port in ports
        for colour in ("green", "yellow")
    ]
    plans = {f"switch-{i}": own for i in range(40)}
    plans["nic-0"] = [line("rp_ai_rate", "5", "50")]
    out = Output(as_json=False)
    assert out.plans(plans, PLACES, "nothing") == 40 * 36 + 1  # every place is counted
    shown = capsys.readouterr().out
    rows = [row.split() for row in shown.splitlines() if "threshold" in row]
    assert [" ".join(row) for row in rows] == [
        f"40: switch-0 to switch-39 {colour}_min_threshold, 18 places 100000 18000 bytes"
        for colour in ("green", "yellow")
    ]
    assert len(out.facts["places"]["switch-3"]) == 36


def test_two_changes_of_one_field_stay_apart(capsys: pytest.CaptureFixture[str]) -> None:
    own = [line(f"P|{i}/kmin", "100", "18" if i % 2 else "50") for i in range(8)]
    own.append(line("P|9/kmax", "400", "200"))
    Output(as_json=False).plans({"switch-0": own}, PLACES, "nothing")
    shown = capsys.readouterr().out
    assert shown.count("kmin, 4 places") == 2
    assert "P|9/kmax" in shown


def test_a_dry_run_of_a_run_that_says_no_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = tmp_path / "best.json"
    found = dict(default_setting())
    best.write_text(json.dumps({"answer": {"title": "Keep your setting: x"}, "candidate": found}))
    _setting_in(best, force=False, dry=True)
    assert "NOT RECOMMENDED. Keep your setting: x (refused" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="Keep your setting: x"):
        _setting_in(best, force=False)
