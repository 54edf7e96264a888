"""Bad input to `tune`: one clear sentence, exit code 2, nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dcqcn_gym.cli import main

MINI = (Path(__file__).parents[2] / "configs" / "scenarios" / "mini-fb-hadoop.toml").read_text()
QUICK = ["--backend", "fake", "--intervals", "5", "--eval-seeds", "0", "--no-report"]


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Run a command that must fail with exit code 2 and one line; return that line."""
    monkeypatch.setattr(sys, "argv", ["dcqcn-gym", *words])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1, said.err
    return said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scenario", "fb-hadop"], ["unknown scenario 'fb-hadop'", "'fb-hadoop'"]),
        (["--scenario", "none.toml"], ["none.toml: no such file"]),
        (["--tuner", "paralon"], ["unknown tuner 'paralon'", "'paraleon'"]),
        (["--tuner", "none.py:Mine"], ["none.py", "No such file"]),
        (["--backend", "natve"], ["unknown backend 'natve'", "'native'"]),
        (["--monitor", "exat"], ["--monitor", "'exat'", "'exact'"]),
        (["--tuner-arg", "iterations"], ["'iterations'", "key=value"]),
        (["--tuner-arg", "iteration=3"], ["'paraleon'", "'iteration'", "'iterations'"]),
        (["--tuner-arg", "iterations=0"], ["iterations", "'0'", "greater than or equal to 1"]),
        (["--tuner", "fixed", "--tuner-arg", "kmim=3"], ["'kmim'", "'kmin'"]),
        (["--tuner", "fixed", "--tuner-arg", "pmax=2"], ["pmax = 2", "0 to 1"]),
        (["--tuner", "fixed", "--tuner-arg", "kmin=900"], ["kmin = 900 KB", "kmax = 400 KB"]),
        (["--tuner", "fixed", "--tuner-arg", "pmax=nan"], ["pmax", "finite"]),
    ],
)
def test_one_sentence_and_nothing_written(
    words: list[str],
    says: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    scenario = [] if "--scenario" in words else ["--scenario", "mini-fb-hadoop"]
    text = refused(monkeypatch, capsys, "tune", "--out", str(out), *scenario, *QUICK, *words)
    for part in says:
        assert part in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "leaf-spine"', 'kind = "leaf-spin"', ["topology", "leaf-spin", "leaf-spine"]),
        ("host_gbps = 25", "host_gbps = 23", ["topology", "23", "picoseconds"]),
        ("load = 0.3", "load = -1", ["workloads", "load", "-1"]),
        ("load = 0.3", "laod = 0.3", ["workloads", "'laod'", "'load'"]),
        ("tp = 0.2", "tp = 0.9", ["weights", "add up to 1"]),
        ("intervals = 100", "intervals = ", ["not valid TOML", "line"]),
        ("[topology]", "[switch]\nbuffer_bytes = 1000\n[topology]", ["buffer_bytes", "headroom"]),
        ("[topology]", "[initial]\nkmin = 999\nkmax = 1\n[topology]", ["initial", "kmin = 999"]),
        ("[topology]", "[initial]\nrp_gdd = 11\n[topology]", ["'rp_gdd'", "'rp_gd'"]),
    ],
)
def test_a_bad_scenario_file_is_named_with_its_key(
    old: str,
    new: str,
    says: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert old in MINI
    path = tmp_path / "mine.toml"
    path.write_text(MINI.replace(old, new, 1))
    out = tmp_path / "out"
    text = refused(monkeypatch, capsys, "tune", "--out", str(out), "--scenario", str(path), *QUICK)
    for part in [str(path), *says]:
        assert part in text
    assert not out.exists()


def test_a_file_where_the_directory_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    for out in (path, path / "below"):
        text = refused(monkeypatch, capsys, "tune", "--out", str(out), *QUICK)
        assert f"{path} is a file; give a directory" in text
    assert path.read_text() == "mine"


def test_a_run_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.jsonl").write_text('{"schema":4,"kind":"run"}\n')
    text = refused(monkeypatch, capsys, "tune", "--out", str(tmp_path), *QUICK)
    assert "give the same arguments, or --force" in text


FULL = """
import resource, signal, sys
from dcqcn_gym.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
main()
"""


@pytest.mark.parametrize("most", [100, 8_000])
def test_a_full_disk(tmp_path: Path, most: int) -> None:
    out = tmp_path / "out"
    words = ["tune", "--out", str(out), "--scenario", "mini-fb-hadoop", "--quiet", *QUICK]
    done = subprocess.run(
        [sys.executable, "-c", FULL.replace("MOST", str(most)), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cannot be written: File too large" in done.stderr
    left = {p.name for p in out.rglob("*") if p.is_file()} if out.exists() else set()
    assert left <= {"run.jsonl", "default.jsonl", "expert.jsonl"}
    for path in out.rglob("*.jsonl"):
        assert path.read_bytes().endswith(b"}\n")
    assert os.listdir(tmp_path) in ([], ["out"])


@pytest.mark.parametrize(
    "words",
    [
        ["tune"],
        ["tune", "--out", "x", "--intervals", "0"],
        ["tune", "--out", "x", "--seed", "-1"],
        ["tune", "--out", "x", "--track", "cisco"],
        ["tune", "--outt", "x"],
        ["tun"],
    ],
)
def test_usage_errors_end_with_2(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dcqcn-gym", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
