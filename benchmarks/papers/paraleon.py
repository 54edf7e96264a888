"""PARALEON's rows beside those of the others, and what its figures take from a run's log."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.papers.acks import as_asked
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Measure, Size
from dcqcn_gym.core.interval import FloatArray, IntArray
from dcqcn_gym.core.statistics import SizeBin, paper_bins, slowdown_by_size
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import Entry, changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.recorded import RunJob

PARALEON = "PARALEON"
PROTOTYPE = "PARALEON, prototype's ranges"
BEFORE = {PARALEON: PROTOTYPE}
"""The row that is judged, and the series of the one that was judged before it."""
EARLIER = Entry("paraleon-prototype", given_name=PROTOTYPE)
WITHIN = "within the ranges of the authors' first prototype"
"""The reading of that series, in words."""
FIVE = (
    Entry("paraleon", given_name=PARALEON),
    Entry("default"),
    Entry("expert"),
    Entry("acc", given_name="ACC"),
    Entry("do-nothing", changes={"scheme": "dcqcn-plus", "initial": "dcqcn-plus"},
        given_name="DCQCN+"),
)  # fmt: skip
"""PARALEON online, and what its figures 7 and 8 compare it with."""

_MICE, _ELEPHANTS, _ = paper_bins("paraleon")
MICE, ELEPHANTS = "mice", "elephants"


def under_names(
    measure: Callable[[Cell, Size], CellResult], names: Mapping[str, str], cell: Cell, size: Size
) -> CellResult:
    """Measure a cell of a figure whose rows have other ``names`` there."""
    return measure(replace(cell, row=names.get(cell.row, cell.row)), size)


def by_name(rows: Sequence[Entry]) -> Mapping[str, Entry]:
    """Return rows by their names."""
    return {row.name: row for row in rows}


def ran(scenario: Scenario, row: Entry, seed: int, length_ms: float) -> Series:
    """Run a row for so long after the warm-up; return its log as arrays."""
    intervals = max(1, round(length_ms * 1e9 / scenario.monitor_interval_ps))
    spec = row.spec(scenario, seed, intervals, "native")
    with tempfile.TemporaryDirectory() as folder:
        job = RunJob(spec, Path(folder) / "run.jsonl")
        job.run()
        return Series.of(read_run(job.path))


def held(run: Series) -> Entry:
    """Return the row that holds what a run's tuner recommended in the end."""
    assert run.end is not None  # the run was finished here
    setting: Mapping[str, Any] = run.end["recommended"]
    return Entry("fixed", tuner_args=setting)


def hops(run: Series) -> int:
    """Return the packet-hops of a run."""
    return count(line["packet_hops"] for line in run.records)


def by_size(run: Series) -> dict[str, float]:
    """Return slowdowns by PARALEON's sizes, unfinished flows at their age; then of finished ones.

    Mean and 99.9th percentile of mice (below 120 KB) and elephants (above 1 MB); NaN without flows.
    """
    values: dict[str, float] = {}
    for suffix, flows in (("", run.every_flow), (" finished", run.flows)):
        for name, size_bin in ((MICE, _MICE), (ELEPHANTS, _ELEPHANTS)):
            mean, p999 = _mean_and_tail(flows, size_bin)
            values[f"{name}{suffix}"], values[f"{name} p99.9{suffix}"] = mean, p999
    return values


def _mean_and_tail(flows: tuple[IntArray, FloatArray], of: SizeBin) -> tuple[float, float]:
    row = slowdown_by_size(*flows, [of])[0]
    return row.mean, row.value("p99.9")


def means(run: Series, begin_ms: float = 0.0, end_ms: float = float("inf")) -> dict[str, float]:
    """Return means over the intervals with traffic that begin in a span of simulated time.

    ``rtt`` in seconds, ``tp`` (O_TP), ``rate`` in bit/s, ``utility``.
    """
    start = run.column("start_ps") * 1e-9
    chosen = run.busy & (start >= begin_ms) & (start < end_ms)
    if not chosen.any():
        return dict.fromkeys(("rtt", "tp", "rate", "utility"), float("nan"))
    tp = np.array([line["terms"][0] for line in run.records])
    return {
        "rtt": float(np.nanmean(run.column("rtt_mean_ps")[chosen])) * 1e-12,
        "tp": float(tp[chosen].mean()),
        "rate": float(run.column("throughput_bps")[chosen].mean()),
        "utility": float(run.utility[chosen].mean()),
    }


def hadoop(load_of: str) -> dict[str, Any]:
    """Return FB_Hadoop at 30 % of what is named: ``host`` links or ``uplink``."""
    return {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.3, "load_of": load_of}


def influx(hosts: int, begin_ms: float, influx_ms: float) -> Scenario:
    """Return training with FB_Hadoop from all hosts for a while, on 128 hosts or on 16."""
    base = load_scenario("influx" if hosts == 128 else "mini-llm-alltoall")
    training = base.workloads[0].model_dump(mode="json")
    other = {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.3, "start_us": begin_ms * 1e3,
             "stop_us": (begin_ms + influx_ms) * 1e3}  # fmt: skip
    return changed_scenario(base, {"workloads": [training, other]}, "influx")


INFLUX = (
    Measure("rtt", "round trip in the influx, us", 1e6, ".0f"),
    Measure("tp", "O_TP in the influx", 1, ".3f"),
    Measure("rtt after", "round trip after it, us", 1e6, ".0f"),
    Measure("tp after", "O_TP after it", 1, ".3f"),
)
"""What figures 8 and 9 show of an influx."""


SIZES_OF_INFLUX = (
    "quick: 16 hosts at 25 Gb/s with 8 workers, and the weights of training (0.5, 0.2, 0.3), full: "
    "the paper's fabric, and its usual weights (0.2, 0.5, 0.3)"
)
"""What the sizes of these figures have; for their ``ours``."""


def through_influx(row: Entry, seed: int, size: Size) -> tuple[Series, dict[str, float]]:
    """Run a row through an influx; return the log, and the figures of :data:`INFLUX`.

    After it: from a sixth of its length on; there also ``rate after`` in bit/s.
    """
    begin, length = size.more["begin_ms"], size.more["influx_ms"]
    scenario = as_asked(influx(int(size.more["hosts"]), begin, length), size)
    run = ran(scenario, row, seed, size.length_ms)
    end = begin + length
    during, after = means(run, begin, end), means(run, end + length / 6)
    return run, {
        "rtt": during["rtt"], "tp": during["tp"], "rtt after": after["rtt"],
        "tp after": after["tp"], "rate after": after["rate"],
    }  # fmt: skip
