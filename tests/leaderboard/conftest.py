"""What tests of the leaderboard share; a file with another suite has a fixture of that name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from submissions import CALM, leaderboard_of, plugin, submission_of, tiny_suite

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.results import write_results


@pytest.fixture(scope="module")
def few_resamples() -> Iterator[None]:
    """Draw fewer resamples, where bytes are compared and no intervals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "RESAMPLES", 50)
        yield


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_suite(tmp_path_factory.mktemp("suite") / "tiny")


@pytest.fixture(scope="module")
def ours(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the maintainers' leaderboard: the default and random."""
    board = leaderboard_of(suite, "random", tmp_path_factory.mktemp("ours") / "random")
    write_results(board)
    return board.out


@pytest.fixture(scope="module")
def calm(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the submission of a plug-in that keeps the default: R = 0."""
    folder = tmp_path_factory.mktemp("calm")
    return submission_of(suite, plugin(folder / "code", CALM), folder)


@pytest.fixture
def given(calm: Path, tmp_path: Path) -> Path:
    """Return a copy of it, to be forged."""
    return Path(shutil.copytree(calm, tmp_path / "submission"))
