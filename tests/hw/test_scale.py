"""Large fleets: what a change may take, who keeps whom waiting, how many files there must be."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import fleet_of, nic_fleet, rates
from scale import COLUMNS, calls, files_needed, measure, walks

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.client import AgentClient
from dcqcn_gym.hw.connections import AT_ONCE, Connections, each_of
from dcqcn_gym.hw.controller import Controller


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    with nic_fleet(tmp_path, 2) as agents:
        yield agents


def test_a_change_that_cannot_end_within_its_trial_is_refused_before_it_begins(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    now = [0.0]

    class Slow(AgentClient):
        def send(self, method: str, request: Any) -> Any:
            now[0] += 1.8 if method == "Stage" else 0.0
            return super().send(method, request)

    controller = Controller(fleet_of(agents), tmp_path, Slow, clock=lambda: now[0])
    controller.agents.open()
    wanted = {name: {"": {"rp_ai_rate": 50.0}} for name in agents}
    with pytest.raises(StateError, match=r"2 devices were staged in 3\.6 s, .* trial of 5 s; noth"):
        controller.carry_out(wanted, "too slow")
    with pytest.raises(StateError, match=r"trial_s = 11 or more"):
        controller.runs.step("run", 1, wanted, 8.0)
    assert all("applying" not in {r["event"] for r in a.journal.records} for a in agents.values())
    assert {a.guard.status.state for a in agents.values()} == {"idle"}
    assert "trial_s = 11" in (tmp_path / "audit.jsonl").read_text()
    done = controller.try_out(wanted, "with time", trial_s=11.0)
    controller.confirm(done.transaction, done.changed, "with time")
    controller.close()
    assert rates(tmp_path) == [50, 50]


def test_agents_that_are_silent_keep_no_other_waiting(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    """The first ones of a list are silent; all others have answered before the first repeats."""
    seen: list[tuple[str, int]] = []
    waiting: list[Any] = []

    class Future:
        """Done at once, or, of a silent agent, once all others are."""

        def __init__(self, name: str, attempt: int) -> None:
            self.silent = name.startswith("silent")
            seen.append((name, attempt))

        def add_done_callback(self, tell: Any) -> None:
            if not self.silent:
                tell(self)
            else:
                waiting.append((tell, self))
            if len([name for name, _ in seen if name.startswith("nic")]) == 3 * AT_ONCE:
                while waiting:
                    call, future = waiting.pop()
                    call(future)

        def result(self) -> Any:
            if self.silent:
                from faulty_network import LostError

                raise LostError
            return pb.Status_(state="idle")

        def trailing_metadata(self) -> Any:
            return ()

    class Client(AgentClient):
        attempt = 0

        def send(self, method: str, request: Any) -> Any:
            self.attempt += 1
            return Future(self.name, self.attempt)

    names = [f"silent-{i}" for i in range(AT_ONCE - 1)] + [f"nic-{i}" for i in range(3 * AT_ONCE)]
    fleet = fleet_of(agents, attempts=2).model_copy(
        update={"nics": [m.model_copy(update={"name": n}) for n in names
                         for m in fleet_of(agents).nics[:1]]}
    )  # fmt: skip
    connections = Connections(fleet, tmp_path, Client)
    connections.connect()
    found, failed = each_of(connections.calls("Status", dict.fromkeys(names, pb.Nothing())))
    connections.close()
    assert list(found) == [n for n in names if n.startswith("nic")]
    assert list(failed) == [n for n in names if n.startswith("silent")]
    first_repeat = next(i for i, (_, attempt) in enumerate(seen) if attempt == 2)
    assert len([name for name, _ in seen[:first_repeat] if name.startswith("nic")]) == 3 * AT_ONCE


def test_a_controller_raises_its_limit_of_files_or_says_that_it_cannot(
    tmp_path: Path, agents: dict[str, AgentServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [(64, 5000)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: held[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: held.append(limits))
    controller = Controller(fleet_of(agents), tmp_path)
    controller.agents.connect()
    controller.close()
    assert held[1:] == [(102, 5000)]
    held[0] = (64, 64)
    with pytest.raises(ConfigError, match=r"needs 102 open files, .* and this process may have 64"):
        controller.agents.connect()


@pytest.mark.slow
def test_a_thousand_agents_with_default_timers_cost_as_much_each_as_two_hundred() -> None:
    """Calls and files; CPU seconds are measured by the command ``scale.py``."""
    missing = files_needed(1000)
    if missing:
        pytest.skip(missing)
    most = 1.02 * calls(200)
    # on a busy machine the run outlasts a timer, which adds calls: up to three tries
    assert any(calls(1000) < most for _ in range(3))
    (many,) = walks([1000])
    assert (many.refused, many.trial_s) == ("", 5.0)
    assert many.files[0] < 1000 + 100  # one connection to each
    assert many.memory_mib[0] < 1024


def test_a_change_of_a_fleet_is_timed(tmp_path: Path) -> None:
    with nic_fleet(tmp_path, 3) as agents:
        controller = Controller(fleet_of(agents), tmp_path)
        controller.agents.open()
        try:
            took = measure(controller, 2)
        finally:
            controller.close()
    assert (took.devices, len(took.seconds), len(took.row())) == (3, 2, len(COLUMNS))
    assert 0 < max(took.skews_s) < max(took.seconds)
    assert took.controller_cpu_s > 0
    audit = (tmp_path / "audit.jsonl").read_text()
    assert audit.count('"event": "confirmed"') == 2
