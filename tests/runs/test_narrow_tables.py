"""Tables on a terminal of 80 columns: every figure whole, nothing wider than the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.knobs import KNOBS
from dcqcn_gym.runs.table import Table, print_tables
from dcqcn_gym.tuners import TUNERS

NARROW = {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm"}


def said(*words: str, columns: int = 80) -> list[str]:
    """What a command prints on a terminal of some columns, without its colours."""
    done = CliRunner().invoke(app, list(words), env={**NARROW, "COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    assert max(map(len, lines)) <= columns
    assert not any("…" in line for line in lines)
    return lines


def test_knobs_show_every_name_and_range() -> None:
    lines = said("knobs")
    text = "\n".join(lines)
    for row in KNOBS.values():
        found = [line for line in lines if line.split()[:1] == [row.name]]
        assert len(found) == 4  # one line in each part
        assert "{:g}..{:g}".format(*row.legal_at(100e9)) in found[0]
        assert "{:g}..{:g}".format(*row.tuned_at(100e9)) in found[1]
        assert (row.mlxconfig or row.sonic or "") in found[2]
        assert row.help.split()[0] in found[3]
    assert text.count("knobs at 100 Gb/s") == 1


def test_lists_fit() -> None:
    tuners = said("tuners")
    assert {line.split()[0] for line in tuners if line.strip()} >= set(TUNERS.names())
    assert any(re.search(r"initial_temperature +90 ", line) for line in said("tuners", "paraleon"))


LISTS = ("scenarios", "tuners", "tuners paraleon", "tuners safe", "knobs",
         "paper run")  # fmt: skip


@pytest.mark.parametrize("words", LISTS)
def test_no_number_of_a_list_is_broken(words: str) -> None:
    def numbers(lines: list[str]) -> set[str]:
        return set(re.findall(r"(?<![\w.,/-])\d[\d.,e+]*(?![\w.,/-])", " ".join(lines)))

    whole = numbers(said(*words.split(), columns=2000))
    assert numbers(said(*words.split())) == whole


def test_results_of_compare_and_evaluate_fit(tmp_path: Path, in_threads: None) -> None:
    words = ["--scenario", "mini-fb-hadoop", "--backend", "fake", "--seeds", "2", "--jobs", "1"]
    tuners = ["--tuners", "default,random", "--eval-seeds", "1", "--eval-intervals", "4"]
    few = ["--intervals", "4", "--out", str(tmp_path / "out")]
    lines = said("compare", *words, *tuners, *few, "--quiet")
    assert any(re.search(r"random +0\.\d{4} ±", line) for line in lines)
    lines = said("evaluate", "sac-mini", *words, "--intervals", "4")
    assert any(re.search(r"sac-mini +0\.\d{4}", line) for line in lines)


def test_a_table_that_fits_stays_whole() -> None:
    table = Table(("a", "b"), [("one", "1"), ("two", "2")], "title")
    assert table.parts(80) == [table]
    wide = Table(("a", "b", "c"), [("one", "1" * 9, "2" * 9)], "title")
    assert [(part.columns, part.title) for part in wide.parts(24)] == [
        (["a", "b"], "title"),
        (["a", "c"], ""),
    ]


def test_sentences_in_front_leave_room_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in NARROW.items():
        monkeypatch.setenv(name, value)
    claim = "a longer timer slows recovery, which takes milliseconds for each of the flows"
    print_tables([Table(("said", "verdict", "found"), [(claim, "reproduced", "-90.7 %")])])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert any("reproduced" in line and "-90.7 %" in line for line in lines)
    rest = " ".join(lines[3:]).replace("reproduced", "").replace("-90.7 %", "")
    assert " ".join(rest.split()) == claim


def test_the_papers_tables_fit(tmp_path: Path, in_threads: None) -> None:
    lines = said("paper", "run")
    sizes = [
        line
        for line in lines
        if re.match(
            r" *P-fig12 +P-fig12, P-fig12-prototype +quick \([\d,]+\), full \([\d,]+\)", line
        )
    ]
    assert len(sizes) == 1
    assert len([line for line in lines if re.match(r" *P-fig12 +\d+ claims: ", line)]) == 1
    of = ["paper", "run", "D-fig5", "--size", "smoke", "--quiet", "--out", str(tmp_path)]
    text = "\n".join(said(*of))
    assert len(re.findall("(?m)^  [123] .*(reproduced|direction|not conclusive)", text)) == 3


def test_a_pipe_gets_whole_rows(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [f"column{i}" for i in range(12)]
    print_tables([Table(columns, [[f"value{i}{i}" for i in range(12)]])])
    lines = capsys.readouterr().out.splitlines()
    assert any("value00" in line and "value1111" in line for line in lines)


def test_a_pipe_is_as_wide_as_the_variable_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = Table([f"column {i}" for i in range(30)], [[str(10**i) for i in range(30)]])
    monkeypatch.setenv("COLUMNS", "70")
    print_tables([wide])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 70
    assert str(10**29) in " ".join(lines)
    monkeypatch.delenv("COLUMNS")
    print_tables([wide])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 200
