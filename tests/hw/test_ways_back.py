"""Every way back of a fleet: Ctrl-C, half an undo, a trial that a device lost, the end of a run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, nic_fleet, rates, restarted, strike, typed

from dcqcn_gym.core.errors import DeviceError, StateError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.device_state import Who


@pytest.fixture
def controller(tmp_path: Path, agents: dict[str, AgentServer]) -> Iterator[Controller]:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        yield controller


def change(controller: Controller, mbps: float) -> str:
    targets = {name: {"": {"rp_ai_rate": mbps}} for name in controller.agents.nics}
    return controller.carry_out(targets, f"to {mbps:g}").transaction


def state(agent: AgentServer) -> str:
    return agent.guard.status.state


def test_ctrl_c_while_a_change_is_applied_takes_it_back(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    change(controller, 20)
    strike(agents["nic-1"], "30")
    with pytest.raises(KeyboardInterrupt):
        change(controller, 30)
    assert rates(tmp_path) == [20] * 3
    assert {agent.guard.status.state for agent in agents.values()} == {"idle"}
    last = json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["why"]) == ("taken back", "the controller was interrupted")


def test_ctrl_c_while_a_change_is_confirmed_undoes_it(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    change(controller, 20)
    confirm = agents["nic-0"].guard.confirm

    def interrupted(name: str, who: Who) -> None:
        confirm(name, who)
        os.kill(os.getpid(), signal.SIGINT)

    agents["nic-0"].guard.confirm = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        change(controller, 30)
    assert rates(tmp_path) == [20] * 3
    assert len({agent.guard.status.confirmed for agent in agents.values()}) == 1


def test_a_way_back_ends_what_is_on_trial_first(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    began = controller.runs.begin("a run")
    change(controller, 20)
    controller.try_out({"nic-1": {"": {"rp_ai_rate": 30.0}}}, "and then it was killed")
    assert rates(tmp_path) == [20, 30, 20]
    controller.runs.put_back(began, "the end")
    assert rates(tmp_path) == [5] * 3


def test_a_run_begins_only_where_it_can_end(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    controller.try_out({"nic-1": {"": {"rp_ai_rate": 30.0}}}, "somebody's trial")
    with pytest.raises(StateError, match="nic-1 is not at its confirmed setting"):
        controller.runs.begin("a run")


def test_an_undo_that_fails_on_one_device_goes_on_with_it(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    change(controller, 20)
    change(controller, 30)
    fleet = fleet_file(tmp_path, agents)
    undo = agents["nic-2"].guard.undo

    def refuse_once(name: str, who: Who, withdrawn: Any = ()) -> None:
        agents["nic-2"].guard.undo = undo  # type: ignore[method-assign]
        raise DeviceError("not now")

    agents["nic-2"].guard.undo = refuse_once  # type: ignore[method-assign]
    code, said = typed("rollback", "--fleet", fleet)
    assert code != 0
    assert "2 devices are back" in said
    assert "nic-2 is left as it is: nic-2: not now" in said
    assert rates(tmp_path) == [20, 20, 30]
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [20] * 3
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5] * 3


def test_a_trial_that_one_device_lost_is_confirmed_nowhere(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    words = ["--set", "rp_ai_rate=50", "--hold", "60"]
    assert typed("apply", "--fleet", fleet, *words)[0] == 0
    agents["nic-1"] = restarted(tmp_path, agents["nic-1"], "nic-1")
    assert rates(tmp_path) == [50, 5, 50]
    code, said = typed("confirm", "--fleet", fleet, "--dry-run")
    assert code != 0
    assert "to confirm would take all back" in said
    assert rates(tmp_path) == [50, 5, 50]
    code, said = typed("confirm", "--fleet", fleet)
    assert code != 0
    assert "1 of 3 devices" in said
    assert "no longer on trial: nic-1" in said
    assert rates(tmp_path) == [5] * 3
    assert typed("apply", "--fleet", fleet, *words)[0] == 0
    agents["nic-2"].guard.confirm(
        agents["nic-2"].guard.status.transaction, Who("test")
    )  # one cut off
    assert "3 devices confirmed" in typed("confirm", "--fleet", fleet)[1]
    assert rates(tmp_path) == [50] * 3


def test_a_hands_work_is_refused_even_if_it_is_what_is_wanted(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    next((tmp_path / "nic-0").glob("root/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate")).write_text(
        "77\n"
    )
    code, said = typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=77")
    assert code != 0
    assert "nic-0: somebody changed the device beside the agent (rp_ai_rate = '77')" in said
    assert rates(tmp_path) == [77, 5, 5]
    assert typed("rollback", "--fleet", fleet, "--trial-only")[0] == 0
    assert typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=77")[0] == 0
    agents["nic-0"] = restarted(tmp_path, agents["nic-0"], "nic-0")
    assert rates(tmp_path) == [77] * 3


def test_an_undo_after_a_run_means_the_change_before_it(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    earlier = change(controller, 7)
    began = controller.runs.begin("a run")
    change(controller, 20)
    change(controller, 30)
    controller.runs.put_back(began, "the end")
    assert rates(tmp_path) == [7] * 3
    assert controller.rollback.newest() == earlier
    kept = change(controller, 40)  # as --keep does
    assert controller.rollback.newest() == kept
    assert [lines[0].after for lines in controller.rollback.undoing(kept)[0].values()] == ["7"] * 3
    assert len(controller.rollback.undo(kept, "back")[0]) == 3
    assert rates(tmp_path) == [7] * 3
    assert [lines[0].after for lines in controller.rollback.undoing(earlier)[0].values()] == [
        "5"
    ] * 3
    agents["nic-1"] = restarted(
        tmp_path, agents["nic-1"], "nic-1"
    )  # the journal remembers what was restored
    assert len(controller.rollback.undo(controller.rollback.newest(), "back")[0]) == 3
    assert rates(tmp_path) == [5] * 3
    assert controller.rollback.newest() == ""


def test_what_could_not_be_put_back_can_still_be_undone(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    earlier = change(controller, 7)
    began = controller.runs.begin("a run")
    tried = change(controller, 20)
    strike(agents["nic-2"], "7", "7", error=True)  # with the others, then alone
    assert list(controller.runs.put_back(began, "the end")) == ["nic-2"]
    assert rates(tmp_path) == [7, 7, 20]
    assert controller.rollback.newest() == tried
    assert controller.rollback.undo(tried, "the rest") == (["nic-2"], {})
    assert rates(tmp_path) == [7] * 3
    assert len(controller.rollback.undo(earlier, "before")[0]) == 3
    assert controller.rollback.newest() == ""


def test_a_stop_says_what_could_not_go_back_and_who_did_not_answer(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    assert typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=50", "--hold", "60")[0] == 0
    away = next((tmp_path / "nic-1").glob("root/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate"))
    away.rename(away.with_name("away"))
    agents["nic-2"].close()
    code, said = typed("stop", "--fleet", fleet)
    assert code == 1
    assert "2 devices refuse every change" in said
    assert "nic-1 is not at its confirmed setting" in said
    assert "agent nic-2 at" in said
    assert state(agents["nic-0"]) == "stopped"
    away.with_name("away").rename(away)
    agents["nic-2"] = restarted(tmp_path, agents["nic-2"], "nic-2")
    assert typed("stop", "--fleet", fleet)[0] == 0
    assert typed("stop", "--fleet", fleet, "--release")[0] == 0


def test_a_stop_file_and_a_stop_are_two_things(tmp_path: Path) -> None:
    with nic_fleet(tmp_path, 1, more='stop_file = "stop"') as agents:
        fleet, file = fleet_file(tmp_path, agents), tmp_path / "nic-0" / "stop"
        file.touch()
        agents["nic-0"].look_for_stop_file()
        code, said = typed("stop", "--fleet", fleet, "--release")
        assert code == 1
        assert "0 devices allow changes again" in said
        assert "nic-0 refuses changes still: its stop file exists" in said
        assert typed("stop", "--fleet", fleet)[0] == 0
        file.unlink()
        agents["nic-0"].look_for_stop_file()
        assert state(agents["nic-0"]) == "stopped"
        agents["nic-0"] = restarted(tmp_path, agents["nic-0"], "nic-0")
        assert state(agents["nic-0"]) == "stopped"
        assert typed("stop", "--fleet", fleet, "--release")[0] == 0
        file.touch()
        agents["nic-0"] = restarted(tmp_path, agents["nic-0"], "nic-0")
        assert state(agents["nic-0"]) == "stopped"
        agents["nic-0"].close()
        file.unlink()  # while nobody looked
        agents["nic-0"] = restarted(tmp_path, agents["nic-0"], "nic-0")
        assert state(agents["nic-0"]) == "idle"


def test_a_journal_that_cannot_be_shortened_denies_nothing(
    tmp_path: Path, agents: dict[str, AgentServer], controller: Controller
) -> None:
    agents["nic-1"].journal._most_bytes = 1
    (tmp_path / "nic-1" / "journal.new").mkdir()  # a real failure of the rewrite
    change(controller, 50)
    assert rates(tmp_path) == [50] * 3
    agents["nic-1"] = restarted(tmp_path, agents["nic-1"], "nic-1")
    assert rates(tmp_path) == [50] * 3
