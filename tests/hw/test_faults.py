"""Twelve cases of faults by name: together they strike with every fault there is."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from fault_cases import FAULTS, STEP_S, TRIAL_S, run_case

from dcqcn_gym.core.errors import DeviceError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.hw.device_counters import Counted, report_of, shape_of

SEEDS = range(12)
"""Cases in which every fault strikes: the last two do so in the twelfth."""


@pytest.mark.slow
def test_every_device_ends_at_a_confirmed_setting(certs: Path, tmp_path: Path) -> None:
    confirmed = 0
    struck: set[str] = set()
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = run_case(seed, folder, certs)
        confirmed += outcome.confirmed
        struck.update(fault.split(" at ")[0] for fault in outcome.faults)
        # a device is away for a trial at most; longer only while its own file or database is gone
        gone = ("file-gone", "redis-restart", "clock-jump")
        hindered = any(fault.startswith(gone) for fault in outcome.faults)
        assert hindered or outcome.longest_away_s <= TRIAL_S + STEP_S
    assert confirmed > len(SEEDS)
    if shutil.which("redis-server"):  # without a switch, other faults are drawn
        assert struck == set(FAULTS)


def test_one_case_quickly(certs: Path, tmp_path: Path) -> None:
    assert run_case(1, tmp_path, certs).faults


def test_a_fault_by_name_strikes_every_change(certs: Path, tmp_path: Path) -> None:
    outcome = run_case(1, tmp_path, certs, ["write-fails"])
    assert [fault.split(" at ")[0] for fault in outcome.faults] == ["write-fails"] * 4
    with pytest.raises(UnknownNameError, match="did you mean 'write-fails'"):
        run_case(1, tmp_path / "none", certs, ["write-fail"])


@pytest.mark.parametrize("kind", ["wrapped", "reset", "stuck"])
def test_no_interval_is_made_up_from_a_broken_counter(kind: str) -> None:
    shape = shape_of(load_scenario("mini-fb-hadoop"))
    random = Random(kind)
    names = ("tx_bytes", "tx_packets", "pfc_received", "pfc_sent", "pause_us", "cnps_sent")
    ports = dict.fromkeys((*names, "marked_packets", "marked_bytes", "dropped_packets",
                           "queue_bytes", "max_queue_bytes"), 0)  # fmt: skip
    for _ in range(100):
        old = [{n: random.randrange(2**31, 2**32) for n in names} for _ in range(16)]
        new = [{n: v + random.randrange(30_000, 10**6) for n, v in nic.items()} for nic in old]
        idle = [dict(ports)] * len(shape.switch_ports)
        before = Counted(old, idle)
        sound = report_of(shape, before, Counted(new, idle), (0, 0, 10**9), None)
        grown = [b["tx_bytes"] - a["tx_bytes"] for a, b in zip(old, new, strict=True)]
        assert sound.host_tx_bytes.tolist() == grown
        broken = [dict(nic) for nic in new]
        victim, name = random.randrange(16), random.choice(names)
        if kind == "wrapped":
            old[victim][name] = 2**32 - 10
            broken[victim][name] = (2**32 - 10 + 30_000) % 2**32
        elif kind == "reset":
            broken[victim] = {n: random.randrange(10**6) for n in names}
        else:
            broken[victim]["tx_packets"] = old[victim]["tx_packets"]
        with pytest.raises(DeviceError, match=f"NIC {victim}: .* this interval is not known"):
            report_of(shape, before, Counted(broken, idle), (0, 0, 10**9), None)
