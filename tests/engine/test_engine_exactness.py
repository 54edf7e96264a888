"""The window engine gives the bytes of the plain event engine, whatever the windows and threads.

Every figure of every interval report is compared: completions, ports, round trips, distribution.
Random small networks under the sanitizers are the business of the fuzzer in engine/tests/fuzz.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_worlds import MS, PFC, US, add_report, apply, flow_list, leaf_spine

from dcqcn_gym._core import Simulation
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import load_scenario

CDF = "cdf 0 0:0 1000:0.5 100000:0.9 3000000:1"
HOSTS = "0,1,2,3,4,5,6,7"
ALL_TO_ALL = f"workload alltoall hosts={HOSTS} bytes=300000 off_ps=200000000"
PERMUTATION = f"workload permutation hosts={HOSTS} bytes=2000000"
POISSON = f"{CDF}\nworkload poisson cdf=0 hosts={HOSTS} dsts={HOSTS} mean_gap_ps=20000000"
INCAST = "workload incast hosts=1,2,3,5,6,7 dst=0 bytes=400000 off_ps=50000000"
RING = f"workload ring hosts={HOSTS} bytes=200000 steps=14 off_ps=100000000"
LOSSY = "pfc enabled=0 lossless=3 alpha=0.5 reserve=4096 resume_offset=3072"
DATA_ACKS = f"{PFC} ack_class=data"
TRANSPORT = "transport qp=flow"


def fabric(*items: str, **kw: Any) -> str:
    return leaf_spine(2, 4, 2, items, buffer=kw.pop("buffer", 3_000_000), **kw)


def two_tier_rates() -> str:
    """Return hosts at 25 and 100 Gb/s under uplinks of 100 and 400, links of 1 to 7 us."""
    text = fabric(POISSON, INCAST)
    for leaf, ppb, delay in ((8, 320, 1_300_000), (9, 80, 7_000_000)):
        text = text.replace(
            f" {leaf} ps_per_byte=80 delay_ps=5000000",
            f" {leaf} ps_per_byte={ppb} delay_ps={delay}",
        )
    return text.replace("link 9 11 ps_per_byte=80", "link 9 11 ps_per_byte=20")


@dataclass(frozen=True)
class Case:
    """A compiled scenario, NVIDIA's setting with changes, and what has to have happened."""

    text: str
    changes: dict[str, float] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    end: int = 3 * MS


CASES = {
    "idle": Case(fabric(flow_list([(0, 5, 1_000_000, 0)]))),
    "incast": Case(fabric(INCAST, buffer=8_000_000), seen=("marks", "cnps")),
    "permutation": Case(fabric(PERMUTATION)),
    "all-to-all": Case(fabric(ALL_TO_ALL), seen=("marks",)),
    "pfc storm": Case(fabric(INCAST, ALL_TO_ALL), {"kmin": 4e9, "kmax": 4e9}, ("pauses",)),
    "go-back-N": Case(
        fabric(INCAST, POISSON, f"{TRANSPORT} rto_ps=300000000", pfc=LOSSY, buffer=400_000),
        seen=("drops", "retransmitted_packets"),
    ),
    "mixed rates": Case(two_tier_rates(), seen=("marks",)),
    "ring": Case(fabric(RING)),
    "window": Case(fabric(ALL_TO_ALL, f"{TRANSPORT} window=125000")),
    "scaled window": Case(fabric(INCAST, f"{TRANSPORT} window=125000 window_scaling=1")),
    "sparse ACKs": Case(fabric(POISSON, f"{TRANSPORT} ack_every=4")),
    "priorities": Case(
        fabric(f"{POISSON} priority=0", INCAST, f"{PERMUTATION} priority=4", buffer=2_500_000),
        seen=("pauses", "drops"),
    ),
    "classes by weight": Case(
        fabric(
            "class 3 weight=3 transport=roce dscp=26 ecn=5000:60000:0.2",
            "class 4 weight=1 transport=roce dscp=26 alpha=0.25",
            f"{ALL_TO_ALL} priority=3",
            f"{POISSON} priority=4",
            pfc=DATA_ACKS.replace("lossless=3", "lossless=3,4"),
        ),
        seen=("marks", "cnps"),
    ),
    "a lone flow of another class": Case(
        fabric(ALL_TO_ALL, flow_list([(0, 5, 1000, 0), (4, 1, 1000, MS)], 4)),
        seen=("marks",),
    ),
    "ACKs among data": Case(fabric(ALL_TO_ALL, pfc=DATA_ACKS), seen=("marks",)),
    "kept connections": Case(
        fabric(f"{INCAST} messages=3", POISSON, "transport qp=pair"), seen=("cnps",)
    ),
    "delayed CNPs": Case(fabric(INCAST, "cnp scope=qp delay_ps=3100000"), seen=("cnps",)),
    "CNPs by port": Case(
        fabric(INCAST, POISSON, "cnp scope=port port_gap_ps=1000000"), seen=("cnps",)
    ),
    "dispatch delay": Case(
        fabric(INCAST, f"{TRANSPORT} dispatch_delay_ps=300000000"), {"kmin": 5e3, "kmax": 9e4}
    ),
    "published RP": Case(
        fabric(INCAST, "scheme name=dcqcn mode=paper", "transport qp=flow"), seen=("cnps",)
    ),
    "elastic sketch": Case(fabric(POISSON, "monitor kind=elastic heavy_bytes=4096 tau=100000")),
    "CNP in ACK": Case(
        fabric(INCAST, wire="wire payload=1000 data=48 ack=60 cnp=60 pfc=43 cnp_in_ack=1"),
        seen=("cnps",),
    ),
}


