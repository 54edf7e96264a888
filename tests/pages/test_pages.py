"""The report and the comparison in a real browser: what a person sees, clicks and copies."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import MISSING, found, show
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.report import build_report
from dcqcn_gym.report.answer import answer_of
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.runs.commands import commands
from dcqcn_gym.runs.log import read_run
from programs import runs_in_threads
from verdict_cases import CASES, write_case

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
pytestmark = pytest.mark.skipif(not found(), reason=MISSING)

TUNE = ["--scenario", "mini-fb-hadoop", "--backend", "fake", "--quiet"]
COMPARE = ["--tuners", "default,random,expert", "--seeds", "2", "--intervals", "12",
           "--eval-seeds", "1", "--eval-intervals", "5", "--jobs", "1"]  # fmt: skip


READ = ("clear-gain", "starved-elephants", "aborted")
"""A yes, a no and a not known."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("cases")
    return {name: build_report(write_case(name, root / name)) for name in READ}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "run"
    words = ["tune", *TUNE, "--tuner", "random", "--intervals", "6", "--eval-intervals", "5"]
    with runs_in_threads():
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out / "report.html"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compared") / "out"
    words = ["compare", *TUNE, *COMPARE]
    with runs_in_threads():
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out / "compare.html"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulated") / "out"
    words = ["simulate", "-s", "mini-storm", "--intervals", "8", "--against", "expert", "--quiet"]
    done = CliRunner().invoke(app, [*words, "--trace", "queue,rate", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out / "report.html"


@pytest.fixture(scope="module")
def every(cases: dict[str, Path], tuned: Path, compared: Path, simulated: Path) -> list[Path]:
    """One page of each kind; of the cases, the longest."""
    return [cases["starved-elephants"], tuned, compared, simulated]


def at(driver: Any, css: str) -> list[Any]:
    elements: list[Any] = driver.find_elements("css selector", css)
    return elements


def hover(driver: Any, element: Any, across: float, down: float) -> str:
    """Point at a place of an element, as shares of its box, and return what the tip says."""
    from selenium.webdriver import ActionChains

    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    box = driver.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.x, b.y, b.width, b.height]",
        element,
    )
    x, y = int(box[0] + across * box[2]), int(box[1] + down * box[3])
    chain: Any = ActionChains(driver, duration=0)
    chain.w3c_actions.pointer_action.move_to_location(x, y)
    chain.perform()
    (tip,) = at(driver, ".tip")
    return str(tip.text) if tip.is_displayed() else ""


@pytest.mark.parametrize("name", READ)
def test_the_verdict_is_what_one_reads_first(
    driver: Any, cases: dict[str, Path], name: str
) -> None:
    case = CASES[name]
    show(driver, cases[name])
    (title,) = at(driver, "h1")
    badge, _, said = title.text.partition("\n")
    assert case.said.lower().startswith(badge.lower())
    assert said.lower().startswith(case.said[len(badge) :].strip(": ").lower())
    assert title.location["y"] < 200
    (block,) = at(driver, "#verdict")
    assert (block.get_attribute("data-word"), block.get_attribute("data-deploy")) == (
        case.word,
        case.deploy,
    )
    answer = {"yes": "Yes", "no": "No", "unknown": "Not known"}[case.deploy]
    assert any(dd.text.startswith(answer) for dd in at(driver, "#verdict dd"))


def test_pages_ask_for_nothing_and_say_no_error(driver: Any, every: list[Path]) -> None:
    for kind in ("performance", "browser"):
        driver.get_log(kind)  # what earlier tests left there
    for page in every:
        show(driver, page)
    events = [json.loads(line["message"])["message"] for line in driver.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    allowed = {page.resolve().as_uri() for page in every} | {"data:,"}
    assert asked & {page.resolve().as_uri() for page in every}
    assert asked <= allowed
    assert driver.get_log("browser") == []


def test_nothing_sticks_out_on_a_telephone(driver: Any, every: list[Path]) -> None:
    assert every
    for page in every:
        show(driver, page, 420)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 420, page
        for text in at(driver, "h1, .legend, .answers, .commands"):
            assert text.rect["x"] + text.rect["width"] <= 420.5, (page, text.text)


A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "marginLeft": 0.4, "marginRight": 0.4}
PAPER = (718, 1046)
"""CSS pixels within the margins of A4."""


