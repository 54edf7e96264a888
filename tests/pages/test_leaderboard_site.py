"""The leaderboard's site in a real browser: ranking, filters, pages of entries and scenarios."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from browser import MISSING, found, show
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard.protocol import start_leaderboard
from dcqcn_gym.benchmarks.leaderboard.suite import SUITES
from dcqcn_gym.cli import app

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not found(), reason=MISSING)]


def run(*words: object) -> None:
    done = CliRunner().invoke(app, ["bench", *map(str, words)])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site of a leaderboard without its logs."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(SUITES / "smoke", root / "smoke")
    entries = ["expert", "random", "dqn-mini", "fixed"]
    board = start_leaderboard(str(root / "smoke"), entries, root / "board")
    with ThreadPoolExecutor(1) as here:
        assert board.carry_out(executor=here) == {}
    run("report", board.out)
    shutil.rmtree(board.out / "runs")
    run("site", board.out, "--out", root / "site")
    return root / "site"


def at(driver: Any, css: str) -> list[Any]:
    elements: list[Any] = driver.find_elements("css selector", css)
    return elements


def texts(driver: Any, css: str) -> list[str]:
    return [str(element.text) for element in at(driver, css)]


def shown(driver: Any) -> list[str]:
    return [cell.text for cell in at(driver, ".leaderboard tbody th") if cell.is_displayed()]


def choose(driver: Any, key: str, value: str) -> None:
    """Fill a filter in as a person does."""
    fields = at(driver, f'.filters [data-key="{key}"]')
    field = fields[0]
    if len(fields) > 1:  # tabs
        wanted = value.replace("all", "")
        (tab,) = [f for f in fields if f.get_attribute("value") == wanted]
        tab.find_element("xpath", "..").click()
    elif field.tag_name == "input":
        field.clear()
        field.send_keys(value or " \b")
    else:
        (option,) = [o for o in field.find_elements("css selector", "option") if o.text == value]
        option.click()


def test_the_ranking_has_every_entry(driver: Any, site: Path) -> None:
    show(driver, site / "index.html")
    assert sorted(shown(driver)) == ["default", "dqn-mini", "expert", "fixed", "random"]
    heads = texts(driver, ".leaderboard thead th")
    assert heads[:2] == ["entry", "rank"]
    assert {"R online", "harm", "worst harm", "S online", "CPU ms a decision"} <= set(heads)


def test_filters_leave_what_was_asked_for(driver: Any, site: Path) -> None:
    show(driver, site / "index.html")
    everything = shown(driver)
    choose(driver, "category", "static")
    assert sorted(shown(driver)) == ["default", "expert", "fixed"]
    assert texts(driver, ".filters output") == ["3 of 5 entries"]
    choose(driver, "name", "EXP")
    assert shown(driver) == ["expert"]
    choose(driver, "name", "")
    choose(driver, "category", "pre-trained")
    assert shown(driver) == ["dqn-mini"]
    choose(driver, "status", "verified")
    assert shown(driver) == []
    choose(driver, "status", "all")
    choose(driver, "category", "all")
    assert shown(driver) == everything
    assert texts(driver, ".filters output") == [""]


def test_the_ranking_sorts(driver: Any, site: Path) -> None:
    show(driver, site / "index.html")
    (head,) = [h for h in at(driver, ".leaderboard thead th") if h.text == "slowdown"]
    place = texts(driver, ".leaderboard thead th").index("slowdown") + 1
    head.find_element("css selector", "button").click()
    values = [float(t) for t in texts(driver, f".leaderboard tbody tr > :nth-child({place})")]
    assert values == sorted(values)


def test_a_entry_shows_where_it_gains_and_what_it_chose(driver: Any, site: Path) -> None:
    show(driver, site / "index.html")
    (link,) = [a for a in at(driver, ".leaderboard tbody a") if a.text == "random"]
    link.click()
    assert texts(driver, "h1") == ["random"]
    assert any("measured here" in text for text in texts(driver, ".sub"))
    assert len(at(driver, "figure")) == 3
    dots = at(driver, "figure .dot[data-tip]")
    assert len(dots) == 2 * 3  # online and final on three scenarios
    heads = texts(driver, "h2")
    assert "The settings that it chose" in heads
    knobs = texts(driver, "section:last-of-type tbody th")
    assert {"rp_time_reset", "kmax"} <= set(knobs)


def test_a_scenario_shows_its_traffic_and_all_entries(driver: Any, site: Path) -> None:
    show(driver, site / "index.html")
    at(driver, "details:has(.links) summary")[0].click()
    at(driver, ".links a")[0].click()
    assert sorted(texts(driver, "tbody th a")) == [
        "default", "dqn-mini", "expert", "fixed", "random",
    ]  # fmt: skip
    assert "[topology]" in at(driver, "pre")[0].text
    assert "All entries" in texts(driver, "h2")


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_pages_ask_for_nothing_and_every_link_is_there(driver: Any, site: Path) -> None:
    for kind in ("performance", "browser"):
        driver.get_log(kind)
    asked = set()
    for page in pages(site):
        show(driver, page)
        for link in at(driver, "a"):
            # as it is written: a link within a chart has no address as its property
            target = urlsplit(urljoin(page.as_uri(), str(link.get_dom_attribute("href")))).path
            assert Path(target).is_file(), (page, target)
    for line in driver.get_log("performance"):
        event = json.loads(line["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            asked.add(event["params"]["request"]["url"])
    assert len(pages(site)) == 5 + 3 + 3
    assert asked == {page.resolve().as_uri() for page in pages(site)} | (asked & {"data:,"})
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_on_a_telephone(driver: Any, site: Path, scheme: str) -> None:
    papers = set()
    for page in pages(site):
        show(driver, page, 420, scheme)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 420, page
        papers.add(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert papers == {"rgb(18, 22, 29)" if scheme == "dark" else "rgb(255, 255, 255)"}


def test_without_script_the_ranking_is_whole(driver: Any, site: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, site / "index.html")
        assert len(shown(driver)) == 5
        assert not any(form.is_displayed() for form in at(driver, ".filters"))
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_no_column_is_cut(driver: Any, site: Path) -> None:
    show(driver, site / "index.html", 1400)
    (table,) = at(driver, ".wide")
    assert driver.execute_script("return arguments[0].scrollWidth", table) <= driver.execute_script(
        "return arguments[0].clientWidth", table
    )
