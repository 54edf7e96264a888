"""A comparison as a table: cells as text, Markdown, and the page's entries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dcqcn_gym.comparison.compare import command_of
from dcqcn_gym.comparison.network_tables import network_tables
from dcqcn_gym.comparison.plan import Plan
from dcqcn_gym.comparison.ranks import leader
from dcqcn_gym.comparison.results import EntryResult, answer_of, baseline_of
from dcqcn_gym.core.answer import Answer
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.sums import count
from dcqcn_gym.report.traffic_choice import SessionLength
from dcqcn_gym.report.verdict_block import flags_text
from dcqcn_gym.runs.markdown import Marked, code, plain
from dcqcn_gym.runs.table import MISSING, Table, count_of, times, with_interval

COLUMNS = (
    "tuner",
    "final utility",
    "against the baseline",
    "online utility",
    "95 % of best after",
    "slowdown, mean",
    "p99",
    "finished only, mean",
    "p99",
    "unfinished",
    "paused",
    "tuner CPU",
)


def cells(entry: EntryResult) -> list[str]:
    """Return an entry's cells in the order of :data:`COLUMNS`."""
    if not entry.seeds:
        why = f"failed: {entry.error}" if entry.error else "not finished"
        return [entry.tuner, why] + [MISSING] * (len(COLUMNS) - 2)
    return [
        entry.tuner,
        with_interval(entry.final),
        with_interval(entry.against_baseline, "+.4f"),
        with_interval(entry.online),
        _reached(entry),
        with_interval(entry.slowdown_mean, ".2f"),
        with_interval(entry.slowdown_p99, ".1f"),
        with_interval(entry.finished_mean, ".2f"),
        with_interval(entry.finished_p99, ".1f"),
        with_interval(entry.unfinished, ".0f"),
        with_interval(entry.pause_share, ".2f", 100) + " %",
        f"{entry.tuner_ms:.2f} ms",
    ]


def table(name: str, entries: Sequence[EntryResult]) -> Table:
    """Return a scenario's table."""
    return Table(COLUMNS, [cells(entry) for entry in entries], name)


VERDICT_COLUMNS = (
    "tuner",
    "verdict over the baseline",
    "score S",
    "guardrails crossed",
    "goodput, Gb/s",
    "against the baseline",
    "unfinished",
)


def verdict_table(name: str, entries: Sequence[EntryResult]) -> Table:
    """Return what each entry gained and cost on held-out seeds, paired with the baseline."""
    return Table(VERDICT_COLUMNS, [_verdict_cells(entry) for entry in entries if entry.seeds],
                 f"{name}: verdict", words=2)  # fmt: skip


def _verdict_cells(entry: EntryResult) -> list[str]:
    v = entry.verdict
    if v is None:
        judged = ["the baseline" if entry.is_baseline else "unknown", MISSING, MISSING]
    else:
        short = v.word if v.word == "no evidence" else v.text
        crossed = flags_text(v.flags) if v.flags else MISSING
        judged = [short, with_interval(v.score, "+.3f", style="brackets"), crossed]
    return [
        entry.tuner,
        *judged,
        with_interval(entry.goodput_bps, ".4g", 1e-9),
        with_interval(entry.goodput_change, "+.1f", 100, unit=" %", style="brackets"),
        with_interval(entry.unfinished, ".0f"),
    ]


def during_table(name: str, entries: Sequence[EntryResult]) -> Table:
    """Return slowdowns by class of size of the flows that ran while tuning, search included.

    Of all flows, unfinished ones at their age; in brackets those of finished flows alone.
    """
    columns = ["tuner", *(f"{c.name}, {s}" for c in CLASSES for s in ("mean", "p99"))]
    cells_of = [
        [
            entry.tuner,
            *(_during_cell(entry, i, s) for i in range(len(CLASSES)) for s in ("mean", "p99")),
        ]
        for entry in entries
        if entry.seeds
    ]
    return Table(columns, cells_of, f"{name}: FCT slowdown while tuning")


def _during_cell(entry: EntryResult, i: int, statistic: str) -> str:
    every, finished = (
        estimate([float(getattr(kind[i], statistic)) for kind in kinds if kind]).mean
        for kinds in ([f.during for f in entry.figures], [f.during_finished for f in entry.figures])
    )
    return f"{times(every)} ({times(finished)})"


def tables(name: str, entries: Sequence[EntryResult], bins: str | None = None) -> list[Table]:
    """Return every table of a scenario, the verdict first; ``bins`` as :func:`network_tables`."""
    found = [verdict_table(name, entries), table(name, entries), during_table(name, entries)]
    return [*(one for one in found if one.rows), *network_tables(name, entries, bins)]


