"""Simulators side by side on the same flows, in turns; nothing is built or fetched.

``python tools/speed/peers.py BENCH --peer NAME=COMMAND --hops NAME=HOPS ...``: BENCH is our
``engine_bench``, a COMMAND a line for the shell in which these files are filled in: {job} of BENCH,
{csv} for ``dcqcn-gym simulate --flows``, {flow} and {topology} of HPCC's simulator (its flow.txt
and topology.txt), {cm} of csg-htsim's -tm, and {out}, which is removed. HOPS is ``FACTOR*REGEX``,
FACTOR times the sum of what the groups of REGEX find in what it prints, or ``FACTOR`` alone, times
those of BENCH on the same flows. A peer's fabric, setting and end are in its own files:

    --peer 'ns3=dcqcn-gym simulate --scenario fb-hadoop --flows {csv} --until-done --backend ns3
            --out {out}' --hops ns3=1
    --peer 'hpcc=cd HPCC/simulation && cp {flow} mix/flow.txt && cp {topology} mix/topology.txt &&
            ./waf --run "scratch/third mix/config.txt"' --hops hpcc=1
    --peer 'htsim=htsim_roce -tm {cm} -topo leaf-spine.topo -nodes 128 -strat ecmp_host -paths 128
            -mtu 1000 -end 1000000 -o {out}' --hops htsim=1
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from compare import job_text
from engine_speed import Job

from dcqcn_gym.runs.table import Table

FLOWS = {
    "all-to-all": [(6 * a, 6 * b, 12_000_000) for a in range(20) for b in range(20) if a != b],
    "permutation": [(i, (37 * i + 17) % 128, 12_000_000) for i in range(128)],
    "incast of 60": [(i, 0, 2_000_000) for i in range(1, 61)],
}
"""Source, destination and bytes of each flow, on the paper's fabric of 128 hosts."""
COLUMNS = ("flows", "program", "M hops", "CPU s", "M hops / CPU s", "ours : it", "from", "to")


def write_files(folder: Path, flows: Sequence[tuple[int, int, int]]) -> dict[str, Path]:
    """Write the flows for every program; return what the words in commands stand for."""
    job = Job("peers", "", {"kind": "pairs", "pairs": [list(flow) for flow in flows]})
    fabric = job.scenario().fabric
    links = [f"{x.a} {x.b} {x.rate_bps:.0f}bps {x.delay_ps // 1000}ns 0" for x in fabric.links]
    numbered = list(enumerate(flows, start=1))
    texts = {
        "job": [job_text(job)],
        "csv": ["src,dst,bytes,start_ns", *(f"{a},{b},{n},0" for a, b, n in flows)],
        "flow": [f"{len(flows)}", *(f"{a} {b} 3 {1000 + i} {n} 2" for i, (a, b, n) in numbered)],
        "topology": [f"{fabric.n_nodes} {len(fabric.tiers)} {len(links)}",
                     " ".join(map(str, fabric.tier_of)), *links],
        "cm": [f"Nodes {fabric.n_hosts}", f"Connections {len(flows)}",
               *(f"{a}->{b} id {i} start 0 size {n}" for i, (a, b, n) in numbered)],
    }  # fmt: skip
    for name, lines in texts.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="ascii")
    return {name: folder / name for name in texts}


def run(command: str, files: dict[str, Path]) -> tuple[float, str]:
    """Return CPU seconds of a command, children too, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, path in {**files, "out": Path(folder) / "out"}.items():
            command = command.replace(f"{{{name}}}", str(path))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: status {done.returncode}: {done.stderr[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def hops_of(rule: str, printed: str, ours: float) -> float:
    """Return the packet-hops by a rule of ``--hops``."""
    factor, _, pattern = rule.partition("*")
    numbers = [n for m in re.finditer(pattern, printed) for n in m.groups()] if pattern else [ours]
    if not numbers:
        raise SystemExit(f"nothing like {pattern} in {printed[-500:]!r}")
    return float(factor) * sum(map(float, numbers))


def main(
    bench: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    peer: Annotated[list[str] | None, typer.Option(help="NAME=COMMAND; repeatable.")] = None,
    hops: Annotated[
        list[str] | None, typer.Option(help="NAME=FACTOR*REGEX or NAME=FACTOR.")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Rounds; in each, all run once.")] = 10,
    only: Annotated[str, typer.Option(help="Only traffic with this in its name.")] = "",
) -> None:
    """Packet-hops per CPU second of each, and the median of the rounds' ratios."""
    commands = {"ours": f"{bench.resolve()} {{job}}", **dict(p.split("=", 1) for p in peer or ())}
    rules = {"ours": r'1*"hops": (\d+)', **dict(h.split("=", 1) for h in hops or ())}
    if missing := sorted({*commands} - {*rules}):
        raise SystemExit(f"no --hops of {', '.join(missing)}")
    rows = []
    for name in (name for name in FLOWS if only in name):
        done: dict[str, list[tuple[float, str]]] = {program: [] for program in commands}
        with tempfile.TemporaryDirectory() as folder:
            files = write_files(Path(folder), FLOWS[name])
            for turn in range(pairs):
                for program in [*commands][:: -1 if turn % 2 else 1]:
                    done[program].append(run(commands[program], files))
        ours = hops_of(rules["ours"], done["ours"][0][1], 0)
        for program, runs in done.items():
            moved, times = hops_of(rules[program], runs[0][1], ours), [cpu_s for cpu_s, _ in runs]
            per_s = [moved / t for t in times]
            ratios = sorted(ours / t / x for (t, _), x in zip(done["ours"], per_s, strict=True))
            found = (moved / 1e6, median(times), median(per_s) / 1e6, median(ratios), *ratios)
            rows.append((name, program, *(f"{x:.2f}" for x in (*found[:5], found[-1]))))
    typer.echo(Table(COLUMNS, rows, words=2).markdown())


if __name__ == "__main__":
    typer.run(main)
