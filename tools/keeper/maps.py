"""``python tools/keeper/maps.py``: what the floor rate and its neighbours do, where.

An incast of every other host beside FB_Hadoop on one switch. The first map has the default with
floors of several shares of the line rate, shared by the senders: over fan-in, line rate, buffer,
round trip, and beside other marking. The second has the period and the step of the rate's increase
under the default's floor and under a third of the line rate. Each cell is S, and the points of
pause it adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.verdict import changes, scores
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate

__all__ = ["main"]

SHARES = (0.02, 0.1, 0.4, 0.77, 1.5, 3.0)
"""Of the line rate that all senders together have at the floor."""

SEEDS = (1, 2, 3)
FLOOR = 0.3
"""Share of the line rate under which the second map is drawn again."""
PERIODS_US, STEPS_MBPS = (30, 100, 300, 1000), (5, 40, 140, 500)


@dataclass(frozen=True)
class Case:
    """A row: the fabric, its buffer over the usual one, and ``kmin`` and ``kmax`` over theirs."""

    senders: int = 15
    gbps: int = 25
    buffer: float = 1.0
    delay_us: float = 4.0
    marking: float = 1.0

    @property
    def name(self) -> str:
        """What it is, in words."""
        found = f"{self.senders}:1 at {self.gbps} Gb/s"
        if self.buffer != 1:
            found += f", {self.buffer:g} of the buffer"
        if self.delay_us != Case.delay_us:
            found += f", links of {self.delay_us:g} us"
        if self.marking != 1:
            found += f", marking from {self.marking:g} of the queue"
        return found

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        poisson = {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.1 if self.gbps < 100 else 0.03}
        size = self.gbps * 125_000 // self.senders
        table = {
            "intervals": 20,
            "warmup_us": 2_000,
            "topology": {"kind": "single-switch", "hosts": self.senders + 1, "gbps": self.gbps,
                         "delay_us": self.delay_us},
            "monitor": {"kind": "none"},
            "workloads": [{"kind": "incast", "bytes": size, "off_us": 1_000}, poisson],
        }  # fmt: skip
        usual = validate(table, Scenario, source=self.name)
        if self.buffer == 1:
            return usual
        least = round(1.25 * usual.set_aside_bytes)  # a fifth of it is shared at least
        switch = {"buffer_bytes": max(least, round(usual.buffer_bytes * self.buffer))}
        return validate({**table, "switch": switch}, Scenario, source=self.name)

    def base(self) -> Setting:
        """Return the default with this marking."""
        found = self.scenario().default_setting()
        return found.replace({k: self.marking * found[k] for k in ("kmin", "kmax")})

    def floor(self, share: float) -> int:
        """Return the floor at which all senders have this share of the line rate, in Mb/s."""
        return max(1, round(share * self.gbps * 1000 / self.senders))


CASES = (
    *(Case(n) for n in (7, 15, 31, 63)),
    *(Case(31, gbps) for gbps in (10, 100, 400)),
    *(Case(buffer=share) for share in (0.25, 0.5, 4)),
    *(Case(delay_us=delay) for delay in (1, 12, 25)),
    *(Case(marking=share) for share in (0.1, 0.3, 2)),
)


def _cells(case: Case, settings: Sequence[Setting]) -> list[str]:
    """Return the cells of settings, against the default."""
    scenario = case.scenario()
    tried = [scenario.default_setting(), *settings]
    theirs, *found = [runs[0] for runs in evaluate(tried, [scenario], SEEDS)]
    cells = []
    for ours in found:
        pause = next(c for c in changes(ours, theirs) if c.key == "pause")
        cells.append(f"{scores(ours, theirs).mean:+.2f} ({100 * pause.change.mean:+.1f})")
    return cells


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print both maps."""
    print(_line(["senders x floor over the line rate", *(f"{share:g}" for share in SHARES)]))
    print(_line(["---"] * (1 + len(SHARES))))
    for case in CASES:
        floors = [case.base().replace(rp_min_rate=case.floor(share)) for share in SHARES]
        print(_line([case.name, *_cells(case, floors)]), flush=True)
    print(_line(["period x step in Mb/s", *(f"{step}" for step in STEPS_MBPS)]))
    print(_line(["---"] * (1 + len(STEPS_MBPS))))
    case = Case()
    for floor in (1, case.floor(FLOOR)):
        base = case.base().replace(rp_min_rate=floor)
        for period in PERIODS_US:
            steps = [base.replace(rp_time_reset=period, rp_ai_rate=step) for step in STEPS_MBPS]
            print(_line([f"{period} us, floor {floor} Mb/s", *_cells(case, steps)]), flush=True)


if __name__ == "__main__":
    main()
