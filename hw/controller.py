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

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.client import AgentClient, UnreachableError
from dcqcn_gym.hw.connections import Connections, all_of
from dcqcn_gym.hw.device_state import new_name
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.fleet_state import FleetState, ask_change, read_fleet_state
from dcqcn_gym.hw.members import packed
from dcqcn_gym.hw.reconciler import Reconciler
from dcqcn_gym.hw.requests import Requests
from dcqcn_gym.hw.rollback import Rollback
from dcqcn_gym.hw.signals import signals_held
from dcqcn_gym.hw.transaction import MOST_TRIAL_S
from dcqcn_gym.hw.trials import MARGIN_S, Trials, reason
from dcqcn_gym.hw.tuning_runs import TuningRuns
from dcqcn_gym.hw.waves import Completion, WaveWatch, waves_of


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


class Controller:
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
        self._fleet, self._clock, self._sleep = fleet, clock, sleep
        requests = Requests(fleet.operator)
        self.agents = Connections(fleet, folder, connect, clock)
        self.log = AuditLog(folder / fleet.audit, fleet.operator, fleet.syslog)
        self.rollback = Rollback(self.agents, self.log, requests)
        self._requests, self._trials = requests, Trials(self.agents, fleet, now, clock)
        self.reconciler = Reconciler(
            self.agents, self.log, self.rollback, self._trials, fleet.trial_s
        )
        self.runs = TuningRuns(self.agents, self.log, requests, self.rollback, self._trials)
        self.moved: dict[str, list[str]] = {}
        """Change -> devices that had missed it and got it before this controller's last one."""

    def state(self) -> FleetState:
        """Ask how the fleet stands."""
        return read_fleet_state(self.agents, self.log)

    def close(self) -> None:
        """Close every connection; allowed in every state."""
        self.agents.close()

    def plan(self, targets: Mapping[str, Targets]) -> dict[str, Any]:
        """Return device -> what would change; nothing changes."""
        return all_of(self.agents.calls("Plan", self._requests.wanted("plan", targets, "")))

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

        A split fleet first goes to what was decided (:attr:`moved`): a change upon it would hide
        the split, and an undo of that would bring it back.

        In several ``waves`` each is watched by the gate of the fleet's file before the next.
        """
        self._trials.refuse_in_a_freeze()
        self.moved = self.reconciler.catch_up()
        seconds = self._fleet.trial_s if trial_s is None else trial_s
        seconds += self._watched_s(waves)
        name = new_name()
        self.log.write({"event": "begin", "transaction": name, "why": why, "devices": len(targets)})
        changing: list[str] = []
        try:
            begun_s = self._clock()
            staged = all_of(self.agents.calls("Stage", self._requests.wanted(name, targets, why)))
            self._trials.refuse_too_slow(self._clock() - begun_s, seconds, len(staged))
            changing = [device for device, plan in staged.items() if plan.lines]
            changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
            self.log.write({"event": "apply", "transaction": name, "changes": changes,
                               "trial_s": seconds})  # fmt: skip
            ends_s = self._clock() + seconds  # timers begin later
            trial = pb.Trial(transaction=name, revert_after_s=seconds, members=packed(changing))
            skew = (self._trials.apply if waves == 1 else self._roll(waves))(changing, trial)
        except BaseException as error:  # Ctrl-C, too: what has been applied must not stay
            self.rollback.take_back(name, changing, reason(error), confirmed=[])
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
            parts = waves_of(names, self.agents.nics, waves)
            watch = WaveWatch(self._fleet.gate, self.agents.gather, self._sleep, self._completion())
            skews = []
            for i, wave in enumerate(parts, 1):
                skews.append(self._trials.apply(wave, trial))
                watch.judge(f"{i} of {len(parts)}")
            return max(skews, default=0.0)

        return apply

    def _completion(self) -> Completion | None:
        """Return the probe of the gate; None if the fleet's file has none."""
        gate = self._fleet.gate
        if gate.probe is None:
            return None
        peer = gate.probe.address or self.agents.addresses[gate.probe.server].rpartition(":")[0]
        ask = lambda name, method, request: self.agents.clients[name].ask(method, request)  # noqa: E731
        return Completion(gate.probe, peer.strip("[]"), gate.seconds, ask, self._sleep)

    def confirm(
        self, name: str, devices: Iterable[str], why: str, left_s: float = math.inf
    ) -> None:
        """Keep what is on trial on all these devices, or take it back everywhere and raise.

        ``left_s`` is what the shortest timer still has. In a freeze window StateError, and the
        trial is left to its end.
        """
        self._trials.refuse_in_a_freeze()
        self._keep(name, devices, why, self._clock() + left_s)

    def _keep(self, name: str, devices: Iterable[str], why: str, ends_s: float) -> None:
        """Decide, which is to write it down for good, then confirm; a failure decides anew."""
        chosen, refused = list(devices), set[str]()
        decided = {"transaction": name, "why": why, "devices": chosen}
        try:
            if chosen:
                self._refuse_too_late(name, ends_s - self._clock())
                self.log.write({"event": "confirming", **decided})  # from here on it counts
            self._confirm(chosen, self._requests.named(name, why), refused)
        except BaseException as error:
            perhaps = [device for device in chosen if device not in refused]
            self.rollback.take_back(name, chosen, reason(error), confirmed=perhaps)
            raise
        self.log.note({"event": "confirmed", **decided})

    def whole_trial(self, states: Mapping[str, Any], dry_run: bool) -> tuple[str, list[str]]:
        """Return the one transaction that is on trial, and every device that it changed.

        Raises StateError if there is another number of them, or if a device no longer holds it:
        then all are taken back, but for a ``dry_run``.
        """
        name = _one_trial(states)
        devices = sorted(ask_change(self.agents, states, name).members)
        devices = devices or self.log.devices_of(name)
        if not devices:
            raise StateError(
                f"neither agents nor the audit log know which devices transaction {name} changed; "
                "take it back with `dcqcn-gym hw rollback --trial-only`"
            )
        lost = [device for device in devices if not _holds(states[device], name)]
        if not lost:
            return name, devices
        why = f"no longer on trial: {', '.join(lost)}"
        if not dry_run:
            self.rollback.take_back(name, devices, why, confirmed=devices)
        end = "to confirm would take all back" if dry_run else "all were taken back"
        raise StateError(
            f"{len(lost)} of {len(devices)} devices of transaction {name} are {why} (an agent that "
            f"starts again goes back by itself); {end}"
        )

    def _refuse_too_late(self, name: str, left_s: float) -> None:
        if left_s >= MARGIN_S:
            return
        margin = min(MARGIN_S, self.log.trial_of(name) / 5.0)
        if left_s < margin:
            raise StateError(
                f"{max(left_s, 0.0):.2g} s of the trial of {name} are left, and a change is "
                f"decided at least {margin:.2g} s before its first timer ends; all were taken "
                "back: raise trial_s of the fleet's file, or --hold"
            )

    def _confirm(self, names: list[str], named: Any, refused: set[str]) -> None:
        """Confirm everywhere; ``refused`` gets those that surely did not, whatever ends this."""
        failed: list[DcqcnGymError] = []
        with signals_held():
            for name, call in self.agents.calls("Confirm", dict.fromkeys(names, named)):
                try:
                    call.result()
                except DcqcnGymError as error:
                    if not isinstance(error, UnreachableError):
                        refused.add(name)  # no answer may mean that it confirmed: undone anyway
                    failed.append(error)
        if failed:
            raise failed[0]


def _one_trial(states: Mapping[str, Any]) -> str:
    names = sorted({str(s.transaction) for s in states.values() if s.state == "applied"})
    if len(names) != 1:
        raise StateError(
            f"{len(names)} transactions are on trial ({', '.join(names)}); expected one: it "
            "may have ended already, see `dcqcn-gym hw status --history`"
        )
    return names[0]


def _holds(status: Any, name: str) -> bool:
    """Tell whether a change is on trial, or confirmed already by an attempt that was cut off."""
    on_trial = (status.state, status.transaction) == ("applied", name)
    return bool(on_trial or status.confirmed == name)
