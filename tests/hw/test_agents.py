"""Agents over real gRPC and TLS: a whole change, who may talk, what they refuse."""

from __future__ import annotations

import getpass
import json
import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import grpc
import pytest
from fleets import controller_of, fleet_of, nic_agent_file, nic_fleet
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.config import AgentConfig
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.agent.service import METHODS, SERVICE, AgentService
from dcqcn_gym.hw.certs import Authority, write_all
from dcqcn_gym.hw.client import AgentClient, UnreachableError
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.maintenance_windows import window_of
from dcqcn_gym.hw.tuning_runs import RunStart
from waiting import LONG_S, wait_for

WANTED = {"": {"rp_ai_rate": 50.0, "np_min_time_between_cnps": 96.0}}


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, dict[str, AgentServer]]]:
    folder = tmp_path_factory.mktemp("fleet")
    with nic_fleet(folder, 3) as agents:
        yield folder, agents


def held(folder: Path, name: str, file: str = "rp_ai_rate") -> str:
    return next((folder / name).glob(f"root/sys/kernel/debug/mlx5/*/cc_params/{file}")).read_text()


def channel(folder: Path, agent: AgentServer, name: str, cert: str = "controller") -> grpc.Channel:
    certs = folder / "certs"
    credentials = grpc.ssl_channel_credentials(
        (certs / "ca.pem").read_bytes(),
        (certs / f"{cert}.key").read_bytes(),
        (certs / f"{cert}.pem").read_bytes(),
    )
    return grpc.secure_channel(
        agent.address, credentials, options=[("grpc.ssl_target_name_override", name)]
    )


