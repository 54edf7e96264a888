"""The block at the top of the page, in six cases: its words, its marks, and what it never says."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.core.verdict import LIMITS
from dcqcn_gym.report import build_report
from dcqcn_gym.report.answer import answer_of
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.headline import headline, judged_run
from dcqcn_gym.report.verdict_block import VerdictBlock
from dcqcn_gym.runs.log import RunDir
from dcqcn_gym.runs.table import number
from verdict_cases import CASES, write_case


def of(root: Path) -> VerdictBlock:
    data = load_report_data(root)
    return headline(data, judged_run(data), answer_of(data))


def page_of(root: Path) -> str:
    return build_report(root).read_text(encoding="utf-8")


def row_of(page: str, key: str) -> str:
    (row,) = re.findall(rf'<tr data-key="{key}".*?</tr>', page, flags=re.DOTALL)
    return str(row)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("cases")
    return {name: page_of(write_case(name, root / name)) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_the_page_begins_with_the_verdict(pages: dict[str, str], name: str) -> None:
    case, page = CASES[name], pages[name]
    assert f'data-word="{case.word}" data-deploy="{case.deploy}"' in page
    ((badge, said),) = re.findall(r"<h1[^>]*><span[^>]*>(.*?)</span> (.*?)</h1>", page)
    assert case.said.startswith(badge)
    assert unescape(said).lower().startswith(case.said[len(badge) :].strip(": ").lower())
    found = re.findall(r"<h2[^>]*>What the search found: (.*?)</h2>", page, flags=re.DOTALL)
    assert unescape(found[0]).lower().startswith(case.title.lower())
    assert page.index("<h1") < page.index("<h2") < page.index('<dl class="answers">')


@pytest.mark.parametrize("name", CASES)
def test_no_page_shows_nan_or_none(pages: dict[str, str], name: str) -> None:
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", pages[name], flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_a_worse_cell_is_marked_by_a_word(pages: dict[str, str]) -> None:
    page = pages["starved-elephants"]
    row = row_of(page, "mean 1MB-")
    assert 'class="over"' in row
    assert row.count("▲ worse</span>") == 2  # against default and expert
    assert f"▲ worse, beyond the limit of {LIMITS['class'] * 100:g} %" in row
    assert "▲" not in row_of(page, "mean 0-100KB")
    for cell in re.findall(r'<td class="worse">(.*?)</td>', page):
        assert "▲" in cell


def test_the_cost_stands_beside_the_gain(pages: dict[str, str]) -> None:
    answers = dict(
        re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", pages["starved-elephants"], flags=re.DOTALL)
    )
    assert "mice: mean slowdown −" in answers["Gained"]
    assert "elephants: mean slowdown +" in answers["Cost"]
    assert "unfinished flows +" in answers["Cost"]
    assert answers["Would you deploy it?"].startswith("No: mean slowdown of elephants")


def test_one_trace_has_no_interval_anywhere_in_the_block(pages: dict[str, str]) -> None:
    section = pages["one-trace"].split("</section>")[0]
    assert "one trace, no interval" in section
    assert not re.search(r"\[[+−]?\d", section)
    rest = pages["one-trace"].split("The candidate, on the same traffic</h3>")[1]
    assert "The traffic is the same on every seed: one trace, no interval." in rest
    assert not re.search(r"\[[+−]?\d", rest.split("<h2>Round trips")[0])
    assert "Brackets hold" not in rest
    assert "Brackets hold" in pages["clear-gain"].split("on held-out traffic</h3>")[1]


def test_nothing_finished_is_no_evidence(tmp_path: Path) -> None:
    found = of(write_case("nothing-finished", tmp_path / "run"))
    assert found.notes == ()


def test_unknown_unfinished_flows_give_no_verdict(tmp_path: Path) -> None:
    root = write_case("clear-gain", tmp_path / "run", seeds=2)

    def forget(end: dict[str, Any]) -> None:
        end["unfinished"] = None

    change_end(RunDir(root).evaluation("recommended", 1_001_000), forget, active=3)
    found = of(root)
    assert (found.word, found.deploy) == ("no evidence", "unknown")
    assert "do not tell which flows were unfinished" in found.title
    assert "finished only" in page_of(root)


def change_end(path: Path, change: Any, *, active: int) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines[-1]["end"])
    lines[-2]["active_flows"] = active
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_results_file_holds_the_verdict(tmp_path: Path) -> None:
    root = write_case("starved-elephants", tmp_path / "run")
    build_report(root)
    found = json.loads((root / "results.json").read_text())
    assert found["schema"] == 2
    figures = found["figures"]
    assert (figures["evidence"]["word"], figures["evidence"]["deploy"]) == ("starves", "no")
    flags = {f["key"]: f["state"] for f in figures["judged"]["verdict"]["flags"]}
    assert flags["mean 1MB-"] == flags["unfinished"] == "up"
    assert {row["key"] for row in figures["judged"]["against"]["expert"]} >= {"goodput", "rtt"}
    ours = next(row for row in found["rows"] if row["name"] == "candidate")
    every, finished = (ours[k]["mean"]["mean"] for k in ("slowdown", "slowdown_finished"))
    assert every > 1.2 * finished
    assert ours["unfinished"]["mean"] > 0


def test_a_trace_is_judged_by_its_scenario_and_not_by_equal_results(tmp_path: Path) -> None:
    """Seeds change the marks, so results differ although every flow is the same."""
    root = write_case("one-trace", tmp_path / "run")
    held_out = load_report_data(root).held_out["candidate"]
    assert len({one.fct_ps.tobytes() for one in held_out}) == 5
    found = of(root)
    assert (found.deploy, found.traffic) == ("unknown", "on the same traffic")
    assert "one trace, no interval" in found.title
    assert "held-out" not in dict(found.answers)["What was judged"]


def test_after_a_no_the_page_folds_the_commands_away(pages: dict[str, str]) -> None:
    assert "The candidate, not recommended</h2>" in pages["starved-elephants"]
    assert "The recommended setting</h2>" in pages["clear-gain"]
    assert "not recommended" not in pages["clear-gain"]


def test_the_best_of_what_was_tried_is_recommended_everywhere(tmp_path: Path) -> None:
    """The experts' setting is better than what was found: page, file and badge say so."""
    root = write_case("expert-better", tmp_path / "run")
    best = answer_of(load_report_data(root))
    assert (best.answer.action, best.answer.setting) == ("deploy", "expert")
    assert best.setting == dict(expert_setting())
    assert best.answer.verdicts["candidate"].harms
    best_of_found = load_report_data(root).setting("candidate") or {}
    page = page_of(root)
    assert 'data-action="deploy" data-setting="expert"' in page
    shown = re.findall(
        r'<th scope="row">(\w+)</th>(?:<td[^>]*>[^<]*</td>){2}<td class="ours">([^<]*)<',
        page.partition("The recommended setting</h2>")[2],
    )
    assert dict(shown)["kmax"] == number(expert_setting()["kmax"]) != number(best_of_found["kmax"])
    assert page.index(">Deploy</span>") < page.index('<table class="tried">') < page.index("<h2")
    written = json.loads((root / "results.json").read_text())["figures"]["answer"]
    assert (written["action"], written["setting"], written["baseline"]) == (
        "deploy", "expert", "default",
    )  # fmt: skip
    assert written["tried"]["candidate"]["deploy"] == "no"


def test_a_setting_of_yours_is_what_others_are_judged_against(tmp_path: Path) -> None:
    """The found setting beats the default, but not the one in force, which is as good."""
    root = write_case("clear-gain", tmp_path / "run")
    for path in (root / "evaluation").glob("recommended-*.jsonl"):
        (path.parent / path.name.replace("recommended", "yours")).write_bytes(path.read_bytes())
    best = answer_of(load_report_data(root))
    assert (best.answer.action, best.answer.setting, best.answer.baseline) == (
        "keep",
        "yours",
        "yours",
    )
    assert best.answer.title.startswith("Keep your setting: none of 3 other settings")


def test_the_figure_shows_what_was_tried_and_costs_against_limits(pages: dict[str, str]) -> None:
    figure = pages["starved-elephants"].partition("<figure")[2].partition("</figure>")[0]
    assert figure.count('class="rule"') == 3  # no change; no cost, the limit
    for tip in ("the candidate: ", "the experts&#39; setting: ", "goodput: "):
        assert f'data-tip="{tip}' in figure
