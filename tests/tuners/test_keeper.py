"""The rule follows the fabric's facts; the keeper fights duels and goes back where it hurts."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from outcomes import outcome

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.interval import REPORT_FIELDS, FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import Setting, default_setting, knob_table
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import IDLE_TERMS
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.tuners import Outcome, TunerContext
from dcqcn_gym.tuners.congestion_signals import round_intervals, signs_of
from dcqcn_gym.tuners.keeper import KeeperTuner
from dcqcn_gym.tuners.rule import advise, rule_file

RATE = 25e9
FACTS = FabricFacts(25.0, 16, 15, 40.0, 2_636_018, 4.0, "dcqcn", "nic", True)
DEFAULT = default_setting(RATE)
TERMS = rule_file().terms


def floor(facts: FabricFacts) -> float:
    default = default_setting(facts.line_rate_gbps * 1e9)
    return advise(facts, default).setting["rp_min_rate"]


def test_facts_are_those_of_the_fabric() -> None:
    assert facts_of(load_scenario("mini-fb-hadoop")) == FACTS


@pytest.mark.parametrize(("hosts", "gbps"), [(8, 10.0), (17, 25.0), (64, 100.0), (128, 400.0)])
def test_all_hosts_that_meet_fit_at_the_floor(hosts: int, gbps: float) -> None:
    facts = replace(FACTS, hosts=hosts, meeting_hosts=hosts - 1, line_rate_gbps=gbps)
    assert 1 < floor(facts) * facts.meeting_hosts <= 0.9 * gbps * 1e3


def test_the_floor_falls_faster_than_hosts_that_meet_rise() -> None:
    few, usual, many = (
        floor(replace(FACTS, hosts=n + 1, meeting_hosts=n, line_rate_gbps=100.0))
        for n in (12, 16, 64)
    )
    assert few == usual
    assert many == pytest.approx(usual / 4**TERMS.fan_in_power, rel=0.01)


def test_thresholds_follow_round_trip_and_buffer() -> None:
    near, far, shallow = (
        advise(replace(FACTS, **changes), DEFAULT).setting["kmax"]
        for changes in ({"base_rtt_us": 10.0}, {"base_rtt_us": 90.0}, {"shared_bytes": 100_000})
    )
    assert near < far
    assert shallow == round(TERMS.buffer_share * 100)


def test_every_knob_that_is_turned_has_its_reason() -> None:
    found = advise(FACTS, DEFAULT)
    before, after = DEFAULT, found.setting
    assert {name for name in after if after[name] != before[name]} == set(found.reasons)
    assert found.untried == ()
    found.setting.check(RATE)


@pytest.mark.parametrize(
    "changes",
    [{"hosts": 200, "meeting_hosts": 199}, {"base_rtt_us": 500.0}, {"oversubscription": 40.0}],
)
def test_unknown_territory_says_so_and_turns_the_floor_alone(changes: dict[str, float]) -> None:
    facts = replace(FACTS, **changes)  # type: ignore[arg-type]
    found = advise(facts, DEFAULT)
    assert set(found.reasons) == {"rp_min_rate"}
    assert len(found.untried) == 1
    assert floor(facts) <= TERMS.floor_share / 2 * 25e3


def test_another_scheme_and_no_facts_leave_the_default() -> None:
    plus = default_setting(RATE, knob_table("dcqcn-plus"))
    assert advise(replace(FACTS, scheme="dcqcn-plus"), plus).setting == plus
    assert advise(replace(FACTS, reaction_point="paper"), DEFAULT).setting == DEFAULT
    assert advise(None, DEFAULT).setting == DEFAULT


def test_on_mixed_speeds_the_slowest_receiver_decides() -> None:
    """16 hosts, 8 at 25 and 8 at 100 Gb/s: every figure as if all were at 25."""
    mixed = replace(FACTS, line_rate_gbps=100.0, slowest_gbps=25.0)
    found = advise(mixed, default_setting(100e9))
    slow = advise(FACTS, DEFAULT).setting
    assert {n: found.setting[n] for n in ("rp_min_rate", "kmin", "kmax")} == {
        n: slow[n] for n in ("rp_min_rate", "kmin", "kmax")
    }
    assert "fill 33 % of the slowest port of 25000 Mb/s" in found.reasons["rp_min_rate"]
    assert "8 % of the slowest port" in found.reasons["rp_ai_rate"]
    assert "ports of 25 Gb/s, the slowest" in found.reasons["kmax"]


def test_facts_name_the_slowest_host_only_where_hosts_differ() -> None:
    topology = {
        "kind": "leaf-spine", "tors": 1, "hosts_per_tor": 2, "spines": 1, "host_gbps": 25,
        "uplink_gbps": 100, "racks": [{"tors": 1, "hosts_per_tor": 2, "host_gbps": 100}],
    }  # fmt: skip
    table = {
        "intervals": 1,
        "topology": topology,
        "workloads": [{"kind": "permutation", "bytes": 1}],
    }
    facts = facts_of(validate(table, Scenario, source="mixed"))
    assert (facts.line_rate_gbps, facts.slowest_gbps, facts.receiver_gbps) == (100.0, 25.0, 25.0)


SUITES = ("dev-v1", "dev-v2", "jobs-v1", "learn-v1", "smoke", "stress-v1", "test-v2")
BEFORE = (135, "7f9d208ce109e8cc0e282a25e4fc88ebf3715cd40aa8ff96aae2fdfdbed25ecb")
"""Scenarios of these suites, and the digest of their advice before mixed speeds were known."""


def test_fabrics_of_one_speed_have_the_setting_that_they_had() -> None:
    """What is kept of `advise` and `keeper` on suites rests on it."""
    told, taken = hashlib.sha256(), 0
    for suite in SUITES:
        for scenario in load_suite(suite).scenarios.values():
            facts = facts_of(scenario)
            assert facts.slowest_gbps is None
            found = advise(facts, scenario.default_setting())
            said = [scenario.name, dict(found.setting), dict(found.reasons), found.untried]
            told.update(json.dumps(said).encode())
            taken += 1
    assert (taken, told.hexdigest()) == BEFORE


def seen(pause: float, delay: float, pairs: int = 4, sent: int = 0) -> IntervalReport:
    """Return a report in which every device is paused so long and every pair waits so long."""
    base = outcome(DEFAULT, 0.5, FlowSizeDistribution()).report
    count = np.ones(pairs, dtype=np.int64)
    dst = np.arange(pairs)
    trip = np.full(pairs, round(40e6 * delay), dtype=np.int64)
    return replace(
        base,
        port_pause_ps=np.full(base.port_node.size, pause * base.duration_ps),
        rtt_src=dst + 1, rtt_dst=dst, rtt_count=count, rtt_sum_ps=trip,
        rtt_base_ps=np.full(pairs, 40_000_000, dtype=np.int64), delivered_bytes=sent,
    )  # fmt: skip


def test_signs_are_what_hardware_shows() -> None:
    signs = signs_of(seen(0.25, 3.0))
    assert (signs.pause, signs.delay, signs.queue, signs.busy) == (0.25, 3.0, 3.0, 4.0)
    blind = replace(seen(0.25, 3.0), unknown=frozenset({"port_pause_ps"}))
    assert np.isnan(signs_of(blind).pause)


class Network:
    """Tells a keeper what each side's setting does, and notes what was in force."""

    def __init__(self, facts: FabricFacts = FACTS) -> None:
        self.tuner = KeeperTuner()
        self.tuner.start(TunerContext(KnobSpace(line_rate_bps=RATE), DEFAULT, 1, 100, fabric=facts))
        self.rule = advise(facts, DEFAULT).setting
        self.force: Setting = DEFAULT
        self.told, self.stuck = 0, False

    def run(self, n: int, rule: IntervalReport, default: IntervalReport) -> Sequence[bool]:
        """Return for each of ``n`` intervals whether the rule's setting was in force."""
        ruled = []
        for _ in range(n):
            self.force = self.tuner.ask() or self.force
            ruled.append(self.force == self.rule)
            shown = rule if ruled[-1] else default
            if not self.stuck:  # no two intervals are alike to the last digit
                self.told += 1
                more = 1 + 1e-6 * self.told
                shown = replace(
                    shown, port_pause_ps=shown.port_pause_ps * more,
                    rtt_sum_ps=np.round(shown.rtt_sum_ps * more).astype(np.int64),
                )  # fmt: skip
            self.tuner.tell(Outcome(self.force, 0.5, IDLE_TERMS, np.zeros(0, np.float32), shown))
        return ruled


