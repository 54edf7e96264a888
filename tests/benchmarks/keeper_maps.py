"""``python tests/benchmarks/keeper_maps.py``: the floor rate over fan-in and line rate.

An incast of every other host beside FB_Hadoop on one switch; the default with floors of several
shares of the line rate, shared by the senders. Each cell is S, and the points of pause it adds.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.verdict import changes, scores
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.evaluated import evaluate

__all__ = ["main"]

SHARES = (0.02, 0.1, 0.4, 0.77, 1.5, 3.0)
"""Of the line rate that all senders together have at the floor."""

FAN_IN = ((7, 25), (15, 25), (31, 25), (63, 25))
RATES = ((31, 10), (31, 100), (31, 400))
SEEDS = (1, 2, 3)


def _scenario(senders: int, gbps: int) -> Scenario:
    name = f"{senders}:1 at {gbps} Gb/s"
    table = {
        "intervals": 20,
        "warmup_us": 2_000,
        "topology": {"kind": "single-switch", "hosts": senders + 1, "gbps": gbps, "delay_us": 4.0},
        "monitor": {"kind": "none"},
        "workloads": [
            {"kind": "incast", "bytes": gbps * 125_000 // senders, "off_us": 1_000},
            {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.1 if gbps < 100 else 0.03},
        ],
    }
    return validate(table, Scenario, source=name)


def _row(senders: int, gbps: int) -> str:
    scenario = _scenario(senders, gbps)
    default = scenario.default_setting()
    floors = [max(1, round(share * gbps * 1000 / senders)) for share in SHARES]
    settings = [default, *(default.replace(rp_min_rate=floor) for floor in floors)]
    theirs, *found = [runs[0] for runs in evaluate(settings, [scenario], SEEDS)]
    cells = [f"{senders}:1 at {gbps} Gb/s"]
    for ours in found:
        pause = next(c for c in changes(ours, theirs) if c.key == "pause")
        cells.append(f"{scores(ours, theirs).mean:+.2f} ({100 * pause.change.mean:+.1f})")
    return _line(cells)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print both maps as one table."""
    print(_line(["senders x floor over the line rate", *(f"{share:g}" for share in SHARES)]))
    print(_line(["---"] * (1 + len(SHARES))))
    for senders, gbps in (*FAN_IN, *RATES):
        print(_row(senders, gbps), flush=True)


if __name__ == "__main__":
    main()
