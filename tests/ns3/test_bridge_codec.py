"""The wire format: golden bytes of the published encoder, strict decoding, exact round trips."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from google.protobuf import any_pb2

from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.backends.ns3_bridge import codec, schema
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.errors import ProtocolError
from dcqcn_gym.envs.scenarios import load_scenario
from dcqcn_gym.interval import IntervalReport
from dcqcn_gym.knobs import default_setting, expert_setting

GOLDEN_ACTION = bytes.fromhex(
    "0a46080212420a2f747970652e676f6f676c65617069732e636f6d2f6e73336f70656e67796d2e426f7844617461"
    "436f6e7461696e6572120f08031201022a080000003f000000bf"
)


@pytest.fixture(scope="module")
def report() -> IntervalReport:
    scenario = load_scenario("fb-hadoop")
    backend = FakeBackend()
    backend.open(scenario, 1)
    backend.apply(default_setting())
    return backend.advance()


def test_golden_bytes_of_ns3_gym() -> None:
    assert pb.SimInitAck(done=True).SerializeToString() == b"\x08\x01"
    assert pb.EnvActMsg(stopSimReq=True).SerializeToString() == b"\x10\x01"
    action = codec.encode_box(np.array([0.5, -0.5], dtype=np.float32))
    assert pb.EnvActMsg(actData=action).SerializeToString() == GOLDEN_ACTION


def test_an_action_of_the_published_client_is_read() -> None:
    message = codec.decode(pb.EnvActMsg, GOLDEN_ACTION)
    assert codec.decode_box(message.actData, 2).tolist() == [0.5, -0.5]


def test_a_report_survives_the_wire_exactly(report: IntervalReport) -> None:
    state = pb.EnvStateMsg()
    codec.encode_report(report, state)
    back = codec.decode_report(codec.decode(pb.EnvStateMsg, state.SerializeToString()))
    for field in dataclasses.fields(IntervalReport):
        np.testing.assert_equal(
            dataclasses.asdict(back)[field.name], dataclasses.asdict(report)[field.name]
        )
    assert type(back.index) is int
    assert type(back.fsd.known) is bool


def test_settings_survive_the_wire_exactly() -> None:
    groups = {"cluster": default_setting(), "nic:3": expert_setting()}
    message = pb.EnvActMsg(setting=codec.encode_setting(groups))
    assert codec.decode_setting(message.setting) == groups
    assert codec.decode_setting(codec.encode_setting(default_setting())) == default_setting()


def test_wrong_messages_are_refused(report: IntervalReport) -> None:
    wrong_type = pb.DataContainer(type=pb.Box, data=any_pb2.Any(type_url="x/y", value=b""))
    with pytest.raises(ProtocolError, match="BoxDataContainer"):
        codec.decode_box(wrong_type, 1)
    box = codec.encode_box(np.array([0.5, np.nan], dtype=np.float32))
    with pytest.raises(ProtocolError, match="number 1 of the box is not finite"):
        codec.decode_box(box, 2)
    with pytest.raises(ProtocolError, match="expected a box of 3 numbers, got 2"):
        codec.decode_box(box, 3)
    for change, message in (
        (lambda s: s.report_lengths.pop(), f"expected {len(schema.REPORT_FIELDS)} fields"),
        (lambda s: setattr(s, "report_data", s.report_data[:-1]), "8 bytes a number"),
        (lambda s: s.report_lengths.reverse(), r"has \d+ values; expected 1"),
    ):
        state = pb.EnvStateMsg()
        codec.encode_report(report, state)
        change(state)
        with pytest.raises(ProtocolError, match=message):
            codec.decode_report(state)
    broken = dataclasses.replace(report, port_pause_ps=report.port_pause_ps * np.nan)
    state = pb.EnvStateMsg()
    codec.encode_report(broken, state)
    with pytest.raises(ProtocolError, match="'port_pause_ps' holds a value that is not finite"):
        codec.decode_report(state)
    with pytest.raises(ProtocolError, match="'cluster' has 2 values; expected 20"):
        codec.decode_setting([pb.GroupSetting(group="cluster", values=[1, 2])])


def test_schema_covers_every_field_and_names_the_first_difference() -> None:
    ours = schema.schema()
    assert [row[0] for row in ours["report"]] == list(schema.REPORT_FIELDS)
    theirs = schema.schema()
    assert schema.first_difference(ours, theirs) is None
    theirs["observation"].append(["more", 0.0, 1.0])
    assert "observation[" in (schema.first_difference(ours, theirs) or "")


def test_the_box_tells_one_bound_to_ns3_gym_and_all_to_us() -> None:
    space = codec.box_space("a", np.array([-1.0, 0.0]), np.array([1.0, 5.0]), ["x", "y"])
    box = pb.BoxSpace()
    assert space.space.Unpack(box)
    assert (box.low, box.high, list(box.shape)) == (-1.0, 5.0, [2])
    assert list(box.highs) == [1.0, 5.0]
