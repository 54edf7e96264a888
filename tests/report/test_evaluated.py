"""`evaluate` gives what the logs of the same runs give, to the bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.core.verdict import flags, scores, summary
from dcqcn_gym.envs.scenario.job_graph import JobGraphBuilder
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

SEEDS = (3, 4)


def scenario_of(name: str) -> Scenario:
    """Return a registered scenario, or a job: two transfers into one host, then one back."""
    if name != "job":
        return load_scenario(name)
    b = JobGraphBuilder(3)
    there = [b.transfer(src, 2, 3_000_000) for src in (0, 1)]
    b.transfer(2, 0, 500_000, [b.delay(2, 20_000_000, there)])
    values = {
        "topology": {"kind": "single-switch", "hosts": 3, "gbps": 100},
        "workloads": [{"kind": "job", "graph": b.build(), "rounds": 0}],
    }
    return validate(values, Scenario, source="job")


@pytest.mark.parametrize("name", ["mini-fb-hadoop", "mini-llm-alltoall", "mini-storm", "job"])
def test_figures_score_and_harms_are_those_of_the_logs(tmp_path: Path, name: str) -> None:
    scenario = scenario_of(name)
    settings = [make(scenario.line_rate_bps) for make in (default_setting, expert_setting)]
    found = evaluate(settings, [scenario], SEEDS, intervals=8)
    logged = []
    for i, setting in enumerate(settings):
        runs = []
        for seed in SEEDS:
            path = tmp_path / f"{i}-{seed}.jsonl"
            run(RunSpec(scenario, "do-nothing", 0, 8).with_setting(setting, seed, 8), path)
            runs.append(measured(Series.of(read_run(path))))
        logged.append(runs)
    ours, theirs = [one[0] for one in found], logged
    assert name != "job" or all(3 < len(m.rounds_ps) < 20 for runs in ours for m in runs)
    assert repr([list(map(summary, runs)) for runs in ours]) == repr(
        [list(map(summary, runs)) for runs in theirs]
    )
    assert [m.drawn for m in ours[1]] == [m.drawn for m in theirs[1]]
    assert repr(scores(ours[1], ours[0])) == repr(scores(theirs[1], theirs[0]))
    assert repr(flags(ours[1], ours[0])) == repr(flags(theirs[1], theirs[0]))


def test_threads_change_no_byte() -> None:
    scenario = load_scenario("mini-llm-alltoall")
    setting = default_setting(scenario.line_rate_bps)
    one, *more = (
        repr(list(map(summary, evaluate([setting], [scenario], (1, 2, 3), 4, threads)[0][0])))
        for threads in (1, 2, 3, 8)
    )
    assert more == [one] * 3


def test_a_bad_setting_and_a_bad_seed_are_said_in_one_sentence() -> None:
    scenario = load_scenario("mini-storm")
    setting = default_setting(scenario.line_rate_bps)
    with pytest.raises(ConfigError, match="seed -1 is out of range; expected 0 to"):
        evaluate([setting], [scenario], [-1])
    with pytest.raises(ConfigError, match="names no device of this network"):
        evaluate([{"cluster": setting, "nic:99": setting}], [scenario], [1])


def test_ctrl_c_ends_it_between_two_intervals() -> None:
    program = """
import signal, threading, time
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate
scenario = load_scenario("mini-fb-hadoop")
setting = default_setting(scenario.line_rate_bps)
timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
timer.start()
try:
    evaluate([setting], [scenario], range(4), 100_000)
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("stopped\n", "")


def test_memory_does_not_grow() -> None:
    scenario = load_scenario("mini-storm")
    setting = default_setting(scenario.line_rate_bps)
    evaluate([setting], [scenario], range(8), 4)
    before = _resident_kb()
    for _ in range(8):
        evaluate([setting], [scenario], range(8), 4)
    assert _resident_kb() - before < 20_000


def _resident_kb() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])