def test_paper_holds_every_chart_and_table_in_colours_of_paper(
    driver: Any, every: list[Path]
) -> None:
    lost = """return [...document.querySelectorAll("table, .plot, svg.fabric, pre")].map(e => {
      const box = e.getBoundingClientRect(), whole = e.matches(".plot, svg");
      const split = whole && getComputedStyle(e.closest("figure")).breakInside !== "avoid";
      const out = box.right > arguments[0] || whole && box.height > arguments[1];
      return out || split ? e.outerHTML.slice(0, 99) : "";
    }).filter(Boolean)"""
    for page in every:
        show(driver, page, PAPER[0], "dark")
        driver.execute_script("document.documentElement.dataset.theme = 'dark'")
        media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        assert at(driver, ".plot")
        assert driver.execute_script(lost, *PAPER) == [], page
        style = "return getComputedStyle(document.body)[arguments[0]]"
        assert luminance(driver.execute_script(style, "backgroundColor")) > 0.9
        assert luminance(driver.execute_script(style, "color")) < 0.05
        pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", A4)["data"])
        assert pdf.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 1
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_panel_keeps_the_size_of_its_text(driver: Any, tuned: Path) -> None:
    sizes = []
    for width in (1400, 420):
        show(driver, tuned, width)
        height = "text => text.getBoundingClientRect().height"
        ticks = "[...document.querySelectorAll('.tick.y')]"
        sizes.append(driver.execute_script(f"return {ticks}.map({height})"))
    assert sizes[0] == pytest.approx(sizes[1], abs=0.01)
    assert min(sizes[0]) > 10


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(...)`` (WCAG 2.1)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_light_and_dark_screens(
    driver: Any, cases: dict[str, Path], scheme: str
) -> None:
    show(driver, cases["starved-elephants"], scheme=scheme)
    style = "return getComputedStyle(arguments[0])[arguments[1]]"
    (body,) = at(driver, "body")
    paper = luminance(driver.execute_script(style, body, "backgroundColor"))
    assert paper < 0.05 if scheme == "dark" else paper > 0.9
    for css, name in (
        ("h1", "color"), (".worse", "color"), (".better", "color"), (".answers dt", "color"),
        ("td.ours", "color"), (".tick", "fill"), (".key", "color"), (".ci", "color"),
    ):  # fmt: skip
        ink = luminance(driver.execute_script(style, at(driver, css)[0], name))
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast >= 4.5, (css, contrast)


def test_the_other_colours_are_a_click_away_and_stay(driver: Any, tuned: Path) -> None:
    def paper() -> float:
        (body,) = at(driver, "body")
        style = "return getComputedStyle(arguments[0]).backgroundColor"
        return luminance(driver.execute_script(style, body))

    show(driver, tuned)
    (button,) = at(driver, ".theme")
    assert (button.text, paper() > 0.9) == ("Dark", True)
    button.click()
    assert (button.text, paper() < 0.05) == ("Light", True)
    show(driver, tuned)
    assert paper() < 0.05
    at(driver, ".theme")[0].click()
    assert paper() > 0.9
    driver.execute_script("localStorage.clear()")


def test_a_worse_cell_says_so_in_words(driver: Any, every: list[Path]) -> None:
    marked = []
    for page in every:
        show(driver, page)
        marked += [cell.text for cell in at(driver, "td.worse")]
    assert marked
    assert all("worse" in text for text in marked)


