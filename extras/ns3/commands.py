"""``dcqcn-gym ns3 ...``: the ns-3 backend."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, install_command
from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.options import (
    SCENARIO,
    SEEDS,
    OptionalOut,
    ScenarioOption,
    ScenariosOption,
    SeedOption,
    SeedsOption,
    names_in,
)

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.extras.ns3.parity import Comparison


app = typer.Typer(
    name="ns3",
    help="The ns-3 backend: build it, check it, compare with it, serve ns3-gym clients.",
    no_args_is_help=True,
)


@app.command()
def parity(
    scenario: ScenariosOption = SCENARIO,
    seeds: SeedsOption = SEEDS,
    intervals: Annotated[
        int | None, typer.Option(min=1, help="Monitor intervals per run; default: 10.")
    ] = None,
    cases: Annotated[
        bool, typer.Option("--cases", help="Run the built-in small cases instead.")
    ] = False,
    against: Annotated[str, typer.Option(help="The other backend.")] = "ns3",
    out: OptionalOut = None,
) -> None:
    """Run the same flows on the native engine and on ns-3 and compare them; exit 1 if apart.

    Writes OUT/parity.json and OUT/parity.svg.

    Example: `dcqcn-gym ns3 parity --scenario mini-fb-hadoop`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.extras.ns3.parity import CASES, case

    names = names_in(scenario, "--scenario")
    chosen = [case(name) for name in CASES] if cases else [load_scenario(name) for name in names]
    with nullcontext() if out is None else claim(out, "parity"):
        results = _compared(chosen, seeds, intervals, against)
        _show(results, against)
        if out is not None:
            _write(results, against, out)
    if not all(r.within_bounds for r in results):
        raise typer.Exit(1)


def _compared(
    chosen: Sequence[Scenario], seeds: int, intervals: int | None, against: str
) -> list[Comparison]:
    """Run every scenario with every seed on both."""
    from rich.console import Console

    from dcqcn_gym.extras.ns3.parity import CASES, compare, run

    results: list[Comparison] = []
    with Console(stderr=True).status("") as status:
        for one in chosen:
            count = intervals or (one.intervals if one.name in CASES else 10)
            for seed in range(1, seeds + 1):
                status.update(f"{one.name}, seed {seed}: {count} intervals on native and {against}")
                setting = one.initial_setting()
                ours, theirs = (run(b, one, seed, count, setting) for b in ("native", against))
                results.append(compare(one, seed, ours, theirs))
    return results


def _show(results: list[Comparison], against: str) -> None:
    from dcqcn_gym.runs.table import Table, print_tables

    columns = ("scenario", "seed", "flows", "FCT of mean", "FCT mean", "FCT p99", "utility",
               "pauses", "marks", "verdict")  # fmt: skip
    rows = [
        (
            r.scenario, str(r.seed), _both(r.flows), f"{r.fct_of_mean:.2e}", f"{r.fct_mean:.2e}",
            f"{r.fct_p99:.2e}", f"{r.utility_mean:.2e}", _both(r.pauses), _both(r.marks),
            "identical" if r.identical else "within bounds" if r.within_bounds else "APART",
        )
        for r in results
    ]  # fmt: skip
    title = f"native and {against}: relative differences and counts"
    print_tables([Table(columns, rows, title, words=len(columns))])


def _both(counts: tuple[int, int]) -> str:
    return str(counts[0]) if counts[0] == counts[1] else f"{counts[0]} / {counts[1]}"


def _write(results: list[Comparison], against: str, out: Path) -> None:
    """Write the table as JSON, and as a picture."""
    out.mkdir(parents=True, exist_ok=True)
    rows = [r.row() for r in results]
    text = json.dumps({"backends": ["native", against], "rows": rows}, indent=2)
    (out / "parity.json").write_text(text + "\n", encoding="utf-8")
    (out / "parity.svg").write_text(_picture(results, against), encoding="utf-8")
    typer.echo(f"{out / 'parity.json'}, {out / 'parity.svg'}")


def _picture(results: list[Comparison], against: str) -> str:
    """Return the differences of every run on a log scale, with the bounds, as SVG."""
    import numpy as np

    from dcqcn_gym.extras.ns3.parity import FCT_BOUND, UTILITY_BOUND
    from dcqcn_gym.report.axes import log_axis, named_axis
    from dcqcn_gym.report.chart import Chart, Key, Panel

    floor = 1e-9
    measures = (
        ("mean FCT", [r.fct_of_mean for r in results]),
        ("FCT per flow, p99", [r.fct_p99 for r in results]),
        ("utility", [r.utility_mean for r in results]),
    )
    every = np.array([floor, FCT_BOUND, UTILITY_BOUND, *(v for _, own in measures for v in own)])
    panel = Panel(
        f"Relative difference of native and {against} ({floor:g}: none)",
        log_axis([np.maximum(every, floor)]),
        named_axis([f"{r.scenario} ({r.seed})" for r in results], down=True),
        40 + 22 * len(results),
        wide_names=True,
    )
    for bound in (FCT_BOUND, UTILITY_BOUND):
        panel.rule(x=bound)
    for i, (name, values) in enumerate(measures):
        for place, value in enumerate(values):
            panel.dot(Key(f"c{i}", name), max(value, floor), place, f"{name}: {value:.3g}")
    return Chart([panel]).file()


_PathOption = Annotated[
    Path | None,
    typer.Option(
        "--ns3", metavar="DIR", help="An ns-3 installation or build folder; default: the wheel."
    ),
]


