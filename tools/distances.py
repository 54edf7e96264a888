"""How far is the simulator from what is known? ``python tools/distances.py [--write PAGE]``.

A row each: what the public simulator gave over seeds, what arithmetic by hand gives, what real
cards did; what comes out here, and the error. Rows of cards come twice, with the defaults and with
the card's profile (``nic = ...``). About half a minute; ``--only tcp`` needs ns-3 as well.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dcqcn_gym import _core
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.table import Table

__all__ = ["CARD", "PARTS", "app", "card_rows"]

MS = 10**9
US = 10**6
SEEDS = range(1, 9)
CARD = "connectx-5"

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Row:
    """One distance: ``here`` may be several seeds; ``profile`` is what the card's profile gives."""

    what: str
    unit: str
    there: float
    here: Sequence[float]
    profile: float | None = None

    def cells(self, *, card: bool) -> tuple[str, ...]:
        """Return the columns of the table of its part."""
        mean = statistics.fmean(self.here)
        spread = f" (sd {statistics.stdev(self.here):.3g})" if len(self.here) > 1 else ""
        here = (f"{mean:.5g}{spread}", _error(mean, self.there))
        if not card:
            return (self.what, self.unit, f"{self.there:.5g}", *here)
        after = self.profile or 0.0
        profile = (f"{after:.4g}", _error(after, self.there))
        return (self.what, self.unit, f"{self.there:.4g}", *here, *profile)


def _error(found: float, there: float) -> str:
    return f"{found / there - 1:+.1%}".replace("-0.0%", "+0.0%")


class Run:
    """A scenario that goes on from time 0 under its initial setting."""

    def __init__(self, seed: int = 1, **scenario: Any) -> None:
        made = Scenario.model_validate({"warmup_us": 0, **scenario})
        self.simulation = _core.Simulation(compile_scenario(made), seed)
        simulation = self.simulation
        simulation.apply(
            *same_everywhere(made.initial_setting(), simulation.n_hosts, simulation.n_ports)
        )

    def to(self, ps: int) -> Mapping[str, Any]:
        """Go on to an instant; return the report since the last one."""
        self.simulation.advance(ps)
        report: Mapping[str, Any] = self.simulation.report()
        return report

    def makespan_us(self) -> float:
        """Run until everything is delivered; return when the last flow was."""
        last = 0
        while not self.simulation.done:
            flows = self.to(self.simulation.now_ps + 100 * US)["finished"]
            ends = flows["start_ps"] + flows["fct_ps"]
            last = max([last, *map(int, ends)])
        return last / US


# ---- the public simulator ----

_TWO_TO_ONE = {"kind": "pairs", "pairs": [[0, 2, 10_000_000], [1, 2, 10_000_000]]}
_ITS_KNOBS = {"rp_min_rate": 100, "rp_byte_reset": 0}
_ITS_CLOCK = 1.01
"""Whole nanoseconds a frame make its links of 100 Gb/s 1 % too fast."""


def _its(seed: int, initial: Mapping[str, float]) -> float:
    return Run(
        seed,
        topology={"kind": "single-switch", "hosts": 3},
        wire={"profile": "hpcc"},
        workloads=[_TWO_TO_ONE],
        initial=dict(initial),
    ).makespan_us()


def simulator_rows() -> list[Row]:
    """Return makespans of 2:1 incasts of 10 MB each, at exact link speed."""
    expert = dict(expert_setting(100e9).items())
    cases: Sequence[tuple[str, float, Mapping[str, float], float]] = (
        ("default, no gap of CNPs (8 runs, sd 65)", 2381, {}, 0),
        ("default, gap 4 us (one run)", 2188, {}, 4),
        ("expert, no gap (one run)", 1699, expert, 0),
        ("expert, gap 96 us (one run)", 1680, expert, 96),
    )
    return [
        Row(f"2:1 of 10 MB, {what}", "us", there * _ITS_CLOCK,
            [_its(seed, {**knobs, **_ITS_KNOBS, "np_min_time_between_cnps": gap})
             for seed in SEEDS])
        for what, there, knobs, gap in cases
    ]  # fmt: skip


# ---- arithmetic ----

_QUIET = {"kmin": 100_000, "kmax": 100_000}
_FRAME = 1048 * 80e-6
"""Microseconds of a frame of 1000 B at 100 Gb/s, with the sizes of the public simulator."""