def test_a_series_hides_and_comes_back(driver: Any, tuned: Path) -> None:
    show(driver, tuned)
    chart = at(driver, "figure[aria-label^=Throughput] .chart")[0]
    key = next(k for k in chart.find_elements("css selector", ".key") if k.text == "default")
    number = key.get_attribute("data-key")
    lines = chart.find_elements("css selector", f'.series[data-key="{number}"]')
    others = chart.find_elements("css selector", f'.series:not([data-key="{number}"])')
    assert len(lines) == 3
    for shown in (False, True):
        key.click()
        assert key.get_attribute("aria-pressed") == str(shown).lower()
        assert [line.is_displayed() for line in lines] == [shown] * 3
        assert all(line.is_displayed() for line in others)


def test_the_pointer_shows_the_values_of_the_log(driver: Any, tuned: Path) -> None:
    show(driver, tuned)
    panel = at(driver, "figure[aria-label^=Utility] .panel")[0]
    utility = [line["utility"] for line in read_run(tuned.parent / "run.jsonl").intervals]
    for i in (1, 4):  # x runs from 0 to 6 ms, one interval each
        said = hover(driver, panel, (i + 1) / 6, 0.5).splitlines()
        assert said[0] == f"x = {i + 1}"
        assert f"random {utility[i]:.5g}" in said
    dot = at(driver, ".dot[data-tip]")[-1]  # no other lies on it
    assert hover(driver, dot, 0.5, 0.5) == dot.get_attribute("data-tip") != ""


def test_tables_sort_by_number_and_by_word(driver: Any, compared: Path) -> None:
    show(driver, compared)
    table = at(driver, "table.runs")[0]
    heads = table.find_elements("css selector", "thead th")

    def column(n: int) -> list[str]:
        return [row.find_elements("css selector", "th, td")[n].text
                for row in table.find_elements("css selector", "tbody tr")]  # fmt: skip

    before = [float(text) for text in column(2)]
    for falling, name in ((False, "ascending"), (True, "descending")):
        heads[2].find_element("css selector", "button").click()
        assert [float(text) for text in column(2)] == sorted(before, reverse=falling)
        assert heads[2].get_attribute("aria-sort") == name
    heads[0].find_element("css selector", "button").click()
    assert column(0) == sorted(column(0))
    assert heads[2].get_attribute("aria-sort") is None


def test_a_row_leads_to_its_runs(driver: Any, compared: Path) -> None:
    show(driver, compared)
    link = next(a for a in at(driver, "table.grid th a") if a.text == "random")
    (target,) = at(driver, "#" + str(link.get_attribute("href")).partition("#")[2])
    assert target.find_element("css selector", "th").text == "random"
    logs = target.find_elements("css selector", "td a")
    assert [log.text for log in logs] == ["run", "held-out 1"]
    for log in at(driver, "table.runs td a"):
        path = Path(str(log.get_attribute("href")).removeprefix("file://"))
        assert read_run(path).complete


def test_commands_are_copied_as_they_are_emitted(driver: Any, tuned: Path) -> None:
    show(driver, tuned)
    folded = at(driver, "details#commands summary")
    assert [summary.text for summary in folded] == ["As commands: candidate, not recommended"]
    folded[0].click()
    driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    run = read_run(tuned.parent / "run.jsonl")
    for button, back in zip(at(driver, "button.copy"), (False, True), strict=True):
        button.click()
        driver.execute_async_script("setTimeout(arguments[0], 100)")
        assert button.text == "copied"
        text = driver.execute_async_script(
            "navigator.clipboard.readText().then(arguments[0], e => arguments[0](String(e)))"
        )
        data = load_report_data(tuned.parent)
        best = answer_of(data)
        assert text == commands(
            run, "all", of=best.setting, changed_only=True, rollback=back, said=best.answer.title
        )


def test_a_page_is_whole_without_its_script(driver: Any, tuned: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, tuned)
        assert at(driver, "#recommendation h1")[0].is_displayed()
        assert len(at(driver, ".panel .line")) > 9
        assert not at(driver, "th button")
        assert not any(button.is_displayed() for button in at(driver, "button.copy"))
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
