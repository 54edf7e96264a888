"""Forty kinds of faults over a whole fleet, of the 190 that `fleet_campaign.py` has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import fleet_oracle as oracle
import pytest
from faulty_network import FaultyFleet
from fleet_campaign import KINDS, Campaign, run_kind

from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.fleet_state import FleetState

CHOSEN = sorted(Random(1).sample(range(len(KINDS)), 40))
RANDOM = ("random", "random")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 40, 8))
def test_every_fleet_ends_where_the_rule_says_and_status_is_true(
    first: int, certs: Path, tmp_path: Path
) -> None:
    for seed in CHOSEN[first : first + 8]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        run = run_kind(KINDS[seed], seed, folder, certs, strikes=2)
        assert run.done + run.refused == 2


@pytest.mark.parametrize(
    "kind",
    [("reconcile", "controller-killed"), ("undo", "log-of-another-host"), ("trial", "file-empty"),
     ("change", "second-controller")],
)  # fmt: skip
def test_a_kind_quickly(kind: tuple[str, str], certs: Path, tmp_path: Path) -> None:
    run = run_kind(kind, 1, tmp_path, certs, strikes=1)
    assert run.done + run.refused == 1


@pytest.mark.parametrize("number", [334, 427, 654, 706])
def test_random_faults(number: int, certs: Path, tmp_path: Path) -> None:
    run = run_kind(RANDOM, number, tmp_path, certs, strikes=1)  # the first three were wrong once
    assert run.done + run.refused == 1


@pytest.fixture
def campaign(certs: Path, tmp_path: Path) -> Iterator[Campaign]:
    """A fleet that was changed twice, and whose judge is content."""
    (tmp_path / "certs").symlink_to(certs)
    fleet = FaultyFleet(tmp_path, 1)
    try:
        found = Campaign(fleet, ("change", "clock-jump"))
        found.prelude("undo")
        found.prelude("undo")
        found.judge()
        yield found
    finally:
        fleet.close()


def test_the_judge_sees_a_device_that_is_elsewhere(campaign: Campaign) -> None:
    campaign.fleet.cc_file("nic-1", "rp_ai_rate").write_text("77\n")
    with pytest.raises(AssertionError, match=r"nic-1 holds .*rp_ai_rate.*77"):
        campaign.judge()


def test_the_judge_sees_a_switch_that_is_elsewhere(campaign: Campaign) -> None:
    if campaign.fleet.switch is None:
        pytest.skip("redis-server is not installed")
    profile = "WRED_PROFILE|AZURE_LOSSLESS_Ethernet0"
    campaign.fleet.switch._config.hset(profile, "green_min_threshold", "1")
    with pytest.raises(AssertionError, match="switch-0 holds"):
        campaign.judge()


def test_the_judge_sees_a_split_that_status_denies(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = campaign.fleet.agents["nic-2"].guard
    guard.undo(guard.status.confirmed, Who("test"))
    assert list(campaign.true_split()) == ["nic-2"]
    with monkeypatch.context() as patch:
        patch.setattr(FleetState, "split", lambda self: {})
        with pytest.raises(AssertionError, match="status ended with 0"):
            campaign.judge()
    campaign.judge()
    assert campaign.run.split == 1


def test_the_judge_sees_a_change_that_was_confirmed_and_is_not_there(campaign: Campaign) -> None:
    decided = oracle.decided_by(campaign.written())
    name = decided.stacks["nic-0"][-1]
    campaign.claims(name)
    campaign.fleet.agents["nic-0"].guard.undo(name, Who("test"))
    with pytest.raises(AssertionError, match=f"nic-0 lacks {name}"):
        campaign.claims(name)


def test_the_judge_sees_an_undo_that_went_too_far(campaign: Campaign) -> None:
    newest = oracle.decided_by(campaign.written()).stacks["nic-0"][-1]
    campaign.before[newest] = {name: {} for name in campaign.fleet.names}
    with pytest.raises(AssertionError):
        campaign.go_back()