def code_of(
    channel: grpc.Channel, method: str, payload: bytes, compression: grpc.Compression | None = None
) -> grpc.StatusCode:
    """Send bytes as they are; return gRPC's code of the answer."""
    call = channel.unary_unary(f"/{SERVICE}/{method}")
    try:
        call(payload, timeout=LONG_S, compression=compression)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def test_a_change_goes_to_all_and_into_the_audit_log(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    with controller_of(folder, fleet_of(agents)) as controller:
        plan = controller.plan({"nic-0": WANTED})
        assert [(x.place, x.before, x.after, x.unit) for x in plan["nic-0"].lines] == [
            ("rp_ai_rate", "5", "50", "Mb/s"), ("np_min_time_between_cnps", "4", "96", "us"),
        ]  # fmt: skip
        assert held(folder, "nic-0") == "5\n"
        done = controller.carry_out(dict.fromkeys(agents, WANTED), "a test")
        assert done.changed == tuple(agents)
        assert 0.0 <= done.skew_s < 5.0
        assert [held(folder, name) for name in agents] == ["50\n"] * 3
        again = controller.carry_out(dict.fromkeys(agents, WANTED), "the same")
        assert again.changed == ()
        read = controller.agents.ask_all("Read", pb.Nothing())["nic-1"]
        assert read.targets[0].knobs["rp_ai_rate"] == 50.0
        assert controller.agents.gather().figures["nic-2"]["tx_bytes"] == 1000000400
        assert controller.rollback.newest() == done.transaction
        assert controller.rollback.undo(done.transaction, "back again") == (list(agents), {})
        assert controller.rollback.newest() == ""
        assert [held(folder, name) for name in agents] == ["5\n"] * 3
        assert all(sent > 0 and got > 0 for sent, got in controller.agents.message_bytes.values())
    audit = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    event = next(e for e in audit if e["event"] == "confirmed")
    assert (event["who"], event["why"]) == ("dcqcn-gym", "a test")
    assert event["account"] == getpass.getuser()
    assert abs(event["unix_s"] - time.time()) < 600.0
    event = next(e for e in audit if e["event"] == "apply")
    assert event["changes"]["nic-1"]["rp_ai_rate"] == "50"


def test_one_refusal_and_nothing_is_applied(running: tuple[Path, dict[str, AgentServer]]) -> None:
    folder, agents = running
    with controller_of(folder, fleet_of(agents)) as controller:
        with pytest.raises(ConfigError, match="nic-1: rp_ai_rate"):
            controller.carry_out({"nic-0": WANTED, "nic-1": {"": {"rp_ai_rate": -1.0}}}, "no")
        with pytest.raises(DeviceError, match="nic-1: this device lacks the knob kmin"):
            controller.carry_out({"nic-0": WANTED, "nic-1": {"": {"kmin": 100.0}}}, "no")
        assert held(folder, "nic-0") == "5\n"


def test_a_failure_in_the_middle_takes_all_back(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    with controller_of(folder, fleet_of(agents)) as controller:
        file = next((folder / "nic-1").glob("root/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate"))
        away = file.with_name("away")
        staged = controller.agents.calls  # between stage and apply the file goes

        def begin(method: str, requests: Any) -> Any:
            if method == "Apply":
                file.rename(away)
            if method == "Rollback":
                away.rename(file)
            return staged(method, requests)

        controller.agents.calls = begin  # type: ignore[method-assign]
        with pytest.raises(StateError, match="nic-1: somebody changed the device"):
            controller.carry_out(dict.fromkeys(agents, WANTED), "half")
        assert [held(folder, name) for name in agents] == ["5\n"] * 3
        states = controller.agents.ask_all("Status", pb.Nothing())
        assert {s.state for s in states.values()} == {"idle"}


def test_a_change_that_takes_too_long_to_reach_all_is_taken_back(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    before = held(folder, "nic-0")
    targets = {name: {"": {"rp_ai_rate": 77.0}} for name in agents}
    with controller_of(folder, fleet_of(agents, most_skew_s=1e-9)) as controller:
        with pytest.raises(DeviceError, match="more than most_skew_s = 1e-09"):
            controller.carry_out(targets, "too slow")
        assert [held(folder, name) for name in agents] == [before] * 3
    with controller_of(folder, fleet_of(agents, most_skew_s=60.0)) as controller:
        done = controller.carry_out(targets, "quick enough")
        assert 0 < done.skew_s < 60
        controller.rollback.undo(done.transaction, "back")


def test_a_lost_controller_means_the_way_back(running: tuple[Path, dict[str, AgentServer]]) -> None:
    folder, agents = running
    fleet = fleet_of(agents, trial_s=0.2)
    with controller_of(folder, fleet) as controller:
        begin = controller.agents.calls

        def lost(method: str, requests: Any) -> Any:
            if method in ("Confirm", "Rollback", "Undo"):
                raise UnreachableError("the controller has gone")
            return begin(method, requests)

        controller.agents.calls = lost  # type: ignore[method-assign]
        with pytest.raises(UnreachableError):
            controller.carry_out(dict.fromkeys(agents, WANTED), "lost")
    wait_for(lambda: {held(folder, name) for name in agents} == {"5\n"}, "the way back")


def test_only_the_controller_of_this_fleet_may_talk(
    running: tuple[Path, dict[str, AgentServer]], tmp_path: Path
) -> None:
    folder, agents = running
    agent = agents["nic-0"]
    ask = pb.Nothing().SerializeToString()
    with channel(folder, agent, "nic-0") as own:
        assert code_of(own, "Status", ask) == grpc.StatusCode.OK
    Authority(folder / "certs").controller("somebody")
    with channel(folder, agent, "nic-0", "somebody") as other:
        assert code_of(other, "Status", ask) == grpc.StatusCode.PERMISSION_DENIED
    with channel(folder, agent, "nic-0", "nic-1") as another_agent:
        assert code_of(another_agent, "Status", ask) == grpc.StatusCode.UNAVAILABLE
    with channel(folder, agent, "nic-1") as for_another:
        assert code_of(for_another, "Status", ask) == grpc.StatusCode.UNAVAILABLE
    write_all(tmp_path / "certs", [], ["controller"])
    foreign = tmp_path / "certs"
    (foreign / "ca.pem").write_bytes((folder / "certs" / "ca.pem").read_bytes())
    with channel(tmp_path, agent, "nic-0") as stranger:
        assert code_of(stranger, "Status", ask) == grpc.StatusCode.UNAVAILABLE
    write_all(tmp_path / "none", [], [])
    with grpc.insecure_channel(agent.address) as plain:
        assert code_of(plain, "Status", ask) == grpc.StatusCode.UNAVAILABLE
    ca = (folder / "certs" / "ca.pem").read_bytes()
    options = [("grpc.ssl_target_name_override", "nic-0")]
    with grpc.secure_channel(
        agent.address, grpc.ssl_channel_credentials(ca), options=options
    ) as nameless:
        assert code_of(nameless, "Status", ask) == grpc.StatusCode.UNAVAILABLE


def test_an_expired_certificate_is_refused(running: tuple[Path, dict[str, AgentServer]]) -> None:
    folder, agents = running
    Authority(folder / "certs", days=-1).controller("late")
    with channel(folder, agents["nic-0"], "nic-0", "late") as late:
        code = code_of(late, "Status", b"")
    assert code == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("messages", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_wrong_bytes_are_answered_and_do_no_harm(
    running: tuple[Path, dict[str, AgentServer]], messages: int
) -> None:
    folder, agents = running
    rng = random.Random(1)
    before = (folder / "nic-0" / "journal").read_bytes()
    good = pb.Wanted(transaction="t", targets=[pb.Target(knobs={"rp_ai_rate": 1.0})], who="x")
    with channel(folder, agents["nic-0"], "nic-0") as own:
        for _ in range(messages):
            method = rng.choice([m for m in METHODS if m not in ("Stop", "Prepare", "Rollback")])
            data = bytearray(good.SerializeToString())
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            code_of(own, method, bytes(data[: rng.randrange(len(data) + 1)]))
        assert code_of(own, "Status", b"x" * 70_000) == grpc.StatusCode.RESOURCE_EXHAUSTED
        small = b"x" * 10_000_000  # some 10 kB once it is compressed
        assert code_of(own, "Status", small, grpc.Compression.Gzip) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED
        )
        assert code_of(own, "Status", b"") == grpc.StatusCode.OK
        assert code_of(own, "Nothing", b"") == grpc.StatusCode.UNIMPLEMENTED
        stage = pb.Wanted(transaction="../../x", targets=good.targets, who="x")
        assert code_of(own, "Stage", stage.SerializeToString()) == (
            grpc.StatusCode.INVALID_ARGUMENT
        )
        nobody = pb.Wanted(transaction="t", targets=good.targets)
        assert code_of(own, "Stage", nobody.SerializeToString()) == (
            grpc.StatusCode.INVALID_ARGUMENT
        )
    assert (folder / "nic-0" / "journal").read_bytes() == before
    assert held(folder, "nic-0") == "5\n"


def test_health_is_answered_and_reflection_is_not(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    folder, agents = running
    with channel(folder, agents["nic-0"], "nic-0") as own:
        health = health_pb2_grpc.HealthStub(own)
        answer = health.Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=LONG_S)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = reflection_pb2_grpc.ServerReflectionStub(own)
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.ServerReflectionInfo(iter([ask]), timeout=LONG_S))
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_an_agent_stays_on_loopback_and_shows_no_protocol_unless_told(tmp_path: Path) -> None:
    file = nic_agent_file(tmp_path, "nic-8")
    file.write_text(file.read_text().replace('listen = "127.0.0.1:0"\n', ""))
    config = load_toml(file, AgentConfig)
    assert config.listen == "127.0.0.1:7443"
    assert (config.reflection, config.loads, config.controllers) == (False, (), ("controller",))


def test_a_stop_file_stops_without_any_controller(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", ["nic-9"], ["controller"])
    agent = load_agent(nic_agent_file(tmp_path, "nic-9", 'stop_file = "stop"'))
    agent.start()
    try:
        (tmp_path / "nic-9" / "stop").touch()
        agent.look_for_stop_file()
        assert agent.guard.status.state == "stopped"
        with (
            controller_of(tmp_path, fleet_of({"nic-9": agent})) as controller,
            pytest.raises(StateError, match="nic-9: this device was stopped by hand"),
        ):
            controller.carry_out({"nic-9": WANTED}, "no")
        (tmp_path / "nic-9" / "stop").unlink()
        agent.look_for_stop_file()
        with controller_of(tmp_path, fleet_of({"nic-9": agent})) as controller:
            assert controller.carry_out({"nic-9": WANTED}, "yes").changed == ("nic-9",)
    finally:
        agent.close()


def test_an_agent_that_is_not_there_is_named(running: tuple[Path, dict[str, AgentServer]]) -> None:
    folder, agents = running
    fleet = fleet_of(agents)
    gone = fleet.nics[1].model_copy(update={"address": "127.0.0.1:1"})
    fleet = fleet.model_copy(update={"nics": (fleet.nics[0], gone), "timeout_s": 0.5})
    with (
        pytest.raises(UnreachableError, match=r"agent nic-1 at 127.0.0.1:1 does not answer"),
        controller_of(folder, fleet),
    ):
        pass


def test_a_lost_agent_does_not_keep_the_others_from_going_back(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    fleet = fleet_of(agents)
    gone = fleet.nics[1].model_copy(update={"address": "127.0.0.1:1"})
    nics = (fleet.nics[0], gone, fleet.nics[2])
    before = {name: held(folder, name) for name in agents}
    controller = Controller(fleet.model_copy(update={"nics": nics, "timeout_s": 5.0}), folder)
    try:
        controller.agents.open(lenient=True)
        assert set(controller.agents.descriptions) == {"nic-0", "nic-2"}
        left = controller.runs.put_back(RunStart(dict.fromkeys(agents, WANTED)), "the others")
        assert [(name, type(error)) for name, error in left.items()] == [
            ("nic-1", UnreachableError)
        ]
        assert [held(folder, name) for name in agents] == ["50\n", before["nic-1"], "50\n"]
    finally:
        controller.close()
    with controller_of(folder, fleet) as whole:
        whole.runs.put_back(
            RunStart({name: {"": {"rp_ai_rate": 5.0}} for name in agents}), "clean up"
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dscp": 26, "lossless_dscp": [26]}, "dscp = 26 is one of lossless_dscp"),
        ({"nics": []}, "nics"),
        ({"trial_s": 0}, "trial_s"),
        ({"freeze_utc": ["Mon-Fry 08:00-18:00"]}, "freeze window 'Mon-Fry 08:00-18:00': expected"),
        ({"freeze_utc": ["25:00-26:00"]}, "freeze window '25:00-26:00'"),
        ({"fsd_file": "x", "fsd_from_pairs": True}, "fsd_file and fsd_from_pairs"),
        ({"trials_s": 1}, "did you mean 'trial_s'"),
        ({"nics": [{"name": "a", "address": "here"}]}, "expected HOST:PORT"),
        (
            {"nics": [{"name": "a", "address": "h:1"}, {"name": "a", "address": "h:2"}]},
            "'a' stands",
        ),
    ],
)
def test_a_bad_fleet_file_is_one_sentence(change: dict[str, Any], words: str) -> None:
    agents: dict[str, AgentServer] = {}
    with pytest.raises(ConfigError, match=words) as refused:
        fleet_of(agents, **{"nics": [{"name": "a", "address": "h:1"}], **change})
    assert "\n" not in str(refused.value)


def test_a_frozen_fleet_takes_back_but_does_not_change(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    clock = [datetime(2026, 11, 20, 7, 59, tzinfo=timezone.utc)]  # a Friday
    fleet = fleet_of(agents, freeze_utc=["Mon-Fri 08:00-18:00"])
    controller = Controller(fleet, folder, now=lambda: clock[0])
    try:
        controller.agents.open()
        controller.reconciler.catch_up()  # an earlier test left a split
        was = {name: held(folder, name) for name in ("nic-0", "nic-1")}
        before = controller.try_out({"nic-0": {"": {"rp_ai_rate": 33.0}}}, "before the window")
        clock[0] = datetime(2026, 11, 20, 10, 0, tzinfo=timezone(timedelta(hours=2)))  # 08:00 UTC
        with pytest.raises(StateError, match=r"frozen \(Mon-Fri 08:00-18:00 UTC"):
            controller.carry_out({"nic-1": {"": {"rp_ai_rate": 33.0}}}, "in the window")
        controller.rollback.end_trials("in the window")
        assert before.changed == ("nic-0",)
        assert {name: held(folder, name) for name in was} == was
        clock[0] = datetime(2026, 11, 21, 9, 0, tzinfo=timezone.utc)  # Saturday
        controller.carry_out({"nic-1": WANTED}, "after it")
        clock[0] = datetime(2026, 11, 23, 9, 0, tzinfo=timezone.utc)
        controller.runs.put_back(RunStart({"nic-1": {"": {"rp_ai_rate": 5.0}}}), "clean up")
        assert held(folder, "nic-1") == "5\n"
    finally:
        controller.close()


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("08:00-18:00", "2026-11-22T08:00", "2026-11-22T18:00"),
        ("Sat 22:00-06:00", "2026-11-22T05:59", "2026-11-23T05:59"),
        ("Sat-Mon 00:00-24:00", "2026-11-23T23:59", "2026-11-24T00:00"),
    ],
)
def test_windows_of_the_day(text: str, inside: str, outside: str) -> None:
    window = window_of(text)
    assert window.holds(datetime.fromisoformat(f"{inside}:00+00:00"))
    assert not window.holds(datetime.fromisoformat(f"{outside}:00+00:00"))


def test_with_windows_of_maintenance_changes_are_for_these_alone(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    now = [datetime(2026, 11, 22, 5, 59, tzinfo=timezone.utc)]
    fleet = fleet_of(agents, change_utc=["Sat 22:00-06:00"])
    controller = Controller(fleet, folder, now=lambda: now[0])
    controller.agents.open()
    wanted = {name: {"": {"rp_ai_rate": 60.0}} for name in agents}
    done = controller.carry_out(wanted, "in the night")
    now[0] += timedelta(minutes=1)
    with pytest.raises(StateError, match=r"nothing may change outside of Sat 22:00-06:00 UTC"):
        controller.carry_out({n: {"": {"rp_ai_rate": 61.0}} for n in agents}, "by day")
    assert controller.rollback.undo(done.transaction, "it may always go back")[0] == list(agents)
    controller.close()


def test_an_agent_of_another_version_is_named_and_nothing_changes(
    running: tuple[Path, dict[str, AgentServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, agents = running
    before = held(folder, "nic-0")
    for version in (1, 5):
        monkeypatch.setattr("dcqcn_gym.hw.agent.service.PROTOCOL", version)
        controller = Controller(fleet_of(agents), folder)
        said = rf"agent nic-0 speaks version {version} .*, this controller 2 to 4"
        with pytest.raises(ConfigError, match=said):
            controller.agents.open()
        controller.close()
        assert held(folder, "nic-0") == before


@pytest.mark.parametrize("version", [2, 4])
def test_a_fleet_is_updated_in_parts(
    running: tuple[Path, dict[str, AgentServer]], monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    folder, agents = running
    answer, before = AgentService._status, agents["nic-0"].guard.status.confirmed

    def status(self: AgentService) -> Any:
        found = answer(self)
        if version == 2:
            found.ClearField("bad_lines")  # it did not have that yet
            return found
        newer = found.SerializeToString() + b"\x9a\x06\x05later"  # a field 99 that nobody knows
        return pb.Status_.FromString(newer)

    monkeypatch.setattr("dcqcn_gym.hw.agent.service.PROTOCOL", version)
    monkeypatch.setattr(AgentService, "_status", status)
    controller = Controller(fleet_of(agents), folder)
    controller.agents.open()
    done = controller.carry_out({n: {"": {"rp_ai_rate": 50.0}} for n in agents}, "in parts")
    assert controller.agents.states()[0]["nic-0"].confirmed == done.transaction
    assert controller.rollback.undo(done.transaction, "back")[0] == list(agents)
    controller.close()
    assert agents["nic-0"].guard.status.confirmed == before


@pytest.mark.parametrize("ms", [0.0, -1.0, float("nan"), float("inf")])
def test_an_interval_of_counters_is_above_zero(
    running: tuple[Path, dict[str, AgentServer]], ms: float
) -> None:
    folder, agents = running
    request = pb.Interval(ms=ms).SerializeToString()
    with channel(folder, agents["nic-0"], "nic-0") as own:
        assert code_of(own, "Prepare", request) == grpc.StatusCode.INVALID_ARGUMENT


def test_certificates_hold_ten_years_at_most(tmp_path: Path) -> None:
    words = ["hw", "certs", str(tmp_path / "certs"), "--agent", "a", "--days"]
    refused = CliRunner().invoke(app, [*words, "3651"])
    assert refused.exit_code == 2
    assert not (tmp_path / "certs").exists()
    assert CliRunner().invoke(app, [*words, "3650"]).exit_code == 0


def test_the_bytes_of_messages_are_counted_from_nothing(
    running: tuple[Path, dict[str, AgentServer]],
) -> None:
    folder, agents = running
    fresh: list[tuple[int, int]] = []

    class Counted(AgentClient):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            fresh.append((self.sent, self.received))

    controller = Controller(fleet_of(agents), folder, Counted)
    controller.agents.open()
    controller.close()
    assert fresh == [(0, 0)] * 3
