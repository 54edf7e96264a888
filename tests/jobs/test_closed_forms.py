"""Every collective against its closed form on an idle fabric, and by hand on 4 ranks.

All ranks but the first hear of the start a link later. A message of B bytes is over when its
frames, one more at each switch, and the links are behind it; its receiver sends the ACK before what
it sends on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from math import log2
from typing import Any

import pytest

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.job_graph import JobGraphBuilder
from dcqcn_gym.envs.scenario.jobs.collectives import add_collective
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.scenario import Scenario

BYTE, LINK = 20, 1_000_000  # ps of a byte at 400 Gb/s, and of a link
FRAME, ACK = 1062 * BYTE, 66 * BYTE
NVLINK, NVLINK_BYTE = 1_000_000, 8e3 / 3600


def took(kind: str, ranks: int, size: int, server: int = 1, **how: Any) -> int:
    """Return the picoseconds of a collective on one switch, or on one for each rail."""
    b = JobGraphBuilder(ranks)
    links = Links(b, Algorithms.model_validate(how), server)
    add_collective(links, kind, tuple(range(ranks)), size, b.join([], 0))
    one = {"kind": "single-switch", "hosts": ranks, "gbps": 400, "delay_us": 1}
    rails = {"kind": "servers", "servers": ranks // server, "gpus": server, "spines": 1}
    values = {
        "topology": one if server == 1 else rails, "qp": "pair", "transport": {"ack_every": 64},
        "monitor_interval_us": 500_000, "servers": {"gpus": server},
        "initial": {"kmin": 4_000_000, "kmax": 4_000_000},  # a gather alone would be marked
        "workloads": [{"kind": "job", "graph": b.build(), "rounds": 1}],
    }  # fmt: skip
    scenario = validate(values, Scenario, source="job")
    with closing(make_backend("native")) as backend:
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
        rows = backend.advance().job_spans.rows()
    (end,) = [row[4] for row in rows if row[2] == -1]
    return int(end)


def wire(size: float) -> float:
    """Return the time of a message on a link."""
    whole, rest = divmod(size, 1000)
    return whole * FRAME + (rest + 62) * BYTE * (rest > 0)


def message(size: float) -> float:
    """Return the time of a message over the switch, alone."""
    return wire(size) + min(FRAME, wire(size)) + 2 * LINK


def ring(rounds: int) -> Callable[[int, int], float]:
    return lambda n, size: rounds * (n - 1) * message(size / n)


def halves(n: int, size: int) -> float:
    return 2 * count(int(message(size / 2**i)) for i in range(1, n.bit_length()))


def tree(n: int, size: int) -> float:
    """Return the time up and down: but at the root two children meet, and leave one by one."""
    return 2 * log2(n) * message(size / 2) + 2 * (log2(n) - 1) * wire(size / 2)


def shared(steps: int, channels: int, size: float) -> float:
    """Return the time of steps that channels take turns for on a link, frame by frame.

    While a message is on its way the others go on, so they do not stay in step: up to 5 % less than
    all pieces on the wire and then the way, step by step.
    """
    frames = [FRAME] * int(size // 1000) + [wire(size % 1000)] * (size % 1000 > 0)
    at, ready, todo = 0.0, [0.0] * channels, [frames * steps for _ in range(channels)]
    turn, each = 0, len(frames)
    while any(todo):
        due = [k for k in range(channels) if todo[k] and ready[k] <= at]
        if not due:
            at = min(ready[k] for k in range(channels) if todo[k])
            continue
        turn = min(due, key=lambda k: (k - turn - 1) % channels)
        if len(todo[turn]) % each == 0 and len(todo[turn]) < each * steps:
            at += ACK
        at += todo[turn].pop(0)
        if len(todo[turn]) % each == 0:
            ready[turn] = at + FRAME + 2 * LINK
    return max(ready)


def fan(n: int, size: int) -> float:
    """Return the time of one NIC that sends or gets n - 1 shares."""
    return (n - 1) * wire(size / n) + FRAME + 2 * LINK


FORMS: dict[tuple[str, str], Callable[[int, int], float]] = {
    ("all-reduce", "ring"): ring(2),
    ("all-gather", "ring"): ring(1),
    ("reduce-scatter", "ring"): ring(1),
    ("all-reduce", "halving-doubling"): halves,
    ("all-reduce", "tree"): tree,
    ("broadcast", "ring"): lambda n, size: (n - 1) * message(size),
    ("reduce", "ring"): lambda n, size: (n - 1) * message(size),
    ("all-to-all", "ring"): fan,
    ("gather", "ring"): fan,
    ("scatter", "ring"): lambda n, size: fan(n, size) + 2 * LINK,  # and the last ACK
}
SIZES = (320_000, 3_200_000, 12_800_000)


@pytest.mark.parametrize("ranks", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_within_one_percent(form: tuple[str, str], ranks: int) -> None:
    for size in SIZES:
        found = took(form[0], ranks, size, all_reduce=form[1])
        heard = 0 if form[0] in ("broadcast", "scatter") else LINK  # the first rank begins at once
        assert found - heard == pytest.approx(FORMS[form](ranks, size), rel=0.01), size


@pytest.mark.parametrize("channels", [2, 3, 4, 8])
@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_channels_share_every_link(ranks: int, channels: int) -> None:
    for size in SIZES:
        found = took("all-reduce", ranks, size, all_reduce="ring", channels=channels)
        form = shared(2 * (ranks - 1), channels, size / ranks / channels)
        assert found - LINK == pytest.approx(form, rel=0.01), size


@pytest.mark.parametrize("chunks", [2, 5, 9])
@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_chunks_are_pipelined(ranks: int, chunks: int) -> None:
    slot = 524_288
    found = took("broadcast", ranks, chunks * slot, chunks=True)
    form = (ranks - 1) * message(slot) + (chunks - 1) * wire(slot)
    assert found == pytest.approx(form, rel=0.01)


@pytest.mark.parametrize(("protocol", "more"), [("simple", 1), ("ll", 2), ("ll128", 16 / 15)])
def test_protocols_send_more(protocol: str, more: float) -> None:
    """LL a flag of 4 bytes with every 4, LL128 one of 8 in every 128; chunks are of payload."""
    ranks, size = 8, 960_000
    found = took("all-reduce", ranks, size, all_reduce="ring", protocol=protocol)
    assert found - LINK == pytest.approx(ring(2)(ranks, round(size * more)), rel=0.01)
    if protocol == "ll":
        found = took("broadcast", ranks, 5 * 32_768, protocol=protocol, chunks=True)
        form = (ranks - 1) * message(65_536) + 4 * wire(65_536)
        assert found == pytest.approx(form, rel=0.01)


SERVERS = [(2, 2), (2, 4), (2, 8), (4, 8), (8, 8), (16, 2)]
"""How many, and GPUs of each: 4 to 64 ranks."""


@pytest.mark.parametrize(("servers", "gpus"), SERVERS)
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_hierarchical(servers: int, gpus: int, kind: str) -> None:
    rounds = 2 if kind == "all-reduce" else 1
    heard = (7 if rounds == 2 else 4) * LINK  # where parts begin and end, ranks hear of each other
    for size in SIZES:
        inside = rounds * (NVLINK + (gpus - 1) / gpus * size * NVLINK_BYTE)
        between = ring(rounds)(servers, size // gpus)
        found = took(kind, servers * gpus, size, gpus)
        assert found == pytest.approx(inside + between + heard, rel=0.01), size


@pytest.mark.parametrize(("servers", "gpus"), SERVERS)
def test_pxn_is_bound_by_the_rail(servers: int, gpus: int) -> None:
    for size in (640_000, 6_400_000, 25_600_000):
        part = size // (gpus * servers)
        # inside all send to the last GPU last, at once
        first = NVLINK + (2 * (gpus - 1) + gpus - 2) * part * NVLINK_BYTE
        found = took("all-to-all", gpus * servers, size, gpus, all_to_all="pxn")
        form = first + (servers - 1) * wire(gpus * part) + FRAME + 2 * LINK
        assert found - LINK == pytest.approx(form, rel=0.01), size


# of S = 32,000 bytes: a quarter has 8 frames
STEP, HALF, WHOLE = (n * FRAME + FRAME + 2 * LINK for n in (8, 16, 32))


@pytest.mark.parametrize(
    ("kind", "how", "by_hand"),
    [
        ("all-reduce", "ring", LINK + 6 * STEP + 5 * ACK),
        ("all-gather", "ring", LINK + 3 * STEP + 2 * ACK),
        ("reduce-scatter", "ring", LINK + 3 * STEP + 2 * ACK),
        ("all-reduce", "halving-doubling", LINK + 2 * HALF + 2 * STEP + 3 * ACK),
        ("broadcast", "ring", 3 * WHOLE + 2 * ACK),
        ("reduce", "ring", LINK + 3 * WHOLE + 2 * ACK),
        ("gather", "ring", LINK + 24 * FRAME + FRAME + 2 * LINK),
        ("scatter", "ring", 24 * FRAME + FRAME + 2 * LINK + 2 * (ACK + LINK)),
        ("all-to-all", "ring", LINK + 24 * FRAME + FRAME + 2 * LINK),
    ],
)
def test_by_hand_on_four_ranks(kind: str, how: str, by_hand: int) -> None:
    assert took(kind, 4, 32_000, all_reduce=how) == by_hand


def test_a_tree_by_hand() -> None:
    """Two steps up, two down; two children meet at their parent, and leave it one by one."""
    by_hand = LINK + 4 * (2 * FRAME + 2 * LINK) + 2 * FRAME + 3 * ACK
    assert took("all-reduce", 4, 2000, all_reduce="tree") == by_hand


def test_in_two_servers_by_hand() -> None:
    """Of two GPUs each: NVLink moves 16,000 bytes in 35,556 ps, a join is heard a link later."""
    apart = 4 * LINK + 35_556  # both parts inside, and their ends are known to the first of a rail
    rail = 2 * STEP + ACK
    assert took("all-reduce", 4, 32_000, 2) == apart + rail + 5 * LINK + 35_556
    brought = 2 * LINK + 2 * 17_778  # for the own GPU, then for the rail: 8,000 bytes each
    assert took("all-to-all", 4, 32_000, 2, all_to_all="pxn") == brought + HALF
