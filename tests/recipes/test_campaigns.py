"""Recipes of what runs in campaigns: a study of many runs, and a figure of a paper."""

from __future__ import annotations

import json

import pytest
from copied import Copy

pytestmark = pytest.mark.slow

STUDY = """description = "How far do packets go?"
intervals = 3
seeds = 2
[[tables]]
kind = "hops"
[[cases]]
scenario = "mini-fb-hadoop"
[[entries]]
name = "default"
[[entries]]
name = "random"
"""
TABLE = '''def _hops(plan: Plan, _: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield the hops of all packets, run by run."""
    lines = [
        [entry, *(f"{metric('hops').of(run):.0f} hops" for run in series_of(t.log for t in some))]
        for (_, entry), some in trials.items()
    ]
    yield Table(("entry", *map(str, plan.every_seed)), lines)


TABLES: Mapping['''


def test_a_study(tree: Copy) -> None:
    tree.add("configs/studies/hops.toml", STUDY)
    tables = "src/dcqcn_gym/comparison/tables.py"
    tree.change(tables, "TABLES: Mapping[", TABLE)
    tree.change(tables, '    "held-out":', '    "hops": _hops,\n    "held-out":')
    line = "from dcqcn_gym.report.paired import"
    tree.change(tables, line, f"from dcqcn_gym.report.metrics import metric\n{line}")
    tree.change("src/dcqcn_gym/comparison/plan.py", '"iterations"]', '"iterations", "hops"]')
    row = '    "drops": Metric('
    new = '    "hops": Metric(lambda run: float(run.column("packet_hops").sum()), "hops"),\n'
    tree.change("src/dcqcn_gym/report/metrics.py", row, new + row)
    tree.check_named("a study of many runs")
    file = "configs/studies/hops.toml"
    said = tree.run(f"dcqcn-gym study {file} --out runs/try")
    logs = sorted((tree.root / "runs/try").rglob("*.jsonl"))
    assert len(logs) == 4
    for log in logs:
        lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        hops = sum(line["packet_hops"] for line in lines if "setting" in line)
        assert f"{hops} hops" in said
    assert tree.test("tests/comparison/test_study.py", "-k '[hops]'") == 2


NAME = "D-fig5-short"
RESULTS = f"benchmarks/papers/results/{NAME}-quick.jsonl"
QUICK = '"quick": Size(_points((55, 300, 1000, 2000)), 3, length_ms=500)'
FIGURE = {
    'name="D-fig5"': f'name="{NAME}"',
    QUICK: '"quick": Size(_points((55, 2000)), 2, length_ms=12)',
}
TESTS = f"{NAME} or committed or kept or readme or catalogue or list"


def test_a_figure_of_a_paper(tree: Copy) -> None:
    figures = "benchmarks/papers/figures"
    tree.copy(f"{figures}/d_fig5.py", f"{figures}/d_fig5_short.py", FIGURE)
    row = 'Item("D-fig5", _D, "timers and steps for large incast with 8 flows"'
    tree.change("benchmarks/papers/catalog.py", f"{row})", f'{row}, ("D-fig5", "{NAME}"))')
    tree.check_named("a figure of a paper")
    assert "reproduced" in tree.run(f"dcqcn-gym paper run {NAME} --size smoke")
    tree.run(f"dcqcn-gym paper run {NAME} --size quick")
    folder = f"runs/papers/{NAME}/quick"
    tree.run(f"python tools/paper_pages.py {folder} --readme README.md")
    assert tree.read(RESULTS) == tree.read(f"{folder}/results.jsonl")
    assert f"## {NAME}" in tree.read("docs/measured/papers/dcqcn-plus.md")
    assert "12 cells measured again" in tree.run(f"dcqcn-gym paper run --check {NAME}")
    assert tree.test("tests/papers/test_papers.py", f"-k '{TESTS}'") > 8
