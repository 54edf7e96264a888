"""The four answers, each by its rule, and what a guardrail is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_verdict import measured, runs

from dcqcn_gym.core.answer import answer, trade
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.traffic_check import Census, Coverage, Length, Problem
from dcqcn_gym.core.verdict import Measured, verdict


def with_times(of: list[Measured]) -> list[Measured]:
    """Return the runs with completion times: 10 µs for each byte class at ideal."""
    return [replace(m, flows=replace(m.flows, time_ps=m.flows.slowdown * 1e7)) for m in of]


BASE = with_times(runs(run=0, slow=(2.0, 12.0, 7.0)))


def said(**candidate: Any) -> Any:
    return answer({"default": BASE, "candidate": with_times(runs(**candidate))}, "default")


def test_deploy_says_times_beside_ratios() -> None:
    a = said(slow=(1.4, 2.5, 4.0))
    assert (a.action, a.setting, a.baseline) == ("deploy", "candidate", "default")
    assert "flows of 100 KB to 1 MB finish 4.8 times sooner at the tail (p99 12" in a.why
    assert "µs" in a.why
    assert "slowdowns are" not in a.title  # a geometric mean is no operator's number
    assert a.data()["gains"] == list(a.trade.gains)


def test_a_ratio_below_the_floor_is_no_harm() -> None:
    """Mice from 1.7 to 2.9 times ideal, seven times the tail of the others: deployed."""
    base = runs(run=0, slow=(1.7, 12.0, 7.0))
    fine, harm = (runs(slow=(x, 1.7, 2.3)) for x in (2.7, 4.0))
    assert answer({"yours": base, "candidate": fine}, "yours").action == "deploy"
    worse = answer({"yours": base, "candidate": harm}, "yours")
    assert (worse.action, worse.setting) == ("a choice", "candidate")
    assert "but flows below 100 KB finish 2.4 times later" in worse.why
    strict = Guardrails(slowdown_floor=1.0)
    assert answer({"yours": base, "candidate": fine}, "yours", strict).action == "a choice"
    lax = Guardrails(slowdown_floor=6.0)
    assert answer({"yours": base, "candidate": harm}, "yours", lax).action == "deploy"


def test_keep_where_nothing_is_better() -> None:
    a = said(slow=(2.0, 12.0, 7.0))
    assert (a.action, a.setting) == ("keep", "default")
    assert "within the guardrails" in a.why


def quiet(n: int, each: int) -> list[Measured]:
    found = [measured(s, slow=(1.0, 1.0, 1.0), pause=0.0, each=each) for s in range(n)]
    ones = [np.ones_like(m.flows.slowdown) for m in found]
    return [
        replace(m, flows=replace(m.flows, slowdown=one)) for m, one in zip(found, ones, strict=True)
    ]


@pytest.mark.parametrize("each", [1, 100])
def test_traffic_without_a_queue_cannot_tell(each: int) -> None:
    calm = quiet(3, each)
    a = answer({"default": calm, "candidate": calm}, "default")
    assert a.action == "cannot tell"
    assert "nothing queued" in a.why
    assert "busier window" in a.next_step
    marked = [replace(m, marks=1) for m in calm]
    assert answer({"default": calm, "candidate": marked}, "default").action != "cannot tell"


def test_a_capture_at_one_host_cannot_tell_whatever_it_shows() -> None:
    better = runs(slow=(1.4, 2.5, 4.0))
    a = answer(
        {"default": BASE, "candidate": better},
        "default",
        problem=Problem("all flows at h0", "every leaf"),
    )
    assert (a.action, a.why) == ("cannot tell", "all flows at h0")
    assert "every leaf" in a.next_step


def test_a_class_with_few_flows_is_not_tested() -> None:
    few, base = (runs(each=9, run=r, slow=s) for r, s in ((1, (1.2, 2.0, 3.0)), (0, (2, 4, 6))))
    t = trade(few, base, verdict(few, base))
    assert len(t.not_tested) == 3
    assert "not tested, for want of flows: flows below 100 KB" in t.text
    assert not any("finish" in gain for gain in t.gains)  # nor do so few tell of a gain
    many, other = runs(run=1, slow=(1.2, 2.0, 3.0)), runs(slow=(2, 4, 6))
    t = trade(many, other, verdict(many, other))
    assert len([gain for gain in t.gains if "finish" in gain]) == 3


def test_one_host_in_every_flow_is_a_capture_at_one_host() -> None:

    def coverage(src: list[int], dst: list[int]) -> Coverage:
        census = Census()
        ones = np.ones(len(src), np.int64)
        census.add(np.array(src), np.array(dst), ones, ones)
        return census.coverage(64)

    src, dst = [0, 1] * 15, [2, 0] * 15
    problem = coverage(src, dst).problem
    assert problem is not None
    assert "begin or end at h0" in problem.why
    assert coverage(src[:10], dst[:10]).at is None  # may be chance
    assert coverage([*range(1, 31)], [0] * 30).at is None  # an incast
    assert coverage([*src, 5], [*dst, 6]).at is None


def test_the_busiest_windows_come_first() -> None:
    start = np.array([0, 10, 31_000_000, 31_000_001, 50_000_000])
    size = np.array([100, 100, 9000, 9000, 500])
    census = Census(0.01)
    hosts = np.zeros_like(start)
    for part in (slice(0, 3), slice(3, None)):  # a window may come in two parts
        census.add(hosts[part], hosts[part] + 1, size[part], start[part])
    first, second, *_ = census.busiest()
    assert first.begin_s == pytest.approx(0.03)
    assert (first.flows, first.bytes) == (2, 18_000)
    assert second.begin_s == pytest.approx(0.05)


def test_a_short_trace_is_told_its_length_and_what_fits() -> None:
    short = Length(40, 5, 1, 40, 5, 6)
    assert short.needed_ms == 45 + 5 * 11
    fits = short.fitting()
    assert fits is not None
    assert fits.needed_ms <= 40
    assert fits.options in short.text
    assert Length(6, 5, 1, 40, 5, 6).fitting() is None


def jobs(ms: float, slack: float, *, drawn: bool = True) -> list[Measured]:
    """Runs of one job: an iteration's messages as flows that say nothing, and its time."""
    found = [replace(m, rounds_ps=[ms * 1e9 + k], slack=slack) for k, m in enumerate(quiet(3, 100))]
    return [replace(m, drawn=drawn, marks=9) for m in found]


