"""`simulate`: its files, its refusals, and that nothing half-made stays behind."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.statistics import SlowdownCounter, slowdown_by_size
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.simulation.run import FILES, endless, parse_assignments, simulate, with_flows

MINI = load_scenario("mini-fb-hadoop")
FLOWS = "src,dst,bytes,start_ns\n0,1,1000000,0\n2,3,5000,1500.5\n"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def flow_list(tmp_path: Path) -> Scenario:
    path = tmp_path / "flows.csv"
    path.write_text(FLOWS, encoding="utf-8")
    return with_flows(MINI, path)


def test_files_agree_with_each_other(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    summary = simulate(MINI, out, intervals=7, backend="fake")
    assert sorted(p.name for p in out.iterdir()) == sorted(FILES)
    assert json.loads((out / "summary.json").read_text()) == summary
    flows, intervals = rows(out / "flows.csv"), rows(out / "intervals.csv")
    assert list(flows[0]) == ["src", "dst", "bytes", "start_ns", "fct_ns", "ideal_fct_ns"]
    assert len(intervals) == summary["intervals"] == 7
    assert len(flows) == summary["finished_flows"]
    for column in ("pauses", "marks", "cnps", "drops", "packet_hops"):
        assert sum(int(row[column]) for row in intervals) == summary[column]
    slow = [float(row["fct_ns"]) / float(row["ideal_fct_ns"]) for row in flows]
    assert summary["slowdown_finished"]["all"]["mean"] == pytest.approx(np.mean(slow))
    assert summary["slowdown_finished"]["all"]["p50"] == pytest.approx(np.median(slow), rel=0.01)
    assert json.loads((out / "timing.json").read_text())["peak_memory_bytes"] > 0


def test_slowdowns_count_unfinished_flows_at_their_age(tmp_path: Path) -> None:
    summary = simulate(MINI, tmp_path, intervals=8, seed=3)
    backend, end_ps = make_backend("native"), 8 * MINI.monitor_interval_ps
    backend.open(MINI, 3)
    backend.apply(MINI.initial_setting())
    flows = [backend.advance().finished for _ in range(8)]
    left = live_flows_of(backend)
    assert left is not None
    slow, ages = [], []
    for f in flows:
        chosen = f.start_ps < 0.8 * end_ps
        slow += (f.fct_ps / f.ideal_fct_ps)[chosen].tolist()
    chosen = left.start_ps < 0.8 * end_ps
    ages = np.maximum((end_ps - left.start_ps) / left.ideal_fct_ps, 1.0)[chosen].tolist()
    assert len(ages) > 3
    found = summary["slowdown"]["all"]
    assert found["count"] == len(slow) + len(ages)
    assert found["mean"] == pytest.approx(np.mean(slow + ages))
    assert found["max"] == pytest.approx(max(slow + ages))
    every = [float(r["fct_ns"]) / float(r["ideal_fct_ns"]) for r in rows(tmp_path / "flows.csv")]
    assert summary["slowdown_finished"]["all"]["count"] == len(every) != found["count"]


def test_unknown_unfinished_flows_give_no_slowdown_of_all(tmp_path: Path) -> None:
    assert simulate(MINI, tmp_path / "fake", intervals=3, backend="fake")["slowdown"] is None
    done = simulate(flow_list(tmp_path), tmp_path / "done")  # nothing is left, so nothing unknown
    assert done["slowdown"]["all"]["count"] == 2
    assert done["slowdown"] == done["slowdown_finished"]


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simulate(MINI, tmp_path / name, intervals=3, seed=5, backend="fake")
    for file in ("flows.csv", "intervals.csv", "summary.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_until_done_stops_when_everything_is_delivered(tmp_path: Path) -> None:
    backend = FakeBackend(work_intervals=4)
    summary = simulate(flow_list(tmp_path), tmp_path / "out", backend=backend)
    assert summary["intervals"] == 4


class Stuck(FakeBackend):
    """Drops a packet in its first interval and sends nothing from then on."""

    def __init__(self, drops: int, pause_ps: float) -> None:
        super().__init__(work_intervals=1)
        self.drops = drops
        self.pause_ps = pause_ps

    @property
    def done(self) -> bool:
        return False

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        report = super().advance(duration_ps)
        drops, self.drops = self.drops, 0
        pause = np.full_like(report.port_pause_ps, self.pause_ps)
        return replace(report, active_flows=3, packet_hops=0, drops=drops, port_pause_ps=pause)


@pytest.mark.parametrize(
    ("drops", "pause_ps", "cause"),
    [
        (5, 0.0, "5 packets or ACKs were dropped, and what they carried is not sent again"),
        (5, 1e6, "PFC pauses 32 ports for good"),
        (0, 0.0, "nothing was dropped and nothing is paused, so their rate is too low"),
    ],
)
def test_until_done_names_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drops: int, pause_ps: float, cause: str
) -> None:
    monkeypatch.setattr("dcqcn_gym.simulation.run.STUCK_INTERVALS", 3)
    with pytest.raises(RunError, match=f"3 flows have sent nothing for 3 intervals: {cause}"):
        simulate(flow_list(tmp_path), tmp_path / "out", backend=Stuck(drops, pause_ps))


def test_until_done_refuses_traffic_without_end(tmp_path: Path) -> None:
    assert endless(MINI) == ["workloads[0] (poisson)"]
    assert endless(flow_list(tmp_path)) == []
    with pytest.raises(ConfigError, match="never ends"):
        simulate(MINI, tmp_path / "out", backend="fake")
    assert not (tmp_path / "out").exists()


def test_results_are_not_replaced_without_force(tmp_path: Path) -> None:
    out = tmp_path / "out"
    simulate(MINI, out, intervals=1, backend="fake")
    with pytest.raises(RunError, match="--force"):
        simulate(MINI, out, intervals=2, backend="fake")
    assert simulate(MINI, out, intervals=2, backend="fake", force=True)["intervals"] == 2
    assert len(rows(out / "intervals.csv")) == 2


def test_out_must_be_a_directory_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for out in (file, file / "below"):
        with pytest.raises(RunError, match="is a file"):
            simulate(MINI, out, intervals=1, backend="fake")
    assert file.read_text() == "kept"
    (tmp_path / "run.jsonl").write_text("{}\n")
    with pytest.raises(RunError, match="tuning run"):
        simulate(MINI, tmp_path, intervals=1, backend="fake", force=True)


class Breaking(FakeBackend):
    """Stops in the third interval, as Ctrl-C or a failing backend would."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.calls = 0

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        self.calls += 1
        if self.calls == 3:
            raise self.error
        return super().advance(duration_ps)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("lost")])
