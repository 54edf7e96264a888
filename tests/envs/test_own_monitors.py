"""Monitors in Python: the recipe of CONTRIBUTING, followed; what goes wrong is one sentence."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core import registry
from dcqcn_gym.core.errors import ConfigError, MonitorError
from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.monitors import MONITORS
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import (
    ExactMonitor,
    NetflowMonitor,
    monitor_kinds,
    monitor_of,
    with_kind,
)
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.markdown import plain
from dcqcn_gym.testing.monitor_case import MonitorCase

EXAMPLE = f"{Path(__file__).resolve().parents[2]}/examples/06_own_monitor.py:Window"
TOY = '''
"""A toy monitor: one file."""
from dcqcn_gym.envs.monitors import FlowMonitor, MonitorSettings, summarise


class Toy(FlowMonitor):
    """Every interval alone."""

    name = "toy"
    summary = "every flow by what it sent in the interval"

    def observe(self, log):
        """Return the distribution of the interval."""
        shares = (log.payload_bytes >= self.context.tau_bytes).astype(float)
        return summarise(log.payload_bytes, shares, monitor_bytes=8 * len(log.key))
'''


class TestExample(MonitorCase):
    kind = EXAMPLE
    options: ClassVar[dict[str, Any]] = {"delta": 2}


def mini(table: dict[str, Any], **more: Any) -> Scenario:
    update = {"monitor": monitor_of(table), **more}
    return load_scenario("mini-fb-hadoop").model_copy(update=update)


def watched(scenario: Scenario, backend: str = "native", count: int = 5) -> list[IntervalReport]:
    opened = make_backend(backend)
    opened.open(scenario, 3)
    opened.apply(scenario.initial_setting())
    reports = [opened.advance() for _ in range(count)]
    opened.close()
    return reports


def toy(folder: Path, observe: str = "") -> str:
    """Write the toy monitor, or one whose ``observe`` is another; return its kind."""
    text = TOY if not observe else TOY[: TOY.index("        shares")] + f"        {observe}\n"
    file = folder / "toy.py"
    file.write_text(text, encoding="utf-8")
    return f"{file}:Toy"


@pytest.mark.parametrize("delta", [1, 3])
def test_the_example_says_what_exact_counters_say(delta: int) -> None:
    ours = watched(mini({"kind": EXAMPLE, "options": {"delta": delta}}))
    theirs = watched(mini({"kind": "exact", "delta": delta}))
    assert [r.fsd for r in ours] == [
        replace(r.fsd, data_plane_bytes=0, control_plane_bytes=0, tracked_flows=0) for r in theirs
    ]
    assert sum(r.fsd.elephants + r.fsd.potential for r in ours) > 0
    for a, b in zip(ours, theirs, strict=True):  # and the network does not notice
        assert replace(a, fsd=b.fsd) == b


def test_a_toy_monitor_is_one_file(tmp_path: Path, in_threads: None) -> None:
    """Tuned with, judged, and refused by a backend without a flow log."""
    kind, out = toy(tmp_path), tmp_path / "run"
    words = ["tune", "--scenario", "mini-fb-hadoop", "--monitor", kind, "--intervals", "3",
             "--out", str(out), "--eval-seeds", "0", "--no-report", "--quiet"]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    recorded = read_run(out / "run.jsonl")
    assert recorded.header["scenario"]["monitor"]["kind"] == kind
    assert len(recorded.intervals) == 3
    with pytest.raises(ConfigError, match="fed by the flow log, which the fake backend"):
        watched(mini({"kind": kind}), "fake")
    assert "\nmonitor kind=flow-log tau=1000000 theta=0.01\n" in compile_scenario(
        mini({"kind": kind})
    )


def test_an_installed_monitor_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint("sizes", "toy:Toy", MONITORS.group)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert monitor_kinds()[-1] == "sizes"
    assert sum(r.fsd.mice for r in watched(mini({"kind": "sizes"}))) > 0
    with pytest.raises(ConfigError, match="unknown kind of monitor 'size'; did you mean 'sizes'"):
        monitor_of({"kind": "size"})


def test_bench_judges_flows_only_of_who_knows_them(tmp_path: Path, in_threads: None) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'scenario = "mini-fb-hadoop"\nloads = [30]\nintervals_ms = [1]\nseeds = [1]\n'
        'warmup_ms = 1\nlength_ms = 3\nrounds = ""\nlong = ""\n'
    )
    page = tmp_path / "page.md"
    page.write_text("<!-- monitor: begin -->\n<!-- monitor: end -->\n")
    words = ["paper", "monitors", str(plan), "--jobs", "1"]
    found = CliRunner().invoke(
        app,
        [*words, "--monitor", EXAMPLE, "--out", str(tmp_path / "a"), "--write", str(page)],
        catch_exceptions=False,
    )
    assert found.exit_code == 0, found.output
    lines = [[cell.strip() for cell in line.split("|")] for line in page.read_text().splitlines()]
    (exact,), (ours,) = ([c[2:] for c in lines if name in c] for name in ("exact", plain(EXAMPLE)))
    assert ours == exact
    refused = CliRunner().invoke(
        app, [*words, "--monitor", toy(tmp_path), "--out", str(tmp_path / "b")]
    )
    assert "knows no single flows" in str(refused.exception) + refused.output


@pytest.mark.parametrize(
    ("observe", "says"),
    [
        ("raise ValueError('no\\nway')", "failed in observe of the interval .*ValueError: no way"),
        ("return None", "observe returned NoneType; expected a FlowSizeDistribution"),
        ("log.key[0] = 1", "read-only"),
        ("return summarise(log.key, log.key * -1.0)", "holds -.*; expected numbers in 0..1"),
        ("return summarise(log.key, log.key * float('nan'))", "holds nan; expected numbers in"),
        ("return summarise(log.key, log.key * 0.0, monitor_bytes=0.5)", "expected a whole number"),
    ],
)
def test_a_monitor_that_fails_is_one_sentence(tmp_path: Path, observe: str, says: str) -> None:
    with pytest.raises(MonitorError, match=says) as caught:
        watched(mini({"kind": toy(tmp_path, observe)}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"kind": EXAMPLE, "options": {"delte": 2}}, "unknown key 'delte'; did you mean 'delta'"),
        ({"kind": EXAMPLE, "options": {"delta": 0}}, "delta = 0: expected greater than or equal"),
        ({"kind": EXAMPLE.replace("Window", "Windo")}, "unknown class 'Windo'; did you mean 'Wi"),
        ({"kind": "nowhere.py:Window"}, "'nowhere.py' cannot be read"),
    ],
)
def test_a_wrong_table_is_one_sentence(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        watched(mini(table))


def test_a_distribution_has_to_add_up(tmp_path: Path) -> None:
    more = "from dataclasses import replace; return replace(summarise(log.key, 0.0 * log.key), {})"
    for change, says in (
        ("mice=1.0", "the sum of bins|weighted"),
        ("bins=log.key[:0]", "expected 16 numbers"),
        ("elephants=float('nan')", "elephants = nan; expected 0 or more"),
    ):
        folder = tmp_path / says[:5]
        folder.mkdir()
        with pytest.raises(MonitorError, match=says):
            watched(mini({"kind": toy(folder, more.format(change))}))


def test_another_kind_keeps_the_options_that_it_has() -> None:
    exact = ExactMonitor(tau_bytes=5, delta=2, theta=0.5)
    assert with_kind(exact, "netflow") == NetflowMonitor(tau_bytes=5, theta=0.5)
    assert with_kind(exact, "elastic").model_dump()["delta"] == 2


def test_the_log_is_what_the_flows_sent() -> None:
    """All bytes of the log of a finished network are the sizes of its flows."""
    scenario = mini({"kind": EXAMPLE})
    backend: Any = make_backend("native")
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    total, packets = 0, 0
    for _ in range(3):
        report = backend.advance()
        log = backend._open.simulation.flow_log()
        assert len(np.unique(np.stack([log["tor"], log["key"]]), axis=1)[0]) == len(log["key"])
        assert (log["payload_bytes"] >= log["packets"]).all()
        total, packets = total + log["payload_bytes"].sum(), packets + log["packets"].sum()
    assert packets <= backend._open.simulation.totals()["data_packets"]
    assert total >= report.finished.bytes.sum() > 0
    assert isinstance(report.fsd, FlowSizeDistribution)
