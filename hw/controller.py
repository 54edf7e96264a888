"""The controller: one transaction over all devices of a fleet, and every way back.

Stage everywhere, apply everywhere on trial, confirm everywhere. If anything fails before the first
confirmation, or Ctrl-C comes, everything is rolled back; after it, those that confirmed go back
to the setting before. An agent that cannot be reached for that goes back by itself when its trial
ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError, StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.client import AgentClient, UnreachableError
from dcqcn_gym.hw.connections import all_of
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.freeze import frozen_by
from dcqcn_gym.hw.sides import Sides
from dcqcn_gym.hw.standing import new_name
from dcqcn_gym.hw.transaction import MOST_TRIAL_S
from dcqcn_gym.hw.unbroken import unbroken
from dcqcn_gym.hw.waves import Completion, Watch, waves_of
from dcqcn_gym.hw.ways_back import Left

MARGIN_S = 1.0
"""A change is decided so long before its first timer ends; a fifth of a trial below 5 s."""

WRITE_SHARE = 1.2
"""How much longer than to stage it takes a fleet at least to write a change, read it back and keep
it in journals."""


@dataclass(frozen=True)
class Dispatch:
    """What became of a change."""

    transaction: str
    changed: tuple[str, ...]
    """Devices that hold another setting now."""
    skew_s: float
    """Time between the first and the last device that had applied it, as the controller saw it."""
    needs_reset: tuple[str, ...]
    """Those of them that take it only at their next reset."""
    ends_s: float
    """When the first timer may end, by the controller's clock."""


