"""The verdict in words and as a table: the same block for the page, the terminal and programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dcqcn_gym.core.answer import Answer, name_of
from dcqcn_gym.core.score import CLASSES
from dcqcn_gym.core.verdict import Change, Flag, Verdict
from dcqcn_gym.report.measurements import JudgedSetting
from dcqcn_gym.runs.table import MISSING, Table, times, with_interval

Tone = Literal["gain", "loss", "none", "unknown"]

TONES: Mapping[str, Tone] = {
    "better": "gain", "starves": "loss", "trades": "loss", "worse": "loss",
    "nothing gained": "none",
}  # fmt: skip

ADVICE = {
    "yes": "Yes: it gains, and crosses no guardrail.",
    "unknown": "Not known: there is no evidence that other traffic would say the same.",
}

SLOWDOWN_NAMES = {"mean": "mean slowdown", "p99": "99th percentile"}

UNITS: Mapping[str, tuple[str, float, str]] = {
    "goodput": ("goodput, Gb/s", 1e-9, ".4g"),
    "rtt": ("round-trip time, µs", 1e6, ".4g"),
    "pause": ("paused, % of the time", 100, ".3g"),
    "worst_pause": ("paused, worst device, % of the time", 100, ".3g"),
    "unfinished": ("unfinished flows, %", 100, ".3g"),
    "round": ("round of a collective, ms", 1e-9, ".4g"),
    "utility": ("PARALEON's utility", 1, ".4f"),
}
"""Name with unit, factor from SI units (rounds: ps) and format of a figure."""


@dataclass(frozen=True)
class BlockRow:
    """One figure under every setting; the words say what the colours of the page say.

    ``against`` holds each reference's name with the change and its mark: ``worse``, ``better`` or
    nothing. ``judged`` compares the figure in words with the default and with its limit.
    """

    key: str
    name: str
    values: Mapping[str, str]
    against: Mapping[str, tuple[str, str]]
    judged: str
    over: bool


@dataclass(frozen=True)
class VerdictBlock:
    """What was gained, what it cost, whether to deploy it; ``tone`` is what the page colours.

    ``title`` is the verdict, ``answers`` are questions with their answers, ``rows`` the evidence.
    """

    word: str
    tone: Tone
    deploy: str
    title: str
    answers: Sequence[tuple[str, str]]
    rows: Sequence[BlockRow] = ()
    notes: Sequence[str] = ()
    traffic: str = "on held-out traffic"

    @property
    def baseline(self) -> str:
        """The setting in service, the first of the table."""
        return next(iter(self.rows[0].against)) if self.rows else "default"

    @property
    def settings(self) -> list[str]:
        """The settings of the table, references first."""
        return list(self.rows[0].values) if self.rows else []

    def table(self) -> Table:
        """Return the evidence for a terminal: of the changes, only those against the baseline."""
        columns = [self.traffic, *self.settings, f"against {self.baseline}", "verdict"]
        rows = [
            [row.name, *row.values.values(), _signed(*row.against[self.baseline]), row.judged]
            for row in self.rows
        ]
        return Table(columns, rows)


def block(
    judged: JudgedSetting, best: Answer, *, who: str, evidence: str, on: str = "held-out seeds"
) -> VerdictBlock:
    """Return the block of a judged setting; ``who`` found it, ``evidence`` says on what traffic.

    ``best`` is what is recommended of everything tried, ``on`` how the runs differ in traffic.
    """
    v = judged.verdict
    title = v.text[0].upper() + v.text[1:]
    answers = [
        ("Would you deploy it?", advice(v, best)),
        (
            "What was judged",
            f"the setting that {who} found, against {name_of(best.baseline)}, {evidence}",
        ),
        ("Gained", _gained(judged)),
        ("Cost", _cost(judged)),
    ]
    rows = _rows(judged)
    tone: Tone = "unknown" if v.deploy == "unknown" else TONES.get(v.word, "unknown")
    traffic = "on held-out traffic" if on == "held-out seeds" else f"on {on}"
    return VerdictBlock(v.word, tone, v.deploy, title, answers, rows, v.notes, traffic)


def unjudged(title: str, why: str) -> VerdictBlock:
    """Return the block of a run that was not judged on held-out traffic."""
    answers = [("Would you deploy it?", ADVICE["unknown"]), ("Why", why)]
    return VerdictBlock("not judged", "unknown", "unknown", title, answers)


def advice(v: Verdict, best: Answer) -> str:
    """Return the answer to whether one should deploy the candidate."""
    if v.deploy == "yes" and best.setting != "candidate":
        if best.action == "deploy":
            return f"No: it gains, but {name_of(best.setting)} is better."
        return "Not yet: it gains, but a guardrail may be crossed."
    if v.deploy != "no":
        return ADVICE[v.deploy]
    if v.word == "nothing gained":
        return "No: nothing was gained."
    up = [flag.name for flag in v.flags if flag.state == "up"]
    return (
        f"No: {', '.join(up)} beyond the guardrail."
        if up
        else f"No: it is worse than {name_of(best.baseline)}."
    )


def flags_text(flags: Sequence[Flag]) -> str:
    """Return the limits that are crossed, for one cell, and what had too few flows to be tested."""
    up = [flag.name for flag in flags if flag.state == "up"]
    few = {f.key.partition(" ")[2] for f in flags if f.state == "few" and f.cost.change.n}
    untested = [c.name for c in CLASSES if c.key in few]
    crossed = ", ".join(up) if up else "none"
    return f"{crossed} ({', '.join(untested)} not tested)" if untested else crossed


def _gained(judged: JudgedSetting) -> str:
    found = [_phrase(c) for c in _default_changes(judged) if c.better and c.key != "utility"]
    if judged.verdict.word == "no evidence":
        return "not known"
    return "; ".join(found) if found else "nothing that can be told from chance"


def _cost(judged: JudgedSetting) -> str:
    v = judged.verdict
    if v.word == "no evidence":
        return "not known"
    up = {flag.key for flag in v.flags if flag.state == "up"}
    table = {c.key: c for c in _default_changes(judged)}
    over = [f"{_phrase(table[key])}, beyond the limit" for key in table if key in up]
    small = [_phrase(c) for c in table.values()
             if c.worse and c.key not in up and c.key != "utility"]  # fmt: skip
    return "; ".join([*over, *small]) or "nothing that can be told from chance"


def _default_changes(judged: JudgedSetting) -> Sequence[Change]:
    return next(iter(judged.against.values()))


def _phrase(change: Change) -> str:
    name = _name(change.key).split(",")[0]
    return f"{name} {change_text(change)}"


def _name(key: str) -> str:
    if key in UNITS:
        return UNITS[key][0]
    what, _, size = key.partition(" ")
    of = next(c.name for c in CLASSES if c.key == size)
    return f"{of}: {SLOWDOWN_NAMES[what]}"


def change_text(change: Change) -> str:
    """Return a change with its interval in the unit of its figure."""
    unit = "\u00a0%" if change.relative else "\u00a0points"
    form, scale = ("+.1f", 100.0)
    if not change.relative and abs(change.change.mean) < 0.001:
        form = "+.3f"
    if change.key == "utility":
        form, scale, unit = "+.4f", 1.0, ""
    text = with_interval(change.change, form, scale, unit=unit, style="brackets")
    return str(text).replace("-", "−")


def _value(key: str, value: float) -> str:
    if math.isnan(value):
        return MISSING
    if key not in UNITS:
        return times(value)
    _, scale, form = UNITS[key]
    return f"{value * scale:{form}}"


def _rows(judged: JudgedSetting) -> list[BlockRow]:
    flags = {flag.key: flag for flag in judged.verdict.flags}
    rows = []
    for i, change in enumerate(_default_changes(judged)):
        each = {name: table[i] for name, table in judged.against.items()}
        if not any(c.change.n for c in each.values()):
            continue  # a class without flows
        values = {name: _value(change.key, c.reference) for name, c in each.items()}
        flag = flags.get(change.key)
        rows.append(
            BlockRow(
                change.key,
                _name(change.key),
                {**values, "candidate": _value(change.key, change.ours)},
                {name: (change_text(c), _mark(c)) for name, c in each.items()},
                _judged_text(change, flag),
                flag is not None and flag.state == "up",
            )
        )
    return rows


def _mark(change: Change) -> str:
    return "worse" if change.worse else "better" if change.better else ""


def _signed(text: str, mark: str) -> str:
    """Return a cell whose mark does not rest on a colour."""
    plain = text.replace("\u00a0", " ")
    return f"{plain} {SIGNS[mark]}" if mark else plain


SIGNS = {"worse": "▲", "better": "✓"}


def _judged_text(change: Change, flag: Flag | None) -> str:
    if flag is None:
        return _mark(change)
    limit = f"{flag.limit * 100:g} {'%' if change.relative else 'points'}"
    return {
        "up": f"▲ worse, beyond the limit of {limit}",
        "open": f"{_mark(change) or 'no difference'}, but more than {limit} is not ruled out",
        "few": f"{_mark(change) or 'no difference'}; not tested: too few flows",
        "clear": _mark(change) and f"{_mark(change)}, within the limit"
        if change.worse
        else _mark(change),
    }[flag.state]
