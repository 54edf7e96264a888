"""The engine benchmark measures the same work on every engine; nothing here asserts a speed."""

from __future__ import annotations

import json

import pytest
from compare import job_text
from engine_speed import (
    JOBS,
    Job,
    JobResult,
    engines,
    env_cost,
    monitor_costs,
    run_job,
    whole_iteration,
)
from measure import app
from scheme_speed import Speed, measure_schemes, table
from typer.testing import CliRunner

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.knobs import ECN_KNOBS, NIC_KNOBS, schemes


def test_every_job_is_finite_traffic_on_the_fabric_it_names() -> None:
    assert JOBS
    for job in JOBS.values():
        scenario = job.scenario()
        assert scenario.n_hosts == (1024 if job.name.endswith("1024") else 128)
        assert scenario.line_rate_bps == (400e9 if job.base.startswith("job-") else 100e9)
        job.setting(scenario).check(scenario.line_rate_bps)


def test_jobs_differ_from_their_base_as_they_say() -> None:
    assert {link.delay_ps for link in JOBS["short-links"].scenario().fabric.links} == {1_000_000}
    for kind in ("none", "exact", "elastic"):
        assert JOBS[f"monitor-{kind}"].scenario().monitor.kind == kind


@pytest.mark.parametrize(
    "job",
    # the second has thousands of pauses, at which an engine can go wrong
    ["light", pytest.param("pfc-storm", marks=pytest.mark.slow)],
)
def test_engines_do_the_same_work(job: str) -> None:
    results = [run_job(job, engine, repeats=1) for engine in engines()]
    assert results
    first = (results[0].hops, results[0].pauses, results[0].simulated_ms)
    assert {(r.hops, r.pauses, r.simulated_ms) for r in results} == {first}
    assert results[0].hops > 1_000_000
    assert len(results[0].cpu_s_all) == 1


def test_environment_costs_are_plausible() -> None:
    cost = env_cost(intervals=3, added=1, scenario="mini-fb-hadoop")
    assert 0 < cost.outside_share < 1
    assert cost.engine_s_per_interval > 0
    assert cost.as_dict()["outside_share"] == cost.outside_share


def test_monitors_are_compared_run_by_run() -> None:
    def result(job: str, engine: str, *spent: float) -> JobResult:
        return JobResult(job, engine, 1, 1, 0, 1.0, 50.0, cpu_s=spent[0], cpu_s_all=spent)

    results = [
        result("monitor-none", "window", 1.0, 2.0, 4.0),  # the machine became slower and slower
        result("monitor-none", "event", 9.0, 9.0, 9.0),
        result("monitor-exact", "window", 1.1, 2.1, 4.0),
        result("light", "window", 1.0, 1.0, 1.0),
    ]
    assert monitor_costs(results) == {"monitor-exact": pytest.approx(0.05)}
    assert monitor_costs(results[1:]) == {}


def test_unknown_job() -> None:
    with pytest.raises(UnknownNameError, match="pfc-storm"):
        run_job("pfc-strom")


def test_schemes_are_timed_on_the_same_job_against_dcqcn() -> None:
    speeds = measure_schemes(["light"], repeats=1)
    assert [s.scheme for s in speeds] == list(schemes())
    assert speeds[0].ratio == 1.0
    assert speeds[0].hops == run_job("light", repeats=1).hops
    assert len({s.hops for s in speeds}) > 1, "another scheme sends other ACKs and CNPs"
    shown = table([Speed("light", "timely", 2_000_000, 5e6, 0.5)]).markdown()
    assert "| light | timely | 2.0 | 5.0 | 0.50 |" in shown


def test_bench_as_json() -> None:
    words = ["engine", "--json", "--repeats", "1", "--job", "light", "--no-env"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (job, *_) = json.loads(done.stdout)["jobs"]
    assert job["job"] == "light"
    assert job["hops_per_s"] > job["packets_per_s"] > 0
    assert job["peak_mb"] > 20, "Python and numpy alone have more"
    assert job["whole_iteration"] is None


def test_a_whole_iteration_is_known_from_its_bytes_on_the_fabric() -> None:
    """Gradients grow with layers and scale, messages between stages with scale alone."""
    model = {"layers": 12, "hidden": 64, "ffn": 256, "heads": 4, "gated": False}
    plan = {"model": model, "tp": 2, "sequence": 100, "layers": 4, "scale": 0.25}
    sums = {}
    for pp, dp in ((1, 2), (2, 1), (2, 2)):
        table = {"plan": {**plan, "pp": pp, "dp": dp, "batch": 2}, "server": 2}
        job = Job("x", "", {"kind": "job", "graph": table}, base="job-dense-64")
        sums[pp, dp] = whole_iteration(job)
    assert sums[1, 2] == pytest.approx(12 / 4 / 0.25, rel=1e-3)
    assert sums[2, 1] == pytest.approx(1 / 0.25, rel=1e-3)
    # both: of a rank 2 messages of 100 x 64 / 2 elements; a ring of 2 sends all weights
    message, weights = 2 * 100 * 64 / 2 / 2, 12 * 64**2 / 2 / 2
    share = (12 * weights + message) / (4 * weights + message)
    assert sums[2, 2] == pytest.approx(share / 0.25, rel=1e-3)


def test_a_job_for_two_builds_is_its_scenario_and_setting() -> None:
    head, script = job_text(JOBS["permutation"]).split("\nend\n")
    assert head.startswith("dcqcn-gym-scenario 1")
    seed, nic, ecn, apply = script.splitlines()
    assert (seed, apply) == ("seed 1", "apply")
    assert len(nic.split()) - 2 == len(NIC_KNOBS)
    assert len(ecn.split()) - 2 == len(ECN_KNOBS)
