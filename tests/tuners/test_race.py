"""Race: harm ends a block, prior and blocks choose, what leads is held and watched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from outcomes import outcome

from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import IDLE_TERMS
from dcqcn_gym.tuners import Outcome, TunerContext
from dcqcn_gym.tuners.portfolio import portfolio
from dcqcn_gym.tuners.race import RaceTuner, waiting

FACTS = FabricFacts(25.0, 16, 15, 40.0, 2_636_018, 4.0, "dcqcn", "nic", True)
DEFAULT = default_setting(25e9)
SETTINGS = {one.name: one.setting for one in portfolio(FACTS, DEFAULT)}
NAMES = {setting: name for name, setting in SETTINGS.items()}
LADDER = ["rule", "rival", "floor", "slow"]


def seen(
    flows: int = 20, delay: float = 1.5, pause: float = 0.0, sent: int = 1_000_000, pairs: int = 4
) -> IntervalReport:
    """Return a report in which so many flows are under way, pairs wait and devices are paused."""
    base = outcome(DEFAULT, 0.5, FlowSizeDistribution()).report
    dst = np.arange(pairs)
    return replace(
        base,
        port_pause_ps=np.full(base.port_node.size, pause * base.duration_ps), active_flows=flows,
        rtt_src=dst + 1, rtt_dst=dst, rtt_count=np.ones(pairs, dtype=np.int64),
        rtt_sum_ps=np.full(pairs, round(40e6 * delay)),
        rtt_base_ps=np.full(pairs, 40_000_000), delivered_bytes=sent,
    )  # fmt: skip


Shown = Callable[[str], IntervalReport]


class Network:
    """Tells a race what each setting does, and notes which was in force."""

    def __init__(self, facts: FabricFacts | None = FACTS, intervals: int = 100) -> None:
        self.tuner = RaceTuner()
        space = KnobSpace(line_rate_bps=25e9)
        self.tuner.start(TunerContext(space, DEFAULT, 1, intervals, fabric=facts))
        self.force: Setting = DEFAULT

    def run(self, n: int, shown: Shown) -> Sequence[str]:
        """Return what was in force in each of ``n`` intervals."""
        names = []
        for _ in range(n):
            self.force = self.tuner.ask() or self.force
            names.append(NAMES[self.force])
            report = shown(names[-1])
            self.tuner.tell(Outcome(self.force, 0.5, IDLE_TERMS, np.zeros(0, np.float32), report))
        return names


def test_the_default_is_first_and_the_rule_is_held_where_nothing_hurts() -> None:
    net = Network()
    names = net.run(60, lambda name: seen(20 if name == "default" else 10))
    assert names[:4] == ["default"] * 4
    assert names[4:12] == ["rule"] * 8  # the order turns around every other round
    assert set(names[16:]) == {"rule"}
    assert net.tuner.recommend() == SETTINGS["rule"]
    assert "rule waits" in net.tuner.decisions[-1]


def test_what_pauses_is_dropped_within_its_block_and_the_next_races() -> None:
    net = Network()
    names = net.run(60, lambda name: seen(10, pause=0.06 if name == "rule" else 0.01))
    assert names.count("rule") == 2  # one interval that is not judged, one that is
    assert "rule is dropped: +5.0 points of pauses" in net.tuner.decisions[1]
    assert net.tuner.recommend() == SETTINGS["rival"]


def test_half_a_point_of_pause_drops_at_the_end_of_a_block() -> None:
    net = Network()
    names = net.run(60, lambda name: seen(10, pause=0.007 if name == "rule" else 0.001))
    assert names.count("rule") == 4


def test_what_starves_is_dropped_though_less_waits() -> None:
    net = Network()
    net.run(60, lambda name: seen(2, sent=1_000_000 if name == "default" else 300_000))
    assert net.tuner.recommend() == DEFAULT
    assert all(f"{name} is dropped: 30 % of its bytes" in " ".join(net.tuner.decisions)
               for name in LADDER)  # fmt: skip


def test_the_default_is_held_where_everything_else_waits_longer() -> None:
    net = Network()
    names = net.run(60, lambda name: seen(10 if name == "default" else 60, 4.0))
    assert set(names[20:]) == {"default"}
    assert "the default waits least" in net.tuner.decisions[-1]


def test_quicker_rounds_that_send_more_are_no_harm() -> None:
    """Of a closed loop: a third more under way, but twice as much arrives."""
    net = Network()
    net.run(60, lambda name: seen(20) if name == "default" else seen(27, sent=2_000_000))
    assert net.tuner.recommend() == SETTINGS["rule"]


def test_a_shift_races_again_while_the_run_can_pay() -> None:
    few, many = seen(10), seen(10, pairs=16)
    net = Network(intervals=400)
    net.run(30, lambda name: few)
    assert net.tuner.state()["phase"] == "hold"
    net.run(12, lambda name: many)
    assert "the traffic has shifted: 16 pairs of hosts talk" in " ".join(net.tuner.decisions)
    late = Network(intervals=50)
    late.run(30, lambda name: few)
    late.run(20, lambda name: many)
    assert "shifted" not in " ".join(late.tuner.decisions)


def test_an_alarm_races_what_is_held_against_the_default() -> None:
    net = Network()
    net.run(30, lambda name: seen(10))
    names = net.run(40, lambda name: seen(10, pause=0.05 if name == "rule" else 0.0))
    assert "alarm: devices are paused" in " ".join(net.tuner.decisions)
    assert set(names[12:]) == {"default"}
    assert net.tuner.recommend() == DEFAULT


def test_without_facts_there_is_nothing_to_race() -> None:
    net = Network(None)
    assert set(net.run(30, lambda name: seen())) == {"default"}
    assert "nothing else to try" in net.tuner.decisions[-1]


def test_what_is_not_known_decides_nothing_and_harm_still_does() -> None:
    unknown = frozenset({"active_flows"})
    assert math.isnan(waiting(replace(seen(), unknown=unknown)))
    net = Network()
    net.run(60, lambda name: replace(seen(), unknown=unknown))
    assert net.tuner.recommend() == SETTINGS["rule"]
    net = Network()
    net.run(60, lambda name: replace(seen(pause=0.0 if name == "default" else 0.03),
                                     unknown=unknown))  # fmt: skip
    assert net.tuner.recommend() == DEFAULT


def test_a_decision_costs_less_than_a_millisecond() -> None:
    net = Network(intervals=1000)
    report = seen(pairs=240)
    began = time.thread_time()
    net.run(1000, lambda name: report)
    assert time.thread_time() - began < 1.0
