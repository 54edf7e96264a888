"""What names the code: the version, the engine's digest, and who compares them."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dcqcn_gym
from dcqcn_gym.cli import app
from dcqcn_gym.core import version
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.recorded import check_same
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.testing.tuner_case import TunerCase

ENGINE = Path(__file__).resolve().parents[2] / "engine"


def test_the_digest_is_that_of_the_sources() -> None:
    """It fails for an engine that is older than its sources: `make rebuild-core`."""
    pytest.importorskip("dcqcn_gym._core")
    names = [p.relative_to(ENGINE) for end in ("cpp", "hpp") for p in ENGINE.rglob(f"*.{end}")]
    sums = "".join(
        f"{hashlib.sha256((ENGINE / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(map(str, names))
        if not name.startswith("tests/")
    )
    assert version.engine_digest() == hashlib.sha256(sums.encode()).hexdigest()


def test_a_release_has_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", version.RELEASE)
    assert dcqcn_gym.__version__ == version.__version__


def test_a_log_names_its_code_and_other_code_does_not_go_on_with_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("dcqcn_gym._core")
    log = tmp_path / "run.jsonl"
    spec = RunSpec(TunerCase().scenario(), "default", 1, 4, "fake")
    run(spec, log)
    header, *lines = log.read_text().splitlines(keepends=True)
    mine = version.code_versions()
    assert mine.items() <= read_run(log).header["versions"].items()
    check_same(read_run(log), spec)
    log.write_text("".join([header.replace(mine["engine"], "0" * 16), *lines[:3]]))
    with pytest.raises(RunError, match=f"engine 0000000000000000 instead of {mine['engine']}"):
        check_same(read_run(log), spec)


def test_every_file_of_results_names_its_code(tmp_path: Path, in_threads: None) -> None:
    pytest.importorskip("dcqcn_gym._core")
    dcqcn_gym.tune("mini-fb-hadoop", "random", out=tmp_path / "t", intervals=2, eval_seeds=1)
    dcqcn_gym.simulate(dcqcn_gym.load_scenario("mini-fb-hadoop"), tmp_path / "s", intervals=2)
    words = ["compare", "--scenario", "mini-fb-hadoop", "--tuners", "random", "--quiet"]
    words += ["--seeds", "2", "--intervals", "2", "--eval-seeds", "1", "--eval-intervals", "2"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "c")])
    assert done.exit_code == 0, done.output
    files = [p for p in tmp_path.rglob("*") if p.suffix in (".json", ".jsonl", ".html")]
    silent = {p.name for p in files if version.__version__ not in p.read_text(encoding="utf-8")}
    assert {name for name in silent if not name.endswith("timing.json")} == set()
    assert {"best.json", "results.json", "compare.html", "report.html"} <= {p.name for p in files}


def test_a_checkout_names_the_commit_that_it_is_at(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        names = ["-c", "user.name=us", "-c", "user.email=us@localhost"]
        command = ["git", "-C", str(tmp_path), *names, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    assert version._commit(tmp_path / ".git") == ""  # there is none yet
    for text in "ab":
        git("commit", "-q", "--allow-empty", "-m", text)
    head = git("rev-parse", "HEAD")
    assert version._commit(tmp_path / ".git") == head
    git("worktree", "add", "-q", "-b", "other", "beside")
    git("pack-refs", "--all")
    for place in (tmp_path, tmp_path / "beside"):
        assert version._commit(place / ".git") == head
    git("checkout", "-q", "--detach", "HEAD~1")
    assert version._commit(tmp_path / ".git") == git("rev-parse", "HEAD") != head
    assert version._commit(tmp_path / "none" / ".git") == ""

    moved = version._at("0.1.dev7+g1234567.d20261127", "89abcdef0123")
    assert moved == "0.1.dev7+g89abcdef0"
    for installed in ("0.1.dev7+g89abcde", "0.1.dev7+g89abcde.d20261127", "0.1.0", "0+unknown"):
        assert version._at(installed, "89abcdef0123") == installed
        assert version._at(installed, "") == installed


def test_workers_have_the_version_of_their_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCQCN_GYM_VERSION", "9.9")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(version.code_versions)["dcqcn_gym"] == "9.9"
    asked = "import dcqcn_gym; print(dcqcn_gym.__version__)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == f"{version.__version__}\n"  # a command of its own


def test_what_differs_is_named() -> None:
    mine = version.code_versions()
    assert version.version_difference(mine) == ""
    assert "version 9.9 instead of" in version.version_difference({**mine, "dcqcn_gym": "9.9"})
    assert "engine abc instead of" in version.version_difference({**mine, "engine": "abc"})