def test_nothing_half_made_stays(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        simulate(MINI, tmp_path / "new" / "out", intervals=9, backend=Breaking(error))
    assert list(tmp_path.iterdir()) == []
    out = tmp_path / "old"
    simulate(MINI, out, intervals=1, backend="fake")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    with pytest.raises(type(error)):
        simulate(MINI, out, intervals=9, backend=Breaking(error), force=True)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


def test_full_disk_is_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "flows.csv.part").symlink_to("/dev/full")
    with pytest.raises(RunError, match="No space left"):
        simulate(MINI, out, intervals=1, backend="fake")
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("rp_ai_rat=5", UnknownNameError, "did you mean 'rp_ai_rate'"),
        ("rp_ai_rate", ConfigError, "not of the form knob=value"),
        ("rp_ai_rate=fast", ConfigError, "expected a whole number"),
        ("rp_ai_rate=1.5", ConfigError, "expected a whole number"),
        ("rp_ai_rate=0", ConfigError, "expected 1 to"),
        ("kmin=nan", ConfigError, "expected a number"),
        ("pmax=1.5", ConfigError, "out of range"),
        ("kmin=5000", ConfigError, "larger than kmax"),
    ],
)
def test_bad_assignments(text: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        parse_assignments([text], default_setting(), 100e9)


def test_assignments_are_in_nvidias_units() -> None:
    setting = parse_assignments(["rp_ai_rate=50", " kmin =200.5"], default_setting(), 100e9)
    assert setting["rp_ai_rate"] == 50
    assert setting["kmin"] == 200.5


@pytest.mark.parametrize(
    ("line", "words"),
    [("0,99,10,0", "line 2: dst = 99 is not a host"), ("0,1,ten,0", "line 2: bytes = 'ten'")],
)
def test_bad_flow_lists_name_the_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(f"src,dst,bytes,start_ns\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        with_flows(MINI, path)


def test_counter_agrees_with_exact_percentiles() -> None:
    rng = np.random.default_rng(4)
    sizes = (10 ** rng.uniform(1, 7.5, 200_000)).astype(np.int64)
    slow = 1 + rng.pareto(1.5, sizes.size)
    counter = SlowdownCounter()
    for part in np.array_split(np.arange(sizes.size), 7):
        counter.add(sizes[part], slow[part])
    summary = counter.summary()
    for row in slowdown_by_size(sizes, slow):
        got = summary[row.bin.key]
        assert got["count"] == row.count
        assert got["mean"] == pytest.approx(row.mean)
        assert got["p50"] == pytest.approx(row.p50, rel=2e-3)
        assert got["p99"] == pytest.approx(row.p99, rel=2e-2)
    assert SlowdownCounter().summary()["all"]["p99"] is None
