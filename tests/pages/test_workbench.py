"""The workbench in a real browser: sorted, ticked, drawn, loaded anew, without network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import MISSING, SCHEMES, WIDTHS, browser, found, show
from typer.testing import CliRunner

from dcqcn_gym.cli import app

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not found(), reason=MISSING)]

FEW = ["--scenario", "mini-fb-hadoop", "--intervals", "4", "--eval-intervals", "4"]


def typed(*words: object) -> None:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("altair", reason="pip install 'dcqcn-gym[workbench]'")
    root = tmp_path_factory.mktemp("bench") / "runs"
    typed("tune", *FEW, "--tuner", "random", "--quiet", "--out", root / "tuned")
    typed("compare", *FEW, "--tuners", "default,advise", "--seeds", 2, "--eval-seeds", 2,
          "--jobs", 1, "--out", root / "compared")  # fmt: skip
    typed("simulate", *FEW[:4], "--set", "kmin=20", "--out", root / "simulated")
    (root / "broken").mkdir()
    (root / "broken/best.json").write_text("{broken")
    typed("show", root)
    return root / "index.html"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as one:
        one.execute_cdp_cmd("Network.enable", {})
        one.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["http://*", "https://*"]})
        yield one


def at(driver: Any, css: str) -> list[Any]:
    elements: list[Any] = driver.find_elements("css selector", css)
    return elements


def drawn(driver: Any) -> None:
    until = time.monotonic() + 30
    while not at(driver, "body[data-drawn]"):
        assert time.monotonic() < until, driver.get_log("browser")
        time.sleep(0.05)
    time.sleep(0.3)  # a chart that is drawn again


def opened(driver: Any, page: Path, *look: Any, ticks: str = "") -> None:
    """Open a page anew, with what stands behind its #."""
    driver.get("about:blank")
    show(driver, page, *look)
    if ticks:
        driver.get("about:blank")
        driver.get(f"{page.resolve().as_uri()}#{ticks}")
    drawn(driver)


def ticks(driver: Any) -> list[str]:
    return [str(box.get_attribute("value")) for box in at(driver, ".tick") if box.is_selected()]


def tick(driver: Any, identity: str) -> None:
    (box,) = at(driver, f'.tick[value="{identity}"]')
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'end'})", box)
    driver.execute_script("arguments[0].click()", box)
    time.sleep(0.5)


def marks(driver: Any) -> dict[str, list[str]]:
    """Return the colours of bars, points and lines of both pictures, by mark."""
    found: dict[str, list[str]] = driver.execute_script("""
        const of = (id, css, key) => [...(document.getElementById(id).shadowRoot || document)
            .querySelectorAll(css)].map((one) => one.getAttribute(key));
        return {bars: of("by_size", "svg .mark-rect path:not(.background)", "fill"),
                points: of("by_size", "svg .mark-symbol path", "fill"),
                lines: of("over_time", "svg .mark-line path", "stroke")};
    """)
    return found


def test_each_ticked_setting_is_drawn_without_network(driver: Any, page: Path) -> None:
    opened(driver, page)
    assert at(driver, "h1")[0].text == "runs: 4 runs"
    first = ticks(driver)
    assert first == ["compared|advise", "compared|default"]
    for n, more in enumerate(["", "tuned|candidate", "simulated|simulated"]):
        if more:
            tick(driver, more)
        shown = marks(driver)
        some = len(first) + n
        assert len(set(shown["lines"])) == some
        assert len(shown["lines"]) == 4 * some
        assert len(set(shown["bars"]) - {"none"}) == some
        assert len(set(shown["points"])) == some
        legend = [
            item.text
            for item in at(driver, "#compared ul.legend")[0].find_elements("css selector", "li")
        ]
        assert len(legend) == some
    assert legend[-1] == "simulated: simulated"
    said = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in said if "request" in one["params"]]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert driver.get_log("browser") == []


def test_the_table_by_size_has_times_beside_ratios(driver: Any, page: Path) -> None:
    opened(driver, page)
    text = at(driver, "#sizes")[0].text
    assert "flows below 100 KB" in text
    rows = [row.text for row in at(driver, "#sizes tbody tr:not(.group)")]
    advise = next(row for row in rows if row.startswith("compared: advise"))
    assert re.search(r"\d+ [\d.]+ \([+−]?\d+ %\) [\d.]+ \([+−]?\d+ %\) [\d.]+ \(", advise)
    default = next(row for row in rows if row.startswith("compared: default"))
    assert "%" not in default


