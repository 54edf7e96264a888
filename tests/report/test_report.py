"""The report from whole, cut and bare run directories; it must always be one honest page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.knobs import KNOBS
from dcqcn_gym.core.statistics import paired_change
from dcqcn_gym.report import build_report
from dcqcn_gym.report.answer import answer_of
from dcqcn_gym.report.collectives import collective_tables
from dcqcn_gym.report.data import load_report_data
from dcqcn_gym.report.headline import headline, judged_run
from dcqcn_gym.report.verdict_block import VerdictBlock
from dcqcn_gym.runs.log import RunDir
from synthetic_run import write_log, write_run


class Nesting(HTMLParser):
    """Fails on tags that are closed in the wrong order."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def text_of(run_dir: Path) -> str:
    return build_report(run_dir).read_text(encoding="utf-8")


def test_whole_run_gives_a_self_contained_page(tmp_path: Path) -> None:
    page = text_of(write_run(tmp_path / "run"))
    parser = Nesting()
    parser.feed(page)
    assert parser.open == []
    assert page.count("<figure") == page.count('class="chart') == 6
    links = set(re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", page)) - {"data:,"}
    assert {link for link in links if not (tmp_path / "run" / link).is_file()} == set()
    assert len(links) == 3 + 9  # the run, its references, three settings on three held-out seeds
    assert "@import" not in page
    assert "url(http" not in page
    assert "<script src" not in page
    for name in KNOBS:
        assert f">{name}<" in page
    assert len(page) < 500_000
    assert not list((tmp_path / "run").glob("*.part"))


@pytest.mark.parametrize(("fleet", "word"), [("a digital fabric", " simulated"), ("devices", "")])
def test_a_fleets_page_says_what_its_devices_were(tmp_path: Path, fleet: str, word: str) -> None:
    run = write_run(tmp_path / "run", intervals=5)
    log = RunDir(run).log
    head, rest = log.read_text().split("\n", 1)
    log.write_text(json.dumps({**json.loads(head), "fleet": fleet}) + "\n" + rest)
    page = text_of(run)
    assert f"({fleet})" in page
    assert re.search(rf"5 of 5 \([\d.]+ ms{word}\)", page)
    assert ("simulated time since" in page) == bool(word)


def test_same_log_gives_the_same_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=8)
    assert text_of(run) == text_of(run)


def test_unfinished_flows_are_told(tmp_path: Path) -> None:
    page = text_of(write_run(tmp_path / "run", intervals=5))
    assert "Not finished at the end: default 37, expert 37, paraleon 37." in page
    assert "Not finished at the end: default 111, expert 111, candidate 111." in page


def test_changed_knobs_are_marked(tmp_path: Path) -> None:
    page = text_of(write_run(tmp_path / "run", intervals=5))
    page = page.partition('class="setting')[2]
    changed = re.findall(r'class="changed".*?<th scope="row">(\w+)</th>', page, flags=re.DOTALL)
    assert changed == ["rp_ai_rate", "kmin"]
    assert "631.5" in page


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_log_cut_by_kill_gives_a_page_that_says_so(tmp_path: Path, cut: int) -> None:
    run = write_run(tmp_path / "run", intervals=30, written=7, seeds=0)
    log = RunDir(run).log
    if cut:
        log.write_bytes(log.read_bytes()[:-cut])
    page = text_of(run)
    assert f"after {7 if not cut else 6} of 30 intervals" in page
    assert "The best setting so far" in page
    assert "Not measured in this run." in page


def test_run_stopped_before_its_first_interval(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=5, written=0, seeds=0, references=False)
    page = text_of(run)
    assert "after 0 of 5 intervals" in page
    assert "no interval with traffic" in page


def test_run_without_flows_or_references(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=4, seeds=0, references=False, flows=0)
    page = text_of(run)
    assert "No flow finished." in page
    assert "There is no reference run with the default setting yet." in page


def block(root: Path) -> VerdictBlock:
    data = load_report_data(root)
    return headline(data, judged_run(data), answer_of(data))


