"""``python tools/keeper/hardships.py TUNER``: a tuner where it was not made for, or is lied to.

Four kinds of traffic by hand on a star of 16 hosts, each with five troubles: none, pauses that read
zero, round trips that stand still, all sensors four times too high, facts of the fabric wrong by
four. S over the whole run of 60 intervals against the default, three seeds; the aim is -0.05 at
least, 5 %. About one CPU minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import Field

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.verdict import scores, summary
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import Outcome, Tuner, TunerContext, TunerSettings, make_tuner

INTERVALS, SEEDS = 60, (1, 2, 3)
HERE = Hosting(apart=False)
RPCS = {"kind": "poisson", "cdf": "SolarRPC_approx", "load": 0.08, "load_of": "host"}
MIX = {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.3, "load_of": "host"}


def _incast(dst: int, **when: int) -> dict[str, Any]:
    hosts = [host for host in range(16) if host != dst]
    return {"kind": "incast", "dst": dst, "hosts": hosts, "bytes": 200_000, "off_us": 500, **when}


def _ms(interval: int) -> int:
    return 3_000 + 1_000 * interval


TRAFFIC: dict[str, list[dict[str, Any]]] = {
    "an incast that wanders beside RPCs": [
        RPCS, *(_incast(4 * k, start_us=_ms(15 * k), stop_us=_ms(15 * k + 15)) for k in range(4))
    ],
    "an incast after a quiet look": [MIX | {"load": 0.1}, _incast(0, start_us=_ms(20))],
    "all-to-all beside RPCs": [
        RPCS, {"kind": "alltoall", "hosts": 8, "bytes": 400_000, "off_us": 1_000}
    ],
    "a mix": [MIX],
}  # fmt: skip


def _scenario(name: str) -> Scenario:
    table = {
        "name": name, "intervals": INTERVALS, "monitor_interval_us": 1_000, "warmup_us": 3_000,
        "weights": {"tp": 0.2, "rtt": 0.5, "pfc": 0.3}, "monitor": {"kind": "elastic"},
        "topology": {"kind": "single-switch", "hosts": 16, "gbps": 25, "delay_us": 5.0},
        "switch": {"buffer_bytes": 6 * 2**20}, "workloads": TRAFFIC[name],
    }  # fmt: skip
    return validate(table, Scenario, source=name)


def _unpaused(report: IntervalReport, before: list[IntervalReport]) -> IntervalReport:
    return replace(report, port_pause_ps=np.zeros_like(report.port_pause_ps))


def _still(report: IntervalReport, before: list[IntervalReport]) -> IntervalReport:
    first = before[0]
    names = [n for n in vars(report) if n.startswith("rtt_")]
    return replace(report, **{n: getattr(first, n) for n in names})


def _four_times(report: IntervalReport, before: list[IntervalReport]) -> IntervalReport:
    return replace(
        report, port_pause_ps=np.minimum(4 * report.port_pause_ps, report.duration_ps),
        rtt_sum_ps=4 * report.rtt_sum_ps, port_max_queue_bytes=4 * report.port_max_queue_bytes,
    )  # fmt: skip


Lie = Callable[[IntervalReport, list[IntervalReport]], IntervalReport]
LIES: dict[str, Lie | None] = {
    "nothing else": None, "pauses read 0": _unpaused, "round trips stand still": _still,
    "sensors x 4": _four_times, "facts wrong by 4": None,
}  # fmt: skip


class _Deceived(TunerSettings):
    inner: str = Field(default="keeper", description="the tuner that is lied to")
    trouble: str = Field(default="nothing else", description="one of LIES")


class Deceived(Tuner):
    """A tuner that is told another story."""

    name = "deceived"
    summary = "a tuner that is lied to"
    Settings: ClassVar[type[TunerSettings]] = _Deceived

    def start(self, context: TunerContext) -> None:
        """Begin with facts that may be wrong."""
        super().start(context)
        self._options = cast(_Deceived, self.settings)
        facts = context.fabric
        if facts is not None and self._options.trouble == "facts wrong by 4":
            facts = replace(
                facts, base_rtt_us=facts.base_rtt_us / 4, shared_bytes=4 * facts.shared_bytes,
                meeting_hosts=max(facts.meeting_hosts // 4, 1),
            )  # fmt: skip
        self._inner = make_tuner(self._options.inner)
        self._inner.start(replace(context, fabric=facts))
        self._before: list[IntervalReport] = []

    def ask(self) -> Any:
        """Ask the tuner."""
        return self._inner.ask()

    def tell(self, outcome: Outcome) -> None:
        """Tell it what the sensors say."""
        self._before.append(outcome.report)
        lie = LIES[self._options.trouble]
        report = lie(outcome.report, self._before) if lie else outcome.report
        self._inner.tell(replace(outcome, report=report))

    def recommend(self) -> Any:
        """Return what the tuner recommends."""
        return self._inner.recommend()


def main() -> None:
    """Print S of each case."""
    inner = sys.argv[1] if len(sys.argv) > 1 else "keeper"
    tuner = f"{Path(__file__).resolve()}:Deceived"
    for name in TRAFFIC:
        scenario = _scenario(name)
        default = [scenario.default_setting()]
        theirs = [summary(m) for m in evaluate(default, [scenario], SEEDS, None, 1)[0][0]]
        for trouble in LIES:
            words = {"inner": inner, "trouble": trouble}
            ours = []
            for seed in SEEDS:
                with TemporaryDirectory() as folder:
                    log = Path(folder) / "run.jsonl"
                    spec = RunSpec(scenario, tuner, seed, INTERVALS, "native", words, HERE)
                    run(spec, log)
                    ours.append(summary(measured(Series.of(read_run(log)))))
            print(f"| {name} | {trouble} | {scores(ours, theirs).mean:+.3f} |", flush=True)


if __name__ == "__main__":
    main()