def _exact(hosts: int, workload: Mapping[str, Any]) -> Run:
    return Run(
        topology={"kind": "single-switch", "hosts": hosts},
        wire={"profile": "hpcc"},
        initial=_QUIET,
        workloads=[workload],
    )


def _queue_at_the_first_pause(n: int) -> float:
    flows = [[h, n, 20_000_000, 0] for h in range(n)]
    run = _exact(n + 1, {"kind": "flows", "flows": flows})
    while True:
        report = run.to(run.simulation.now_ps + 83_840)
        if report["pauses"]:
            return float(report["port_queue_bytes"][-1])


def hand_rows() -> list[Row]:
    """Return what arithmetic gives: completion times, a collective, the fixed point of PFC."""
    one = {"kind": "pairs", "pairs": [[0, 1, 1_000_000]]}
    rest = _FRAME + 4 * 5 + 2 * 60 * 80e-6  # at the switch, four links, the ACK
    ranks, frames = 16, 200
    ring = {"kind": "ring", "bytes": ranks * frames * 1000, "rounds": 1}
    step = (frames + 1) * _FRAME + 2 * 5
    heard = 2 * 60 * 80e-6 + 2 * 5
    rows = [
        Row("1 MB alone over two links", "us", 1000 * _FRAME + rest,
            [_exact(2, one).makespan_us()]),
        Row("2 x 10 MB into one port, no marks", "us", 20_000 * _FRAME + rest,
            [_exact(3, _TWO_TO_ONE).makespan_us()]),
        Row("a ring's all-reduce of 3.2 MB, 16 ranks, without its ACKs", "us",
            2 * (ranks - 1) * step + heard, [_exact(ranks, ring).makespan_us()]),
    ]  # fmt: skip
    for n in (2, 8):
        share = (12_582_912 - (n + 1) * (187_500 + 4096)) / (8 + n) + 4096
        found = _queue_at_the_first_pause(n) / 1e3
        rows.append(Row(f"{n}:1, queue at the first pause", "kB", n * share / 1e3, [found]))
    return rows


def _goodput(run: Run, begin: int, end: int) -> float:
    run.to(begin)
    return int(run.to(end)["delivered_bytes"]) * 8e3 / (end - begin)


# ---- ns-3's own TCP ----


def _tcp(nbytes: int, frames: int) -> Run:
    """Return one flow of 100 Gb/s into 10 Gb/s, round trip 101 us, a queue of so many frames."""
    links = [
        {"ends": ["h0", "s0"], "gbps": 100, "delay_us": 25},
        {"ends": ["h1", "s0"], "gbps": 10, "delay_us": 25},
    ]
    return Run(
        topology={"kind": "graph", "hosts": 2, "switches": 1, "links": links},
        wire={"data_overhead_bytes": 42, "ack_bytes": 42},
        switch={"pfc": False, "buffer_bytes": 2 * frames * 1042, "reserve_bytes": 0},
        classes=[{"priority": 0, "transport": "tcp", "alpha": 1.0}],
        workloads=[{"kind": "pairs", "pairs": [[0, 1, nbytes]], "priority": 0}],
    )


def tcp_rows() -> list[Row]:
    """Return goodputs of long flows and times of short ones; ns-3 is compiled against."""
    from tcp_peer import build, of_ns3

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Path(folder, "tcp-peer")
        build(peer)
        for nbytes in (300_000, 2_000_000):
            there = of_ns3(peer, f"--bytes={nbytes}", "--queue=250p")[-1][0]
            here = _tcp(nbytes, 250).makespan_us() / 1e3
            rows.append(Row(f"{nbytes / 1e6:g} MB, queue of 250 frames", "ms", there, [here]))
        for frames in (40, 120, 150, 250):
            options = ["--bytes=1000000000", "--threshold=100000", "--every=50ms"]
            acked = of_ns3(peer, *options, "--until=151ms", f"--queue={frames}p")
            there = (acked[2][1] - acked[0][1]) * 8e-8
            here = _goodput(_tcp(1_000_000_000, frames), 50 * MS, 150 * MS)
            rows.append(Row(f"a long flow, queue of {frames} frames", "Gb/s", there, [here]))
    return rows


# ---- real cards ----

_STAR: dict[str, Any] = {"topology": {"kind": "single-switch", "hosts": 3, "delay_us": 0.515}}
_LOSSY = {"pfc": False, "buffer_bytes": 5_200_000, "alpha": 64}
_SIZES = {4096: 7.04, 16_384: 22.0, 65_536: 50.0, 262_144: 79.2}