def digest_of(sim: Simulation, stops: list[int], every: int) -> str:
    digest = hashlib.sha256()
    for stop in stops:
        sim.advance(stop)
        if stop % every == 0:
            add_report(digest, sim.report())
    return digest.hexdigest() + str(sorted(sim.totals().items()))


def begin(case: Case, engine: str) -> Simulation:
    sim = Simulation(case.text, 7, engine)
    apply(sim, default_setting(), case.changes)
    return sim


def play(case: Case, engine: str, stops: list[int] | None = None) -> str:
    every = case.end // 5
    return digest_of(
        begin(case, engine), sorted({*range(every, case.end + 1, every), *(stops or ())}), every
    )


@cache
def oracle(name: str) -> str:
    return play(CASES[name], "event")


@pytest.mark.parametrize("name", CASES)
def test_the_case_is_what_it_says(name: str) -> None:
    case = CASES[name]
    sim = begin(case, "window")
    sim.advance(case.end)
    assert len(sim.report()["finished"]["src"]) > 0
    totals = sim.totals()
    assert not [what for what in case.seen if totals[what] == 0]


@pytest.mark.parametrize("bound", [333_333, 40_000])
@pytest.mark.parametrize("name", CASES)
def test_smaller_windows_change_nothing(name: str, bound: int) -> None:
    assert play(CASES[name], f"window:{bound}") == oracle(name)


@pytest.mark.parametrize("name", CASES)
def test_more_calls_of_advance_change_nothing(name: str) -> None:
    stops = np.random.Generator(np.random.PCG64(3)).integers(1, CASES[name].end, 300).tolist()
    assert play(CASES[name], "window", stops) == oracle(name)


def test_window_engine_equals_the_oracle() -> None:
    """In as many threads as there are cases: simulations do not meet."""
    with ThreadPoolExecutor(len(CASES)) as pool:
        found = dict(zip(CASES, pool.map(lambda c: play(c, "window"), CASES.values()), strict=True))
    assert found == {name: oracle(name) for name in CASES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ms"),
    [
        ("fb-hadoop", 3),
        ("fb-hadoop-uplink30", 6),
        ("influx", 4),
        ("llm-alltoall", 8),
        ("incast", 10),
        ("lossy-incast", 10),
        ("mini-storm", 8),
        ("allreduce-ring", 5),
    ],
)
def test_scenarios_at_full_size(name: str, ms: int) -> None:
    scenario = load_scenario(name)
    text = compile_scenario(scenario)
    # the influx itself, where both kinds of traffic meet, begins at 40 ms
    text = text.replace("start_ps=40000000000", "start_ps=1000000000")
    digests = []
    for engine in ("event", "window"):
        sim = Simulation(text, 11, engine)
        apply(sim, scenario.initial_setting())
        digests.append(digest_of(sim, list(range(MS, ms * MS + 1, MS)), 500 * US))
    assert digests[0] == digests[1]
