"""Dumps of devices become the setting in service."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from making import pcap, roce
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.device_commands import emit
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.traffic.device_state import read_device_state

MLXCONFIG = """
Device #1:
----------
Configurations:                              Next Boot
        ROCE_CC_PRIO_MASK_P1                  255
        CLAMP_TGT_RATE_P1                     True(1)
        RPG_AI_RATE_P1                        50
        RPG_AI_RATE_P2                        50
        DCE_TCP_G_P1                          0x3fb
        MIN_TIME_BETWEEN_CNPS_P1              2
"""
SHOW_ECN = """
Profile: AZURE_LOSSLESS
-----------------------  -------
green_max_threshold      2000000
green_min_threshold      1000000
green_drop_probability   5
yellow_min_threshold     1000000
-----------------------  -------
"""
CONFIG_DB = {
    "WRED_PROFILE": {
        "AZURE_LOSSLESS": {
            "ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": " 166912",
            "green_max_threshold": "282624", "green_drop_probability": "5",
        },
        "OTHER": {"ecn": "ecn_all", "green_min_threshold": "1000", "green_max_threshold": "2000"},
    },
    "QUEUE": {
        "Ethernet0|3-4": {"wred_profile": "AZURE_LOSSLESS"},
        "Ethernet4|3": {"wred_profile": "[WRED_PROFILE|AZURE_LOSSLESS]"},
        "Ethernet0|0": {"wred_profile": "OTHER"},
    },
    "BUFFER_PROFILE": {"pg_lossless_100000_5m_profile": {"dynamic_th": "-3", "size": "18432"}},
}  # fmt: skip


TWO_CLASSES = {  # an older image: ports together, references in brackets, maps that turn queues
    "WRED_PROFILE": {
        "STORAGE": {"ecn": "ecn_all", "green_min_threshold": "100000",
                    "green_max_threshold": "400000", "green_drop_probability": "10"},
        "TRAINING": {"ecn": "ecn_all", "green_min_threshold": "250000",
                     "green_max_threshold": "1048576", "green_drop_probability": "5"},
    },
    "QUEUE": {
        "Ethernet0,Ethernet4,Ethernet8|5": {
            "wred_profile": "[WRED_PROFILE|TRAINING]", "scheduler": "[SCHEDULER|most]"},
        "Ethernet0,Ethernet4|6": {
            "wred_profile": "[WRED_PROFILE|STORAGE]", "scheduler": "[SCHEDULER|less]"},
    },
    "SCHEDULER": {"most": {"type": "DWRR", "weight": "60"},
                  "less": {"type": "DWRR", "weight": "40"}},
    "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "5", "4": "6"}},
    "DSCP_TO_TC_MAP": {"AZURE": {"26": "3", "28": "4", "0": "0", "1": "0"}},
    "PORT_QOS_MAP": {
        "Ethernet0,Ethernet4,Ethernet8": {"pfc_enable": "3,4", "pfc_to_queue_map": "AZURE"}},
    "BUFFER_PG": {"Ethernet0,Ethernet4|3": {"profile": "[BUFFER_PROFILE|a]"},
                  "Ethernet0,Ethernet4|4": {"profile": "[BUFFER_PROFILE|b]"}},
    "BUFFER_PROFILE": {"a": {"dynamic_th": "-3", "pool": "[BUFFER_POOL|p]"},
                       "b": {"dynamic_th": "0", "pool": "[BUFFER_POOL|p]"}},
    "BUFFER_POOL": {"p": {"size": "9000000"}},
}  # fmt: skip
OWN_CURVE = {  # a chassis: long keys, and marking apart from dropping, as SONiC proposes it
    "WRED_PROFILE": {
        "ROCE": {"ecn": "ecn_all", "green_min_threshold": "5000000",
                 "green_max_threshold": "6000000", "green_drop_probability": "100",
                 "green_ect_min_threshold": "300000", "green_ect_max_threshold": "900000",
                 "green_ect_mark_probability": "20"},
        "LOSSY": {"ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "50000",
                  "green_max_threshold": "150000", "green_drop_probability": "100"},
    },
    "QUEUE": {"lc1|asic0|Ethernet0|3": {"wred_profile": "ROCE"},
              "lc1|asic0|Ethernet0|1": {"wred_profile": "LOSSY"}},
}  # fmt: skip
JUNOS = """
set class-of-service drop-profiles roce interpolate fill-level 10
set class-of-service drop-profiles roce interpolate fill-level 50
set class-of-service drop-profiles roce interpolate drop-probability 0
set class-of-service drop-profiles roce interpolate drop-probability 80
set class-of-service schedulers s1 drop-profile-map loss-priority any protocol any drop-profile roce
set class-of-service schedulers s1 explicit-congestion-notification
set class-of-service scheduler-maps sm1 forwarding-class NO-LOSS scheduler s1
set class-of-service forwarding-classes class NO-LOSS queue-num 4
set class-of-service forwarding-classes class NO-LOSS no-loss
"""
BRACES = """
class-of-service {
    drop-profiles {
        roce {
            interpolate {
                fill-level [ 10 50 ];
                drop-probability [ 0 80 ];
            }
        }
    }
    schedulers {
        s1 {
            drop-profile-map loss-priority any protocol any drop-profile roce;
            explicit-congestion-notification;
        }
    }
}
"""
BNXT = "ecn_enable=0x1\t# ecn status\t: Enabled\nmin_time_bet_cnp=0x32\t# min\nai_rate_incr=0x1\n"


def initial(path: Path, text: str) -> dict[str, float]:
    path.write_text(text)
    found: dict[str, float] = read_device_state([path]).tables()["initial"]
    return found


def test_mlxconfig(tmp_path: Path) -> None:
    assert initial(tmp_path / "query.txt", MLXCONFIG) == {
        "rp_clamp_tgt_rate": 1, "rp_ai_rate": 50, "rp_dce_tcp_g": 1019,
        "np_min_time_between_cnps": 2,
    }  # fmt: skip


def test_show_ecn(tmp_path: Path) -> None:
    found = initial(tmp_path / "ecn.txt", SHOW_ECN)
    assert found == {"kmin": 1000.0, "kmax": 2000.0, "pmax": 0.05}


def test_config_db_takes_the_profile_of_lossless_queues(tmp_path: Path) -> None:
    (tmp_path / "config_db.json").write_text(json.dumps(CONFIG_DB))
    state = read_device_state([tmp_path / "config_db.json"])
    assert state.tables() == {
        "initial": {"kmin": 166.912, "kmax": 282.624, "pmax": 0.05}, "switch": {"alpha": 0.125},
    }  # fmt: skip
    assert "curves of other priorities lack pmax: no class" in state.tally.notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ecn": "ecn_red"}, "marks nothing that RoCE sends (ecn)"),
        ({"wred_green_enable": "false"}, "nothing is marked (wred_green_enable)"),
    ],
)
def test_sick_profiles_are_named(tmp_path: Path, change: dict[str, str], words: str) -> None:
    whole = json.loads(json.dumps(CONFIG_DB))
    whole["WRED_PROFILE"]["AZURE_LOSSLESS"] |= change
    (tmp_path / "config_db.json").write_text(json.dumps(whole))
    notes = read_device_state([tmp_path / "config_db.json"]).tally.notes
    assert any(words in note for note in notes)


def test_a_folder_of_one_value_a_file(tmp_path: Path) -> None:
    for name, text in {
        "roce_rp/rpg_ai_rate": "7", "roce_rp/rpg_time_reset": "300", "roce_rp/enable/3": "1",
        "roce_np/min_time_between_cnps": "4", "cc_params/rp_dce_tcp_g": "1019",
    }.items():  # fmt: skip
        place = tmp_path / "ecn" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")
    assert read_device_state([tmp_path / "ecn"]).tables()["initial"] == {
        "rp_time_reset": 300, "rp_ai_rate": 7, "rp_dce_tcp_g": 1019, "np_min_time_between_cnps": 4,
    }  # fmt: skip


def test_devices_that_differ_are_said(tmp_path: Path) -> None:
    for name, value in (("a", 5), ("b", 5), ("c", 9)):
        (tmp_path / name).write_text(f"RPG_AI_RATE {value}\n")
    state = read_device_state([tmp_path / name for name in "abc"])
    assert state.tables()["initial"] == {"rp_ai_rate": 5}
    assert any("values of rp_ai_rate differ: 5" in note for note in state.tally.notes)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("interface Ethernet1/1\n   tx-queue 3\n      random-detect ecn "
         "minimum-threshold 150 kbytes maximum-threshold 3000 kbytes max-mark-probability 7\n",
         {"kmin": 150, "kmax": 3000, "pmax": 0.07}),
        ("policy-map type queuing out\n  class type queuing c-out-8q-q3\n    random-detect "
         "minimum-threshold 150000 bytes maximum-threshold 3 mbytes drop-probability 100 weight 0 "
         "ecn\n", {"kmin": 150, "kmax": 3000, "pmax": 1}),
        ("".join(f"nv set qos congestion-control default-global traffic-class 3 {words}\n" for words
                 in ("min-threshold 153600", "max-threshold 1536000",
                     "probability 20")),
         {"kmin": 153.6, "kmax": 1536, "pmax": 0.2}),
    ],
    ids=["EOS", "NX-OS", "NVUE"],
)  # fmt: skip
def test_configurations_of_switches(tmp_path: Path, text: str, found: dict[str, float]) -> None:
    assert initial(tmp_path / "running.txt", text) == pytest.approx(found)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("random-detect minimum-threshold 1 kbytes maximum-threshold 2 kbytes", "not mark"),
        ("set class-of-service drop-profiles roce interpolate fill-level 40", "no line from 0 at"),
        ("random-detect ecn minimum-threshold 1 mbytes maximum-threshold 999999999 mbytes", "kmax"),
    ],
)  # fmt: skip
def test_lines_of_switches_that_are_no_setting_have_a_reason(
    tmp_path: Path, line: str, words: str
) -> None:
    (tmp_path / "x").write_text(f"{line}\nRPG_AI_RATE 5\n")
    state = read_device_state([tmp_path / "x"])
    assert state.tables()["initial"] == {"rp_ai_rate": 5}
    assert any(words in said for said in state.tally.lines())


def test_what_emit_prints_for_eos_is_read_back(tmp_path: Path) -> None:
    setting = default_setting(100e9).replace(kmin=166, kmax=282, pmax=0.05)
    found = initial(tmp_path / "x", emit(setting, "eos"))
    assert found == pytest.approx({"kmin": 166, "kmax": 282, "pmax": 0.05})


def test_a_file_without_a_knob_says_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mlxconfig query"):
        initial(tmp_path / "x", "hello world\n")
    with pytest.raises(ConfigError, match="WRED_PROFILE"):
        initial(tmp_path / "x.json", '{"PORT": {}}')


def test_what_emit_prints_for_sonic_comes_back(tmp_path: Path) -> None:
    """To commands for a switch and back: the same thresholds."""
    setting = default_setting(100e9).replace(kmin=166.912, kmax=282.624, pmax=0.05)
    words = emit(setting, "sonic").replace("=", " ").split()
    names = ("green_min_threshold", "green_max_threshold", "green_drop_probability")
    text = "".join(f"{name} {words[words.index(name) + 1]}\n" for name in names)
    assert initial(tmp_path / "back.txt", text) == {"kmin": 166.912, "kmax": 282.624, "pmax": 0.05}


def test_the_command_prints_toml(tmp_path: Path) -> None:
    (tmp_path / "query.txt").write_text(MLXCONFIG)
    out = tmp_path / "initial.toml"
    result = CliRunner().invoke(
        app, ["settings", "import", str(tmp_path / "query.txt"), "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert parse_toml(out.read_text(), "out")["initial"]["rp_ai_rate"] == 50


def test_from_the_switch_file_a_query_and_a_capture_to_an_answer_without_writing_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = {
        **CONFIG_DB,
        "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "type": "ToRRouter"}},
        "PORT": {f"Ethernet{4 * i}": {"speed": "100000"} for i in range(4)},
        "DEVICE_NEIGHBOR": {
            f"Ethernet{4 * i}": {"name": f"gpu{i}", "port": "eth0"} for i in range(4)},
        "DEVICE_NEIGHBOR_METADATA": {f"gpu{i}": {"type": "Server"} for i in range(4)},
    }  # fmt: skip
    Path("leaf1.json").write_text(json.dumps(whole))
    Path("query.txt").write_text(MLXCONFIG)
    names = [f"10.0.0.{i + 1}" for i in range(4)]
    frames = [
        frame
        for peer in names[1:]
        for kind, number in [(0x06, 0), *((0x07, n) for n in range(1, 63)), (0x08, 63)]
        for frame in [roce(peer, names[0], kind, number, 1024, pair=int(peer[-1]))]
    ]
    Path("roce.pcap").write_bytes(pcap([(i, frame) for i, frame in enumerate(frames)]))
    for line in (
        "network import leaf1.json --out network",
        "settings import leaf1.json query.txt --scenario network/scenario.toml --out service.toml",
        "traffic import roce.pcap --scenario service.toml --out traffic",
        "tune --scenario traffic/scenario.toml --tuner advise --out run --quiet",
    ):
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == 0, (line, done.output, done.exception)
    answer = json.loads(Path("run/best.json").read_text())["answer"]
    assert answer["baseline"] == "yours"
    assert answer["action"] in ("deploy", "keep", "a choice", "cannot tell")
    scenario = load_scenario("traffic/scenario.toml")
    assert scenario.initial_setting()["rp_ai_rate"] == 50
    assert scenario.initial_setting()["kmin"] == pytest.approx(166.912)
    assert scenario.alpha == 0.125


def test_a_scenario_that_the_setting_does_not_fit_is_not_written(tmp_path: Path) -> None:
    dump, out = tmp_path / "ecn.txt", tmp_path / "out.toml"
    dump.write_text(SHOW_ECN.replace("green_min_threshold      1", "green_min_threshold 9"))
    with pytest.raises(ConfigError, match="kmin"):
        CliRunner().invoke(
            app, ["settings", "import", str(dump), "-s", "mini-fb-hadoop", "--out", str(out)],
            catch_exceptions=False,
        )  # fmt: skip
    assert not out.exists()


def of_switch(folder: Path, whole: object) -> tuple[dict[str, Any], list[str]]:
    path = folder / "config_db.json"
    path.write_text(json.dumps(whole))
    state = read_device_state([path])
    return state.tables(), state.tally.lines()


def test_profiles_of_several_priorities_are_classes(tmp_path: Path) -> None:
    tables, _ = of_switch(tmp_path, TWO_CLASSES)
    assert tables == {
        "initial": {"kmin": 250.0, "kmax": 1048.576, "pmax": 0.05},
        "switch": {"lossless": [3, 4], "alpha": 0.125},
        "classes": [
            {"priority": 3, "weight": 60, "dscp": 26},
            {"priority": 4, "weight": 40, "dscp": 28, "ecn": [100_000, 400_000, 0.1], "alpha": 1.0},
        ],
    }


def test_a_lossy_queue_is_a_class_and_a_curve_of_marks_its_own(tmp_path: Path) -> None:
    tables, said = of_switch(tmp_path, OWN_CURVE)
    assert tables == {
        "initial": {"kmin": 300.0, "kmax": 900.0, "pmax": 0.2},
        "classes": [{"priority": 1, "ecn": [50_000, 150_000, 1.0]}],
    }
    assert any("classes can lose packets" in line for line in said)


def test_ports_that_differ_are_told_and_never_averaged(tmp_path: Path) -> None:
    whole = json.loads(json.dumps(TWO_CLASSES))
    whole["QUEUE"]["Ethernet12|5"] = {"wred_profile": "STORAGE"}
    whole["PORT_QOS_MAP"]["Ethernet12"] = {"pfc_enable": "3", "pfc_to_queue_map": "AZURE"}
    tables, said = of_switch(tmp_path, whole)
    assert tables["initial"] == {"kmin": 250.0, "kmax": 1048.576, "pmax": 0.05}
    assert any("queues of priority 3 mark otherwise than 3 of 4" in x and "Ethernet12" in x
               for x in said), said  # fmt: skip
    assert any("ports protect other priorities than [3, 4] (3)" in line for line in said)


def test_two_switches_of_show_ecn_keep_their_own_curves(tmp_path: Path) -> None:
    other = SHOW_ECN.replace("2000000", "8000000").replace("1000000", "4000000")
    (tmp_path / "ecn.txt").write_text(SHOW_ECN + other)
    state = read_device_state([tmp_path / "ecn.txt"])
    assert state.tables()["initial"] == {"kmin": 1000.0, "kmax": 2000.0, "pmax": 0.05}
    assert any("kmin 4000, kmax 8000" in line for line in state.tally.lines())


@pytest.mark.parametrize("text", [JUNOS, BRACES], ids=["set", "braces"])
def test_junos_has_shares_of_a_buffer_that_a_person_says(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    found = read_device_state([tmp_path / "x"], 2e6).tables()
    assert found["initial"] == pytest.approx({"kmin": 200.0, "kmax": 1000.0, "pmax": 0.8})
    with pytest.raises(ConfigError, match=r"shares of a queue's buffer.*--queue-bytes"):
        read_device_state([tmp_path / "x"]).tables()
    (tmp_path / "x").write_text(text.replace("explicit-congestion-notification", "priority low"))
    with pytest.raises(ConfigError, match="queues without ECN: they drop and do not mark"):
        read_device_state([tmp_path / "x"], 2e6).tables()


NVUE_YAML = """
- set:
    qos:
      congestion-control:
        default-global:
          traffic-class:
            '3':
              min-threshold: 153600
              max-threshold: 1536000
              probability: 20
            '0':
              min-threshold: 50000
              max-threshold: 60000
              probability: 100
