"""What the bridge to ns-3 adds to a step."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dcqcn_gym.runs.options import ScenarioOption

__all__ = ["ns3"]


def ns3(
    scenario: ScenarioOption = "fb-hadoop",
    steps: Annotated[int, typer.Option(min=1, help="Steps that count.")] = 50,
    interval_us: Annotated[
        float | None, typer.Option(min=1.0, help="Monitor interval; default: the scenario's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Milliseconds per step that are not spent in ns-3: messages, copies, waking up.

    A step is another setting, one interval and its report. Wall time: on a busy machine it says
    how long processes wait for a core.
    """
    from rich.console import Console

    from dcqcn_gym.benchmarks.speed.bridge import measure

    with Console(stderr=True).status("stepping") as status:
        cost = measure(
            scenario, steps, interval_us=interval_us, progress=lambda n: status.update(f"step {n}")
        )
    if as_json:
        typer.echo(json.dumps(cost.as_dict(), indent=2))
        return
    typer.echo(
        f"{cost.scenario} ({cost.hosts} hosts), {cost.steps} steps, reports of "
        f"{cost.report_kb:.0f} kB: the bridge takes {cost.median_ms:.2f} ms per step (median; "
        f"p95 {cost.p95_ms:.2f} ms), ns-3 itself {cost.simulator_ms:.1f} ms"
    )
