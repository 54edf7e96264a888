"""What the monitors show: cost in info and log, the KL trigger on real traffic, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.benchmarks.papers.monitor_study.study import with_load
from dcqcn_gym.core.overhead import (
    ECN_DISPATCH,
    NIC_DISPATCH,
    PORT_RECORD,
    PUBLISHED,
    RNIC_RECORD,
    SWITCH_HEADER,
    WireCost,
    wire_cost,
)
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import Info
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from hand_made import blank_report
from programs import called

PAPER_SCALE = (
    "fb-hadoop",
    "fb-hadoop-uplink30",
    "llm-alltoall",
    "influx",
    "alltoall-20x100mb",
    "websearch-uplink30",
)
HOSTS, SWITCHES = 16, 4
SWITCH_PORTS = 2 * (8 + 2) + 2 * 2  # two ToRs of 8 hosts and 2 spines


def changed(name: str, **parts: Any) -> Scenario:
    """Return a scenario with some top-level values replaced."""
    data = load_scenario(name).model_dump(mode="json")
    return Scenario.model_validate({**data, **parts}, context={})


def watch(scenario: Scenario, intervals: int, seed: int = 1) -> list[Info]:
    """Return the infos of a run in which nothing is tuned."""
    env = DcqcnEnv(scenario, intervals=intervals)
    env.reset(seed=seed)
    infos = [env.step_setting(None)[4] for _ in range(intervals)]
    env.close()
    return infos  # type: ignore[return-value]


def fired(infos: list[Info]) -> list[int]:
    """Return the begin in ms of every interval in which the trigger fired."""
    return [info["start_ps"] // 10**9 for info in infos if info["fsd_triggered"]]


# -- the sketch is what tuners see -----------------------------------------------------------


@pytest.mark.parametrize("name", PAPER_SCALE)
def test_the_paper_scale_scenarios_use_the_sketch(name: str) -> None:
    assert load_scenario(name).monitor.kind == "elastic"


@pytest.mark.parametrize("warmup_us", [5000.0, 4500.0, 500.0])
def test_the_first_distribution_covers_one_interval(warmup_us: float) -> None:
    scenario = changed("mini-fb-hadoop", warmup_us=warmup_us)
    env = DcqcnEnv(scenario, intervals=2)
    _, info = env.reset(seed=1)
    before = info["report"]
    assert before.end_ps == round(warmup_us * 1e6)
    assert before.duration_ps == min(10**9, before.end_ps)
    report = env.step_setting(None)[4]["report"]
    assert report.start_ps == before.end_ps
    active = len(set(report.finished.src.tolist())) + report.active_flows
    flows = report.fsd.elephants + report.fsd.potential + report.fsd.mice
    assert 0 < flows <= len(report.finished.src) + report.active_flows
    assert active > 0


def test_info_shows_states_bins_and_cost() -> None:
    elastic = watch(changed("mini-fb-hadoop", monitor={"kind": "elastic"}), 4)[-1]
    counts = elastic["fsd_elephants"] + elastic["fsd_potential"] + elastic["fsd_mice"]
    assert counts == sum(elastic["fsd_bins"]) > 0
    assert len(elastic["fsd_bins"]) == 16
    assert elastic["fsd_known"]
    assert elastic["fsd_bytes"] == 2 * 96
    assert elastic["fsd_data_plane_bytes"] == 2 * (153_600 + 460_800)
    assert elastic["fsd_control_plane_bytes"] >= elastic["fsd_tracked_flows"] * 8 > 0
    assert elastic["fsd_untracked_flows"] == 0
    none = watch(changed("mini-fb-hadoop", monitor={"kind": "none"}), 4)[-1]
    assert not none["fsd_known"]
    assert none["mu"] == 0.5
    costs = ("fsd_bytes", "fsd_data_plane_bytes", "fsd_control_plane_bytes", "fsd_tracked_flows")
    assert [none[name] for name in costs] == [0, 0, 0, 0]  # type: ignore[literal-required]
    assert none["delivered_bytes"] == elastic["delivered_bytes"]  # nobody is in anybody's way


def test_a_history_that_is_full_says_so() -> None:
    monitor = {"kind": "elastic", "max_flows": 5}
    info = watch(changed("mini-fb-hadoop", monitor=monitor), 3)[-1]
    assert info["fsd_tracked_flows"] <= 2 * 5
    assert info["fsd_untracked_flows"] > 0


# -- bytes on the wire -----------------------------------------------------------------------


def test_the_records_have_the_sizes_of_table_iv_where_they_can() -> None:
    assert (RNIC_RECORD.size, NIC_DISPATCH.size) == (PUBLISHED.rnic, PUBLISHED.dispatch)
    assert PUBLISHED.switch == PUBLISHED.fsd + 64 * 8


def test_wire_cost_by_hand() -> None:
    """Two intervals of 4 hosts and one switch of 4 ports, the metrics needed in one."""
    reports = [blank_report(4), blank_report(4)]
    cost = wire_cost(reports, [True, False], dispatched=True)
    assert cost == WireCost(
        fsd_bytes=0,
        metrics_bytes=4 * 12 + SWITCH_HEADER.size + 4 * PORT_RECORD.size,
        dispatch_bytes=4 * 76 + ECN_DISPATCH.size,
        published_bytes=(4 * 12 + 520) + 8 + 5 * 76,
    )
    assert wire_cost([], [], dispatched=True) == WireCost()


def burst(start_us: float, stop_us: float, theta: float = 0.01) -> Scenario:
    """All-to-all rounds of 4 MB flows with about 10 ms between them, and FB_Hadoop in between.

    With so few flows every end of a round triggers; a larger theta leaves the burst alone.
    """
    poisson = load_scenario("mini-fb-hadoop").model_dump(mode="json")["workloads"][0]
    rounds = {"kind": "alltoall", "hosts": 8, "bytes": 4_000_000, "off_us": 10_000}
    return changed(
        "mini-fb-hadoop",
        trigger="kl",
        warmup_us=1000,
        monitor={"kind": "elastic", "theta": theta},
        workloads=[rounds, {**poisson, "start_us": start_us, "stop_us": stop_us}],
    )


def tuned(tmp_path: Path, scenario: Scenario, intervals: int) -> Run:
    """Return a run of a PARALEON that anneals for five intervals."""
    arguments = {"iterations": 1, "initial_temperature": 90.0, "cooling": 0.6}
    spec = RunSpec(scenario, "paraleon", 1, intervals, tuner_args=arguments)
    run(spec, tmp_path / "run.jsonl")
    return read_run(tmp_path / "run.jsonl")


def test_metrics_travel_only_while_tuning(tmp_path: Path) -> None:
    lines = tuned(tmp_path, burst(12_000, 16_000, theta=0.5), 16).intervals
    metrics = HOSTS * 12 + SWITCHES * SWITCH_HEADER.size + SWITCH_PORTS * PORT_RECORD.size
    dispatch = HOSTS * 76 + SWITCHES * ECN_DISPATCH.size
    before = None
    for line in lines:
        wire = line["wire"]
        assert wire["metrics_bytes"] in (0, metrics)
        assert wire["metrics_bytes"] or not line["fsd"]["triggered"]
        sent = before is not None and line["setting"] != before
        assert wire["dispatch_bytes"] == (dispatch if sent else 0)
        paper = HOSTS * 12 + SWITCHES * 520 if wire["metrics_bytes"] else SWITCHES * 8
        paper += (HOSTS + SWITCHES) * 76 if sent else 0
        assert wire["published_bytes"] == paper
        before = line["setting"]
    collected = [bool(line["wire"]["metrics_bytes"]) for line in lines]
    assert collected[0]  # the first interval with data triggers
    assert not all(collected)  # and the annealing ends
    quiet = collected.index(False)
    assert any(collected[quiet:])  # until the burst comes
    assert all(line["wire"]["fsd_bytes"] > 0 for line in lines)


def test_a_fixed_setting_needs_no_metrics(tmp_path: Path) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    run(RunSpec(scenario, "expert", 1, 3), tmp_path / "run.jsonl")
    lines = read_run(tmp_path / "run.jsonl").intervals
    assert [line["wire"]["metrics_bytes"] for line in lines] == [0, 0, 0]
    assert [line["wire"]["dispatch_bytes"] > 0 for line in lines] == [True, False, False]


# -- the KL trigger on real traffic ----------------------------------------------------------


def test_a_burst_restarts_the_annealing(tmp_path: Path) -> None:
    lines = tuned(tmp_path, burst(12_000, 20_000, theta=0.5), 20).intervals
    triggers = [line["start_ps"] // 10**9 for line in lines if line["fsd"]["triggered"]]
    assert any(12 <= ms <= 14 for ms in triggers)
    settings = {line["start_ps"] // 10**9: line["setting"] for line in lines}
    assert settings[11] == settings[10]  # tuned and left alone
    assert settings[14] != settings[13]  # tuned anew


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("start", "stop"), [(12, 22), (24, 34)])
def test_the_trigger_fires_at_both_ends_of_a_burst(start: int, stop: int, seed: int) -> None:
    """From 24 ms on the burst follows an idle phase; the round has ended before."""
    infos = watch(burst(start * 1000, stop * 1000), stop + 3, seed)
    triggers = fired(infos)
    assert any(start <= ms < start + 3 for ms in triggers)
    assert any(stop <= ms < stop + 3 for ms in triggers)
    if start == 24 and seed == 1:
        assert infos[start - 2]["idle"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "seed", "intervals"), [(10, 1, 100), (10, 2, 100), (10, 3, 100), (30, 1, 30)]
)
def test_steady_traffic_does_not_trigger(load: int, seed: int, intervals: int) -> None:
    """Not once in 330 intervals, most at the load whose few flows vary most."""
    infos = watch(with_load(load_scenario("fb-hadoop"), load), intervals, seed)
    assert fired(infos) == []
    assert max(info["fsd_kl"] for info in infos) > 0


@pytest.mark.slow
@pytest.mark.parametrize("load", [10, 30])
def test_influx_triggers_at_its_edges(load: int) -> None:
    """A burst of 30 ms; while it lasts nothing but the next all-to-all round (380 flows) fires."""
    infos = watch(with_load(load_scenario("influx"), load), 70)
    triggers = fired(infos)
    assert any(40 <= ms < 43 for ms in triggers)
    assert any(70 <= ms < 73 for ms in triggers)
    large = {i["start_ps"] // 10**9: i["fsd_elephants"] + i["fsd_potential"] for i in infos}
    between = [ms for ms in triggers if 43 <= ms < 70]
    assert all(large[ms] - large[ms - 1] > 200 for ms in between)
    assert len(between) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("load", [10, 30])
def test_influx_after_an_idle_phase(load: int) -> None:
    """One round of all-to-all, then nothing, then the burst."""
    rounds, poisson = with_load(load_scenario("influx"), load).model_dump(mode="json")["workloads"]
    poisson |= {"start_us": 60_000, "stop_us": 65_000}
    scenario = changed("influx", workloads=[{**rounds, "rounds": 1, "bytes": 6_000_000}, poisson])
    infos = watch(scenario, 64)
    assert infos[60 - 6]["idle"]
    triggers = fired(infos)
    assert any(60 <= ms < 63 for ms in triggers)
    assert any(65 <= ms < 68 for ms in triggers)


# -- the command -----------------------------------------------------------------------------


def test_monitors_can_be_compared_on_the_same_traffic(tmp_path: Path) -> None:
    """`tune --monitor` changes what the tuner sees and nothing else: same references, same FCTs."""
    quick = ["--intervals", "8", "--eval-seeds", "1", "--eval-intervals", "3", "--no-report"]
    runs: dict[str, Run] = {}
    for kind in ("elastic", "none"):
        out = tmp_path / kind
        words = ["tune", "--scenario", "mini-fb-hadoop", "--monitor", kind, "--out", str(out)]
        assert called(*words, *quick, "--quiet").returncode == 0
        runs[kind] = read_run(out)
        assert runs[kind].header["scenario"]["monitor"]["kind"] == kind
    for part in ("reference/default", "evaluation/expert-seed1001000"):
        flows = [
            [line["flows"] for line in read_run(tmp_path / kind / f"{part}.jsonl").intervals]
            for kind in runs
        ]
        assert flows[0] == flows[1]
    known = {kind: [line["fsd"]["known"] for line in r.intervals] for kind, r in runs.items()}
    assert all(known["elastic"])
    assert not any(known["none"])
    settings = {kind: [line["setting"] for line in r.intervals] for kind, r in runs.items()}
    assert settings["elastic"][0] == settings["none"][0]
    assert settings["elastic"] != settings["none"]  # the distribution guides the search
    best = {kind: json.loads((tmp_path / kind / "best.json").read_text()) for kind in runs}
    held_out = [best[kind]["utility_on_held_out_seeds"]["mean"]["default"] for kind in runs]
    assert held_out[0] == held_out[1]


@pytest.mark.parametrize(
    ("monitor", "says"),
    [
        ('kind = "elastic"\nheavy_bytes = 63', ["heavy_bytes", "63", "one bucket"]),
        ('kind = "elastic"\nlight_bytes = 3', ["light_bytes", "3", "one counter"]),
        ("tau_bytes = 0", ["monitor.tau_bytes", "0"]),
        ("sample_one_in = 10", ["sample_one_in = 10", "kind netflow, not of 'exact'"]),
        ("delta = 0", ["monitor.delta", "0"]),
        ('kind = "elastics"', ["monitor.kind", "'elastics'", "'elastic'"]),
        ('kind = "netflow"\nsample_one_in = 0', ["monitor.sample_one_in", "0"]),
    ],
)
@pytest.mark.parametrize("words", [("tune",), ("simulate",)])
def test_a_bad_monitor_is_one_sentence(
    words: tuple[str, ...], monitor: str, says: list[str], tmp_path: Path
) -> None:
    folder = Path(__file__).parents[2] / "configs" / "scenarios"
    text = (folder / "mini-fb-hadoop.toml").read_text(encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("[[workloads]]", f"[monitor]\n{monitor}\n\n[[workloads]]"))
    out = tmp_path / "out"
    done = called(*words, "--scenario", path, "--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in ("mine.toml", *says)), done.stderr
    assert not out.exists()
