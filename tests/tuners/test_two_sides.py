"""One tuner for the switches beside another for the NICs: ACC with PARALEON, and with DCQCN+."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.acc_state import TEMPLATES

MINI = load_scenario("mini-fb-hadoop")
CURVE = ("kmin", "kmax", "pmax")


def played(path: Path, intervals: int = 8, **arguments: Any) -> list[dict[str, Any]]:
    """Return the setting of every interval, in NVIDIA's units as the log has it."""
    run(RunSpec(MINI, "two-sides", 3, intervals, tuner_args=arguments), path)
    return [line["setting"] for line in read_run(path).intervals]


def test_acc_turns_the_ports_and_paraleon_the_nics(tmp_path: Path) -> None:
    found = played(tmp_path / "a")
    base = found[-1]["cluster"]
    ports = [name for name in found[-1] if name.startswith("port:")]
    assert len(ports) == 24
    for port in ports:
        setting = found[-1][port]
        assert {k: setting[k] for k in CURVE} in TEMPLATES
        assert {k: v for k, v in setting.items() if k not in CURVE} == {
            k: v for k, v in base.items() if k not in CURVE
        }
    hosts = [setting["hosts"] for setting in found[1:]]
    assert all(setting[k] == base[k] for setting in hosts for k in CURVE)
    assert len({str(setting) for setting in hosts}) == len(hosts)  # a step in every interval
    played(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_each_side_has_what_its_tuner_alone_would_set(tmp_path: Path) -> None:
    setting = played(tmp_path / "log", 2, switches="secn1", hosts="expert")[-1]
    alone = {}
    for name in ("secn1", "expert"):
        run(RunSpec(MINI, name, 3, 2), tmp_path / name)
        alone[name] = read_run(tmp_path / name).intervals[-1]["setting"]
    assert list(setting) == ["cluster", "switches", "hosts"]
    assert {k: setting["switches"][k] for k in CURVE} == {k: alone["secn1"][k] for k in CURVE}
    for knob, value in setting["hosts"].items():
        if knob not in CURVE:
            assert value == alone["expert"][knob]


def test_acc_beside_dcqcn_plus_on_the_nics(tmp_path: Path) -> None:
    scenario = changed_scenario(MINI, {"scheme": "dcqcn-plus", "initial": "dcqcn-plus"}, "plus")
    run(RunSpec(scenario, "acc", 1, 4), tmp_path / "log")
    last = read_run(tmp_path / "log").intervals[-1]["setting"]
    assert len({str({k: s[k] for k in CURVE}) for s in last.values()}) > 1
    own = {str({k: v for k, v in s.items() if k not in CURVE}) for s in last.values()}
    assert len(own) == 1  # DCQCN+ keeps its own values everywhere


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": "two-sides"}, "has no end"),
        ({"switches": "two-sides"}, "has no end"),
        ({"switches": "acx"}, "did you mean 'acc'"),
        ({"hosts": "acc"}, "'acc' acts on the hosts alone, and proposes a setting for 'port:"),
        (
            {"switches": "fixed", "switch_arguments": {"groups": {"nic:0": {"rp_ai_rate": 9}}}},
            "'fixed' acts on the switches alone, and proposes a setting for 'nic:0'",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DcqcnGymError, match=message):
        played(tmp_path / "log", **arguments)
