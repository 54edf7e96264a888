"""Every kind of page, by axe: what people without a mouse or a screen would stumble over.

axe comes with the package axe-core-python, so that nothing is fetched. ``moderate`` findings count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import MISSING, SCHEMES, WIDTHS, found, show
from typer.testing import CliRunner

from dcqcn_gym.cli import app

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("in_threads"),
    pytest.mark.skipif(not found(), reason=MISSING),
]

DATA = Path(__file__).parents[2] / "benchmarks" / "leaderboard" / "data" / "season-1"
TUNE = "--scenario mini-fb-hadoop --backend fake --quiet --intervals 6 --eval-intervals 5"
MADE: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "site": (
        app,
        f"bench site {DATA}",
        ("index.html", "join.html", "protocol.html",
         "entries/season-1-paraleon.html", "scenarios/season-1-013-star-50g-beside-tcp.html"),
    ),
    "tune": (app, f"tune {TUNE} --tuner random", ("report.html",)),
    "compare": (
        app, f"compare {TUNE} --tuners default,random --seeds 2 --eval-seeds 1 --jobs 1",
        ("compare.html",),
    ),
    "simulate": (
        app,
        "simulate --scenario mini-llm-alltoall --intervals 6 --against expert --trace queue,rate",
        ("report.html",),
    ),
    "traffic": (app, "traffic import TRACE --page", ("traffic.html",)),
}  # fmt: skip


TRACE = "start_us,from,to,bytes\n" + "".join(
    f"{9 * i},h{i % 3},h{3 + i % 2},{900 * i + 1}\n" for i in range(50)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


ALIKE = """
for (const body of document.querySelectorAll("tbody"))
    [...body.rows].slice(4, -4).forEach((row) => row.remove());
for (const figure of document.querySelectorAll("figure"))
    [...figure.querySelectorAll("svg")].slice(2, -2).forEach((plot) => plot.remove());
"""
"""Most of a page are rows of tables and plots of a figure, each from one template: axe takes a
second for each five hundred elements."""


def stumbling(driver: Any, page: Path) -> list[str]:
    """Return what axe finds on a page, at each width and in light and dark colours.

    Wide and light it is whole; else it has the first and last four rows of each table and the
    first and last two plots of each figure.
    """
    from axe_core_python.selenium import Axe  # type: ignore[import-untyped, unused-ignore]

    axe, said = Axe(), set()
    for width in WIDTHS:
        for scheme in SCHEMES:
            show(driver, page, width, scheme)
            if (width, scheme) != (WIDTHS[0], SCHEMES[0]):
                driver.execute_script(ALIKE)
            for one in axe.run(driver)["violations"]:
                said.add(f"{one['id']} at {width}, {scheme}: {one['nodes'][0]['html'][:200]}")
    return sorted(said)


@pytest.mark.parametrize("name", MADE)
def test_nobody_stumbles(driver: Any, root: Path, name: str) -> None:
    program, words, pages = MADE[name]
    (root / "trace.csv").write_text(TRACE)
    words = words.replace("TRACE", str(root / "trace.csv"))
    done = CliRunner().invoke(program, [*words.split(), "--out", str(root / name)])
    assert done.exit_code == 0, done.output
    for page in pages:
        assert stumbling(driver, root / name / page) == [], page


def test_nobody_stumbles_over_the_list_of_runs(driver: Any, root: Path) -> None:
    assert CliRunner().invoke(app, ["show", str(root)]).exit_code == 0
    assert stumbling(driver, root / "index.html") == []


def test_axe_finds_what_is_there(driver: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<!doctype html><title>x</title><img src='data:,'><p style='color:#999'>pale")
    assert {one.partition(" ")[0] for one in stumbling(driver, page)} >= {
        "image-alt", "color-contrast", "html-has-lang",
    }  # fmt: skip