def answers(plan: Plan, tables: Mapping[str, Sequence[EntryResult]]) -> dict[str, Answer]:
    """Return the answer of each scenario of a comparison, with the command that goes on from it."""
    found = {}
    asked = SessionLength(plan.intervals, plan.judged_seeds, plan.held_out_intervals, plan.seeds)
    for case in plan.cases:
        entries = tables.get(case.folder, ())
        one = answer_of(entries, case.loaded, baseline_of(case.loaded), asked)
        of = next((e for e in plan.entries if e.name == one.setting), None)
        if one.action in ("deploy", "a choice") and of is not None:
            tune = f"dcqcn-gym tune --scenario {case.scenario} --tuner {of.entry.tuner} --out DIR"
            one = replace(one, next_step=f"{tune}, then {one.next_step}")
        found[case.folder] = one
    return found


def headline(name: str, entries: Sequence[EntryResult], answer: Answer) -> str:
    """Return who is ahead, as far as the seeds show it, then what to do."""
    calibrated = f"; {answer.calibrated}" if answer.calibrated else ""
    return f"{name}: {leader(entries)} {answer.title}{calibrated}"


def _reached(entry: EntryResult) -> str:
    there = count(math.isfinite(r) for r in entry.reached)
    median = entry.reached_median
    if not there:
        return "never"
    text = f"{median:.0f}" if math.isfinite(median) else MISSING
    return text if there == entry.seeds else f"{text} ({there} of {entry.seeds} seeds)"


def explain(plan: Plan) -> str:
    """Return what the columns mean, for under a table."""
    interval = (
        "± is a 95 % confidence interval over the seeds (Student's t below 20 seeds, BCa bootstrap "
        "from there on)"
    )
    return (
        f"{count_of(plan.seeds, 'seed')}, {plan.intervals} intervals each; "
        f"{interval}. Final: mean utility of the recommended setting on {plan.held_out_intervals} "
        f"intervals of {count_of(plan.held_out_seeds, 'held-out seed')} per run, "
        "the same for every tuner (on a list of flows, later parts of the same trace, others for "
        "each seed, where so many lie behind the search; with blocks_us, of blocks in another "
        "order); the baseline is the setting in service (default, or do-nothing where [initial] "
        "gives another), and the difference to it is paired by seed. "
        "Online: mean utility of the run itself, search included. 95 % of best: median "
        "over the seeds of the first interval at which the mean utility of the last 10 intervals "
        "with data reached 95 % of the highest such mean of any tuner on that seed, a dash if "
        "most seeds never did. "
        "Slowdown: FCT over the FCT in an idle network, all sizes, of the recommended setting; "
        "flows that started in the first 80 % of a run, unfinished ones at their age. Finished "
        "only: the flows that finished, so starving flows makes it better. Unfinished: flows at "
        "the end of a held-out run. S: mean log gain in slowdown over the baseline on held-out "
        "traffic, each class of sizes counting the same, paired by seed; docs/verdict.md tells the "
        "rules of the verdict. Slowdown while tuning: the flows that ran during the search, those "
        "of finished flows alone in brackets. "
        "Paused: share of time, mean over devices, during the run. Tuner CPU: per interval, on the "
        "machine that made the table."
    )


def markdown(
    plan: Plan,
    tables: Mapping[str, Sequence[EntryResult]],
    notes: Sequence[str],
    out: Path,
    bins: str | None = None,
) -> str:
    """Return the tables as Markdown with the command that makes them."""
    found = answers(plan, tables)
    lines = [f"Made by {code(command_of(plan, out))}.", "", explain(plan)]
    for name, entries in tables.items():
        cells_of = [_named(entry, plan) for entry in entries]
        lines += [
            "",
            f"### {plain(name)}",
            "",
            f"{plain(headline(name, entries, found[name]))}.",
            "",
        ]
        parts = [
            verdict_table(name, entries),
            Table(COLUMNS, cells_of),
            during_table(name, entries),
        ]
        lines += ["\n\n".join(part.markdown() for part in parts if part.rows)]
        for more in network_tables(name, entries, bins):
            lines += ["", f"{plain(more.title)}:", "", more.markdown()]
        errors = [
            f"- {code(entry.tuner)}: {plain(entry.error)}"
            for entry in entries
            if entry.error and entry.seeds
        ]
        lines += ["", *errors] if errors else []
    lines += ["", *[f"- {plain(note)}" for note in notes]] if notes else []
    return "\n".join(lines) + "\n"


def _named(entry: EntryResult, plan: Plan) -> list[str]:
    first, *rest = cells(entry)
    short = "" if entry.seeds in (0, plan.seeds) else f" ({entry.seeds} of {plan.seeds} seeds)"
    return [Marked(f"{code(first)}{short}"), *rest]
