"""A comparison for papers: booktabs tables, and a row for every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dcqcn_gym.comparison.results import EntryResult
from dcqcn_gym.comparison.text import table
from dcqcn_gym.runs.results import plain
from dcqcn_gym.runs.table import as_csv

_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "\u2212": r"$-$", "–": "--", "µ": r"\textmu{}", "\u00a0": "~",
}  # fmt: skip


def latex(tables: Mapping[str, Sequence[EntryResult]]) -> str:
    """Return a ``tabular`` a scenario; they need the package booktabs."""
    parts = []
    for name, rows in tables.items():
        found = table(name, rows)
        body = [" & ".join(map(escaped, row)) + r" \\" for row in found.rows]
        parts += [
            f"% {name}",
            r"\begin{tabular}{l" + "r" * (len(found.columns) - 1) + "}",
            r"\toprule",
            " & ".join(map(escaped, found.columns)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def seed_rows(tables: Mapping[str, Sequence[EntryResult]]) -> list[dict[str, object]]:
    """Return a row a scenario, entry and seed."""
    return [
        {"scenario": name, "tuner": row.tuner, **_flat(plain(figures))}
        for name, rows in tables.items()
        for row in rows
        for figures in row.figures
    ]


def csv_of(found: Sequence[Mapping[str, object]]) -> bytes:
    """Return rows of :func:`seed_rows` as CSV."""
    columns = list(dict.fromkeys(key for row in found for key in row)) or ["scenario", "tuner"]
    return as_csv([columns, *([row.get(name, "") for name in columns] for row in found)])


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    """Return the figures that are numbers or words."""
    return {k: v for k, v in values.items() if v is None or isinstance(v, int | float | str)}
