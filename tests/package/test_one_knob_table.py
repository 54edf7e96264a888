"""The rows of the knob tables stand once: no other file lists knobs or counts them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dcqcn_gym.core.knobs import DCQCN, Knob, KnobTable, knob_table, schemes

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("engine", "ns3-scratch", "envs", "tuners", "hw", "benchmarks", "src/dcqcn_gym")
SUFFIXES = (".hpp", ".cpp", ".h", ".cc", ".py", ".pyi", ".toml", ".proto", ".pat", ".txt")
ROW_FILES = ("engine/model/schemes/", "engine/model/ecn_knobs.hpp")
LONGEST_RUN = 4
"""So many rows in a row a setting may name: a preset gives np_min_time_between_cnps, kmin, kmax,
pmax."""


def sources() -> list[Path]:
    files = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)
    return sorted(
        p for p in files if p.is_file() and "__pycache__" not in p.parts and not p.is_symlink()
    )


def names_of(row: Knob) -> set[str]:
    """A knob's names, and what ns-3 makes of the firmware's."""
    camel = "".join(part.capitalize() for part in (row.mlxconfig or row.name).split("_"))
    return {row.name, camel, row.mlxconfig or row.name, row.debugfs or row.name}


def longest_run(text: str, table: KnobTable) -> int:
    """Return how many rows that follow each other in the table do so in the text."""
    place = {name: i for i, row in enumerate(table.rows) for name in names_of(row)}
    found = [place[word] for word in re.findall(r"\w+", text) if word in place]
    longest = run = 0
    for i, at in enumerate(found):
        follows = i > 0 and at == found[i - 1] + 1
        again = i > 0 and at == found[i - 1]  # a row's names side by side
        run = run + 1 if follows else run if again else 1
        longest = max(longest, run)
    return longest


@pytest.mark.parametrize("scheme", schemes())
def test_no_other_file_lists_the_knobs(scheme: str) -> None:
    table, files = knob_table(scheme), sources()
    assert len(files) > 150
    lists = {
        name: run
        for path in files
        if not (name := str(path.relative_to(ROOT))).startswith(ROW_FILES)
        and (run := longest_run(path.read_text(encoding="utf-8"), table)) > LONGEST_RUN
    }
    assert not lists, "read the rows (knob_table, scheme_knobs) instead of listing them again"


def test_a_list_would_be_found() -> None:
    rows = (ROOT / "engine/model/schemes/dcqcn_knobs.hpp").read_text(encoding="utf-8")
    assert longest_run(rows, DCQCN) == len(DCQCN.nic)
    assert longest_run("enum { RpgTimeReset, RpgByteReset, RpgThreshold };", DCQCN) == 3
    assert longest_run(" ".join(DCQCN.ecn), DCQCN) == 3


def test_no_file_counts_the_knobs() -> None:
    nic, both = len(DCQCN.nic), len(DCQCN.rows)
    counted = re.compile(
        rf"\b({nic}|{both}|seventeen|twenty)\b[^\n]{{0,20}}\b(knobs?|columns)\b"
        rf"|[kK]nobs?\w*\s*(=|\[)\s*({nic}|{both})\b|\[({nic}|{both})\]\s*=\s*\{{",
        re.IGNORECASE,
    )
    assert counted.search(f"static constexpr std::size_t kKnobs = {nic};")
    assert counted.search(f"constexpr double kDefaultNic[{nic}] = {{0,")
    assert counted.search(f"apply: expected {nic} NIC columns and 3 ECN columns")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sources()
        for match in counted.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
