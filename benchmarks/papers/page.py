"""A paper's page: what it claims and what came out, from the results on file alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import TypeAlias

from dcqcn_gym.benchmarks.papers.catalog import PAPERS, ROWS, Item, Paper, figure, figures_of
from dcqcn_gym.benchmarks.papers.checks import Checks, acks_text, confirmed_text
from dcqcn_gym.benchmarks.papers.claims import JudgedClaim, Outcome, judge
from dcqcn_gym.benchmarks.papers.figure import Figure
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.plot import draw
from dcqcn_gym.core.statistics import BOOTSTRAP_FROM, estimate
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.markdown import Marked, plain
from dcqcn_gym.runs.table import Table, as_csv, count_of, with_interval

MISSING = "not yet measured"
ELSEWHERE = "results are in the repository, not in wheels"
KEPT = "-prototype"
"""The end of the name of a figure that keeps a size which was not run again."""
SHORT = 5
"""Lines up to which the table of a figure without a plot stands on its page."""
SHARED = 4
"""Words that two claims begin with from which on the second is written without them."""
FOLD = '<details markdown="1"><summary>Settings chosen here</summary>'
Found = Mapping[str, tuple[FigureResults, float | None]]
"""The results of figures that are committed, and the CPU seconds they took."""
Said: TypeAlias = dict[str, tuple[str, int]]
"""Choices that a page has named: the figure of each, and its number there."""
NO_CHECKS = Checks()

TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
"""A table in Markdown: lines that begin with a bar."""


def came_out(row: Item, found: Found) -> str:
    """Return what became of a figure or table: its verdicts, or why it has none."""
    if row.state != "built":
        return row.state + (f": {row.impossible}" if row.impossible else "")
    there = [part for part in row.files if part in found]
    judged = [one for part in there for one in judge_all(found[part][0])]
    if not found:
        return ELSEWHERE
    words = [overall(judged)] if there else []
    return "; ".join(words + [MISSING] * (len(row.files) - len(there)))


def size_and_cost(results: FigureResults, cpu_s: float | None) -> str:
    """Return the size of committed results and the CPU seconds they took."""
    return results.size if cpu_s is None else f"{results.size} ({cpu_s:,.0f})"


def claims_by_verdict(found: Found) -> str:
    """Return how many claims of all papers have which verdict, in a sentence."""
    return f"In all, {overall(_counted(found, found))}."


def by_paper(found: Found, pages: str) -> Table:
    """Return a line a paper: its figures, and how many claims have which verdict.

    ``pages`` is the folder of the pages, as links have it.
    """
    lines = []
    for paper in PAPERS:
        rows = [row for row in ROWS if row.paper == paper.name]
        of_paper = {of.name for of in figures_of(paper.name)}
        judged = _counted(found, of_paper)
        counts = [len([one for one in judged if one.verdict is verdict]) for verdict in Outcome]
        signs = len([one for one in judged if one.by_sign])
        measured = len([row for row in rows if row.state == "built"])
        link = Marked(f"[{paper.title}]({pages}/{paper.name}.md)")
        shown = [f"{counts[0]} ({signs})", *map(str, counts[1:])]
        lines.append([link, f"{measured} of {len(rows)}", *shown])
    first, *others = (verdict.value for verdict in Outcome)
    columns = ("paper", "figures and tables", f"{first} (by sign)", *others)
    return Table(columns, lines, words=1)


def _counted(found: Found, names: Iterable[str]) -> list[JudgedClaim]:
    """Return the claims of figures by name, each once."""
    there = [name for name in names if name in found and not figure(name).judged_in]
    return [one for name in there for one in judge_all(found[name][0])]


def judge_all(results: FigureResults) -> list[JudgedClaim]:
    """Return the verdict of every claim of the figure that results belong to."""
    return judge(figure(results.figure).claims, results)


def overall(judged: list[JudgedClaim]) -> str:
    """Return the verdicts of a figure in a phrase: how many claims have which, best first."""
    counts = {v: len([one for one in judged if one.verdict is v]) for v in Outcome}
    said = [f"{n} {v.value}" for v, n in counts.items() if n]
    if signs := len([one for one in judged if one.by_sign]):
        said[0] += f" ({signs} by sign)"
    return f"{count_of(len(judged), 'claim')}: {', '.join(said)}"


def claims_table(judged: list[JudgedClaim]) -> Table:
    """Return claims and verdicts by number, for a terminal, where sentences take much space."""
    columns = ["#", "the paper says", "verdict", "found"]
    rows = [[f"{n}", one.claim.text, _verdict(one), _found(one)] for n, one in enumerate(judged, 1)]
    causes = [_note(one) or ("open" if one.verdict is Outcome.NOT else "") for one in judged]
    if any(causes):
        columns.append("cause")
        rows = [[*row, cause] for row, cause in zip(rows, causes, strict=True)]
    return Table(columns, rows, words=3)


def _found(one: JudgedClaim) -> str:
    claim, cells = one.claim, len(one.claim.cells)
    found = with_interval(one.found, claim.form, claim.scale, unit=claim.unit, style="brackets")
    return found if cells == 1 else f"{found} ({one.cell}, of {cells})"


def _verdict(one: JudgedClaim) -> str:
    return f"{one.verdict.value} by sign" if one.by_sign else one.verdict.value


def _note(one: JudgedClaim) -> str:
    """Return why a verdict is what it is, and the other readings that were tried; "" if neither."""
    tried = f"Tried too: {'; '.join(one.tried)}" if one.tried else ""
    return ". ".join(filter(None, (one.cause, tried)))


def verdict_text(judged: list[JudgedClaim]) -> str:
    """Return claims, findings and verdicts as a table; below it each cause once."""
    at = judged[0].claim.place
    causes = list(dict.fromkeys(filter(None, map(_note, judged))))
    rows = []
    before = ""
    for one in judged:
        said, place, verdict = plain(_after(before, one)), one.claim.place, _verdict(one)
        before = one.claim.text
        if note := _note(one):
            verdict += f" ({ascii_lowercase[causes.index(note)]})"
        if one.verdict is Outcome.NOT and not one.cause:
            verdict += ", cause open"
        rows.append([Marked(said if place == at else f"{said} ({place})"), _found(one), verdict])
    parts = [Table((f"{at} says", "found", "verdict"), rows, words=1).markdown()]
    notes = zip(ascii_lowercase, causes, strict=False)
    parts += [f"({letter}) {plain(cause)}" for letter, cause in notes]
    return "\n\n".join(parts)


def _after(before: str, one: JudgedClaim) -> str:
    """Return a claim without the words it begins with if they are half of it, and before it too."""
    words, others = ([*text.split(), ""] for text in (one.claim.text, before))
    same = 0
    while words[same] and words[same].rstrip(";,") == others[same].rstrip(";,"):
        same += 1
    same -= words[same].isdigit()
    short = " ".join(["…", *words[same:-1]])
    return short if same >= SHARED and 2 * same >= len(words) - 1 else one.claim.text


def table_of(of: Figure, results: FigureResults) -> Table:
    """Return every row and place with mean and interval of each measure."""
    rows = []
    for row, x in results.places:
        cells = [
            with_interval(estimate(results.values(m.name, row, x)), m.form, m.scale)
            for m in of.measures
        ]
        rows.append([row, f"{x:g}" if isinstance(x, int | float) else x, *cells])
    return Table(("series", of.x, *(m.title for m in of.measures)), rows, words=1)


def write_numbers(of: Figure, results: FigureResults, folder: Path) -> str:
    """Write every row's means and intervals into ``folder`` as CSV; return the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    titles = [f"{m.title}{part}" for m in of.measures for part in ("", ", low", ", high")]
    rows: list[list[object]] = [["series", of.x, *titles]]
    for row, x in results.places:
        found = [(m, estimate(results.values(m.name, row, x))) for m in of.measures]
        cells = [(m, value) for m, e in found for value in (e.mean, e.low, e.high)]
        numbers = ["" if v is None else f"{v * m.scale:.6g}" for m, v in cells]
        rows.append([row, f"{x:g}" if isinstance(x, int | float) else x, *numbers])
    name = f"{of.name}.csv"
    write_atomically(folder / name, as_csv(rows))
    return name