def test_the_answer_and_the_devices_of_what_is_ticked_are_open(driver: Any, page: Path) -> None:
    opened(driver, page)
    best = json.loads((page.parent / "tuned/best.json").read_text())["answer"]

    def answers() -> list[str]:
        return [str(one.text) for one in at(driver, "#answers article") if one.is_displayed()]

    assert len(answers()) == 1
    tick(driver, "tuned|advise")
    (text,) = [text for text in answers() if text.startswith("tuned")]
    assert best["title"] in text
    assert text.splitlines()[1] == best["action"].capitalize()
    assert "Next: " in text
    (devices,) = [
        one.text for one in at(driver, "#devices article")
        if one.is_displayed() and one.text.startswith("tuned")
    ]  # fmt: skip
    assert "4 switches, all ports" in devices
    assert re.search(r"kmin 100 \d+ KB", devices)


def test_sorted_by_a_figure_and_filtered(driver: Any, page: Path) -> None:
    opened(driver, page, 1400)
    heads = [head.text for head in at(driver, "#runs thead tr > *")]
    place = next(i for i, head in enumerate(heads) if head.startswith("< 100 KB: slowdown p99"))
    at(driver, "#runs thead tr > *")[place].find_element("css selector", "button").click()
    shown = [
        row.find_elements("css selector", "td, th")[place].text
        for row in at(driver, "#runs tbody tr")
    ]
    values = [float(text) for text in shown if text != "–"]
    assert len(values) > 5
    assert values == sorted(values)
    (kind,) = at(driver, '.filters [data-key="kind"] option[value=""] ~ option:last-of-type')
    kind.click()
    assert kind.text == "tune"
    assert {
        row.get_attribute("data-kind") for row in at(driver, "#runs tbody tr") if row.is_displayed()
    } == {"tune"}
    # what is shown stays over a reload
    tick(driver, "tuned|expert")
    before = [row.get_attribute("data-id") for row in at(driver, "#runs tbody tr")]
    driver.refresh()
    drawn(driver)
    assert "tuned|expert" in ticks(driver)
    assert [row.get_attribute("data-id") for row in at(driver, "#runs tbody tr")] == before
    assert {
        row.get_attribute("data-kind") for row in at(driver, "#runs tbody tr") if row.is_displayed()
    } == {"tune"}


def test_what_cannot_be_read_says_why(driver: Any, page: Path) -> None:
    opened(driver, page)
    (row,) = at(driver, '#runs tr[data-name="broken"]')
    assert "expected the event log" in row.text


def held(driver: Any) -> None:
    """Wait for the next load to be drawn, and stop it from loading itself again."""
    until = time.monotonic() + 60
    while not driver.execute_script("""
        if (window.marked || !document.body?.dataset.drawn) return false;
        const live = document.getElementById("live");
        if (live.checked) live.click();
        return true;
    """):
        assert time.monotonic() < until, driver.get_log("browser")
        time.sleep(0.05)


def test_a_live_page_loads_itself_and_keeps_its_ticks(
    driver: Any, page: Path, tmp_path: Path
) -> None:
    from dcqcn_gym.extras.workbench.page import write_workbench

    try:
        write_workbench(page.parent, every=1)
        opened(driver, page)
        # one script, one load: an element that is kept may be one of the load before
        driver.execute_script("""
            document.getElementById("untick").click();
            document.querySelector('.tick[value="tuned|expert"]').click();
            window.marked = true;
        """)
        held(driver)
        assert ticks(driver) == ["tuned|expert"]
        assert len(marks(driver)["lines"]) == 4
        driver.execute_script("window.marked = true")
        time.sleep(2)
        assert driver.execute_script("return window.marked")
    finally:
        write_workbench(page.parent)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_fits_and_reads_in_every_look(driver: Any, page: Path, width: int, scheme: str) -> None:
    opened(driver, page, width, scheme)
    across = "return document.documentElement.scrollWidth"
    assert driver.execute_script(across) <= width
    ends = driver.execute_script("""
        return ["by_size", "over_time"].map((id) => {
          const box = document.getElementById(id), svg = box.shadowRoot.querySelector("svg");
          return [svg.getBoundingClientRect().right, box.getBoundingClientRect().right];
        });
    """)
    for right, room in ends:
        assert right <= room + 1
    pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
    from axe_core_python.selenium import Axe  # type: ignore[import-untyped, unused-ignore]

    said = Axe().run(driver)["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in said] == []
    # the deciding mark of every setting lies within its picture
    seen, outside = driver.execute_script("""
        let seen = 0, outside = 0;
        const root = document.getElementById("by_size").shadowRoot;
        for (const group of root.querySelectorAll(".mark-group.role-scope > g")) {
          const back = group.querySelector(":scope > path.background").getBoundingClientRect();
          for (const mark of group.querySelectorAll(".mark-rect path, .mark-symbol path")) {
            const box = mark.getBoundingClientRect();
            seen += 1;
            outside += box.top < back.top - 1 || box.bottom > back.bottom + 1;
          }
        }
        return [seen, outside];
    """)
    assert (seen, outside) == (4 * 3 * len(ticks(driver)), 0)
