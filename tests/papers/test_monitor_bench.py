"""The benchmark of monitors: hand-made accuracy, packets that are the simulation's own, gates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import (
    Accuracy,
    SeenFlows,
    accuracy,
    mean_accuracy,
    sizes_of,
)
from dcqcn_gym.benchmarks.papers.monitor_study.gates import _Table, gates
from dcqcn_gym.benchmarks.papers.monitor_study.study import (
    MonitorResult,
    MonitorStudy,
    results_of,
    study_of,
    with_load,
)
from dcqcn_gym.benchmarks.papers.monitor_study.tables import markdown, write_all
from dcqcn_gym.benchmarks.papers.monitor_study.traces import Packets, Sample, judge, replay
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.monitor import monitor_of
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.markdown_page import insert
from dcqcn_gym.runs.campaign import carry_out
from programs import program_of

MS = 1_000_000_000
PLAN = MonitorStudy(
    loads=(30,),
    intervals_ms=(1, 2),
    seeds=(1,),
    warmup_ms=4,
    length_ms=6,
    scenario="mini-fb-hadoop",
    rounds="mini-llm-alltoall",
    long="",
)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_accuracy_by_hand() -> None:
    """An elephant seen as one, one taken for a mouse, an unseen mouse, a mouse seen as one."""
    seen = SeenFlows(
        key=ints(1, 2, 3, 4),
        total_bytes=ints(1500, 400, 10, 10),
        state=ints(3, 2, 0, 1),
        elephant_share=np.array([1.0, 0.4, 0.0, 0.0]),
        estimate=0.3,
    )
    found = accuracy(seen, ints(2000, 1000, 10, 10), tau=1000)
    assert found == Accuracy(label=0.5, causal=0.75, share=0.8, recall=0.5)
    nothing = replace(seen, key=ints(), total_bytes=ints(), state=ints())
    assert accuracy(nothing, ints(), 1000) is None
    mice = Accuracy(label=1.0, causal=1.0, share=1.0, recall=None)
    assert mean_accuracy([found, None, mice]) == Accuracy(0.75, 0.875, 0.9, 0.5)
    with pytest.raises(ValueError, match="no interval"):
        mean_accuracy([None])


def test_sizes_are_joined_by_key() -> None:
    assert sizes_of(ints(7, 5, 7), ints(5, 9, 7), ints(50, 90, 70)).tolist() == [70, 50, 70]
    for known in (ints(5, 9), ints()):
        with pytest.raises(ValueError, match="never existed"):
            sizes_of(ints(7), known, known)


@pytest.mark.parametrize("kind", ["elastic", "elastic-naive", "exact", "netflow", "none"])
def test_a_replayed_monitor_says_what_the_simulation_says(kind: str) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    export = kind == "netflow"
    monitor = monitor_of({"kind": kind, **({"export_us": 2000.0} if export else {})})
    inside = scenario.model_copy(update={"monitor": monitor})
    probe = Sample(kind, MS, {"kind": kind, **({"export_ps": 2 * MS} if export else {})})
    replay(Packets(scenario, 3, MS, 0, 5 * MS), [probe])
    backend = NativeBackend()
    backend.open(inside, 3)
    backend.apply(scenario.initial_setting())
    assert len(probe.seen) == 5
    for seen, cost in zip(probe.seen, probe.costs, strict=True):
        fsd = backend.advance(MS).fsd
        assert seen.estimate == fsd.elephant_share
        assert cost == {name: getattr(fsd, name) for name in cost}


def test_every_flow_a_monitor_sees_has_a_final_size() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    probe = Sample("exact", MS, {"kind": "exact"})
    keys, sizes = flows = replay(Packets(scenario, 1, MS, 2 * MS, 6 * MS), [probe])
    assert len(np.unique(keys)) == len(keys)
    assert np.all(sizes >= 1)
    for seen in probe.seen:
        assert np.all(seen.total_bytes <= sizes_of(seen.key, *flows))
    judged = judge(probe, flows, scenario.monitor.tau_bytes)
    assert all(a is not None and a.causal >= a.label - 0.2 for a in judged)


def test_results_and_page(tmp_path: Path) -> None:
    study = study_of(PLAN, tmp_path)
    study.begin(tmp_path)
    assert len(study.jobs) == 2
    assert not carry_out(study.jobs.values(), workers=1)
    table = results_of(study)
    assert {(r.group, r.interval_ms) for r in table} == {
        ("load", 1), ("load", 2), ("rounds", 1), ("rounds", 2)
    }  # fmt: skip
    by = {(r.group, r.monitor, r.interval_ms): r for r in table}
    assert by["load", "elastic", 1].label >= by["load", "elastic-naive", 1].label
    assert by["load", "elastic-naive", 1].label >= by["load", "netflow", 1].label
    assert by["load", "elastic", 1].label == by["load", "exact", 1].label  # nothing is lost
    shown, *accuracies, costs = write_all(PLAN, study, tmp_path)
    assert ["elastic-naive >= netflow at every load and interval", "yes"] in [
        [line[0], line[2]] for line in shown.rows
    ]
    assert len(accuracies) == 2
    assert {line[0] for line in costs.rows} == {"elastic", "exact", "elastic-naive", "netflow"}
    for name in ("load", "interval"):
        figure = (tmp_path / f"monitor-{name}.svg").read_text(encoding="utf-8")
        assert "Label accuracy" in figure
        assert "var(--" not in figure


def row(label: float, monitor: str, **more: object) -> MonitorResult:
    values: dict[str, object] = {
        "group": "load", "scenario": "x", "load": 30, "seed": 1, "interval_ms": 1, "causal": 1.0,
        "share": 1.0, "recall": None, "wire_bytes": 0.0, "memory_bytes": 0, "state_bytes": 0,
        "tracked_flows": 0, "untracked_flows": 0, **more,
    }  # fmt: skip
    return MonitorResult(label=label, monitor=monitor, **values)  # type: ignore[arg-type]


def test_a_gate_is_as_good_as_its_worst_seed() -> None:
    table = [
        row(0.95, "elastic"), row(0.80, "elastic-naive"), row(0.2, "netflow"),
        row(0.93, "elastic", seed=2), row(0.90, "elastic-naive", seed=2),
        row(0.2, "netflow", seed=2),
        row(0.05, "elastic-naive", group="rounds", load=None),
    ]  # fmt: skip
    found = {gate.what: gate for gate in gates(table)}
    assert found["elastic >= 0.94 at 30 %, 1 ms"].worst == pytest.approx(-0.01)
    assert not found["elastic >= 0.94 at 30 %, 1 ms"].holds
    assert not found["elastic >= elastic-naive + 0.05 at 30 %, 1 ms"].holds
    assert found["elastic >= elastic-naive at every load and interval"].holds
    assert found["elastic-naive <= 0.1 on all-to-all, 1 ms"].holds
    assert not any("up to 20 %" in what for what in found)  # that load was not run


def test_the_long_run_has_gates_and_a_table_of_its_own() -> None:
    table = [
        row(label, monitor, group="long", load=None, seed=seed)
        for seed in (1, 2)
        for label, monitor in ((0.9, "elastic"), (0.8, "elastic-naive"), (0.2, "netflow"),
                               (0.01 if seed == 1 else 0.85, "netflow-1s"))
    ]  # fmt: skip
    found = {gate.what: gate for gate in gates(table)}
    assert found["elastic >= elastic-naive in the long run"].holds
    assert found["elastic-naive >= netflow in the long run"].worst == pytest.approx(0.6)
    assert not found["elastic-naive >= netflow-1s in the long run"].holds
    long = PLAN.model_copy(update={"long": "mini-fb-hadoop", "seeds": (1, 2)})
    text = markdown(long, table)
    assert "| netflow-1s | 0.430 | 1.000 | 1.000 | – | 0.840 |" in text
    with pytest.raises(ConfigError, match="at least 1200 ms"):
        long.model_copy(update={"long_ms": 1199}).traffic()


def test_tables_go_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nz\n")
    insert(page, "x", "new\n")
    insert(page, "x", "newer\n")
    assert page.read_text() == "a\n<!-- x: begin -->\n\nnewer\n\n<!-- x: end -->\nz\n"
    with pytest.raises(RunError, match="lacks the marks"):
        insert(page, "y", "new")
    with pytest.raises(RunError, match="cannot be read"):
        insert(tmp_path / "none.md", "x", "new")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loads = [0]", "1 to 100"),
        ("intervals_ms = [3]", "does not divide"),
        ("seeds = []", "seeds"),
        ('scenario = "mini-fb-hadop"', "mini-fb-hadoop"),
        ('scenario = "incast"', "no Poisson traffic"),
    ],
)
def test_bad_input_runs_nothing(tmp_path: Path, text: str, words: str) -> None:
    out, file = tmp_path / "out", tmp_path / "plan.toml"
    file.write_text(text)
    typed = ["paper", "monitors", str(file), "--out", str(out)]
    result = CliRunner().invoke(*program_of(typed))
    assert isinstance(result.exception, Exception)
    assert words in str(result.exception)
    assert not out.exists()


def test_a_load_is_per_host_link() -> None:
    changed = with_load(load_scenario("fb-hadoop-uplink30"), 20)
    assert changed.workloads[0].load_of == "host"  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="Poisson"):
        with_load(load_scenario("llm-alltoall"), 20)


def test_gates_go_over_places_in_order() -> None:
    # enough of them that the order of a set is another
    wanted = [(load, interval) for load in (10, 20, 30, 40, 50) for interval in (1, 2, 5, 10)]
    one = MonitorResult(
        group="main", scenario="", load=10, seed=1, monitor="elastic", interval_ms=1, label=1.0,
        causal=1.0, share=1.0, recall=None, wire_bytes=0.0, memory_bytes=0, state_bytes=0,
        tracked_flows=0, untracked_flows=0,
    )  # fmt: skip
    mixed = [replace(one, load=a, interval_ms=b) for a, b in reversed(wanted)]
    assert _Table(mixed).places() == wanted != list({(r.load, r.interval_ms) for r in mixed})
