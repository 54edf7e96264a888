"""Dumps of devices become the setting in service."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from making import pcap, roce
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.balance import BalanceError
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


def initial(path: Path, text: str) -> dict[str, float]:
    path.write_text(text)
    return read_device_state([path]).initial()


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
    assert "profiles are of other queues than 3 and 4" in state.tally.notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ecn": "ecn_red"}, "mark nothing that RoCE sends"),
        ({"wred_green_enable": "false"}, "wred_green_enable off"),
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
    assert read_device_state([tmp_path / "ecn"]).initial() == {
        "rp_time_reset": 300, "rp_ai_rate": 7, "rp_dce_tcp_g": 1019, "np_min_time_between_cnps": 4,
    }  # fmt: skip


def test_devices_that_differ_are_said(tmp_path: Path) -> None:
    for name, value in (("a", 5), ("b", 5), ("c", 9)):
        (tmp_path / name).write_text(f"RPG_AI_RATE {value}\n")
    state = read_device_state([tmp_path / name for name in "abc"])
    assert state.initial() == {"rp_ai_rate": 5}
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
        ("set class-of-service drop-profiles roce interpolate fill-level 40", "shares of a buffer"),
        ("random-detect ecn minimum-threshold 1 mbytes maximum-threshold 999999999 mbytes", "kmax"),
    ],
)  # fmt: skip
def test_lines_of_switches_that_are_no_setting_have_a_reason(
    tmp_path: Path, line: str, words: str
) -> None:
    (tmp_path / "x").write_text(f"{line}\nRPG_AI_RATE 5\n")
    state = read_device_state([tmp_path / "x"])
    assert state.initial() == {"rp_ai_rate": 5}
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


def test_mutated_dumps_keep_the_balance(tmp_path: Path) -> None:
    rng = Random(3)
    texts = [MLXCONFIG, SHOW_ECN, json.dumps(CONFIG_DB)]
    read = 0
    for _ in range(300):
        text = bytearray(rng.choice(texts).encode())
        for _ in range(rng.randint(1, 8)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        (tmp_path / "m").write_bytes(bytes(text))
        try:
            read_device_state([tmp_path / "m"]).initial()
            read += 1
        except BalanceError:
            raise
        except ConfigError:
            pass
    assert read > 100


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
