"""Does ``dcqcn-gym calibrate`` find what is known? ``python tools/calibration_recovery.py``.

Each case hides unknowns in an engine, writes what nccl-tests and perftest would print, with 2 % of
noise, reads it again and fits. A case is recovered if every unknown is fitted and its interval of
95 % holds it. About 90 s for 100 cases; their result is in docs/measured/real-networks.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.traffic.calibration.fitting import Fit
from dcqcn_gym.extras.traffic.calibration.measured import (
    BANDWIDTH,
    LATENCY,
    Measurement,
    read_measured,
)
from dcqcn_gym.extras.traffic.calibration.replay import Replay
from dcqcn_gym.extras.traffic.calibration.result import calibrate
from dcqcn_gym.runs.command_line import run_command

__all__ = ["NOISE", "app", "hidden", "recover", "recovered", "scenario", "write_files"]

NOISE = 0.02
RANKS = 4
SIZES = [2**i for i in range(12, 24, 2)]
app = typer.Typer(add_completion=False)


def scenario() -> Scenario:
    """Return the network without its unknowns: four hosts of 100 Gb/s on a switch."""
    return Scenario.model_validate({
        "topology": {"kind": "single-switch", "hosts": RANKS, "gbps": 100, "delay_us": 0.5},
        "wire": {"payload_bytes": 4096},
        "workloads": [{"kind": "pairs", "pairs": [[0, 1, 1000]]}],
    })  # fmt: skip


def hidden(case: int) -> dict[str, float]:
    """Return the unknowns of a case."""
    draw = np.random.default_rng(case)
    return {
        "message_us": float(draw.uniform(0.5, 8)),
        "launch_us": float(draw.uniform(5, 60)),
        "data_overhead_bytes": float(draw.integers(62, 500)),
    }


def write_files(folder: Path, values: Mapping[str, float], case: int) -> list[Path]:
    """Write an all-reduce of nccl-tests, ib_write_bw and ib_write_lat, with noise."""
    draw, replay = np.random.default_rng(1000 + case), Replay(scenario())
    network = {k: v for k, v in values.items() if k != "launch_us"}

    def us(kind: str, size: int, ranks: int = 2) -> float:
        own = values["launch_us"] if kind == "all-reduce" else 0.0
        exact = own + replay.us(Measurement(kind, size, 1.0, ranks=ranks), network)
        return exact * float(np.exp(draw.normal(0, NOISE)))

    nccl = ["# Collective test starting: all_reduce_perf", "# Using devices"]
    nccl += [
        f"#  Rank  {r} Group  0 Pid {r} on node-{r} device  0 [0x07] GPU" for r in range(RANKS)
    ]
    nccl += [
        "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
    ]
    for size in SIZES:
        halves = [f"{us('all-reduce', size, RANKS):.7g} 0 0 0" for _ in range(2)]
        nccl.append(f"{size} {size // 4} float sum -1 {' '.join(halves)}")
    wide = ["RDMA_Write BW Test", " TX depth        : 128", " Mtu             : 4096[B]",
            " #bytes  #iterations  BW peak[Gb/sec]  BW average[Gb/sec]  MsgRate[Mpps]"]  # fmt: skip
    wide += [f" {s} 5000 0.00 {s * 8e-3 / us(BANDWIDTH, s):.7g} 0.0" for s in SIZES]
    late = ["RDMA_Write Latency Test",
            " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec]"]  # fmt: skip
    late += [f" {s} 1000 0.0 0.0 {us(LATENCY, s):.7g} 0.0" for s in SIZES]
    paths = []
    for name, lines in (("nccl.txt", nccl), ("bw.txt", wide), ("lat.txt", late)):
        paths.append(folder / name)
        paths[-1].write_text("\n".join([*lines, ""]))
    return paths


def recover(case: int) -> tuple[dict[str, float], Fit]:
    """Return what was hidden in a case, and what was found."""
    values = hidden(case)
    with tempfile.TemporaryDirectory() as folder:
        measured = read_measured(write_files(Path(folder), values, case))
    return values, calibrate(scenario(), measured)[1]


def recovered(values: Mapping[str, float], found: Fit) -> bool:
    """Return whether every unknown that was hidden is fitted, and lies in its interval."""
    return values.keys() <= found.fitted.keys() and all(
        found.fitted[name].low <= value <= found.fitted[name].high for name, value in values.items()
    )


def _line(case: int, values: Mapping[str, float], found: Fit) -> str:
    parts: Sequence[Any] = [
        f"{name} {value:.4g}: {f.value:.4g} ({f.low:.4g} to {f.high:.4g})"
        if (f := found.fitted.get(name))
        else f"{name} {value:.4g}: not fitted"
        for name, value in values.items()
    ]
    return f"{case:3} {'yes' if recovered(values, found) else 'NO '} {'; '.join(parts)}"


@app.command()
def main(cases: Annotated[int, typer.Option(min=1, help="How many.")] = 100) -> None:
    """Print each case, and how many were recovered."""
    good = 0
    for case in range(1, cases + 1):
        values, found = recover(case)
        good += recovered(values, found)
        typer.echo(_line(case, values, found))
    typer.echo(f"recovered within the intervals: {good} of {cases}")


if __name__ == "__main__":
    import sys

    run_command(app, sys.argv[1:])
