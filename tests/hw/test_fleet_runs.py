"""Runs and recommendations on the digital fabric: Ctrl-C, one setting per tier, exact ways back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fabrics import SMALL, fabric_of
from fleets import rates, restarted, strike, typed

from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.fabric.fabric import DigitalFabric

RATES = """
from dcqcn_gym.tuners.base import Tuner


class Rates(Tuner):
    name, summary = "rates", "20 Mb/s, then 30 Mb/s"
    rate = 10.0

    def ask(self):
        self.rate += 10.0
        return self.context.base.replace({"rp_ai_rate": self.rate})


class Tiers(Tuner):
    name, summary = "tiers", "a kmin for each tier"

    def ask(self):
        return self.recommend()

    def recommend(self):
        kmins = {"cluster": 100, "tor": 31, "spine": 23}
        return {group: self.context.base.replace({"kmin": b}) for group, b in kmins.items()}
"""
PER_TIER = {"cluster": 100, "tor": 31, "spine": 23}
"""kmin in kB, as paraleon-tiers recommends."""


@pytest.fixture
def fabric(small: Scenario, tmp_path: Path) -> Iterator[DigitalFabric]:
    (tmp_path / "small-fabric.toml").write_text(SMALL)
    (tmp_path / "own.py").write_text(RATES)
    with fabric_of(small) as fabric:
        yield fabric


def tune(fabric: DigitalFabric, folder: Path, tuner: str, *more: str) -> tuple[int, str]:
    words = ["--fleet", str(fabric.fleet), "-s", str(folder / "small-fabric.toml")]
    own = ["--tuner", f"{folder / 'own.py'}:{tuner}", "--intervals", "2"]
    return typed("tune", *words, *own, "--out", str(folder / "out"), *more)


def kmins(fabric: DigitalFabric) -> list[set[float]]:
    """Return the kmins, in kB, of the ports of every switch: two ToRs and a spine."""
    return [{port["kmin"] for port in switch.knobs()} for switch in fabric._switches]


def per_tier(file: Path, kmin: Mapping[str, float]) -> str:
    """Write a best.json; return its name."""
    groups = {g: default_setting().replace({"kmin": b}) for g, b in kmin.items()}
    file.write_text(
        json.dumps(
            {"recommended": {g: dict(s) for g, s in groups.items()}, "answer": {"title": "Deploy"}}
        )
    )
    return str(file)


def test_ctrl_c_in_a_run_and_on_its_way_back_leaves_the_fleet_as_it_was(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    folder = fabric.fleet.parent
    strike(fabric.agents[1], "30", "5")
    assert tune(fabric, tmp_path, "Rates")[0] != 0
    assert len((tmp_path / "out" / "run.jsonl").read_text().splitlines()) == 2  # head, interval 0
    assert rates(folder) == [5] * 4
    assert {agent.guard.status.state for agent in fabric.agents} <= {"idle", "staged"}
    code, said = typed("rollback", "--fleet", str(fabric.fleet))
    assert code != 0
    assert "no confirmed change is left to undo" in said
    assert rates(folder) == [5] * 4


def test_what_is_kept_of_a_run_holds_per_tier_and_is_undone_at_once(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    before = kmins(fabric)
    code, said = tune(fabric, tmp_path, "Tiers", "--keep")
    assert (code, "has the candidate" in said) == (0, True)
    assert kmins(fabric) == [{31.0}, {31.0}, {23.0}]
    best = json.loads((tmp_path / "out" / "best.json").read_text())
    head = json.loads((tmp_path / "out" / "run.jsonl").read_text().splitlines()[0])
    assert head["fleet"] == "a digital fabric"
    assert best["transaction"] == fabric.agents[-1].guard.status.confirmed
    assert f"in run {best['run']}" in (fabric.fleet.parent / "audit.jsonl").read_text()
    assert typed("rollback", "--fleet", str(fabric.fleet), "--run", best["run"])[0] == 0
    assert kmins(fabric) == before


def test_a_recommendation_per_tier_reaches_each_switch(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    fleet = ["--fleet", str(fabric.fleet)]
    best = per_tier(tmp_path / "best.json", PER_TIER)
    assert typed("apply", *fleet, "--best", best)[0] == 0
    assert kmins(fabric) == [{31.0}, {31.0}, {23.0}]
    assert "nothing would change" in typed("apply", *fleet, "--best", best, "--dry-run")[1]
    best = per_tier(tmp_path / "best.json", {"cluster": 100, "port:6:1": 50, "nic:0": 70})
    assert typed("apply", *fleet, "--best", best, "--set", "kmax=500")[0] == 0
    assert kmins(fabric) == [{100.0}, {100.0}, {100.0, 50.0}]
    assert all(p["kmax"] == 500 for switch in fabric._switches for p in switch.knobs())


def test_a_group_that_the_fleet_cannot_tell_is_refused(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    words = ["apply", "--dry-run", "--fleet", str(fabric.fleet), "--best"]
    best = per_tier(tmp_path / "best.json", {"cluster": 100, "tor-uplinks": 50})
    code, said = typed(*words, best)
    assert (code, "does not tell uplinks from downlinks" in said) == (1, True)
    best = per_tier(tmp_path / "best.json", {"cluster": 100, "nic:4": 50})
    assert "names no device of this network" in typed(*words, best)[1]
    lines = fabric.fleet.read_text()
    fabric.fleet.write_text(lines.replace('tier = "spine"', ""))
    code, said = typed(*words, per_tier(tmp_path / "best.json", PER_TIER))
    assert code == 1
    assert "(tor, spine), and the fleet's file does not say the tier of switch-6" in said
    assert typed(*words, per_tier(tmp_path / "best.json", {"cluster": 100}))[0] == 0


def test_a_switch_is_put_back_to_what_its_profiles_were(
    fabric: DigitalFabric, tmp_path: Path
) -> None:
    """Colours that differ and a field that was absent: no setting of knobs says either."""
    import redis

    socket = str(fabric._switches[0].socket)
    client: Any = redis.Redis(unix_socket_path=socket, db=4, decode_responses=True)
    (name, *_) = sorted(client.scan_iter(match="WRED_PROFILE|*"))
    client.hdel(name, "red_drop_probability")
    client.hset(name, "yellow_max_threshold", "777777")
    before = client.hgetall(name)
    folder = fabric.fleet.parent
    for name_of in ("journal", "journal.confirmed"):  # its agent begins with this
        (folder / "switch-4" / name_of).unlink()
    fabric.agents[4] = restarted(folder, fabric.agents[4], "switch-4")
    assert tune(fabric, tmp_path, "Tiers")[0] == 0
    assert client.hgetall(name) == before
