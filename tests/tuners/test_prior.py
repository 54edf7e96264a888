"""Prior expects what was measured where it looked alike; it looks, picks, holds and watches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from outcomes import outcome

from dcqcn_gym.benchmarks.leaderboard.bank.portfolio import portfolio
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import IDLE_TERMS
from dcqcn_gym.extras.search.alike import (
    MOST_BYTES,
    alike,
    grown,
    of_facts,
    of_interval,
    of_intervals,
    save,
)
from dcqcn_gym.extras.search.prior import LOOK, candidates
from dcqcn_gym.testing.tuner_case import TunerCase
from dcqcn_gym.tuners import Outcome, TunerContext, make_tuner

RATE = 25e9
FACTS = FabricFacts(25.0, 16, 15, 40.0, 2_636_018, 4.0, "dcqcn", "nic", True)
DEFAULT = default_setting(RATE)
NAMES = ("rule", "slow", "careful")


@pytest.mark.parametrize("gbps", [25.0, 400.0])
@pytest.mark.parametrize("hosts", [8, 24, 200])
def test_candidates_are_those_of_the_portfolio(gbps: float, hosts: int) -> None:
    facts = replace(FACTS, line_rate_gbps=gbps, hosts=hosts, meeting_hosts=hosts - 1)
    default = default_setting(gbps * 1e9)
    named = {one.name: one.setting for one in portfolio(facts, default)}
    assert candidates(facts, default) == {name: named[name] for name in NAMES}


def shown(pause: float = 0.0, sent: float = 0.3, delay: float = 1.2) -> IntervalReport:
    """Return an interval in which each device paused and each host sent so much of its time."""
    base = outcome(DEFAULT, 0.5, FlowSizeDistribution(mice=1.0, bins=np.ones(16))).report
    dst, rates = np.arange(4), np.full(base.host_rate_bps.size, RATE)
    each = round(sent * RATE / 8e12 * base.duration_ps)
    return replace(
        base, host_rate_bps=rates, host_tx_bytes=np.full(rates.size, each), data_packets=1_000,
        delivered_bytes=each * rates.size,
        port_pause_ps=np.full(base.port_node.size, pause * base.duration_ps),
        rtt_src=dst + 1, rtt_dst=dst, rtt_count=np.ones(4, dtype=np.int64),
        rtt_sum_ps=np.full(4, round(40e6 * delay)), rtt_base_ps=np.full(4, 40_000_000),
    )  # fmt: skip


def numbers(report: IntervalReport) -> list[float]:
    return of_facts(FACTS) + of_intervals([of_interval(report)] * LOOK)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file by which `slow` gains where nothing is paused, and all harm where much is."""
    path = tmp_path_factory.mktemp("prior") / "prior.npz"
    calm, paused = numbers(shown()), numbers(shown(0.2))
    x = np.array([calm, paused] * 10) + np.linspace(0, 1e-3, 20)[:, None]
    gains = np.array([[0.1, 0.3, 0.2], [0.4, 0.4, 0.4]] * 10)
    harms = np.array([[0.0, 0.0, 0.0], [3.0, 3.0, 3.0]] * 10)
    save(grown(x, gains, harms, trees=20, leaf=4), path)
    return str(path)


def test_what_is_expected_is_what_was_measured_where_it_looked_alike(model: str) -> None:
    found = alike(model)
    for report, gain, harm in ((shown(), 0.3, 0.0), (shown(0.2), 0.4, 3.0)):
        weights = found.weights(numbers(report))
        assert weights.sum() == pytest.approx(1.0)
        assert (weights @ found.gains)[1] == pytest.approx(gain, abs=0.02)
        assert (weights @ found.harms)[1] == pytest.approx(harm, abs=0.5)


def test_the_same_seed_grows_the_same_trees() -> None:
    x = np.random.default_rng(3).random((40, 9))
    one, same, other = (grown(x, x[:, :2], x[:, 2:4], 3, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.threshold, same.threshold)
    assert not np.array_equal(one.threshold, other.threshold)


def test_the_shipped_file_is_small_and_knows_its_candidates() -> None:
    found = alike()
    assert (CONFIGS / "tuners" / "prior.npz").stat().st_size < MOST_BYTES / 8
    assert found.gains.shape[1] == len(NAMES)
    assert np.isfinite(found.gains).all()
    assert (found.harms >= 0).all()


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, gains=np.zeros(3))
    with pytest.raises(ConfigError, match="expected gains"):
        alike(str(path))


