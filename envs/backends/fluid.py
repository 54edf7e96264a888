"""The fluid backend: flows as rates, in this process (``dcqcn_gym._core``); fast and not exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dcqcn_gym.envs.backends.native import NativeBackend

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

MICE_BYTES = 100_000
"""An incast of smaller transfers than this is one of mice."""


@dataclass(frozen=True)
class ExpectedError:
    """How wrong it was on the scenarios of a kind of traffic, as measured."""

    lowest: float
    """Spearman's rank correlation of the scores S of settings with those on packets, -1..1."""
    highest: float
    apart: float
    """The share by which completion times lay apart in the median, of the worst scenario."""

    @property
    def usable(self) -> bool:
        """Whether settings may be chosen by it, to be settled on packets."""
        return self.lowest >= LEAST_RANK


LEAST_RANK = 0.5
ERRORS = {
    "open traffic": ExpectedError(0.68, 0.91, 0.05),
    "incast": ExpectedError(0.30, 0.30, 0.74),
    "incast of mice": ExpectedError(0.24, 0.58, 0.04),
    "pause storm": ExpectedError(-0.05, -0.05, 0.17),
    "all-to-all": ExpectedError(0.78, 0.78, 0.02),
    "ring, permutation": ExpectedError(0.47, 0.87, 0.10),
    "job": ExpectedError(0.08, 0.94, 0.10),
    "storage": ExpectedError(0.38, 0.38, 0.02),
}
"""By kind of traffic, from ``tools/fluid_error.py``; ``docs/measured/fluid.md`` has the table."""


class FluidBackend(NativeBackend):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` in which no packet moves.

    Traffic, jobs, reaction and notification points are those of the packet engine; queues, marks
    and pauses are integrals over steps of some microseconds. How wrong that is, by kind of
    traffic, is measured: ``docs/measured/fluid.md``. Only DCQCN on one lossless priority; what else
    a scenario asks for is refused by name. PFC frames are not counted, only the time they cost.
    """

    unknown = frozenset({"pauses", "resumes", "port_pfc_sent", "port_pfc_received"})
    engine = "fluid"

    @staticmethod
    def cautions(scenario: Scenario) -> Sequence[str]:
        """Return a line for every kind of traffic of the scenario: the error to expect."""
        kinds = sorted({_kind_of(workload) for workload in scenario.workloads})
        return [f"fluid is not exact; on {kind} {_error_of(ERRORS[kind])}" for kind in kinds]


def _error_of(found: ExpectedError) -> str:
    low, high = f"{found.lowest:.2f}", f"{found.highest:.2f}"
    ranks = low if low == high else f"{low} to {high}"
    advice = "settle on packets" if found.usable else "do not choose settings by it"
    return (
        f"S of settings ranked as on packets with a correlation of {ranks}, and completion times "
        f"lay up to {found.apart:.0%} apart: {advice}"
    )


def _kind_of(workload: object) -> str:
    kind = str(getattr(workload, "kind", ""))
    if kind == "incast":
        size = getattr(workload, "bytes", MICE_BYTES)
        return "incast of mice" if size < MICE_BYTES else "incast"
    return {
        "alltoall": "all-to-all",
        "ring": "ring, permutation",
        "permutation": "ring, permutation",
        "pairs": "ring, permutation",
        "job": "job",
        "storage": "storage",
        "parameter-server": "storage",
    }.get(kind, "open traffic")
