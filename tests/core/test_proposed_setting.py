"""What a tuner proposes is what is applied, logged and told: whole numbers where devices hold them.

Only kmin, kmax (KB) and pmax may have fractions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import KNOBS, Setting
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TUNERS, Tuner
from dcqcn_gym.tuners.base import Outcome, Proposal

#         knob                  proposed     applied and in the log
TABLE = {
    "rp_time_reset":            (300.4,       300),
    "rp_byte_reset":            (100.48,      100),
    "rp_ai_rate":               (5.499999,    5),
    "rp_hai_rate":              (49.500001,   50),
    "rp_min_dec_fac":           (50.4,        50),
    "rp_initial_alpha_value":   (921.6,       922),
    "np_min_time_between_cnps": (3.6,         4),
    "kmin":                     (32.0003,     32.0003),
    "pmax":                     (0.123456789, 0.123456789),
}  # fmt: skip
PROPOSED = {name: row[0] for name, row in TABLE.items()}
HELD = {name: row[1] for name, row in TABLE.items()}


MINI = load_scenario("mini-fb-hadoop")


class OffTheGrid(Tuner):
    """Proposes values that no NIC can hold."""

    name = "off-the-grid"
    summary = "proposes values between two steps"
    grouped: ClassVar[bool] = False
    told: ClassVar[list[Proposal]] = []

    def ask(self) -> Proposal:
        setting = self.context.base.replace(PROPOSED)
        return {"cluster": self.context.base, "tor": setting} if self.grouped else setting

    def tell(self, outcome: Outcome) -> None:
        super().tell(outcome)
        self.told.append(outcome.setting)


class Listening(FakeBackend):
    """Remembers what was applied, by all of its kind."""

    applied: ClassVar[list[DeviceSetting]] = []

    def apply(self, setting: DeviceSetting) -> None:
        self.applied.append(setting)
        super().apply(setting)


@pytest.fixture(autouse=True)
def ears(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_env(self: RunSpec) -> DcqcnEnv:
        return DcqcnEnv(self.scenario, Listening(), intervals=self.intervals)

    monkeypatch.setattr(RunSpec, "make_env", make_env)
    monkeypatch.setitem(TUNERS.builtin, "off-the-grid", f"{__name__}:OffTheGrid")
    Listening.applied.clear()
    OffTheGrid.told.clear()


def go(path: Path, replay: Run | None = None) -> Run:
    run(RunSpec(MINI, "off-the-grid", 1, 2, "fake"), path, replay=replay)
    return read_run(path)


def chosen(setting: object) -> dict[str, float]:
    assert isinstance(setting, Setting)
    return {name: setting[name] for name in TABLE}


def test_rounded_before_it_is_applied_logged_and_told(tmp_path: Path) -> None:
    done = go(tmp_path / "run.jsonl")
    assert chosen(Listening.applied[-1]) == HELD
    assert [chosen(setting) for setting in OffTheGrid.told] == [HELD, HELD]
    for line in done.intervals:
        assert {name: line["setting"][name] for name in TABLE} == HELD
    assert done.end is not None
    assert {name: done.end["recommended"][name] for name in TABLE} == HELD


def test_a_setting_of_a_group_is_rounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OffTheGrid, "grouped", True)
    done = go(tmp_path / "run.jsonl")
    applied = Listening.applied[-1]
    assert not isinstance(applied, Setting)
    assert chosen(applied["tor"]) == HELD
    assert {name: done.intervals[0]["setting"]["tor"][name] for name in TABLE} == HELD


def test_what_was_logged_applies_the_same_bits(tmp_path: Path) -> None:
    done = go(tmp_path / "run.jsonl")
    applied = Listening.applied[-1]
    text = json.loads(json.dumps(done.intervals[0]["setting"]))
    assert Setting.of(text) == applied
    # the same run continued from its log, and a run that is only given the logged numbers
    whole = done.path.read_bytes()
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    Listening.applied.clear()
    go(part, replay=read_run(part))
    assert Listening.applied[-1] == applied
    assert part.read_bytes() == whole
    Listening.applied.clear()
    fixed = tmp_path / "fixed.jsonl"
    run(RunSpec(MINI, "fixed", 1, 2, "fake", text), fixed)
    assert Listening.applied[-1] == applied
    assert [line["utility"] for line in read_run(fixed).intervals] == [
        line["utility"] for line in done.intervals
    ]


def test_rounding_again_changes_nothing(tmp_path: Path) -> None:
    go(tmp_path / "run.jsonl")
    applied = Listening.applied[-1]
    assert isinstance(applied, Setting)
    assert Setting.of(dict(applied)) == applied
    assert set(applied) == set(KNOBS)
