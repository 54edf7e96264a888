"""Whole runs do what they did when their digests were recorded."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import run_digests as digests
from dcqcn_gym.core.errors import DcqcnGymError, MissingExtraError
from dcqcn_gym.envs.scenario.scenario import scenario_names
from dcqcn_gym.tuners import BUILTIN
from run_digests import INTERVALS, UNKNOWN, Case, cases, digest_of, main, recorded

pytest.importorskip("dcqcn_gym._core")

FILE = Path(__file__).resolve().parents[1] / "digests" / "runs.txt"
MINIS = [name for name in scenario_names() if name.startswith("mini-")]
TURNS = {Case(mini, tuner) for mini, tuner in zip(itertools.cycle(MINIS), BUILTIN, strict=False)}
"""Each tuner on one of the small scenarios."""
QUICK = [c for c in cases(quick=True) if c.scenario not in MINIS or c in TURNS]
OTHERS = [case for case in cases() if case not in QUICK]
SMALL = Case("mini-fb-hadoop", "random")


def check(case: Case, folder: Path) -> None:
    expected = recorded(FILE)[case]
    try:
        found = digest_of(case, folder / "run.jsonl")
    except MissingExtraError as error:
        pytest.skip(str(error))
    if expected == UNKNOWN:
        pytest.skip("the package was missing where the digests were recorded")
    assert found == expected, "python tools/run_digests.py --keep FOLDER shows the place"


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_quick_run_is_as_recorded(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_other_run_is_as_recorded(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_every_run_but_those_that_need_torch_is_recorded() -> None:
    known = recorded(FILE)
    assert list(known) == cases(), "write it again: python tools/run_digests.py --write"
    assert {case.tuner for case, digest in known.items() if digest == UNKNOWN} == {"gp"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "cases", lambda *, quick=False: [SMALL])
    monkeypatch.setattr(digests, "worker_pool", ThreadPoolExecutor)


@pytest.mark.usefixtures("alone")
def test_the_command_writes_and_finds_a_changed_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, kept = tmp_path / "runs.txt", tmp_path / "kept"
    call = ["--file", str(path), "--keep", str(kept)]
    assert main([*call, "--write"]) == 0
    assert recorded(path) == {SMALL: recorded(FILE)[SMALL]}
    assert main(call) == 0
    assert "1 of 1 runs as recorded" in capsys.readouterr().out
    log = kept / "mini-fb-hadoop.random.jsonl"
    lines = log.read_text().splitlines()
    assert len(lines) == INTERVALS + 2
    lines[3] = lines[3].replace('"utility":', '"utility":1')
    log.write_text("\n".join(lines) + "\n")
    words = path.read_text().splitlines()[1].split()
    words[2] = words[2][::-1]
    path.write_text("# nothing\n" + " ".join(words) + "\n")
    assert main(call) == 1
    out = capsys.readouterr().out
    assert "mini-fb-hadoop random: line 4, byte " in out
    assert "mini-fb-hadoop random: interval lines differ" in out


@pytest.mark.usefixtures("alone")
def test_a_name_chooses_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Case("mini-storm", "expert")
    monkeypatch.setattr(digests, "cases", lambda *, quick=False: [other, SMALL])
    for name in (SMALL.scenario, SMALL.tuner):
        path = tmp_path / name
        assert main(["--file", str(path), "--write", name]) == 0
        assert recorded(path) == {other: UNKNOWN, SMALL: recorded(FILE)[SMALL]}
    with pytest.raises(SystemExit):
        main(["--file", str(path), "--write", "nobody"])
    assert len(recorded(path)) == 2


@pytest.mark.usefixtures("alone")
def test_nothing_checked_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_text(f"{SMALL} {UNKNOWN}\n")
    assert main(["--file", str(path)]) == 1


def test_a_line_that_is_no_digest_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_text("# nothing\nmini-storm random 12\n")
    with pytest.raises(DcqcnGymError, match=r"runs\.txt:2: expected"):
        recorded(path)


def test_without_a_file_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--file", str(tmp_path / "none.txt")])
    assert "none.txt" in capsys.readouterr().err