QUIET = seen(0.0, 1.2)


def test_it_holds_the_rule_from_the_first_interval_where_nothing_hurts() -> None:
    net = Network()
    assert all(net.run(60, QUIET, QUIET))
    assert net.tuner.recommend() == net.rule
    assert len(net.tuner.decisions) == 1


def test_pauses_end_within_three_intervals_and_the_default_is_held() -> None:
    net = Network()
    ruled = net.run(40, seen(0.08, 1.5), seen(0.02, 1.2))
    assert all(ruled[:3])
    assert not any(ruled[3:])  # what the rule showed before is the other side of the duel
    assert net.tuner.recommend() == DEFAULT
    assert "+6.0 points" in net.tuner.decisions[-1]
    assert "the default is held" in net.tuner.decisions[-1]


def test_pauses_that_the_default_has_too_are_no_reason_to_go_back() -> None:
    net = Network()
    ruled = net.run(40, seen(0.06, 1.2), seen(0.06, 1.2))
    assert ruled.count(False) == 3  # one block of the default
    assert net.tuner.recommend() == net.rule
    assert net.tuner.state()["duels"] == 1  # and what was fought for is no alarm again


def test_two_pairs_decide_what_one_does_not_show_clearly() -> None:
    net = Network()
    ruled = net.run(40, seen(0.034, 1.5), seen(0.025, 1.2))
    assert sum(ruled) - ruled.index(False) == 2 * 3
    assert net.tuner.recommend() == DEFAULT


