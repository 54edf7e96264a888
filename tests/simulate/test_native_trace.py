"""`simulate --trace`: what it writes is what happened, and looking changes nothing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError, StateError, UnknownNameError
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.simulation.bins import Binned
from dcqcn_gym.simulation.run import FILES, Extras, parse_assignments, simulate
from dcqcn_gym.simulation.trace import Trace, parse_trace, port_names
from programs import called

pytest.importorskip("dcqcn_gym._core")

STORM = load_scenario("mini-storm").model_copy(update={"monitor_interval_us": 250.0})
SAME = ("flows.csv", "intervals.csv", "summary.json")


def trace_of(scenario: Scenario, **changes: str) -> Trace:
    options = {"what": "queue,rate,pause", "every": "10us", "ports": "switches", "flows": "all"}
    options |= {"file_format": "csv", **changes}
    return parse_trace(**options, net=scenario.fabric)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize(
    "name",
    [
        "lossy-incast",
        *(pytest.param(f"mini-{n}", marks=pytest.mark.slow) for n in ("storm", "fb-hadoop")),
    ],
)
def test_the_same_bytes_with_and_without(name: str, tmp_path: Path) -> None:
    scenario = load_scenario(name)
    simulate(scenario, tmp_path / "plain", intervals=3, seed=4)
    for every in ("10us", "7.3us"):
        trace = trace_of(scenario, every=every, ports="all")
        simulate(scenario, tmp_path / every, intervals=3, seed=4, extras=Extras(trace=trace))
        for file in SAME:
            plain, traced = (tmp_path / d / file for d in ("plain", every))
            assert plain.read_bytes() == traced.read_bytes(), file
        again = simulate(
            scenario,
            tmp_path / "again",
            intervals=3,
            seed=4,
            force=True,
            extras=Extras(trace=trace),
        )
        assert again["intervals"] == 3
        for file in ("trace_ports.csv", "trace_flows.csv"):
            assert (tmp_path / every / file).read_bytes() == (
                tmp_path / "again" / file
            ).read_bytes()


def test_ports_add_up_to_the_interval_reports(tmp_path: Path) -> None:
    backend = make_backend("native")
    backend.open(STORM, 1)
    backend.apply(STORM.initial_setting())
    reports = [backend.advance() for _ in range(3)]
    trace = trace_of(STORM, ports="all", flows="none")
    simulate(STORM, tmp_path, intervals=3, extras=Extras(trace=trace))
    table = rows(tmp_path / "trace_ports.csv")
    names = port_names(STORM.fabric)
    assert len(table) == 3 * 25 * len(names)
    assert not (tmp_path / "trace_flows.csv").exists()
    by_sample = np.array(
        [[float(r[c]) for c in ("queue_bytes", "rate_bps", "paused_share")] for r in table]
    ).reshape(3, 25, len(names), 3)
    for report, samples in zip(reports, by_sample, strict=True):
        assert samples[-1, :, 0].tolist() == report.port_queue_bytes.tolist()
        assert np.all(samples[:, :, 0].max(axis=0) <= report.port_max_queue_bytes)
        sent = samples[:, :, 1].sum(axis=0) * 10e-6 / 8
        assert sent == pytest.approx(report.port_tx_bytes)
        paused = samples[:, :, 2].sum(axis=0) * 10e6
        assert paused == pytest.approx(report.port_pause_ps)
    assert any(r["paused"] == "1" for r in table)


def test_flow_rates_fall_when_cnps_come(tmp_path: Path) -> None:
    scenario = load_scenario("incast")
    trace = trace_of(scenario, what="rate", ports="17>0", flows="3,4>0,5:0,5:9")
    simulate(scenario, tmp_path, intervals=1, extras=Extras(trace=trace))
    assert list(rows(tmp_path / "trace_ports.csv")[0]) == [
        "time_ns", "node", "port", "peer", "rate_bps",
    ]  # fmt: skip
    table = rows(tmp_path / "trace_flows.csv")
    assert {(r["src"], r["dst"], r["ordinal"]) for r in table} == {
        (src, "0", "0") for src in ("3", "4", "5")
    }
    rate = [int(r["rate_bps"]) for r in table if r["src"] == "3"]
    assert rate[0] == 100_000_000_000
    assert min(rate) < 1_000_000_000


def test_both_engines_look_the_same() -> None:
    seen: dict[str, list[Any]] = {"event": [], "window": []}

    class Chosen(NativeBackend):
        engine = "default"

        def _simulate(self, compiled: str, seed: int) -> Any:
            from dcqcn_gym import _core

            return _core.Simulation(compiled, seed, self.engine)

    for engine, samples in seen.items():
        backend = Chosen()
        backend.engine = engine
        backend.open(STORM, 2)
        backend.apply(STORM.initial_setting())
        n = len(port_names(STORM.fabric))

        def look(now: int, ports: Any, flows: Any, samples: list[Any] = samples) -> None:
            samples.append((now, *(np.array(v).tolist() for v in (*ports.values(),))))
            order = np.lexsort((flows["ordinal"], flows["src"]))
            samples.append([flows[k][order].tolist() for k in flows])

        backend.watch(33_333_333, range(n), look)
        for _ in range(2):
            backend.advance()
    assert seen["event"] == seen["window"]
    assert len(seen["event"]) == 2 * 15


def test_port_numbers_are_those_of_the_engine() -> None:
    for name in ("mini-storm", "fat-tree-1024"):
        scenario = load_scenario(name)
        backend = NativeBackend()
        with pytest.raises(StateError, match="open"):
            backend.watch(1, [], lambda *_: None)
        backend.open(scenario, 1)
        assert backend._open is not None
        table = backend._open.simulation.port_table()
        names = port_names(scenario.fabric)
        assert [p.node for p in names] == table["node"].tolist()
        assert [p.index for p in names] == table["index"].tolist()
        assert [p.peer for p in names] == table["peer"].tolist()
        with pytest.raises(ConfigError, match="expected numbers from 0"):
            backend.watch(1, [len(names)], lambda *_: None)
        backend.close()


def test_selections() -> None:
    def ports(text: str) -> list[str]:
        return [str(p) for p in trace_of(STORM, ports=text).ports]

    assert len(ports("all")) == 2 * (16 + 4)
    assert len(ports("hosts")) == 16
    assert ports("3, 18:1,16>2") == ["3>16", "16>2", "18>17"]
    assert len(ports("16")) == 10
    wanted = trace_of(STORM, flows="1,2>3,4:5").wanted
    assert wanted(1, 9, 9)
    assert wanted(2, 3, 7)
    assert not wanted(2, 4, 7)
    assert wanted(4, 0, 5)
    assert not wanted(4, 0, 6)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"what": "queue,rat"}, UnknownNameError, "did you mean 'rate'"),
        ({"what": ""}, ConfigError, "expected some of queue,rate,pause"),
        ({"every": "10"}, ConfigError, "expected a time of at least 1ns such as 10us"),
        ({"every": "0us"}, ConfigError, "at least 1ns"),
        ({"every": "1.2.3us"}, ConfigError, "such as 10us"),
        ({"ports": "20"}, ConfigError, "no port '20'; expected all, hosts"),
        ({"ports": "16>17"}, ConfigError, "no port '16>17'"),
        ({"ports": "tor"}, ConfigError, "no port 'tor'"),
        ({"flows": "16"}, ConfigError, "no flow '16'; expected all, none"),
        ({"flows": "1>99"}, ConfigError, "hosts 0 to 15"),
        ({"file_format": "xls"}, ConfigError, "expected csv or parquet"),
    ],
)
def test_bad_options(change: dict[str, str], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        trace_of(STORM, **change)


def test_other_backends_say_that_they_cannot(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use --backend native"):
        simulate(
            STORM,
            tmp_path / "out",
            intervals=1,
            backend="fake",
            extras=Extras(trace=trace_of(STORM)),
        )
    assert not (tmp_path / "out").exists()


def test_a_trace_of_an_earlier_result_does_not_stay(tmp_path: Path) -> None:
    simulate(STORM, tmp_path, intervals=1, extras=Extras(trace=trace_of(STORM)))
    assert (tmp_path / "trace_ports.csv").exists()
    simulate(STORM, tmp_path, intervals=1, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    scenario = load_scenario("lossy-incast")  # marks and cuts rates at once
    for kind in ("csv", "parquet"):
        trace = trace_of(scenario, what="queue,rate,pause,rp", file_format=kind)
        simulate(scenario, tmp_path / kind, intervals=2, extras=Extras(trace=trace))
    for name in ("trace_ports", "trace_flows", "trace_rp"):
        table = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet").to_pydict()
        expected = rows(tmp_path / "csv" / f"{name}.csv")
        assert list(table) == list(expected[0])
        for column, values in table.items():
            words = isinstance(values[0], str)
            assert values == [r[column] if words else float(r[column]) for r in expected]


def test_parquet_without_an_event_is_a_table_without_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    quiet = STORM.model_copy(update={"workloads": STORM.workloads[:0]})
    trace = trace_of(quiet, what="rp", file_format="parquet")
    simulate(quiet, tmp_path, intervals=1, extras=Extras(trace=trace))
    table = parquet.read_table(tmp_path / "trace_rp.parquet").to_pydict()
    assert "event" in table
    assert not any(table.values())


def test_picture(tmp_path: Path) -> None:
    for what in ("queue,rate,pause", "pause", "rate"):
        simulate(
            STORM,
            tmp_path,
            intervals=1,
            force=True,
            extras=Extras(trace=trace_of(STORM, what=what)),
        )
        picture = (tmp_path / "trace.svg").read_bytes()
        assert picture.startswith(b"<svg")
    simulate(
        STORM, tmp_path, intervals=1, force=True, extras=Extras(trace=trace_of(STORM, what="rate"))
    )
    assert (tmp_path / "trace.svg").read_bytes() == picture


def test_bins_keep_means_and_peaks_in_bounded_memory() -> None:
    binned = Binned(2, limit=4)
    values = np.arange(1, 38, dtype=np.float64)
    for v in values:
        binned.add(np.array([v, np.nan if v <= 16 else 1.0]))
    ends, mean, peak = binned.table()
    assert binned.width == 8
    assert ends.tolist() == [8, 16, 24, 32, 37]
    assert mean[:, 0].tolist() == [4.5, 12.5, 20.5, 28.5, 35.0]
    assert peak[:, 0].tolist() == [8, 16, 24, 32, 37]
    assert np.isnan(mean[:2, 1]).all()
    assert mean[2:, 1].tolist() == [1, 1, 1]
    assert Binned(3).table()[1].shape == (0, 3)


def test_command(tmp_path: Path) -> None:
    base = ("simulate", "--scenario", "mini-storm", "--intervals", 1, "--out", tmp_path / "out")
    done = called(*base, "--every", "10us")
    assert done.returncode == 2
    assert "need --trace" in done.stderr
    done = called(*base, "--trace", "queue", "--every", "100us", "--trace-ports", "16")
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "out" / "trace_ports.csv")) == 10 * 10


def test_events_of_one_cnp_by_hand(tmp_path: Path) -> None:
    """One CNP: the cut takes 1023/2048 of the rate, the timer halves the way back, twice."""
    scenario = Scenario.model_validate(
        {
            "name": "two-to-one",
            "topology": {"kind": "single-switch", "hosts": 3},
            "workloads": [{"kind": "incast", "bytes": 12_000_000, "dst": 0, "hosts": [1, 2],
                           "rounds": 1}],
        }
    )  # fmt: skip
    setting = parse_assignments(
        [
            *("np_min_time_between_cnps=4095", "rp_dce_tcp_rtt=10000", "rp_gd=11"),
            *("rp_initial_alpha_value=1023", "rp_clamp_tgt_rate=0", "rp_min_dec_fac=50"),
            *("rp_rate_reduce_monitor_period=4", "rp_time_reset=300", "rp_byte_reset=0"),
            *("rp_rate_to_set_on_first_cnp=0", "rp_max_rate=0"),
        ],
        scenario.initial_setting(),
        scenario.line_rate_bps,
    )
    trace = trace_of(scenario, what="rp")
    summary = simulate(scenario, tmp_path, setting=setting, intervals=1, extras=Extras(trace=trace))
    table = rows(tmp_path / "trace_rp.csv")
    line = 100_000_000_000
    cut = int(line * (1 - 1023 / 2048))  # 50048828125
    first = (cut + line + 1) // 2
    steps = [("cnp", 0, line, 0), ("cut", 4000, cut, 0), ("increase", 304_000, first, 1),
             ("increase", 604_000, (first + line + 1) // 2, 2)]  # fmt: skip
    for src in ("1", "2"):
        mine = [r for r in table if r["src"] == src]
        start = float(mine[0]["time_ns"])
        assert start > 20_000  # two hops there, two back
        told = [
            (r["event"], float(r["time_ns"]) - start, float(r["rate"]), float(r["stage"]))
            for r in mine[: len(steps)]
        ]
        assert told == steps
        assert {(r["dst"], r["scheme"], r["target"], r["alpha"]) for r in mine} == {
            ("0", "dcqcn", str(float(line)), "1023.0")
        }
    events = [r["event"] for r in table]
    assert summary["rate_cuts"] == events.count("cut") == 2
    assert summary["rate_increases"] == events.count("increase") >= 4
    assert summary["cnps"] == events.count("cnp") == 2
    assert not (tmp_path / "trace_ports.csv").exists()
    assert not (tmp_path / "trace.svg").exists()


def test_events_beside_series_change_nothing(tmp_path: Path) -> None:
    scenario = load_scenario("lossy-incast")
    plain = simulate(scenario, tmp_path / "plain", intervals=3, seed=4)
    trace = trace_of(scenario, what="queue,rp")
    simulate(scenario, tmp_path / "traced", intervals=3, seed=4, extras=Extras(trace=trace))
    for file in SAME:
        assert (tmp_path / "plain" / file).read_bytes() == (tmp_path / "traced" / file).read_bytes()
    events = [r["event"] for r in rows(tmp_path / "traced" / "trace_rp.csv")]
    assert events.count("cut") == plain["rate_cuts"] > 0
    assert events.count("increase") == plain["rate_increases"] > 0
    assert 0 < events.count("cnp") <= plain["cnps"]
    assert (tmp_path / "traced" / "trace_ports.csv").exists()


def test_a_backend_without_events_is_refused(tmp_path: Path) -> None:
    trace = trace_of(STORM, what="rp")
    with pytest.raises(ConfigError, match="--trace rp: FakeBackend keeps no events"):
        simulate(STORM, tmp_path, intervals=1, backend="fake", extras=Extras(trace=trace))
