"""The block at the top of the report: from the held-out runs, or why there is no verdict."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import Verdict, changes, verdict
from dcqcn_gym.report.answer import AnswerBlock
from dcqcn_gym.report.data import PARTS, ReportData
from dcqcn_gym.report.measurements import UNTOLD, JudgedSetting
from dcqcn_gym.report.metrics import mean_utility
from dcqcn_gym.report.verdict_block import VerdictBlock, block, unjudged
from dcqcn_gym.runs.entries import REFERENCES
from dcqcn_gym.runs.table import count_of, number


def judged_run(data: ReportData) -> JudgedSetting | None:
    """Judge the candidate by its held-out runs; None if it has none."""
    if not data.seeds:
        return None
    ours = data.measured["candidate"]
    against = {name: data.measured[name] for name in dict.fromkeys((data.baseline, *REFERENCES))}
    found = verdict(ours, against[data.baseline], data.guardrails)
    if not data.complete:
        found = Verdict("no evidence", UNTOLD, "unknown", estimate([]))
    drawn = all(m.drawn for m in ours)
    tables = {name: changes(ours, theirs, drawn=drawn) for name, theirs in against.items()}
    return JudgedSetting(found, tables, len(ours), drawn)


def headline(data: ReportData, judged: JudgedSetting | None, best: AnswerBlock) -> VerdictBlock:
    """Say what was gained over the setting in service, what it costs, and whether to deploy it.

    ``judged`` is what :func:`judged_run` gave, ``best`` what is recommended. Only held-out seeds
    count; without those, the block says why there is no verdict, and what is known of the search.
    """
    tuner = str(data.run.header.get("tuner", "the tuner"))
    if judged is None:
        return unjudged(_unjudged_title(data), _search(data, tuner))
    first = data.held_out["candidate"][0]
    length = number((first.window_ps[1] - first.window_ps[0]) * 1e-9)
    runs = count_of(judged.seeds, "held-out seed")
    if data.judged_on.startswith(PARTS):
        runs = f"{judged.seeds} {data.judged_on},"
    elif not judged.drawn:
        runs = f"{count_of(judged.seeds, 'run')} of the traffic that it was tuned on,"
    what = f"on {runs} of {count_of(len(first), 'interval')}"
    return block(
        judged, best.answer, who=tuner, evidence=f"{what} ({length} ms)", on=data.judged_on
    )


def _unjudged_title(data: ReportData) -> str:
    if data.finished:
        return "Not judged: no setting was tried on held-out traffic"
    done, asked = len(data.run), data.run.header.get("intervals")
    return f"Not judged: the run ends early, after {done} of {asked} intervals"


def _search(data: ReportData, tuner: str) -> str:
    """Return what is known of a search that was not judged."""
    n = len(data.run)
    ours = mean_utility(data.run)
    if not n or np.isnan(ours):
        return "The log holds no interval with traffic yet."
    default = data.references.get("default")
    if default is None or not len(default):
        return (
            f"Mean utility was {ours:.4f} over {n} intervals of {tuner}; there is no run with "
            "the default setting to compare it with."
        )
    m = min(n, len(default))
    ours, theirs = mean_utility(data.run.first(m)), mean_utility(default.first(m))
    word = "above" if ours > theirs else "below" if ours < theirs else "equal to"
    return (
        f"While {tuner} was searching, mean utility was {ours:.4f}, {word} the default's "
        f"{theirs:.4f} on the same traffic; no setting was tried on held-out seeds, so what "
        "a recommendation would gain is not known."
    )
