"""The wire format: golden bytes of the published encoder, strict decoding, exact round trips."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from google.protobuf import any_pb2

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport, LiveFlows
from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.bridge import codec, report_codec, schema
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.errors import ProtocolError
from toy_tables import OTHER_SCHEME

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


def sent(report: IntervalReport) -> pb.EnvStateMsg:
    """Return what arrives of a state with this report."""
    data = report_codec.encode_state(pb.EnvStateMsg(time_ps=report.end_ps, done=True), report)
    return codec.decode(pb.EnvStateMsg, data)


def test_golden_bytes_of_ns3_gym() -> None:
    assert pb.SimInitAck(done=True).SerializeToString() == b"\x08\x01"
    assert pb.EnvActMsg(stopSimReq=True).SerializeToString() == b"\x10\x01"
    action = codec.encode_box(np.array([0.5, -0.5], dtype=np.float32))
    assert pb.EnvActMsg(actData=action).SerializeToString() == GOLDEN_ACTION


def test_an_action_of_the_published_client_is_read() -> None:
    message = codec.decode(pb.EnvActMsg, GOLDEN_ACTION)
    assert codec.decode_box(message.actData, 2).tolist() == [0.5, -0.5]


def test_a_report_survives_the_wire_exactly(report: IntervalReport) -> None:
    back = report_codec.decode_report(sent(report))
    for field in dataclasses.fields(IntervalReport):
        np.testing.assert_equal(
            dataclasses.asdict(back)[field.name], dataclasses.asdict(report)[field.name]
        )
    assert type(back.index) is int
    assert type(back.fsd.known) is bool


def test_a_state_with_a_report_is_what_protobuf_would_write(report: IntervalReport) -> None:
    arrived = sent(report)
    assert (arrived.time_ps, arrived.done) == (report.end_ps, True)
    single = sum(ndim == 0 for _, ndim in schema.REPORT_FIELDS.values())
    assert len(arrived.report_data) == 8 * (sum(arrived.report_lengths) + single) > 10_000
    again = codec.decode(pb.EnvStateMsg, codec.encode(arrived))
    assert again == arrived
    back = report_codec.decode_report(arrived)
    assert back.port_pause_ps.flags.writeable  # as from the native engine
    assert report_codec.encode_state(pb.EnvStateMsg(done=True)) == codec.encode(
        pb.EnvStateMsg(done=True)
    )


def test_samples_survive_the_wire_exactly() -> None:
    ports = {
        "queue_bytes": np.array([5, 0, 2**40]),
        "tx_bytes": np.array([1, 2, 3]),
        "pause_ps": np.array([0.5, 0.0, 1e12]),
        "paused": np.array([True, False, True]),
    }
    names = ("src", "dst", "ordinal", "workload", "rate_bps", "queue_pair", "sent_bytes")
    flows = {name: np.array([10 + i, 20 + i]) for i, name in enumerate(names)}
    sample = codec.encode_sample(77, ports, flows)
    back = codec.decode(pb.Sample, codec.encode(sample))
    assert back.now_ps == 77
    for ours, theirs in zip((ports, flows), codec.decode_sample(back, 3), strict=True):
        assert list(ours) == list(theirs)
        for name, column in ours.items():
            np.testing.assert_array_equal(column, theirs[name])
            assert column.dtype == theirs[name].dtype
    none = codec.encode_sample(78, {n: c[:0] for n, c in ports.items()}, {n: [] for n in names})
    assert codec.decode_sample(none, 0)[1]["src"].size == 0
    with pytest.raises(ProtocolError, match="a sample of 2 ports has 75 and 112 bytes"):
        codec.decode_sample(sample, 2)
    sample.flows += b"x"
    with pytest.raises(ProtocolError, match="56 a flow"):
        codec.decode_sample(sample, 3)


def test_unfinished_flows_survive_the_wire_exactly() -> None:
    names = ("src", "dst", "ordinal", "bytes", "start_ps", "ideal_fct_ps", "workload")
    live = LiveFlows(**{n: np.array([10 + i, 2**50 + i]) for i, n in enumerate(names)})
    state = pb.EnvStateMsg(live_flows=codec.encode_live(live))
    back = codec.decode(pb.EnvStateMsg, codec.encode(state))
    assert codec.decode_live(back.live_flows) == live
    assert codec.decode_live(b"") == LiveFlows()
    assert not pb.EnvStateMsg().HasField("live_flows")
    with pytest.raises(ProtocolError, match="113 bytes; expected 56 a flow"):
        codec.decode_live(back.live_flows + b"x")


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
        (lambda s: s.report_lengths.pop(), r"expected \d+ arrays"),
        (lambda s: setattr(s, "report_data", s.report_data[:-1]), "8 bytes a number"),
        (lambda s: s.report_lengths.reverse(), "columns of one table differ in length: host_tx"),
    ):
        state = sent(report)
        change(state)
        with pytest.raises(ProtocolError, match=message):
            report_codec.decode_report(state)
    broken = dataclasses.replace(report, port_pause_ps=report.port_pause_ps * np.nan)
    with pytest.raises(ProtocolError, match="'port_pause_ps' holds a value that is not finite"):
        report_codec.decode_report(sent(broken))
    with pytest.raises(ProtocolError, match="'cluster' has 2 values; expected 20"):
        codec.decode_setting([pb.GroupSetting(group="cluster", values=[1, 2])])
    with pytest.raises(ConfigError, match=r"group 'tor': .*scheme 'toy'.*scheme 'dcqcn'"):
        codec.encode_setting(
            {"cluster": default_setting(), "tor": default_setting(table=OTHER_SCHEME)}
        )


def test_schema_covers_every_field_and_names_the_first_difference() -> None:
    ours = schema.schema()
    assert [row[0] for row in ours["report"]] == list(schema.REPORT_FIELDS)
    theirs = schema.schema()
    assert schema.first_difference(ours, theirs) is None
    theirs["report"].append(["more", "<i8", 1])
    assert "report[" in (schema.first_difference(ours, theirs) or "")


def test_the_box_tells_one_bound_to_ns3_gym_and_all_to_us() -> None:
    space = codec.box_space("a", np.array([-1.0, 0.0]), np.array([1.0, 5.0]), ["x", "y"])
    box = pb.BoxSpace()
    assert space.space.Unpack(box)
    assert (box.low, box.high, list(box.shape)) == (-1.0, 5.0, [2])
    assert list(box.highs) == [1.0, 5.0]
