"""`settings check`: sick settings are named with their line, healthy ones are not."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.extras.traffic.diagnosis import diagnose
from dcqcn_gym.extras.traffic.dumps import read_dumps
from dcqcn_gym.extras.traffic.switch_checks import headroom_bytes

SWITCH: dict[str, Any] = {
    "PORT": {f"Ethernet{4 * i}": {"speed": "100000", "mtu": "9100"} for i in range(8)},
    "WRED_PROFILE": {"LOSSLESS": {
        "ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "200000",
        "green_max_threshold": "800000", "green_drop_probability": "10",
    }},
    "QUEUE": {f"Ethernet{4 * i}|3": {"wred_profile": "LOSSLESS"} for i in range(8)},
    "PORT_QOS_MAP": {f"Ethernet{4 * i}": {"pfc_enable": "3"} for i in range(8)},
    "BUFFER_POOL": {"ingress_lossless_pool": {"size": "8000000", "type": "ingress"}},
    "BUFFER_PROFILE": {"pg_lossless_100000_40m_profile": {
        "xon": "18432", "xoff": "55296", "size": "18432", "dynamic_th": "-3",
        "pool": "ingress_lossless_pool",
    }},
    "BUFFER_PG": {f"Ethernet{4 * i}|3": {"profile": "pg_lossless_100000_40m_profile"}
                  for i in range(8)},
    "CABLE_LENGTH": {"AZURE": {f"Ethernet{4 * i}": "40m" for i in range(8)}},
}  # fmt: skip
RDMA = (
    "link mlx5_0/1 rx_write_requests 900 out_of_sequence 0 rp_cnp_ignored 0 rp_cnp_handled 512 "
    "np_ecn_marked_roce_packets 40 np_cnp_sent 38 roce_adp_retrans 0\n"
)
ETHTOOL = (
    "NIC statistics:\n     rx_prio3_pause: 12\n     tx_prio3_pause: 0\n     rx_discards_phy: 0\n"
)
QOS = """PFC configuration:
	priority    0   1   2   3   4   5   6   7
	enabled     0   0   0   1   0   0   0   0