class Controller(Sides):
    """Changes every device of a fleet at once: created -> open -> closed."""

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        connect: Callable[..., AgentClient] = AgentClient,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``now`` tells the time of the day, for freeze windows; ``clock`` seconds, for the rest.

        ``connect`` makes the connection to an agent; ``sleep`` lets time pass between waves.
        """
        super().__init__(fleet, folder, connect, clock)
        self._now, self._sleep = now, sleep

    def plan(self, targets: Mapping[str, Targets]) -> dict[str, Any]:
        """Return device -> what would change; nothing changes."""
        return all_of(self._begin("Plan", self._wanted("plan", targets, "")))

    def carry_out(self, targets: Mapping[str, Targets], why: str, waves: int = 1) -> Dispatch:
        """Change devices, all or none; raise the first error after everything was taken back.

        In a freeze window StateError, before anything is staged.
        """
        done = self.try_out(targets, why, waves=waves)
        self._keep(done.transaction, done.changed, why, done.ends_s)
        return done

    def try_out(
        self,
        targets: Mapping[str, Targets],
        why: str,
        trial_s: float | None = None,
        waves: int = 1,
    ) -> Dispatch:
        """Put a change on trial everywhere; it ends by itself unless :meth:`confirm` follows.

        In several ``waves`` each is watched by the gate of the fleet's file before the next.
        """
        self._refuse_in_a_freeze()
        seconds = self._fleet.trial_s if trial_s is None else trial_s
        seconds += self._watched_s(waves)
        name = new_name()
        self._audit.write(
            {"event": "begin", "transaction": name, "why": why, "devices": len(targets)}
        )
        changing: list[str] = []
        try:
            begun_s = self._clock()
            staged = all_of(self._begin("Stage", self._wanted(name, targets, why)))
            self._refuse_too_slow(self._clock() - begun_s, seconds, len(staged))
            changing = [device for device, plan in staged.items() if plan.lines]
            changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
            self._audit.write({"event": "apply", "transaction": name, "changes": changes,
                               "trial_s": seconds})  # fmt: skip
            ends_s = self._clock() + seconds  # timers begin later
            trial = pb.Trial(transaction=name, revert_after_s=seconds)
            skew = (self._apply if waves == 1 else self._roll(waves))(changing, trial)
        except BaseException as error:  # Ctrl-C, too: what has been applied must not stay
            self.take_back(name, changing, _reason(error), confirmed=[])
            raise
        later = tuple(d for d in changing if any(x.needs_reset for x in staged[d].lines))
        return Dispatch(name, tuple(changing), skew, later, ends_s)

    def _watched_s(self, waves: int) -> float:
        """Return how long all gates take at most; raise if no trial lasts so long."""
        if waves == 1:
            return 0.0
        watched = self._fleet.gate.seconds * (1 if self._fleet.gate.probe is None else 2)
        found = (waves + 1) * (watched + self._fleet.timeout_s)
        if found > MOST_TRIAL_S / 2:
            raise ConfigError(
                f"{waves} waves are watched for {found:g} s in all; expected at most "
                f"{MOST_TRIAL_S / 2:g} s: fewer waves, or a shorter gate in the fleet's file"
            )
        return found

    def _roll(self, waves: int) -> Callable[[list[str], Any], float]:
        """Return what applies a change wave by wave, and the most time within one."""

        def apply(names: list[str], trial: Any) -> float:
            parts = waves_of(names, self.nics, waves)
            watch = Watch(self._fleet.gate, self.gather, self._sleep, self._completion())
            skews = []
            for i, wave in enumerate(parts, 1):
                skews.append(self._apply(wave, trial))
                watch.judge(f"{i} of {len(parts)}")
            return max(skews, default=0.0)

        return apply

    def _completion(self) -> Completion | None:
        """Return the probe of the gate; None if the fleet's file has none."""
        gate = self._fleet.gate
        if gate.probe is None:
            return None
        peer = gate.probe.address or self.addresses[gate.probe.server].rpartition(":")[0]
        ask = lambda name, method, request: self._clients[name].ask(method, request)  # noqa: E731
        return Completion(gate.probe, peer.strip("[]"), gate.seconds, ask, self._sleep)

    def step(self, run: str, number: int, targets: Mapping[str, Targets], lease_s: float) -> str:
        """Put the next setting of a run in force on all devices; return the step's name.

        All of a run is one trial: nothing is ever confirmed, and an agent that hears nothing of
        the run for ``lease_s`` goes back to before it. A failure ends the run everywhere, and is
        raised.
        """
        name = f"{run}:{number}"
        try:
            self._refuse_in_a_freeze()
            why, begun_s = f"step {number} of run {run}", self._clock()
            staged = all_of(self._begin("Stage", self._wanted(name, targets, why)))
            if number == 1:
                self._refuse_too_slow(self._clock() - begun_s, lease_s / 2.0, len(staged))
            changes = {d: {x.place: x.after for x in plan.lines} for d, plan in staged.items()}
            self._audit.write({"event": "step", "transaction": name, "changes": changes})
            self._apply(list(targets), pb.Trial(transaction=name, revert_after_s=lease_s))
        except BaseException as error:
            self.end_run(run, _reason(error))
            raise
        return name

    def keep_run(self, step: str, lease_s: float) -> None:
        """Tell all agents that the run is still there; raise if one has left it.

        One that does not answer may still be in it, until its lease ends.
        """
        trial = pb.Trial(transaction=step, revert_after_s=lease_s)
        _, failed = self.ask_each("Apply", dict.fromkeys(self._clients, trial))
        for error in failed.values():
            if not isinstance(error, UnreachableError):
                raise error

    def _refuse_in_a_freeze(self) -> None:
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

    def _bring(self, name: str, why: str) -> tuple[list[str], Left]:
        self._refuse_in_a_freeze()  # forward is a change, back is not
        return super()._bring(name, why)

    def confirm(
        self, name: str, devices: Iterable[str], why: str, left_s: float = math.inf
    ) -> None:
        """Keep what is on trial on all these devices, or take it back everywhere and raise.

        ``left_s`` is what the shortest timer still has. In a freeze window StateError, and the
        trial is left to its end.
        """
        self._refuse_in_a_freeze()
        self._keep(name, devices, why, self._clock() + left_s)

    def _keep(self, name: str, devices: Iterable[str], why: str, ends_s: float) -> None:
        """Decide, which is to write it down for good, then confirm; a failure decides anew."""
        chosen, refused = list(devices), set[str]()
        decided = {"transaction": name, "why": why, "devices": chosen}
        try:
            if chosen:
                self._refuse_too_late(name, ends_s - self._clock())
                self._audit.write({"event": "confirming", **decided})  # from here on it counts
            self._confirm(chosen, self._named(name, why), refused)
        except BaseException as error:
            perhaps = [device for device in chosen if device not in refused]
            self.take_back(name, chosen, _reason(error), confirmed=perhaps)
            raise
        self._note({"event": "confirmed", **decided})

    def _refuse_too_slow(self, staged_s: float, seconds: float, devices: int) -> None:
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

    def _refuse_too_late(self, name: str, left_s: float) -> None:
        if left_s >= MARGIN_S:
            return
        margin = min(MARGIN_S, self._audit.trial_of(name) / 5.0)
        if left_s < margin:
            raise StateError(
                f"{max(left_s, 0.0):.2g} s of the trial of {name} are left, and a change is "
                f"decided at least {margin:.2g} s before its first timer ends; all were taken "
                "back: raise trial_s of the fleet's file, or --hold"
            )

    def _apply(self, names: list[str], trial: Any) -> float:
        """Apply everywhere, in the order of the fleet's file.

        Return the time between the first answer and the last; raise if it is beyond the bound.
        """
        answered: list[float] = []
        failed: list[DcqcnGymError] = []
        with unbroken():
            for _, call in self._begin("Apply", dict.fromkeys(names, trial)):
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

    def _confirm(self, names: list[str], named: Any, refused: set[str]) -> None:
        """Confirm everywhere; ``refused`` gets those that surely did not, whatever ends this."""
        failed: list[DcqcnGymError] = []
        with unbroken():
            for name, call in self._begin("Confirm", dict.fromkeys(names, named)):
                try:
                    call.result()
                except DcqcnGymError as error:
                    if not isinstance(error, UnreachableError):
                        refused.add(name)  # no answer may mean that it confirmed: undone anyway
                    failed.append(error)
        if failed:
            raise failed[0]


def _reason(error: BaseException) -> str:
    """Return why a change ended, for journals and the audit log."""
    return str(error) if isinstance(error, DcqcnGymError) else "the controller was interrupted"
