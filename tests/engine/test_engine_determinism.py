"""The same seed gives the same bytes, however time is cut up; settings act when they should."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pytest
from engine_worlds import (
    ENGINES,
    MS,
    NO_MARKS,
    US,
    add_report,
    apply,
    expert,
    flow_list,
    leaf_spine,
    one_switch,
    start,
)

from dcqcn_gym._core import Simulation
from dcqcn_gym.core.knobs import ECN_KNOBS, NIC_KNOBS, default_setting

CDF = "cdf 0 500:0.2 2000:0.5 40000:0.8 1000000:1"
HOSTS = "0,1,2,3,4,5,6,7"
MIXED = [
    CDF,
    f"workload poisson cdf=0 hosts={HOSTS} dsts={HOSTS} mean_gap_ps=60000000",
    "workload alltoall hosts=0,3,5 bytes=150000 off_ps=100000000",
    "workload incast hosts=1,2,4,6 dst=7 bytes=80000 off_ps=50000000",
    f"workload permutation hosts={HOSTS} bytes=50000 off_ps=300000000 priority=4",
]
END = 6 * MS


def mixed(extra: Iterable[str] = ()) -> str:
    return leaf_spine(2, 4, 2, [*MIXED, *extra], buffer=3_000_000)


def busy(seed: int, engine: str, text: str | None = None) -> Simulation:
    return start(text or mixed(), seed, engine, kmin=20e3, kmax=200e3, np_min_time_between_cnps=0)


def run(sim: Simulation, stops: Iterable[int], every: int = MS) -> tuple[str, dict[str, int]]:
    """Advance to every stop, report at multiples of `every`; hash of all reports, and totals."""
    digest = hashlib.sha256()
    for stop in sorted({*stops, *range(every, END + 1, every)}):
        sim.advance(stop)
        if stop % every == 0:
            add_report(digest, sim.report())
    return digest.hexdigest(), sim.totals()


def test_same_seed_same_bytes_and_other_seeds_differ() -> None:
    first = run(busy(1, "window"), [])
    assert first == run(busy(1, "window"), [])
    assert first[0] != run(busy(2, "window"), [])[0]
    assert first[1]["marks"] > 100
    assert first[1]["pauses"] > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_number_of_advance_calls_does_not_matter(engine: str) -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    whole = run(busy(3, engine), [])
    assert whole == run(busy(3, engine), range(1, END, 7_777_777))
    assert whole == run(busy(3, engine), rng.integers(1, END, 500).tolist())


def test_reports_do_not_change_what_happens() -> None:
    flows = []
    for every in (MS, 137 * US):
        sim = busy(4, "window")
        parts = []
        for stop in [*range(every, END, every), END]:
            sim.advance(stop)
            parts.append(sim.report()["finished"])
        columns = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        flows.append((columns, sim.totals()))
    (a, totals_a), (b, totals_b) = flows
    assert totals_a == totals_b
    assert all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("seed", range(3))
def test_both_engines_agree(seed: int) -> None:
    assert run(busy(seed, "window"), []) == run(busy(seed, "event"), [])


@pytest.mark.parametrize("engine", ENGINES)
def test_applying_the_same_setting_again_changes_nothing(engine: str) -> None:
    once, often = busy(5, engine), busy(5, engine)
    changes = {"kmin": 20e3, "kmax": 200e3, "np_min_time_between_cnps": 0.0}
    for stop in range(500 * US, END, 500 * US):
        once.advance(stop)
        often.advance(stop)
        apply(often, default_setting(), changes)
    assert once.report()["finished"]["fct_ps"].tolist() == (
        often.report()["finished"]["fct_ps"].tolist()
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_dispatch_delay(engine: str) -> None:
    """A setting with a dispatch delay acts as one that is applied that much later."""
    late = "transport qp=flow dispatch_delay_ps=300000000"
    results = []
    for text, apply_at in ((mixed(), 1300 * US), (mixed([late]), 1000 * US)):
        # the first setting needs 0.3 ms as well, so let both start from marks off at 0.3 ms
        sim = Simulation(text, 6, engine)
        apply(sim, default_setting(), NO_MARKS)
        sim.advance(apply_at)
        apply(sim, expert(), {"kmin": 10e3, "kmax": 50e3, "rp_rate_reduce_monitor_period": 4e-6})
        sim.advance(4 * MS)
        results.append(sim.report())
    # until 0.3 ms the delayed run has the built-in default, whose thresholds no queue reaches here
    early = [r["finished"]["fct_ps"][:20].tolist() for r in results]
    assert early[0] == early[1]
    assert results[0]["marks"] > 0
    assert results[0]["marks"] == results[1]["marks"]
    assert results[0]["delivered_bytes"] == results[1]["delivered_bytes"]


@pytest.mark.parametrize("engine", ENGINES)
def test_settings_change_in_mid_run(engine: str) -> None:
    # marking off: a long queue and no CNP; with marking on, marks come from that instant on
    rows = [(h, 4, 5_000_000, 0) for h in range(4)]
    sim = start(one_switch(5, [flow_list(rows)]), engine=engine, **NO_MARKS)
    sim.advance(200 * US)
    assert sim.report()["marks"] == 0
    apply(sim, default_setting(), {"kmin": 5e3, "kmax": 5e3})
    sim.advance(201 * US)
    after = sim.report()
    # every packet that leaves the switch within the microsecond: 1 us / 84.96 ns
    assert after["marks"] in (11, 12)
    # a minimum rate acts at once: 4 x 25 Gb/s keep the port full
    apply(sim, default_setting(), {"rp_min_rate": 25e9, "kmin": 5e3, "kmax": 5e3})
    sim.advance(400 * US)
    sim.report()
    sim.advance(600 * US)
    tx = sim.report()["port_tx_bytes"][-1]
    assert tx * 8 / 200e-6 == pytest.approx(100e9, rel=0.01)


@pytest.mark.parametrize("engine", ENGINES)
def test_settings_of_single_devices(engine: str) -> None:
    # only host 0 may go below 40 Gb/s: it yields to host 1
    rows = [(h, 2, 5_000_000, 0) for h in range(2)]
    sim = start(one_switch(3, [flow_list(rows)]), engine=engine)
    setting = default_setting().replace(kmin=20, kmax=100)
    nic = np.tile(np.array([setting[k] for k in NIC_KNOBS]), (3, 1))
    nic[1, NIC_KNOBS.index("rp_min_rate")] = 60e3
    ecn = np.tile(np.array([setting[k] for k in ECN_KNOBS]), (sim.n_ports, 1))
    sim.apply(nic, ecn)
    sim.advance(600 * US)
    sent = sim.report()["host_tx_bytes"]
    assert sent[1] >= 60e9 * 600e-6 / 8 * 0.99
    assert sent[0] < 0.7 * sent[1]


def test_bad_settings_are_refused() -> None:
    sim = start(one_switch(2, [flow_list([(0, 1, 1000, 0)])]))
    nic, ecn = np.ones((2, 17)), np.ones((sim.n_ports, 3))
    with pytest.raises(ValueError, match="expected 2 NIC rows of 17 knobs, got 1 of 17"):
        sim.apply(nic[:1], ecn)
    with pytest.raises(ValueError, match="expected 2 NIC rows of 17 knobs, got 2 of 16"):
        sim.apply(np.ones((2, 16)), ecn)
    bad = nic.copy()
    bad[1, 2] = np.nan
    with pytest.raises(ValueError, match="rp_time_reset"):
        sim.apply(bad, ecn)
    with pytest.raises(ValueError, match="kmin <= kmax"):
        sim.apply(nic, np.tile([2.0, 1.0, 0.5], (sim.n_ports, 1)))
    sim.advance(10)
    with pytest.raises(ValueError, match="backwards"):
        sim.advance(9)
