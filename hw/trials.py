"""What all trials over a fleet share: when one may begin, its writing, and the time it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError, StateError
from dcqcn_gym.hw.connections import Connections
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.maintenance_windows import frozen_by
from dcqcn_gym.hw.signals import signals_held

MARGIN_S = 1.0
"""A change is decided so long before its first timer ends; a fifth of a trial below 5 s."""

WRITE_SHARE = 1.2
"""How much longer than to stage it takes a fleet at least to write a change, read it back and keep
it in journals."""


class Trials:
    """Puts staged changes on trial."""

    def __init__(
        self,
        agents: Connections,
        fleet: Fleet,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        """``now`` tells the time of the day, for windows; ``clock`` seconds that never jump."""
        self._agents, self._fleet, self._now, self.clock = agents, fleet, now, clock

    def refuse_in_a_freeze(self) -> None:
        """Raise StateError where the fleet's file lets nothing change now."""
        window = frozen_by(self._fleet.freeze_utc, self._now())
        if window:
            raise StateError(
                f"the fleet is frozen ({window} UTC, freeze_utc of its file): nothing may change; "
                "what was changed before may still be taken back"
            )
        maintenance = self._fleet.change_utc
        if maintenance and not frozen_by(maintenance, self._now()):
            raise StateError(
                f"nothing may change outside of {', '.join(maintenance)} UTC (change_utc of the "
                "fleet's file); what was changed before may still be taken back"
            )

    def refuse_too_slow(self, staged_s: float, seconds: float, devices: int) -> None:
        """Refuse what cannot be written and decided in so many seconds, before it is written.

        To write takes longer than to stage, which took ``staged_s``.
        """
        needed = WRITE_SHARE * staged_s + min(MARGIN_S, seconds / 5.0)
        if needed > seconds:
            raise StateError(
                f"{devices} devices were staged in {staged_s:.3g} s, so they cannot be changed and "
                f"decided in a trial of {seconds:g} s; nothing was changed: give the fleet's file "
                f"trial_s = {math.ceil(2.0 * needed)} or more"
            )

    def apply(self, names: list[str], trial: Any) -> float:
        """Apply everywhere, in the order of the fleet's file.

        Return the time between the first answer and the last; raise if it is beyond the bound.
        """
        answered: list[float] = []
        failed: list[DcqcnGymError] = []
        with signals_held():
            for _, call in self._agents.calls("Apply", dict.fromkeys(names, trial)):
                try:
                    call.result()
                    answered.append(call.answered_s)
                except DcqcnGymError as error:
                    failed.append(error)
        if failed:
            raise failed[0]
        skew, most = (
            max(answered, default=0.0) - min(answered, default=0.0),
            self._fleet.most_skew_s,
        )
        if most is not None and skew > most:
            raise DeviceError(
                f"the devices followed over {skew:.3g} s, more than most_skew_s = {most:g} of the "
                "fleet's file; all were taken back"
            )
        return skew


def reason(error: BaseException) -> str:
    """Return why a change ended, for journals and the audit log."""
    return str(error) if isinstance(error, DcqcnGymError) else "the controller was interrupted"