ROUND = (9_000, 9_000, 500, 400)


def test_blocks_of_a_duel_are_whole_rounds() -> None:
    assert round_intervals(ROUND * 4) == 4
    assert round_intervals(ROUND) == 1  # too few to tell
    assert round_intervals(np.random.default_rng(1).random(40).tolist()) == 1
    net = Network()
    for sent in ROUND * 4:
        net.run(1, seen(0.0, 1.2, sent=sent), QUIET)
    ruled = net.run(30, seen(0.08, 1.5), seen(0.075, 1.2))
    assert ruled.count(False) == 1 + len(ROUND)


def behind_an_incast(delay: float, small: bool) -> IntervalReport:
    """Return a report in which all wait for one receiver, among them small messages or not."""
    report = seen(0.0, delay)
    bins = np.zeros(16)
    bins[2 if small else 12] = 40.0
    fsd = FlowSizeDistribution(mice=1.0, bins=bins)
    return replace(report, rtt_dst=np.zeros_like(report.rtt_dst), fsd=fsd)


def test_small_messages_behind_an_incast_are_seen_by_the_receivers_round_trips() -> None:
    long, short = behind_an_incast(60.0, small=True), behind_an_incast(6.0, small=True)
    assert np.isnan(signs_of(long).delay)
    net = Network()
    net.run(40, long, short)
    assert net.tuner.recommend() == DEFAULT
    assert "10.00 times that to an incast" in net.tuner.decisions[-1]


def test_the_queue_of_an_incast_alone_is_no_alarm() -> None:
    long, short = behind_an_incast(60.0, small=False), behind_an_incast(6.0, small=False)
    net = Network()
    assert all(net.run(40, long, short))


WIDE = replace(FACTS, hosts=64, meeting_hosts=63)


def queue(us: float) -> IntervalReport:
    """Return a quiet report with small messages, in which a port's queue was so long."""
    report = behind_an_incast(1.2, small=True)
    rates = np.full(report.port_node.size, RATE)
    return replace(
        report, port_rate_bps=rates, port_max_queue_bytes=(rates * us / 8e6).astype(np.int64)
    )