def write_pictures(of: Figure, results: FigureResults, folder: Path) -> list[str]:
    """Draw a figure's plots into ``folder``; return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, svg in enumerate(draw(of, results), 1):
        names.append(f"{of.name}-{number}.svg")
        write_atomically(folder / names[-1], svg.encode())
    return names


def figure_text(
    of: Figure,
    results: FigureResults,
    pictures: Sequence[str],
    cpu_s: float | None,
    said: Said | None = None,
) -> str:
    """Return a figure's section: verdicts, plots, a short table, choices, command and cost.

    ``said`` holds the choices of the sections above; those of this one join it.
    """
    judged = judge(of.claims, results)
    parts = [f"## {of.name}: {of.title}", verdict_text(judged)]
    if of.judged_in:
        again = (
            "Judged by the prototype's ranges: not run again. " if of.name.endswith(KEPT) else ""
        )
        parts.append(f"{again}The same claims are counted in {of.judged_in}.")
    parts += [f"![{p.title}]({name})" for p, name in zip(of.plots, pictures, strict=True)]
    tested = any(one.verdict is not Outcome.NO_TEST for one in judged)
    if tested and not of.plots and len(results.places) <= SHORT:
        parts.append(table_of(of, results).markdown())
    if of.ours:
        parts += [FOLD, "\n".join(_choices(of, said)), "</details>"]
    command = f"dcqcn-gym paper run {of.name} --size {results.size}"
    cost = count_of(len(results.seeds), "seed")
    if cpu_s is not None:
        cost += f", {cpu_s:.0f} s of CPU time"
    parts.append(f"`{command}`: {cost}. [All numbers](tables/{of.name}.csv)")
    return "\n\n".join(parts)


def _choices(of: Figure, said: Said | None) -> list[str]:
    """Return a figure's choices as a list; those of a section above by name and number."""
    known = {} if said is None else said
    lines = [one for one in of.ours if one not in known]
    before: dict[str, list[str]] = {}
    for one in of.ours:
        if one in known:
            name, number = known[one]
            before.setdefault(name, []).append(str(number))
    known.update({one: (of.name, number) for number, one in enumerate(lines, 1)})
    lines += [f"as {name}, {', '.join(numbers)}" for name, numbers in before.items()]
    return [f"{number}. {line}" for number, line in enumerate(lines, 1)]


