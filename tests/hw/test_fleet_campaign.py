"""Ten kinds of faults over a whole fleet; `tests/hw/campaign.py` strikes with all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import fleet_oracle as oracle
import pytest
from campaign import PLAN, run_of_plan
from faulty_network import FaultyFleet, make_certificates
from fleet_campaign import KINDS, Campaign, run_kind
from fleet_causes import CAUSES

from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.fleet_state import FleetState

CHOSEN = sorted(Random(1).sample(range(len(KINDS)), 10))
TABLE = (Path(__file__).parent / "fleet-campaign.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    make_certificates(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10, 5))
def test_every_fleet_ends_where_the_rule_says_and_status_is_true(
    first: int, certs: Path, tmp_path: Path
) -> None:
    for seed in CHOSEN[first : first + 5]:
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


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10])
def test_the_causes_of_old_leave_no_fleet_where_nobody_put_it(
    first: int, certs: Path, tmp_path: Path
) -> None:
    for number in range(first, min(first + 10, len(CAUSES))):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert run_of_plan(number, folder, certs).done == 1


def test_random_faults_quickly(certs: Path, tmp_path: Path) -> None:
    run = run_of_plan(len(PLAN) - 1, tmp_path, certs)
    assert run.done + run.refused == 1


@pytest.mark.parametrize("number", [334, 427, 654])
def test_random_runs_that_were_wrong_once(number: int, certs: Path, tmp_path: Path) -> None:
    run = run_of_plan(number, tmp_path, certs)  # an undo that one agent missed; a hidden split
    assert run.done + run.refused == 1


def test_every_cause_and_kind_was_struck_and_no_run_was_wrong() -> None:
    rows = [line.rsplit(maxsplit=5) for line in TABLE[1:]]
    cells = {name.strip(): [int(n) for n in numbers] for name, *numbers in rows}
    assert len(CAUSES) == 19
    assert len(KINDS) >= 180
    assert cells["all"][0] == len(PLAN) >= 400
    assert cells["random"][0] >= 200
    assert all(cells[name][0] >= 5 for name in CAUSES)
    assert all(cells[fault][0] >= 6 for _, fault in KINDS)
    assert cells["all"][3] > 0  # some split fleets were among them
    assert cells["all"][4] == 0


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