class Network:
    """Tells a prior what the default and what it picks do."""

    def __init__(self, file: str, facts: FabricFacts | None = FACTS, **options: object) -> None:
        self.tuner = make_tuner("prior", {"file": file, **options})
        space = KnobSpace(line_rate_bps=RATE)
        self.tuner.start(TunerContext(space, DEFAULT, 1, 100, fabric=facts))
        self.force: Setting = DEFAULT
        self.told = 0

    def run(self, n: int, ours: IntervalReport, theirs: IntervalReport) -> Sequence[bool]:
        """Return for each interval whether another setting than the default was in force."""
        found = []
        for _ in range(n):
            self.force = self.tuner.ask() or self.force  # type: ignore[assignment]
            found.append(self.force != DEFAULT)
            self.told += 1
            more = 1 + 1e-6 * self.told  # no two intervals are alike to the last digit
            report = ours if found[-1] else theirs
            trips = np.round(report.rtt_sum_ps * more).astype(np.int64)
            report = replace(report, port_pause_ps=report.port_pause_ps * more, rtt_sum_ps=trips)
            seen = Outcome(self.force, 0.5, IDLE_TERMS, np.zeros(0, np.float32), report)
            self.tuner.tell(seen)
        return found


def test_it_looks_at_the_default_then_holds_what_was_best(model: str) -> None:
    net = Network(model)
    assert net.tuner.recommend() == DEFAULT
    assert net.run(30, shown(), shown()) == [False] * LOOK + [True] * (30 - LOOK)
    assert net.tuner.recommend() == candidates(FACTS, DEFAULT)["slow"]
    assert "'slow' is held" in net.tuner.decisions[-1]


def test_where_harm_is_expected_the_default_stays(model: str) -> None:
    net = Network(model)
    assert not any(net.run(30, shown(0.2), shown(0.2)))
    assert "limits: the default is held" in net.tuner.decisions[-1]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (replace(FACTS, hosts=1024, meeting_hosts=1023), "no fabric like this was measured"),
        (replace(FACTS, scheme="timely"), "no setting was measured here"),
        (None, "no setting was measured here"),
    ],
)
def test_where_nothing_was_measured_the_default_stays(
    model: str, facts: FabricFacts | None, said: str
) -> None:
    net = Network(model, facts)
    assert not any(net.run(20, shown(), shown()))
    assert any(said in one for one in net.tuner.decisions)


def test_a_figure_that_is_unknown_leaves_the_default(model: str) -> None:
    net = Network(model)
    blind = replace(shown(), unknown=frozenset({"marks"}))
    assert not any(net.run(20, blind, blind))
    assert "marks is unknown" in net.tuner.decisions[-1]


def test_what_hurts_is_taken_back(model: str) -> None:
    net = Network(model)
    ruled = net.run(28, shown(0.1), shown())
    assert sum(ruled) <= 5
    assert net.tuner.recommend() == DEFAULT
    unwatched = Network(model, watch=False)
    assert sum(unwatched.run(40, shown(0.1), shown())) == 40 - LOOK


def test_pauses_count_by_what_was_sent_for_them(model: str) -> None:
    """A round that is twice as quick pauses twice as often: that is no harm."""
    net = Network(model)
    net.run(40, shown(0.008, sent=0.6), shown(0.004, sent=0.3))
    assert net.tuner.recommend() != DEFAULT
    same = Network(model)
    same.run(40, shown(0.04, sent=0.3), shown(0.004, sent=0.3))
    assert same.tuner.recommend() == DEFAULT


def test_after_a_shift_it_looks_again(model: str) -> None:
    net = Network(model)
    net.run(20, shown(0.2), shown(0.2))
    assert net.tuner.recommend() == DEFAULT
    wide = shown()
    dst = np.arange(12)
    wide = replace(
        wide, rtt_src=dst, rtt_dst=dst + 1, rtt_count=np.ones(12, dtype=np.int64),
        rtt_sum_ps=np.full(12, 48_000_000), rtt_base_ps=np.full(12, 40_000_000),
    )  # fmt: skip
    net.run(40, shown(), wide)
    assert any("has shifted" in said for said in net.tuner.decisions)


class TestPrior(TunerCase):
    tuner = "prior"