def page(paper: Paper, found: Found, pictures: Path, checks: Checks = NO_CHECKS) -> str:
    """Return a paper's page and write its pictures into ``pictures``."""
    of_paper = list(figures_of(paper.name))
    lines = [_overview(row, found) for row in ROWS if row.paper == paper.name]
    columns = ("figure or table", "what came out here")
    parts = [
        f"# {paper.title}: its figures, measured here",
        f"Which claims of {paper.title} ({paper.source}) come out in this simulator, and why do "
        "the others not? Made by `python tools/paper_pages.py`; "
        "[rules](ten-minutes.md) give the verdicts. Brackets: 95 % intervals over the seeds "
        f"(Student's t, from {BOOTSTRAP_FROM} seeds on BCa bootstrap), changes paired by seed.",
        *([paper.note] if paper.note else []),
        Table(columns, lines, words=2).markdown(),
        *_readings(found, [of for of in of_paper if of.name in found]),
        *_turned(found, [of for of in of_paper if of.name in found]),
    ]
    said: Said = {}
    for of in of_paper:
        if of.name not in found:
            continue
        results, cpu_s = found[of.name]
        names = write_pictures(of, results, pictures)
        write_numbers(of, results, pictures.parent / "tables")
        parts.append(figure_text(of, results, [f"images/{name}" for name in names], cpu_s, said))
        if of.name in checks.acks:
            parts.append(acks_text(of, *checks.acks[of.name]))
    if paper.name in checks.confirmed:
        parts.append(confirmed_text(checks.confirmed[paper.name]))
    return mark_tables("\n\n".join(parts) + "\n")


