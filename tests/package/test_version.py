"""What names the code: the version, the engine's digest, and who compares them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import dcqcn_gym
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


def test_what_differs_is_named() -> None:
    mine = version.code_versions()
    assert version.version_difference(mine) == ""
    assert "version 9.9 instead of" in version.version_difference({**mine, "dcqcn_gym": "9.9"})
    assert "engine abc instead of" in version.version_difference({**mine, "engine": "abc"})
