"""The main path on the fake backend: what is asked is applied, told and recorded."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dcqcn_gym.core.errors import TunerError
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TUNERS, Outcome, Tuner, TunerContext
from dcqcn_gym.tuners.base import Proposal

MINI = load_scenario("mini-fb-hadoop")


class Probe(Tuner):
    """Raises the additive step by one each time and remembers what it saw."""

    name = "probe"
    summary = "counts up"
    seen: ClassVar[list[Any]] = []

    def start(self, context: TunerContext) -> None:
        super().start(context)
        self.seen.clear()
        self.seen.append(context)
        self._count = 0

    def ask(self) -> Proposal | None:
        self._count += 1
        return self.context.base.replace({"rp_ai_rate": self._count})

    def tell(self, outcome: Outcome) -> None:
        super().tell(outcome)
        self.seen.append(outcome)


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setitem(TUNERS.builtin, "probe", f"{__name__}:Probe")
    return Probe.seen


def go(tmp_path: Path, tuner: str = "probe", n: int = 6, **changes: Any) -> Run:
    scenario: Scenario = MINI.model_copy(update=changes)
    run(RunSpec(scenario, tuner, 1, n, "fake"), tmp_path / "run.jsonl")
    return read_run(tmp_path / "run.jsonl")


def test_every_interval_is_asked_applied_told_and_recorded(
    tmp_path: Path, probe: list[Any]
) -> None:
    done = go(tmp_path)
    context, outcomes = probe[0], probe[1:]
    assert context.base == MINI.initial_setting()
    assert context.observation.dtype == np.float32
    assert len(context.observation)
    assert [line["setting"]["rp_ai_rate"] for line in done.intervals] == [1, 2, 3, 4, 5, 6]
    assert [o.utility for o in outcomes] == [line["utility"] for line in done.intervals]
    for line, outcome in zip(done.intervals, outcomes, strict=True):
        assert isinstance(outcome.setting, Setting)
        assert dict(outcome.setting) == line["setting"]
        assert line["delivered_bytes"] == outcome.report.delivered_bytes
        assert line["terms"] == [outcome.terms.tp, outcome.terms.rtt, outcome.terms.pfc]
    assert done.intervals[0]["start_ps"] == MINI.warmup_ps


def test_the_recommendation_ends_the_log(tmp_path: Path, probe: list[Any]) -> None:
    done = go(tmp_path)
    best = max(done.intervals, key=lambda line: line["utility"])
    assert done.end is not None
    assert done.end["best_utility"] == best["utility"]
    assert done.end["best_interval"] == best["i"]
    assert done.end["recommended"] == best["setting"]
    assert done.end["intervals"] == 6


def test_a_setting_per_device_group_is_applied_and_recorded(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Probe) -> Proposal:
        base = self.context.base
        return {"cluster": base, "tor": base.replace({"kmin": 50})}

    monkeypatch.setattr(Probe, "ask", ask)
    done = go(tmp_path)
    assert done.intervals[0]["setting"]["cluster"]["kmin"] == 100
    assert done.intervals[0]["setting"]["tor"]["kmin"] == 50
    assert probe[1].setting["tor"]["kmin"] == 50
    assert done.end is not None
    assert done.end["recommended"] == done.intervals[0]["setting"]


def test_a_cadence_holds_the_setting_and_tells_the_mean(tmp_path: Path, probe: list[Any]) -> None:
    done = go(tmp_path, n=8, cadence=3)
    lines = done.intervals
    assert [line["setting"]["rp_ai_rate"] for line in lines] == [1, 1, 1, 2, 2, 2, 3, 3]
    outcomes = probe[1:]
    assert [o.intervals for o in outcomes] == [3, 3]
    assert outcomes[0].utility == pytest.approx(np.mean([x["utility"] for x in lines[:3]]))
    assert outcomes[1].terms.rtt == pytest.approx(np.mean([x["terms"][1] for x in lines[3:6]]))


class _PausingBackend(FakeBackend):
    """Idle in every second interval after the warm-up."""

    def advance(self, duration_ps: int | None = None) -> Any:
        report = super().advance(duration_ps)
        if report.index % 2 == 0:
            return report
        quiet = {"host_tx_bytes": report.host_tx_bytes * 0, "data_packets": 0, "active_flows": 0}
        return type(report)(**{**report.__dict__, **quiet})


def test_idle_intervals_are_recorded_but_not_told(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_env(self: RunSpec) -> DcqcnEnv:
        return DcqcnEnv(self.scenario, _PausingBackend(), intervals=self.intervals)

    monkeypatch.setattr(RunSpec, "make_env", make_env)
    done = go(tmp_path, n=6)
    idle = [line["idle"] for line in done.intervals]
    assert sorted(set(idle)) == [False, True]
    assert all(line["utility"] == 1.0 for line in done.intervals if line["idle"])
    assert len(probe[1:]) == idle.count(False)
    settings = [line["setting"]["rp_ai_rate"] for line in done.intervals]
    for i in range(1, 6):  # a proposal that met no data stays in force
        assert settings[i] == settings[i - 1] + (not idle[i - 1])
    assert done.end is not None
    assert done.end["best_utility"] < 1.0


def test_finished_work_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_env(self: RunSpec) -> DcqcnEnv:
        return DcqcnEnv(self.scenario, FakeBackend(work_intervals=9), intervals=self.intervals)

    monkeypatch.setattr(RunSpec, "make_env", make_env)
    done = go(tmp_path, "default", n=50)
    assert len(done.intervals) == 4  # five of the nine are the warm-up
    assert done.complete


def test_a_failing_tuner_leaves_its_log(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Probe) -> Setting:
        self._count += 1
        value = float("nan") if self._count == 4 else 5.0
        return self.context.base.replace({"rp_ai_rate": value})

    monkeypatch.setattr(Probe, "ask", ask)
    with pytest.raises(TunerError, match=r"tuner 'probe'.*nan"):
        go(tmp_path)
    kept = read_run(tmp_path / "run.jsonl")
    assert len(kept.intervals) == 3
    assert not kept.complete


def test_a_tuner_that_cannot_start_leaves_nothing(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: Probe, context: TunerContext) -> None:
        raise FileNotFoundError("policy.npz")

    monkeypatch.setattr(Probe, "start", start)
    with pytest.raises(TunerError, match=r"failed in start\(\).*policy.npz"):
        go(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_header_alone_repeats_the_run(tmp_path: Path) -> None:
    first = go(tmp_path, "paraleon", n=10)
    header = first.header
    scenario = Scenario.model_validate(header["scenario"])
    spec = RunSpec(
        scenario,
        header["tuner"],
        header["seed"],
        header["intervals"],
        header["backend"],
        header["tuner_args"],
    )
    run(spec, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


def test_all_tuners_see_the_same_warm_up(tmp_path: Path) -> None:
    starts = []
    for name in ("paraleon", "do-nothing"):
        line = go(tmp_path, name, n=1).intervals[0]
        starts.append({key: value for key, value in line.items() if key != "wire"})
    assert starts[0] == starts[1]


def test_finished_rounds_of_collectives_are_recorded(tmp_path: Path) -> None:
    pytest.importorskip("dcqcn_gym._core")
    data = MINI.model_dump(mode="json")
    data["workloads"] = [{"kind": "alltoall", "bytes": 20_000, "hosts": 4, "off_us": 100}]
    scenario = Scenario.model_validate(data)
    run(RunSpec(scenario, "default", 1, 3, "native"), tmp_path / "run.jsonl")
    rounds = [r for line in read_run(tmp_path / "run.jsonl").intervals for r in line["rounds"]]
    assert {(r["collective"], r["ranks"], r["bytes"]) for r in rounds} == {
        ("all-to-all", 4, 80_000)
    }
    for before, after in pairwise(rounds):
        assert after["start_ps"] == before["start_ps"] + before["time_ps"] + before["pause_ps"]
    (tmp_path / "poisson").mkdir()
    assert "rounds" not in go(tmp_path / "poisson", "default", 2).intervals[0]


def test_the_log_holds_what_was_applied_to_the_bit(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (30 + i * 0.00037 for i in range(200_000))
    odd = [x for x in values if x * 1e3 / 1e3 != x][:6]  # what SI would not give back
    assert len(odd) == 6
    applied: list[Any] = []

    class Listening(FakeBackend):
        def apply(self, setting: Any) -> None:
            applied.append(setting)
            super().apply(setting)

    def make_env(self: RunSpec) -> DcqcnEnv:
        return DcqcnEnv(self.scenario, Listening(), intervals=self.intervals)

    def ask(self: Probe) -> Proposal:
        self._count += 1
        own = self.context.base.replace({"kmin": odd[self._count - 1], "rp_ai_rate": 5.4})
        return own if self._count % 2 else {"cluster": self.context.base, "tor": own}

    monkeypatch.setattr(RunSpec, "make_env", make_env)
    monkeypatch.setattr(Probe, "ask", ask)
    done = go(tmp_path, n=len(odd))
    in_force = [s if isinstance(s, Setting) else s["tor"] for s in applied[1:]]
    logged = [line["setting"].get("tor", line["setting"]) for line in done.intervals]
    assert [Setting.of(line) for line in logged] == in_force
    assert [o.setting for o in probe[1:]] == applied[1:]
    assert [s["kmin"] for s in in_force] == odd
    assert {s["rp_ai_rate"] for s in in_force} == {5}  # whole Mb/s


@pytest.mark.parametrize("value", [None, "5", [1.0]])
def test_a_setting_of_no_numbers_is_a_named_mistake(
    tmp_path: Path, probe: list[Any], monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    def ask(self: Probe) -> Setting:
        base = self.context.base
        return Setting((value, *base.numbers[1:]))

    monkeypatch.setattr(Probe, "ask", ask)
    with pytest.raises(TunerError, match=r"tuner 'probe': rp_clamp_tgt_rate = .*expected a number"):
        go(tmp_path)