def mark_tables(text: str) -> str:
    """Put every table between comments, so that a count of words can tell tables from prose."""
    return TABLE.sub(r"<!-- table: begin -->\n\n\g<0>\n<!-- table: end -->\n", text)


def _readings(found: Found, figures: Sequence[Figure]) -> list[str]:
    """Return the claims that come out under another reading, as a table; nothing without one."""
    rows = [
        [of.name, Marked(plain(one.claim.text)), plain(re.split(r"[;.] ", one.cause or "")[0])]
        for of in figures
        for one in judge(of.claims, found[of.name][0])
        if one.verdict is Outcome.READING
    ]
    columns = ("figure", "the paper says", "it comes out")
    return [Table(columns, rows, words=2).markdown()] if rows else []


def _turned(found: Found, figures: Sequence[Figure]) -> list[str]:
    """Return the claims that the series of before judge otherwise, as a table; or nothing.

    Beside them the larger size that was not run again, where a figure keeps one.
    """
    rows = []
    for of in figures:
        results = found[of.name][0]
        kept = f"{of.name}{KEPT}"
        larger = judge_all(found[kept][0]) if kept in found else None
        pairs = zip(judge_before(of, results), judge_all(results), strict=True)
        for number, (then, now) in enumerate(pairs):
            before = {results.size: then}
            if larger is not None:
                before[found[kept][0].size] = larger[number]
            if all(_verdict(one) == _verdict(now) for one in before.values()):
                continue
            said = [f"{size}: {_found(one)}, {_verdict(one)}" for size, one in before.items()]
            last = f"{results.size}: {_found(now)}, {_verdict(now)}"
            rows.append([of.name, Marked(plain(now.claim.text)), "; ".join(said), last])
    columns = ("figure", "the paper says", "judged before, by size", "judged now")
    return [Table(columns, rows, words=2).markdown()] if rows else []


def judge_before(of: Figure, results: FigureResults) -> list[JudgedClaim]:
    """Return the verdict of every claim by the series that were judged before (``of.before``)."""
    names = {**of.before, **{then: now for now, then in of.before.items()}}
    lines = [{**line, "row": names.get(line["row"], line["row"])} for line in results.lines]
    return judge(of.claims, FigureResults(results.figure, results.size, lines))


def _overview(row: Item, found: Found) -> list[str]:
    if row.state != "built":
        why = f": {row.impossible}" if row.impossible else ""
        return [row.name, f"{row.title}: {row.state}{why}"]
    words = []
    for part in row.files:
        if part in found:
            of = figure(part)
            title = f"{of.name}: {of.title}"
            words.append(f"[{overall(judge(of.claims, found[part][0]))}](#{_anchor(title)})")
        else:
            words.append(MISSING)
    return [row.name, Marked(f"{plain(row.title)}: {'; '.join(words)}")]


def _anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def write_pages(
    docs: Path, found: Found, checks: Checks = NO_CHECKS, papers: list[str] | None = None
) -> list[Path]:
    """Write the page of every paper that has results; return the files."""
    written = []
    for paper in PAPERS:
        there = [of for of in figures_of(paper.name) if of.name in found]
        if not there or (papers is not None and paper.name not in papers):
            continue
        path = docs / f"{paper.name}.md"
        docs.mkdir(parents=True, exist_ok=True)
        write_atomically(path, page(paper, found, docs / "images", checks).encode())
        written.append(path)
    return written
