"""``dcqcn-gym ns3 parity``: do the native engine and ns-3 tell the same story?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.options import SCENARIO, SEEDS, OptionalOut, ScenariosOption, SeedsOption

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.parity import Comparison
    from dcqcn_gym.envs.scenario.scenario import Scenario


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
    """
    from dcqcn_gym.benchmarks.parity import CASES, case
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.runs.claim import claim

    names = [name.strip() for name in scenario.split(",") if name.strip()]
    chosen = [case(name) for name in CASES] if cases else [load_scenario(name) for name in names]
    if not chosen:
        raise ConfigError("--scenario names none; expected names separated by commas")
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

    from dcqcn_gym.benchmarks.parity import CASES, compare, run

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

    from dcqcn_gym.benchmarks.parity import FCT_BOUND, UTILITY_BOUND
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
