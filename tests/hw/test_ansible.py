"""`emit --format ansible`: Ansible itself runs the playbook, with stand-ins of programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dcqcn_gym.core.device_commands import emit
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import default_setting, expert_setting

PROGRAM = shutil.which("ansible-playbook", path=str(Path(sys.executable).parent))
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="ansible-core is not installed")
SETTING = expert_setting(100e9)
EOS_CONFIG = """
from ansible.module_utils.basic import AnsibleModule
lists = dict(type="list", elements="str")
module = AnsibleModule(argument_spec=dict(parents=lists, lines=lists))
with open("{}", "a") as file:
    file.write("; ".join(module.params["parents"] + module.params["lines"]) + chr(10))
module.exit_json(changed=True)
"""
"""A stand-in for the module of Arista's collection, which is not installed: it notes its lines."""
GROUPS: DeviceSetting = {"cluster": SETTING, "tor": SETTING.replace(kmin=100, kmax=400)}


def played(folder: Path, setting: DeviceSetting, inventory: str, *words: str) -> str:
    (folder / "play.yml").write_text(emit(setting, "ansible", said="Deploy"))
    (folder / "hosts").write_text(inventory)
    module = folder / "collections/ansible_collections/arista/eos/plugins/modules/eos_config.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(EOS_CONFIG.format(folder / "eos"))
    here = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder),
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
            "ANSIBLE_LOCALHOST_WARNING": "False", "LC_ALL": "C.UTF-8"}  # fmt: skip
    done = subprocess.run(
        [str(PROGRAM), "-i", str(folder / "hosts"), *words, str(folder / "play.yml")],
        env=here, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ansible_takes_the_syntax_of_every_group(tmp_path: Path) -> None:
    said = played(
        tmp_path, GROUPS, "[nics]\n[sonic]\n[eos]\n[nvue]\n[sonic_tor]\n", "--syntax-check"
    )
    assert "play.yml" in said


def test_what_ansible_runs_is_what_the_forms_say(tmp_path: Path) -> None:
    for program in ("nv", "sonic-db-cli"):
        stand_in = tmp_path / program
        stand_in.write_text(f'#!/bin/sh\necho {program} "$@" >> {tmp_path}/log\n')
        stand_in.chmod(0o755)
    here = (
        f"ansible_connection=local ansible_become=false ansible_python_interpreter={sys.executable}"
    )
    eos = f'[eos]\narista {here} interfaces=\'["Ethernet1", "Ethernet2"]\' queue=4\n'
    hosts = f"[nvue]\nleaf {here} confirm=60s\n[sonic_tor]\ntor {here} profile=P\n{eos}"
    played(tmp_path, GROUPS, hosts)
    assert (tmp_path / "eos").read_text().splitlines() == [
        f"interface {port}; uc-tx-queue 4; random-detect ecn minimum-threshold 1600000 bytes "
        "maximum-threshold 6400000 bytes max-mark-probability 20 weight 0"
        for port in ("Ethernet1", "Ethernet2")
    ]
    log = (tmp_path / "log").read_text().splitlines()
    assert log[:4] == [
        "nv set qos congestion-control default-global traffic-class 3 min-threshold 1600000",
        "nv set qos congestion-control default-global traffic-class 3 max-threshold 6400000",
        "nv set qos congestion-control default-global traffic-class 3 probability 20",
        "nv config apply --confirm 60s -y",
    ]
    (sonic,) = log[4:]
    assert sonic.startswith("sonic-db-cli CONFIG_DB hset WRED_PROFILE|P ecn ecn_all")
    assert "green_min_threshold 100000" in sonic


def test_what_changes_nothing_is_a_play_that_does_nothing(tmp_path: Path) -> None:
    text = emit(SETTING, "ansible", before=SETTING)
    assert text.count("nothing to change") == 4
    assert "hset" not in text
    assert "hset" in emit(SETTING, "ansible", before=default_setting(100e9))