"""
NVUE_JSON = {"qos": {"congestion-control": {"default-global": {"traffic-class": {
    "3": {"min-threshold": 153600, "max-threshold": 1536000, "probability": 20},
    "0": {"min-threshold": 50000, "max-threshold": 60000, "probability": 100},
}}}}}  # fmt: skip
EOS = """
interface Ethernet1/1
   tx-queue 3
      random-detect ecn minimum-threshold 153600 bytes MOST 1536000 bytes MARKED 20
   tx-queue 0
      random-detect ecn minimum-threshold 50 kbytes MOST 60 kbytes MARKED 100
""".replace("MOST", "maximum-threshold").replace("MARKED", "max-mark-probability")


@pytest.mark.parametrize(
    "text", [NVUE_YAML, json.dumps(NVUE_JSON), EOS], ids=["YAML", "JSON", "EOS"]
)
def test_lines_that_stand_below_others_know_their_queue(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    found = read_device_state([tmp_path / "x"]).tables()
    assert found["initial"] == {"kmin": 153.6, "kmax": 1536.0, "pmax": 0.2}
    assert found["classes"] == [{"priority": 0, "ecn": [50_000, 60_000, 1.0]}]


@pytest.mark.parametrize("text", [
    BNXT, "minimum time between cnps\t\t: 0x32 usec\n",
    "minimum time between cnp (min_time_bet_cnp)\t: 0x32 usec\n", "DcQcnMinTimeBetweenCnps : 50\n",
])  # fmt: skip
def test_broadcoms_and_windows_names(tmp_path: Path, text: str) -> None:
    assert initial(tmp_path / "x", text) == {"np_min_time_between_cnps": 50}


@pytest.mark.parametrize(
    ("line", "words"),
    [("dcqcn_rai_factor = 5", "Intel's irdma steer a window"),
     ("ai_rate_incr=0x1", "Broadcom's own"),
     ("cnp_time 10", "have steps that no public text says"),
     ("green_min_threshold 0", "no numbers in 1 to 2147483647 B")],
)  # fmt: skip
def test_what_is_no_knob_here_is_left_out_by_name(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "x").write_text(f"RPG_AI_RATE_P1 5\n{line}\n")
    state = read_device_state([tmp_path / "x"])
    assert state.tables()["initial"] == {"rp_ai_rate": 5}
    assert any(words in said for said in state.tally.lines())


@pytest.mark.parametrize(
    ("key", "words"),
    [("rpg_ai_rate", ""), ("DcQcnAIRate", ""), ("RPG_AI_RATE_P1", ""),
     ("green_min_threshold", "a switch's name of kmin, in bytes; expected kmin in KB"),
     ("pmax", "(7 % is 0.07)")],
)  # fmt: skip
def test_names_of_devices_in_initial(tmp_path: Path, key: str, words: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SMALL.replace("[topology]", f"[initial]\n{key} = 7\n[topology]"))
    if words:
        with pytest.raises(ConfigError, match=re.escape(words)):
            load_scenario(path)
    else:
        assert load_scenario(path).initial_setting()["rp_ai_rate"] == 7


def test_advise_says_what_becomes_of_the_setting_in_force(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    late = "[initial]\nkmin = 1048.576\nkmax = 2097.152\n[switch]\nbuffer_bytes = 4_000_000\n"
    path.write_text(SMALL.replace("[topology]", f"{late}[topology]"))
    said = CliRunner().invoke(app, ["advise", "-s", str(path)]).output
    assert "[initial] has kmin, kmax otherwise than the default" in said
    assert "[initial]: pauses begin before marking" in said
    path.write_text(SMALL)
    assert "[initial]" not in CliRunner().invoke(app, ["advise", "-s", str(path)]).output


SMALL = """
description = "four hosts"
monitor_interval_us = 100
intervals = 4
weights = { tp = 0.4, rtt = 0.4, pfc = 0.2 }
[topology]
kind = "single-switch"
hosts = 4
[[workloads]]
kind = "incast"
bytes = 50_000
"""
SHAPES = {"one profile": CONFIG_DB, "classes": TWO_CLASSES, "own curve": OWN_CURVE}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_switch_file_to_a_scenario_and_back_by_emit(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole: dict[str, Any] = json.loads(json.dumps(SHAPES[shape]))
    whole["WRED_PROFILE"].pop("OTHER", None)
    Path("small.toml").write_text(SMALL)
    Path("leaf.json").write_text(json.dumps(whole))
    for line in (
        "settings import leaf.json --scenario small.toml --out service.toml",
        "tune --scenario service.toml --tuner advise --intervals 4 --eval-seeds 3 "
        "--eval-intervals 2 --out run --quiet",
        "emit run --format sonic --rollback",
    ):
        done = CliRunner().invoke(app, line.split())
        assert done.exit_code == 0, (line, done.output, done.exception)
    if "BUFFER_POOL" in whole:
        scenario = load_scenario("service.toml")
        assert scenario.buffer_bytes - scenario.set_aside_bytes == 9_000_000
    program = tmp_path / "sonic-db-cli"
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    program.chmod(0o755)
    names = {"one profile": {"PROFILE": "AZURE_LOSSLESS"},
             "classes": {"PROFILE": "TRAINING", "PROFILE_4": "STORAGE"},
             "own curve": {"PROFILE": "ROCE", "PROFILE_1": "LOSSY"}}[shape]  # fmt: skip
    said = subprocess.run(
        ["sh", "-eu", "-c", done.output], capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **names},
    ).stdout.split("CONFIG_DB\nhset\nWRED_PROFILE|")[1:]  # fmt: skip
    assert len(said) == len(names) == len(whole["WRED_PROFILE"])
    for part in said:
        profile, *words = part.split()
        written = dict(zip(words[::2], words[1::2], strict=True))
        held = whole["WRED_PROFILE"][profile]
        prefix, last = ("green_ect_", "mark") if profile == "ROCE" else ("green_", "drop")
        for end in ("min_threshold", "max_threshold"):
            assert written[f"green_{end}"] == held[f"{prefix}{end}"].strip()
        assert written["green_drop_probability"] == held[f"{prefix}{last}_probability"]
