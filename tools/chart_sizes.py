"""How large is a page with the same chart, alone and offline, by each charting library?

    python tools/chart_sizes.py [FOLDER]     # pictures of the pages, dark, go there

The chart: utility over 60 intervals of two runs, with a legend and values under the pointer. A page
holds all it needs; with chromium here it is opened without network, and what it shows and asks for
is counted. Libraries that are not installed are named. docs/reference/decisions.md has the answer:

    pip install plotly bokeh altair vl-convert-python nicegui pyobsplot
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "pages"))

X = list(range(60))
RUNS = {"search": [0.7 + math.sin(x / 9) / 10 for x in X], "default": [0.72] * 60}
SHOWN = """
const all = (of) => [...of.querySelectorAll("*")].flatMap(
  (at) => [at, ...(at.shadowRoot ? all(at.shadowRoot) : [])]);
const count = (test) => all(document).filter(test).length;
return [count((a) => a.matches("svg, canvas") && a.getBoundingClientRect().width > 200),
        count((a) => a.hasAttribute("aria-label") || a.getAttribute("role") === "img")];
"""
"""Counts pictures that are seen, and elements that say to a screen reader what they are."""


def _package(name: str) -> Any:
    return importlib.import_module(name)


def _file(package: str, pattern: str) -> str:
    """Return the largest file of a package that fits a pattern."""
    folder = Path(str(_package(package).__file__)).parent
    found = max(folder.glob(pattern), key=lambda path: path.stat().st_size)
    return found.read_text(encoding="utf-8")


def ours() -> str:
    """Our own SVG, with the script that shows values under the pointer."""
    import numpy as np

    from dcqcn_gym.report import chart, figures

    x = np.array(X, dtype=np.float64)
    lines = [figures.Line(f"c{i}", run, x, np.array(y)) for i, (run, y) in enumerate(RUNS.items())]
    picture = figures.lines_figure([("utility", lines)], "interval")
    templates = Path(chart.__file__).parent / "templates"
    style = "".join((templates / f"{name}.css").read_text() for name in ("colours", "chart"))
    script = (templates / "page.js").read_text()
    return f"<!doctype html><style>{style}</style>{picture.html()}<script>{script}</script>"


def plotly() -> str:
    """Plotly, with its script in the page."""
    go = _package("plotly.graph_objects")
    figure = go.Figure([go.Scatter(x=X, y=y, name=name) for name, y in RUNS.items()])
    return str(figure.to_html(include_plotlyjs=True))


def bokeh() -> str:
    """Bokeh, with its scripts in the page."""
    figure = _package("bokeh.plotting").figure(tooltips="@y")
    for name, y in RUNS.items():
        figure.line(X, y, legend_label=name)
    html = _package("bokeh.embed").file_html(figure, _package("bokeh.resources").INLINE, "")
    return str(html)


def altair() -> str:
    """Vega-Lite by Altair, with its scripts in the page by vl-convert."""
    rows = [{"x": x, "y": y, "run": n} for n, ys in RUNS.items() for x, y in enumerate(ys)]
    found = _package("altair")
    marks = found.Chart(found.Data(values=rows)).mark_line()
    return str(marks.encode(x="x:Q", y="y:Q", color="run:N", tooltip="y:Q").to_html(inline=True))


def nicegui() -> str:
    """ECharts, as NiceGUI ships it."""
    series = [{"type": "line", "name": name, "data": y} for name, y in RUNS.items()]
    options = {"xAxis": {"data": X}, "yAxis": {}, "legend": {}, "series": series, "tooltip": {}}
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (Path(str(_package("nicegui").__file__)).parent / "elements/echart/dist").glob(
            "*.js"
        )
    )
    # modules that import each other: not a page that runs, only what one would carry
    return f"<!doctype html><script>{text}</script><script>{json.dumps(options)}</script>"


def pyobsplot() -> str:
    """Observable Plot, as pyobsplot ships it."""
    text = _file("pyobsplot", "static/*.js")
    return f"<!doctype html><script type=module>{text}</script>{json.dumps(RUNS)}"


PAGES: dict[str, Callable[[], str]] = {
    "own SVG": ours,
    "plotly": plotly,
    "bokeh": bokeh,
    "altair": altair,
    "nicegui": nicegui,
    "pyobsplot": pyobsplot,
}


def main() -> None:
    """Print a row for each library."""
    print("| page by | bytes | gzip | pictures | with words for a screen reader | asks for |")
    print("|---|---|---|---|---|---|")
    for name, page in PAGES.items():
        try:
            text = page()
        except ModuleNotFoundError as error:
            print(f"| {name} | not installed: {error.name} | | | | |")
            continue
        size, packed = len(text.encode()), len(gzip.compress(text.encode(), mtime=0))
        label = name if name == "own SVG" else f"{name} {version(name)}"
        seen = ("", "", "") if name in ("nicegui", "pyobsplot") else _opened(name, text)
        print(f"| {label} | {size:,} | {packed:,} | {seen[0]} | {seen[1]} | {seen[2]} |")


def _opened(name: str, text: str) -> tuple[str, str, str]:
    """Return what a page shows, says and asks for; empty without a browser."""
    from browser import browser, found, show

    if not found():
        return "", "", ""
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        page = Path(folder) / "page.html"
        page.write_text(text, encoding="utf-8")
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["http://*", "https://*"]})
        show(driver, page, scheme="dark")
        time.sleep(3)
        pictures, said = driver.execute_script(SHOWN)
        said_of = "".join(entry["message"] for entry in driver.get_log("performance"))
        asked = re.findall(r'"request":{[^{}]*"url":"(https?://[^"]+)"', said_of)
        if len(sys.argv) > 1:
            driver.save_screenshot(str(Path(sys.argv[1]) / f"{name}.png"))
    return str(pictures), str(said), str(len(set(asked)))


if __name__ == "__main__":
    main()
