"""``python tools/keeper/site_mode.py``: the keeper in site mode with telemetry of 1, 10 and 60 s.

Four hosts at 1 Gb/s under two leaves and a spine, FB_Hadoop at 60 %: slow, so that an hour of the
network fits a quarter of one here. Each pace has as many intervals of the same traffic, for the
default and for the keeper behind ``--safe site``. S and limits are those of the verdict. Prints a
table: how long the run takes on a fleet, from which interval on the keeper's setting is held to the
end, and what it gives. About twenty CPU minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from dcqcn_gym.commands.tune import safely
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import Run, read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

PACES_S = (1.0, 10.0, 60.0)
NETWORK = {
    "description": "4 hosts and 3 switches at 1 Gb/s",
    "weights": {"tp": 0.2, "rtt": 0.5, "pfc": 0.3},
    "topology": {"kind": "leaf-spine", "tors": 2, "hosts_per_tor": 2, "spines": 1,
                 "host_gbps": 1, "uplink_gbps": 1},
    "workloads": [{"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.6, "load_of": "host"}],
}  # fmt: skip


def _run(scenario: Scenario, tuner: str, safe: Path | None, seed: int) -> tuple[Run, Measured]:
    name, arguments = safely(tuner, {}, safe)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, name, seed, scenario.intervals, "native", arguments), log)
        found = read_run(log)
    return found, measured(Series.of(found))


def _held_from(found: Run) -> int:
    """Return the interval, from 1, since which one setting is in force to the end."""
    settings = [line["setting"] for line in found.intervals]
    return len(settings) - next(
        (i for i, one in enumerate(reversed(settings)) if one != settings[-1]), len(settings)
    ) + 1  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--intervals", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| telemetry | the run | held from interval | setting | S | limits crossed |")
    print("|---|---|---|---|---|---|")
    for pace_s in PACES_S:
        model = {**NETWORK, "intervals": given.intervals, "monitor_interval_us": pace_s * 1e6}
        scenario = validate(model, Scenario, source="site mode")
        _, default = _run(scenario, "default", None, given.seed)
        found, kept = _run(scenario, "keeper", Path("site"), given.seed)
        crossed = count(f.state != "few" and f.cost.harm.mean > f.limit
                        for f in flags([kept], [default]))  # fmt: skip
        last = found.intervals[-1]["setting"]
        turned = ", ".join(f"{n} {last[n]:g}" for n in ("kmin", "kmax", "pmax", "rp_min_rate"))
        minutes = given.intervals * pace_s / 60.0
        s = scores([kept], [default]).mean
        print(f"| {pace_s:g} s | {minutes:.3g} min | {_held_from(found)} | {turned} | {s:+.3f} | "
              f"{crossed} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