@pytest.mark.parametrize("facts", [WIDE, replace(WIDE, shared_bytes=10**9)])
def test_where_very_many_can_meet_the_default_is_looked_at_first(facts: FabricFacts) -> None:
    net = Network(facts)
    ruled = net.run(30, QUIET, QUIET)
    assert ruled[:10] == [False] * 9 + [True]
    assert net.tuner.recommend() == net.rule
    for crowded, said in ((seen(0.1, 1.2), "paused for 10.0 %"), (queue(300.0), "300 us long")):
        net = Network(facts)
        assert not any(net.run(15, QUIET, crowded))
        assert net.tuner.recommend() == DEFAULT
        assert said in net.tuner.decisions[-1]


def test_a_queue_that_small_messages_wait_in_is_an_alarm_and_decides() -> None:
    net = Network()
    ruled = net.run(40, queue(900.0), queue(80.0))
    assert ruled.index(False) == 5
    assert net.tuner.recommend() == DEFAULT
    assert "11.25 times the longest queue" in net.tuner.decisions[-1]
    net = Network()
    assert all(net.run(40, queue(60.0), queue(2.0)))  # nobody minds a short one


def test_a_block_of_the_rule_ends_as_soon_as_it_hurts_beyond_doubt() -> None:
    net = Network(WIDE)
    ruled = net.run(25, seen(0.3, 1.2), QUIET)
    assert sum(ruled) == 2  # the first is not judged
    assert net.tuner.recommend() == DEFAULT


def test_after_each_duel_that_it_loses_it_waits_twice_as_long() -> None:
    net = Network(WIDE)
    ruled = net.run(300, seen(0.3, 1.2), seen(0.1, 1.2))  # the default is crowded
    assert not any(ruled)
    begins: list[int] = []
    for i in range(300):
        if any(net.run(1, seen(0.3, 1.2), QUIET)) and (not begins or i > begins[-1] + 4):
            begins.append(i)
    waits = np.diff(begins)
    assert len(waits) >= 2
    assert all(later >= 1.8 * sooner for sooner, later in itertools.pairwise(waits))


def test_when_nothing_is_paused_any_more_the_rule_gets_its_chance() -> None:
    net = Network(WIDE)
    net.run(10, QUIET, seen(0.1, 1.2))
    assert net.tuner.recommend() == DEFAULT
    net.run(40, QUIET, QUIET)
    assert net.tuner.recommend() == net.rule


def test_a_single_interval_is_no_alarm() -> None:
    net = Network()
    net.run(10, QUIET, QUIET)
    assert all(net.run(1, seen(0.9, 90.0), QUIET))
    assert all(net.run(20, QUIET, QUIET))


def test_long_round_trips_are_an_alarm_of_their_own() -> None:
    net = Network()
    net.run(40, seen(0.0, 20.0), seen(0.0, 5.0))
    assert net.tuner.recommend() == DEFAULT


def test_after_a_shift_the_rule_gets_another_chance() -> None:
    net = Network()
    net.run(20, seen(0.08, 1.5), seen(0.02, 1.2))
    assert net.tuner.recommend() == DEFAULT
    net.run(40, seen(0.0, 1.2, pairs=12), seen(0.0, 1.2, pairs=12))
    assert net.tuner.recommend() == net.rule
    assert any("has shifted" in said for said in net.tuner.decisions)


def test_without_sensors_the_default_is_held_until_they_are_back() -> None:
    trips = {name for name in REPORT_FIELDS if name.startswith("rtt_")}
    blind = replace(seen(0.5, 9.0, sent=9_000), unknown=frozenset({"port_pause_ps", *trips}))
    net = Network()
    ruled = net.run(30, blind, blind)
    assert ruled == [True] * 8 + [False] * 22
    assert "are unknown for 8 intervals" in net.tuner.decisions[-1]
    net.run(40, QUIET, QUIET)
    assert net.tuner.recommend() == net.rule
    assert any("sensors are back" in said for said in net.tuner.decisions)


def test_a_sensor_that_shows_the_same_trouble_to_the_last_digit_is_not_believed() -> None:
    net = Network()
    net.stuck = True
    net.run(40, seen(0.06, 1.2), seen(0.06, 1.2))
    assert net.tuner.recommend() == DEFAULT
    assert "a sensor stands still for 8 intervals" in net.tuner.decisions[-1]
