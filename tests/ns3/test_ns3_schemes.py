"""Other schemes than DCQCN behind the bridge, on ns-3 and in its program: the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.commands.tables import run_lines
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.envs.backends.base import Backend
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.extras.ns3.bridge.build import ensure_built
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.simulation.recorded import read_recorded

PEER = [sys.executable, str(Path(__file__).with_name("native_peer.py"))]
BACKENDS: dict[str, dict[str, Any]] = {"peer": {"command": PEER}, "ns3": {}}
SCHEMES: dict[str, Any] = {
    "dcqcn-plus": "dcqcn-plus",
    "mix": {"name": "mix", "groups": [{"hosts": [0, 1, 2, 3], "scheme": "dcqcn-plus"}]},
}


def small(scheme: str) -> Scenario:
    storm = changed_scenario(
        load_scenario("mini-storm"), {"initial": "dcqcn-plus", "warmup_us": 0}, "test"
    )
    return changed_scenario(storm, {"scheme": SCHEMES[scheme]}, "test")


def reports_of(backend: Backend, scenario: Scenario) -> list[IntervalReport]:
    """Return two intervals under settings that differ in the schemes' own knobs."""
    backend.open(scenario, 3)
    setting = scenario.initial_setting()
    reports = []
    for cut in (50, 90):
        own = setting.replace({"plus_cut": cut})
        backend.apply({"cluster": setting, "nic:1": own})
        reports.append(backend.advance(700_000_000))
    return reports


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("where", [pytest.param("ns3", marks=pytest.mark.slow), "peer"])
def test_the_same_everywhere(where: str, scheme: str) -> None:
    backend = Ns3Backend(**BACKENDS[where])
    try:
        bridged = reports_of(backend, small(scheme))
    finally:
        backend.close()
    native = reports_of(NativeBackend(), small(scheme))
    assert bridged == native
    assert native[0].scheme_counters["listed"] > 0
    assert bridged[1].scheme_counters == native[1].scheme_counters


def test_a_setting_of_another_scheme_is_refused_by_name() -> None:
    backend = Ns3Backend(**BACKENDS["peer"])
    try:
        backend.open(small("dcqcn-plus"), 1)
        with pytest.raises(ConfigError, match=r"a setting of scheme 'dcqcn' .*'dcqcn-plus'"):
            backend.apply(default_setting(25e9))
    finally:
        backend.close()


@pytest.mark.slow
def test_the_program_writes_the_knobs_of_the_scheme(tmp_path: Path) -> None:
    scenario = small("mix")
    head, _, rest = compile_scenario(scenario).partition("\n")
    (tmp_path / "mix.txt").write_text("\n".join([head, *run_lines(scenario), rest]))
    program = str(ensure_built(say=print).folder / "dcqcn-ns3")
    command = [program, f"--scenario={tmp_path / 'mix.txt'}", "--intervals=1", f"--out={tmp_path}"]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / "run.json").read_text())["scheme"] == "dcqcn-plus,dcqcn"
    recorded = read_recorded(tmp_path, scenario)
    assert recorded.setting == scenario.initial_setting()
    assert recorded.reports[0].scheme_counters["listed"] > 0
    backend = NativeBackend()
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    assert recorded.reports[0] == backend.advance()
