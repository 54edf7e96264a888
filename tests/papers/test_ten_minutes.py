"""The page for ten minutes: its numbers are the kept results', its words fit their verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dcqcn_gym.benchmarks.papers import catalog
from dcqcn_gym.benchmarks.papers.committed import committed_checks, committed_results
from dcqcn_gym.benchmarks.papers.ten_minutes import NAME, fill, template, write_ten_minutes
from dcqcn_gym.core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
KEPT = catalog.results_folder()
FOUND, CHECKS = committed_results(KEPT), committed_checks(KEPT)
PLACES = re.findall(r"\{\{([^{}|]+)\|([^{}|]+)\|([^{}|]+)\}\}", template())


def test_the_page_is_made_of_the_kept_results(tmp_path: Path) -> None:
    path, _ = write_ten_minutes(tmp_path, FOUND, CHECKS)
    there = ROOT / "docs/measured/papers" / NAME
    assert path.read_bytes() == there.read_bytes(), "tools/paper_pages.py writes it anew"


def test_no_sentence_says_what_the_results_do_not() -> None:
    assert fill(template(), FOUND, CHECKS).stale == ()


def test_a_number_follows_its_result_and_a_verdict_that_changed_is_named() -> None:
    said = "DCQCN's queue is {{D-fig6|10 Gb/s: the queue of DCQCN is 20|%s}}."
    right = fill(said % "reproduced", FOUND, CHECKS)
    assert re.fullmatch(r"DCQCN's queue is \d+ times more\.", right.text)
    assert right.stale == ()
    wrong = fill(said % "not reproduced", FOUND, CHECKS)
    assert wrong.text == right.text
    (named,) = wrong.stale
    assert named.startswith("D-fig6, 10 Gb/s: the queue of DCQCN is 20: reproduced")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{{D-fig6|40 Gb/s: likewise|reproduced}}", "3 claims of D-fig6 hold '40 Gb/s: likewise'"),
        ("{{D-fig6|the colour|reproduced}}", "0 claims of D-fig6 hold 'the colour'"),
        ("{{D-fg6|likewise|reproduced}}", "no results of 'D-fg6' are kept"),
        ("{{D-fig6|10 Gb/s: drained|true}}", "is no place"),
        ("{{tabel}}", "or one of table, counts, acks, ns3"),
    ],
)
def test_a_place_that_names_nothing_is_refused(place: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        fill(place, FOUND, CHECKS)