def test_headline_claims_only_what_the_seeds_show(tmp_path: Path) -> None:
    gain = block(write_run(tmp_path / "gain", intervals=5))
    assert (gain.tone, gain.deploy) == ("gain", "yes")
    one = block(write_run(tmp_path / "one", intervals=5, seeds=1))
    assert (one.tone, one.deploy) == ("unknown", "unknown")
    assert "one seed, no interval" in one.title
    assert "1 held-out seed of" in dict(one.answers)["What was judged"]
    same = write_run(tmp_path / "same", intervals=5)
    for seed in (101, 102, 103):  # the recommendation is the default
        log = RunDir(same).evaluation("recommended", seed)
        log.unlink()
        write_log(log, "default", seed, 10, budget=10, end=True)
    assert block(same).tone == "none"
    assert block(same).title == "No measurable gain"
    worse = write_run(tmp_path / "worse", intervals=5)
    for seed in (101, 102, 103):
        log = RunDir(worse).evaluation("default", seed)
        log.unlink()
        write_log(log, "expert", seed, 10, budget=10, end=True)
        log = RunDir(worse).evaluation("recommended", seed)
        log.unlink()
        write_log(log, "default", seed, 10, budget=10, end=True)
    assert block(worse).tone == "loss"
    assert block(worse).deploy == "no"


def test_evaluation_cut_short_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=5)
    log = RunDir(run).evaluation("expert", 102)
    log.unlink()
    write_log(log, "expert", 102, 4, budget=10, end=False)
    data = load_report_data(run)
    assert data.seeds == [101, 103]
    assert any("expert-seed102" in note for note in data.notes)


def test_directory_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"run\.jsonl"):
        build_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_page_is_the_same_without_the_report_extra(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", intervals=5)
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = sys.modules['scipy'] = None\n"
        "from dcqcn_gym.report import build_report\n"
        f"build_report({str(run)!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    bare = (run / "report.html").read_text(encoding="utf-8")
    assert bare == text_of(run)
    assert bare.count("<figure") == 6


def test_collectives_are_compared_round_by_round(tmp_path: Path) -> None:
    def rounds(*times_ms: int) -> dict[int, dict[str, Any]]:
        return {
            i: {"workload": 1, "collective": "all-to-all", "ranks": 8, "bytes": 8_000_000,
                "start_ps": 0, "time_ps": ms * 10**9, "pause_ps": 10**9}
            for i, ms in enumerate(times_ms)
        }  # fmt: skip

    run = write_run(tmp_path / "run", intervals=5, seeds=2)
    for name, finished in {
        "run": rounds(3, 5),
        "reference/default": rounds(4),
        "evaluation/recommended-seed101": rounds(2),
        "evaluation/default-seed101": rounds(4),
        "evaluation/recommended-seed102": rounds(2, 2),
        "evaluation/expert-seed102": rounds(1),
    }.items():
        add_rounds(run / f"{name}.jsonl", finished)
    (table,) = collective_tables(load_report_data(run))
    assert table.title == "all-to-all of 8 ranks, 8 MB each"
    during = {row.setting: row for row in table.during}
    assert during["expert"].summary is None
    ours = during["paraleon"].summary
    assert ours is not None
    assert (ours["rounds"], ours["time_ns_mean"], ours["time_ns_max"]) == (2, 4e6, 5e6)
    # 8 MB in 4 ms are 2 GB/s; each of 8 ranks sends 7/8 of it; 2 rounds and pauses in 10 ms
    assert ours["algbw_gbytes_per_s"] == pytest.approx(2)
    assert ours["busbw_gbytes_per_s"] == pytest.approx(1.75)
    assert ours["iterations_per_s"] == pytest.approx(200)
    assert during["paraleon"].against_default == paired_change([4.0], [4.0], relative=True)
    held_out = {row.setting: row for row in table.held_out}
    change = held_out["candidate"].against_default
    assert change is not None
    assert change.n == 1  # one seed has rounds with both
    assert change.mean == pytest.approx(-0.5)
    assert held_out["expert"].against_default is None
    page = text_of(run)
    assert "<h2>Collectives</h2>" in page
    head = page.split('class="collectives sortable"')[1].split("</tr>")[0]
    columns = re.findall(r'<th scope="col">([^<]+)</th>', head)
    assert columns[4:6] == ["algbw, GB/s", "busbw, GB/s"]
    body = page.split('class="collectives sortable"')[1]
    row = body.split('<th scope="row">paraleon</th>')[1].split("</tr>")[0]
    assert re.findall(r"<td>([^<]*)</td>", row)[3:5] == ["2", "1.75"]
    assert "Collectives" not in text_of(write_run(tmp_path / "plain", intervals=5))


def add_rounds(log: Path, rounds: dict[int, dict[str, Any]]) -> None:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if line.get("i") in rounds:
            line["rounds"] = [rounds[line["i"]]]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