def _nic(profile: bool) -> dict[str, Any]:
    return {"nic": CARD} if profile else {}


def one_at_a_time(size: int, *, profile: bool) -> float:
    """Return Gb/s of messages of so many bytes, each posted when the one before it is over."""
    rounds = 100
    pairs = {"kind": "pairs", "pairs": [[1, 0, size]], "rounds": rounds}
    us = Run(**_STAR, **_nic(profile), workloads=[pairs]).makespan_us()
    return rounds * size * 8e-3 / us


def long_flow(*, profile: bool) -> float:
    """Return Gb/s of one flow without an end."""
    streams = {"kind": "streams", "flows": 1, "hosts": [1], "dsts": [0]}
    return _goodput(Run(**_STAR, **_nic(profile), workloads=[streams]), MS, 11 * MS)


def lossy_incast(*, profile: bool) -> tuple[float, float]:
    """Return Gb/s and percent of packets lost, two endless flows into one port, nothing marked."""
    streams = {"kind": "streams", "flows": 2, "hosts": [1, 2], "dsts": [0]}
    run = Run(**_STAR, **_nic(profile), switch=_LOSSY, initial=_QUIET, workloads=[streams])
    run.to(200 * MS)
    report = run.to(600 * MS)
    sent = int(report["data_packets"])
    return int(report["delivered_bytes"]) * 8e3 / (400 * MS), 100 * int(report["drops"]) / sent


def recovery(*, profile: bool) -> float:
    """Return ms from the end of one of two flows until the other has 95 % of the link again."""
    flows = [[1, 0, "unlimited", 0], [2, 0, 150_000_000, 0]]
    network: dict[str, Any] = {"switch": _LOSSY, "initial": _QUIET} if profile else {}
    run = Run(**_STAR, **_nic(profile), **network, workloads=[{"kind": "flows", "flows": flows}])
    over = None
    while True:
        report = run.to(run.simulation.now_ps + MS)
        if over is None and len(report["finished"]["fct_ps"]):
            over = run.simulation.now_ps - MS
        if over is not None and int(report["host_tx_bytes"][1]) > 0.95 * MS / 80:
            return (run.simulation.now_ps - over) / MS


def card_rows() -> list[Row]:
    """Return what a ConnectX-5 did, what the defaults give, and what its profile gives."""
    both = (False, True)
    rows = []
    for size, there in _SIZES.items():
        found = [one_at_a_time(size, profile=p) for p in both]
        rows.append(
            Row(f"one message of {size // 1024} KiB at a time", "Gb/s", there, found[:1], found[1])
        )
    found = [long_flow(profile=p) for p in both]
    rows.append(Row("one long flow", "Gb/s", 97.98, found[:1], found[1]))
    lossy = [lossy_incast(profile=p) for p in both]
    for i, (what, unit, there) in enumerate((("rate", "Gb/s", 73.9), ("loss", "%", 1.65))):
        rows.append(
            Row(f"2:1, lossy and unmarked: {what}", unit, there, [lossy[0][i]], lossy[1][i])
        )
    back = [recovery(profile=p) for p in both]
    rows.append(Row("back to 95 % of the link", "ms", 447, back[:1], back[1]))
    return rows


PARTS: Mapping[str, tuple[str, Callable[[], Iterable[Row]]]] = {
    "simulator": ("the public simulator", simulator_rows),
    "hand": ("arithmetic", hand_rows),
    "tcp": ("ns-3's own TCP", tcp_rows),
    "cards": ("a ConnectX-5 of 100 Gb/s", card_rows),
}


@app.command()
def main(
    only: Annotated[
        str | None, typer.Option(help="simulator, hand, tcp or cards; default: all but tcp.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="The page to put the tables into.")] = None,
) -> None:
    """Print the distances; with --write put them into the page."""
    for name, (against, rows) in PARTS.items():
        if only != name and (only is not None or name == "tcp"):
            continue
        if write is not None:
            check_page(write, name)
        card = name == "cards"
        heads: tuple[str, ...] = ("what", "unit", against, "here", "error")
        heads += ("with its profile", "error") if card else ()
        text = Table(heads, [row.cells(card=card) for row in rows()]).markdown()
        typer.echo(text)
        if write is not None:
            insert(write, name, text)


if __name__ == "__main__":
    import sys

    run_command(app, sys.argv[1:])