"""


def changed(**tables: Any) -> dict[str, Any]:
    """The healthy switch with rows of some tables changed, or a table taken away (None)."""
    whole = deepcopy(SWITCH)
    for table, rows in tables.items():
        if rows is None:
            del whole[table]
            continue
        for name, row in rows.items():
            whole[table][name] = {**whole[table].get(name, {}), **row}
    return whole


def all_ports(row: dict[str, str], after: str = "") -> dict[str, dict[str, str]]:
    return {f"Ethernet{4 * i}{after}": row for i in range(8)}


def found_in(folder: Path, *texts: object) -> list[str]:
    paths = []
    for i, text in enumerate(texts):
        path = folder / f"dump{i}"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        paths.append(path)
    found, _ = diagnose(read_dumps(paths))
    for one in found:
        assert one.shown_by, one  # each says by which line
        assert one.do
    return [one.what for one in found]


PROFILE = "pg_lossless_100000_40m_profile"
SICK = {
    "CNPs are ignored": (RDMA.replace("ignored 0", "ignored 512"), "ignores CNPs"),
    "the notification point is off": (
        RDMA.replace("np_cnp_sent 38", "np_cnp_sent 0"), "notification point is off"),
    "pauses although ECN is on": (
        RDMA.replace("packets 40 np_cnp_sent 38", "packets 0 np_cnp_sent 0") + ETHTOOL,
        "no packet came in marked"),
    "packets are lost": (ETHTOOL.replace("discards_phy: 0", "discards_phy: 7"), "are lost"),
    "global pause": ("rx_pause_ctrl_phy: 90\nrx_prio3_pause: 0\n", "whole link is paused"),
    "PFC off at the NIC": (QOS.replace("0   1   0", "0   0   0"), "PFC is off"),
    "PFC off on the RoCE priority": (
        changed(PORT_QOS_MAP=all_ports({"pfc_enable": ""})), "PFC is off on the queues"),
    "ECN on a lossy queue": (
        changed(PORT_QOS_MAP=all_ports({"pfc_enable": "4"})), "which can lose packets"),
    "lossless without ECN": (
        changed(PORT_QOS_MAP=all_ports({"pfc_enable": "3,4"})), "queue 4 is lossless and has no"),
    "a profile that marks yellow alone": (
        changed(WRED_PROFILE={"LOSSLESS": {"ecn": "ecn_yellow"}}), "marks nothing"),
    "a profile that is off": (
        changed(WRED_PROFILE={"LOSSLESS": {"wred_green_enable": "false"}}), "nothing is marked"),
    "a profile that is not there": (
        changed(QUEUE={"Ethernet0|3": {"wred_profile": "OTHER"}}), "is not there"),
    "thresholds that no queue reaches": (
        changed(WRED_PROFILE={"LOSSLESS": {"green_max_threshold": "6000000"}}),
        "no queue reaches Kmax"),
    "a pause before Kmin": (
        changed(WRED_PROFILE={"LOSSLESS": {
            "green_min_threshold": "2000000", "green_max_threshold": "3000000"}}),
        "pauses begin before marking"),
    "headroom below the cable's need": (
        changed(CABLE_LENGTH={"AZURE": {"Ethernet0": "2000m"}}), "a cable of 2000 m"),
}  # fmt: skip
HEALTHY = {
    "a switch": (SWITCH,),
    "two lossless queues with ECN": (changed(
        QUEUE=all_ports({"wred_profile": "LOSSLESS"}, "|3-4"),
        PORT_QOS_MAP=all_ports({"pfc_enable": "3,4"}),
    ),),
    "TCP's own ECN in a lossy queue": (changed(
        WRED_PROFILE={"TCP": {"ecn": "ecn_all", "green_min_threshold": "30000",
                              "green_max_threshold": "90000"}},
        QUEUE=all_ports({"wred_profile": "TCP"}, "|0"),
    ),),
    "older references in brackets": (changed(
        QUEUE=all_ports({"wred_profile": "[WRED_PROFILE|LOSSLESS]"}, "|3"),
        BUFFER_PROFILE={PROFILE: {"pool": "[BUFFER_POOL|ingress_lossless_pool]"}},
    ),),
    "a NIC that is paused and marked": (RDMA, ETHTOOL, QOS),
    "a few CNPs for pairs that are gone": (
        RDMA.replace("ignored 0", "ignored 3").replace("handled 512", "handled 90000"),),
    "mlx5 counts PFC among pauses": ("rx_prio3_pause: 9\nrx_pause_ctrl_phy: 9\n",),
}  # fmt: skip


@pytest.mark.parametrize("name", SICK)
def test_a_sick_setting_is_named(tmp_path: Path, name: str) -> None:
    dump, words = SICK[name]
    found = found_in(tmp_path, dump)
    assert len(found) == 1, found
    assert words in found[0]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_one_is_not(tmp_path: Path, name: str) -> None:
    assert found_in(tmp_path, *HEALTHY[name]) == []


def test_the_public_threshold_page_on_a_small_buffer_never_reaches_kmax(tmp_path: Path) -> None:
    # seven senders at alpha 1/8 of 2.5 MB: 2.5 x 7/8 / (1 + 7/8) = 1.17 MB, and Kmax is 2 MiB
    whole = changed(
        BUFFER_POOL={"ingress_lossless_pool": {"size": "2500000"}},
        WRED_PROFILE={"LOSSLESS": {
            "green_min_threshold": "400000", "green_max_threshold": "2097152"}},
    )  # fmt: skip
    assert "1166667 B" in found_in(tmp_path, whole)[0]


def test_headroom_by_hand() -> None:
    # 300 m there and back are 3 us, at 100 Gb/s 37,500 B; a packet of 9,100 B at each end
    assert headroom_bytes(100, 300) == pytest.approx(37_500 + 18_200)


@pytest.mark.parametrize("point", ["np", "rp"])
def test_points_are_read_from_a_folder(tmp_path: Path, point: str) -> None:
    for which in ("np", "rp"):
        for n in range(8):
            file = tmp_path / "ecn" / f"roce_{which}" / "enable" / str(n)
            file.parent.mkdir(parents=True, exist_ok=True)
            on = which != point and n == 3
            file.write_text(f"{int(on)}\n")
    found, _ = diagnose(read_dumps([tmp_path]))
    assert [one.what.split(" point")[0].split()[-1] for one in found] == [
        {"np": "notification", "rp": "reaction"}[point]
    ]


def test_one_priority_turns_on_the_notification_point_of_the_port(tmp_path: Path) -> None:
    for n in range(8):
        file = tmp_path / "roce_np" / "enable" / str(n)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(int(n == 0)))
    assert diagnose(read_dumps([tmp_path]))[0] == []


def test_what_has_no_figures_is_named_as_not_checked(tmp_path: Path) -> None:
    (tmp_path / "rdma").write_text(RDMA)
    done = CliRunner().invoke(app, ["settings", "check", str(tmp_path / "rdma")])
    assert done.exit_code == 0
    assert "nothing found by 3 of 11 checks" in done.stdout
    assert "not checked, no figures:" in done.stdout
    assert "headroom" in done.stdout


def test_a_script_sees_by_the_status_that_something_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "rdma").write_text(RDMA.replace("ignored 0", "ignored 512"))
    done = CliRunner().invoke(app, ["settings", "check", str(tmp_path / "rdma")])
    assert done.exit_code == 1
    assert "rdma line 1: rp_cnp_ignored 512" in done.stdout


def test_counters_of_several_links_add_up(tmp_path: Path) -> None:
    both = RDMA + RDMA.replace("mlx5_0", "mlx5_1").replace("ignored 0", "ignored 512")
    assert "512 of 1536" in found_in(tmp_path, both)[0]
