"""Thirty cases of faults by name; `python -m dcqcn_gym.testing.hw_faults --cases 300` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcqcn_gym.testing.hw_faults import FAULTS, STEP_S, TRIAL_S, run_case
from dcqcn_gym.testing.hw_faulty import make_certificates

SEEDS = range(30)
seen: set[str] = set()


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    make_certificates(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("first", SEEDS[::10])
def test_every_device_ends_at_a_confirmed_setting(first: int, certs: Path, tmp_path: Path) -> None:
    confirmed = 0
    for seed in range(first, first + 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = run_case(seed, folder, certs)
        confirmed += outcome.confirmed
        # a device is away for a trial at most; longer only while its own file or database is gone
        gone = ("file-gone", "redis-restart", "clock-jump")
        hindered = any(fault.startswith(gone) for fault in outcome.faults)
        assert hindered or outcome.longest_away_s <= TRIAL_S + STEP_S
    assert confirmed > 0


def test_one_case_quickly(certs: Path, tmp_path: Path) -> None:
    assert run_case(1, tmp_path, certs).faults


def test_faults_have_names_and_meanings() -> None:
    assert len(FAULTS) >= 17
    assert all(FAULTS.values())
