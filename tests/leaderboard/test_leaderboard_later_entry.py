"""An entry between two seasons: verified on its own salt beside the reference entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from submissions import (
    DAY,
    Here,
    need_sandbox,
    plugin,
    quick_intervals,
    second_suite,
    submission_of,
    verdicts,
    verified,
)
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.leaderboard import starving as module
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reference_entries import REFERENCES, reference_entries
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.scoring import score_entries
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.cli import app
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.runs.entries import Entry

STARVING = parse_json(read_text(Path(module.__file__).with_name("starving.json")))["timid"]
HARMS = f"""
def ask(self):
    return self.context.base.replace({STARVING})
"""


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    yield from quick_intervals()


def test_by_protocol_1_nothing_runs_beside_and_no_entry_beside_itself() -> None:
    assert reference_entries(1, "mine") == []
    assert [one.name for one in reference_entries(2, "keeper")] == [
        name for name in REFERENCES if name != "keeper"
    ]


@pytest.mark.slow
def test_its_verdict_and_its_page_have_the_reference_entries_on_the_same_traffic(
    tmp_path: Path,
) -> None:
    need_sandbox()
    suite = second_suite(tmp_path / "tiny", 2)
    folder = submission_of(suite, plugin(tmp_path / "code", HARMS), tmp_path)
    found = verified(folder, suite, fresh=2)
    assert list(found.beside) == ["mine-Mine", *REFERENCES]
    rows = [Entry("default"), *reference_entries(2, "mine-Mine")]
    board = Leaderboard(load_suite(suite), rows, tmp_path / "by-hand", 2, salt="salt")
    assert board.carry_out(executor=Here()) == {}
    for one in score_entries(board)[1:]:
        told = found.beside[one.name]
        assert told["value"] == pytest.approx(one.parts["final"].score.mean(), abs=1e-12)
        assert told["online"] == pytest.approx(one.parts["online"].score.mean(), abs=1e-12)
    mine = found.beside["mine-Mine"]
    assert mine["value"] == found.scores["fresh"]["value"]
    assert mine["harm"] > 0
    assert mine["worst"] > found.beside["default-min-rate"]["worst"]
    write_results(board)
    words = [
        "bench",
        "site",
        str(board.out),
        str(folder),
        "--out",
        str(tmp_path / "site"),
        "--day",
        DAY,
    ]
    done = CliRunner().invoke(app, [*words, "--verdicts", str(verdicts(folder))])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "site" / "entries" / "tiny-v2-mine-Mine.html").read_text()
    beside = page[page.index("Beside the reference entries") :]
    assert all(name in beside.split("</section>")[0] for name in found.beside)