@app.command()
def build(
    ns3: _PathOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what is there and what is missing, and end.")
    ] = False,
    sources: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Instead: copy the sources to DIR, as NS3/scratch/dcqcn."),
    ] = None,
) -> None:
    """Compile the ns-3 backend; downloads the ns3 wheel (69 MB) if no ns-3 is named.

    What --sources copies is compiled by ns-3's own build.

    Example: `dcqcn-gym ns3 build`
    """
    if check:
        _check(ns3)
        return
    if sources is not None:
        _copy_sources(sources)
        return
    from rich.console import Console
    from rich.markup import escape

    from dcqcn_gym.extras.ns3.bridge.build import ensure_built

    console = Console(stderr=True)
    with console.status("building the ns-3 backend") as status:

        def say(line: str) -> None:
            if line.startswith("  "):
                status.update(f"building the ns-3 backend{escape(line)}")
            else:
                console.print(escape(line))

        done = ensure_built(ns3, say=say)
    typer.echo(f"ready: ns-3 {done.ns3.version}, module {done.module}")
    typer.echo(f"program: {done.program}")


def _check(ns3: Path | None) -> None:
    """Say what the ns-3 backend needs, what is there and what is missing; change nothing."""
    from dcqcn_gym.extras.ns3.bridge.build import find_build, tools
    from dcqcn_gym.extras.ns3.bridge.install import cache_dir, find_ns3
    from dcqcn_gym.runs.table import Table, print_tables

    rows: list[tuple[str, str, bool]] = [
        (name, found or "", found is not None) for name, found in tools().items()
    ]
    try:
        install = find_ns3(ns3, say=lambda _: None, fetch=False)
        rows.append(("ns-3", f"{install.version} ({install.source}) {install.root}", True))
        built = find_build(install)
        rows.append(
            ("build", str(built.folder) if built.complete else "not built yet", built.complete)
        )
    except DcqcnGymError as error:
        rows.append(("ns-3", str(error), False))
    lines = [(name, "ok" if ok else "missing", found) for name, found, ok in rows]
    title = f"ns-3 backend (cache: {cache_dir()})"
    print_tables([Table(("part", "", "found"), lines, title, words=3)])
    if not all(ok for _, _, ok in rows):
        typer.echo(f"next: {install_command('ns3')}, then dcqcn-gym ns3 build")
        raise typer.Exit(1)


@app.command()
def serve(
    scenario: ScenarioOption = SCENARIO,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port where the ns3-gym client waits.")
    ] = 5555,
    endpoint: Annotated[
        str | None, typer.Option(help="ipc://FILE or tcp://HOST:PORT instead of --port.")
    ] = None,
    seed: SeedOption = 1,
    wait: Annotated[
        float, typer.Option(min=0.0, help="Seconds to wait for a client to answer at all.")
    ] = 60.0,
    pcap: Annotated[str | None, typer.Option(help="Prefix of capture files.")] = None,
    launcher: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Instead: write a file DIR/ns3 that clients can start."),
    ] = None,
    ns3: _PathOption = None,
) -> None:
    """Run one episode for any client that speaks ns3-gym's protocol; the client binds first.

    Example: `dcqcn-gym ns3 serve --scenario mini-fb-hadoop --port 5555`
    """
    if launcher is not None:
        _launcher(launcher)
        return
    from dcqcn_gym.extras.ns3 import ns3gym
    from dcqcn_gym.extras.ns3.bridge.build import ensure_built

    done = ensure_built(ns3, say=lambda line: typer.echo(line, err=True))
    arguments = [f"--scenario={scenario}", f"--simSeed={seed}", f"--openGymPort={port}"]
    arguments += [f"--wait={wait}", f"--module={done.folder}", f"--build-id={done.build_id}"]
    arguments += [f"--ns3-version={done.ns3.version}"]
    if endpoint is not None:
        arguments.append(f"--endpoint={endpoint}")
    if pcap is not None:
        arguments.append(f"--pcap={pcap}")
    raise typer.Exit(ns3gym.main(arguments))


def _launcher(folder: Path) -> None:
    """Write a file 'ns3' that ns3-gym's client (startSim=True) starts as if it were ns-3's own.

    The client looks for it above the current folder, whose name is the scenario's.
    """
    text = (
        f"#!{sys.executable}\n"
        '"""Stands in for ns-3\'s own `ns3`: run "SCENARIO --openGymPort=P --simSeed=S"."""\n'
        "import shlex\nimport sys\n\n"
        "from dcqcn_gym.extras.ns3.ns3gym import main\n\n"
        'if len(sys.argv) != 3 or sys.argv[1] != "run":\n'
        "    sys.exit('usage: ns3 run \"SCENARIO --openGymPort=PORT --simSeed=SEED\"')\n"
        "name, *options = shlex.split(sys.argv[2])\n"
        'sys.exit(main([f"--scenario={name}", *options]))\n'
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "ns3"
    if file.exists():
        raise ConfigError(f"{file} exists already; name another folder")
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    typer.echo(f"{file}: start your client in {folder}/SCENARIO, for example {folder}/fb-hadoop")


def _copy_sources(folder: Path) -> None:
    """Copy the C++ sources into a new folder, as ns-3's own build takes them in its scratch/."""
    from dcqcn_gym.extras.ns3.bridge.build import source_dirs

    if folder.exists():
        raise ConfigError(f"{folder} exists already; name a new folder")
    scratch, engine = source_dirs()
    shutil.copytree(scratch, folder, ignore=shutil.ignore_patterns("tests"))
    for part in ("model", "sim"):
        shutil.copytree(engine / part, folder / "engine" / part)
    typer.echo(f'{folder}: now, in the ns-3 folder: ./ns3 run "dcqcn-ns3 --help"')