def test_jobs_are_told_in_iteration_times() -> None:
    slow, fast = jobs(212, 0.4), jobs(172, 0.3)
    a = answer({"default": slow, "candidate": fast}, "default")
    assert a.action == "deploy"
    assert a.why.startswith("against NVIDIA's default, iteration 212 to 172 ms (−18.9 %)")
    one = {"default": jobs(212, 0.4, drawn=False), "candidate": jobs(204, 0.4, drawn=False)}
    a = answer(one, "default")
    assert a.action == "cannot tell"
    assert "iteration 212 to 204 ms (−3.8 %) under the candidate" in a.why
    assert "ecmp_salt" in a.next_step


def test_a_job_whose_computation_hides_the_network_keeps_its_setting() -> None:
    one = {"default": jobs(212, 0.03, drawn=False), "candidate": jobs(212, 0.03, drawn=False)}
    a = answer(one, "default")
    assert (a.action, a.setting) == ("keep", "default")
    assert "the busiest rank computes in 97 % of the 212 ms of an iteration" in a.why


def test_a_gain_of_no_single_figure_is_said_as_that() -> None:
    """S gains on every seed, but each class alone goes up and down."""
    base = [measured(seed, slow=(2.0, 12.0, 7.0)) for seed in range(3)]
    slow = [(1.0, 12.0, 7.0), (2.0, 6.0, 7.0), (2.0, 12.0, 3.5)]
    ours = [measured(seed, slow=slow[seed]) for seed in range(3)]
    a = answer({"default": base, "candidate": ours}, "default")
    assert a.action == "deploy"
    assert a.trade.gains[0].startswith("slowdowns of all sizes together ")
