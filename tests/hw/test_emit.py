"""The winner as commands: they parse as shell and hold the device's own units."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dcqcn_gym.core.device_commands import FORMS, emit
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import (
    ECN_KNOBS,
    KNOBS,
    NIC_KNOBS,
    KnobTable,
    dcqcn_paper_setting,
    default_setting,
)
from toy_tables import ECN_ROWS, TOY, WITH_TOY

SETTING = default_setting().replace({"rp_ai_rate": 87, "kmin": 631.5, "kmax": 2000, "pmax": 0.1875})

FAKE_TOOL = '#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n'


def run(form: str, tmp_path: Path, **env: str) -> str:
    for tool in ("mlxconfig", "sonic-db-cli"):
        (tmp_path / tool).write_text(FAKE_TOOL)
        (tmp_path / tool).chmod(0o755)
    script = emit(SETTING, form)
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env},
    )
    return done.stdout


def test_mlxconfig_sets_every_nic_knob_at_once(tmp_path: Path) -> None:
    words = run("mlxconfig", tmp_path, DEV="0000:3b:00.0").split()
    assert words[:4] == ["-y", "-d", "0000:3b:00.0", "set"]
    assert len(words) == 4 + len(NIC_KNOBS)
    assert {"RPG_AI_RATE_P1=87", "RPG_TIME_RESET_P1=300", "RPG_BYTE_RESET_P1=32767"} <= set(words)


def test_debugfs_writes_one_file_per_nic_knob(tmp_path: Path) -> None:
    folder = tmp_path / "cc_params"
    folder.mkdir()
    script = emit(SETTING, "debugfs").replace("CC=/sys/kernel/debug/mlx5/${BDF", "CC=${BDF")
    env = {"BDF": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", "-eu", "-c", script], check=True, env=env)
    values = {p.name: float(p.read_text()) for p in folder.iterdir()}
    assert values == {KNOBS[n].debugfs: v for n, v in SETTING.items() if n in NIC_KNOBS}


def test_sonic_sets_bytes_and_whole_percents(tmp_path: Path) -> None:
    words = run("sonic", tmp_path, PROFILE="ROCE").split()
    assert words[:3] == ["CONFIG_DB", "hset", "WRED_PROFILE|ROCE"]
    fields = dict(zip(words[3::2], words[4::2], strict=True))
    for colour in ("green", "yellow", "red"):
        assert fields[f"{colour}_min_threshold"] == "631500"
        assert fields[f"{colour}_max_threshold"] == "2000000"
        assert fields[f"{colour}_drop_probability"] == "19"
    assert "Pmax 0.1875 is rounded" in emit(SETTING, "sonic")


def test_eos_gets_one_line_per_queue_range_in_a_session(tmp_path: Path) -> None:
    (tmp_path / "FastCli").write_text('#!/bin/sh\necho "$@"; cat\n')
    (tmp_path / "FastCli").chmod(0o755)
    lines = run("eos", tmp_path, INTERFACE="Ethernet1-4").splitlines()
    assert lines[:4] == ["-p 15", "configure session dcqcn-gym", "interface Ethernet1-4",
                         "uc-tx-queue 3"]  # fmt: skip
    assert lines[4] == (
        "random-detect ecn minimum-threshold 631500 bytes maximum-threshold 2000000 bytes "
        "max-mark-probability 19 weight 0"
    )
    assert lines[5] == "commit"
    assert "Pmax 0.1875 is rounded: EOS" in emit(SETTING, "eos")


def test_a_device_that_is_not_named_stops_the_script() -> None:
    for form, name in (("mlxconfig", "DEV"), ("debugfs", "BDF"), ("eos", "INTERFACE")):
        done = subprocess.run(
            ["sh", "-c", emit(SETTING, form)], capture_output=True, text=True, env={}, check=False
        )
        assert done.returncode != 0
        assert f"set {name}" in done.stderr


def test_every_knob_is_in_some_form() -> None:
    whole = "".join(emit(SETTING, form) for form in FORMS)
    for name in (*NIC_KNOBS, *ECN_KNOBS):
        row = KNOBS[name]
        assert (row.debugfs or row.sonic or "") in whole


def test_unknown_form() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sonic'"):
        emit(SETTING, "sonik")


def test_a_knob_the_device_does_not_have_is_left_out_and_named(tmp_path: Path) -> None:
    setting = default_setting(table=WITH_TOY)
    lines = emit(setting, "debugfs").splitlines()
    assert sum(line.startswith("echo ") for line in lines) == len(NIC_KNOBS)
    assert "# Left out, no such name here: toy_gap." in lines
    assert "  TOY_GAP_P${PORT:-1}=5" in emit(setting, "mlxconfig").splitlines()
    assert "Left out" not in emit(setting, "mlxconfig") + emit(SETTING, "debugfs")
    nameless = KnobTable("toy", (replace(TOY, mlxconfig=None), *ECN_ROWS))
    with pytest.raises(ConfigError, match="mlxconfig has none of the knobs of scheme 'toy'"):
        emit(default_setting(table=nameless), "mlxconfig")


def test_what_a_field_cannot_hold_is_left_out_and_said() -> None:
    paper = emit(dcqcn_paper_setting(), "mlxconfig")  # 10 MB: 18 bits, and the field has 15
    assert "RPG_BYTE_RESET_P" not in paper
    said = "# Left out, out of range for mlxconfig: RPG_BYTE_RESET = 156250; it holds 0 to 32767."
    assert said in paper
    assert "RPG_TIME_RESET_P" in paper
    assert "echo 156250 >" in emit(dcqcn_paper_setting(), "debugfs")  # the kernel's has 32
    edge = SETTING.replace({"rp_byte_reset": 32767})
    assert "RPG_BYTE_RESET_P${PORT:-1}=32767" in emit(edge, "mlxconfig")
    assert "Left out, out of range" not in emit(edge, "mlxconfig")


def test_of_all_forms_those_are_written_that_can_hold_the_setting() -> None:
    changed = SETTING.replace({"rp_byte_reset": 65535})  # the only knob that differs
    script = emit(changed, "all", before=SETTING)
    assert "# NICs: nothing that mlxconfig can hold.\n# Left out, out of range" in script
    assert "echo 65535 >" in script
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    nameless = KnobTable("toy", (replace(TOY, mlxconfig=None), *ECN_ROWS))
    script = emit(default_setting(table=nameless), "all")
    assert "## mlxconfig\n# mlxconfig has none of the knobs of scheme 'toy'\n" in script
    assert "sonic-db-cli" in script


@pytest.mark.parametrize("form", FORMS)
def test_every_form_checks_every_value(form: str) -> None:
    changes: dict[str, dict[str, float]] = {
        "mlxconfig": {"rp_ai_rate": 1e6},
        "debugfs": {"rp_ai_rate": 1e6},
        "sonic": {"pmax": 1.5},
        "eos": {"pmax": 0.0},
        "nvue": {"pmax": 0.0},
    }
    odd = SETTING.replace(changes[form])
    words = {
        "sonic": r"SONiC cannot .*_probability = 150", "eos": r"EOS .*_probability = 0; it ho",
        "nvue": r"NVUE .*_probability = 0; it ho",
    }  # fmt: skip
    if form in words:
        with pytest.raises(ConfigError, match=words[form]):
            emit(odd, form)
    else:
        assert f"out of range for {form}" in emit(odd, form)
