"""Tuning runs: each is one trial over the whole fleet, and ends where the fleet was before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.core.errors import ConfigError, StateError, quote
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import targets_of
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.client import UnreachableError
from dcqcn_gym.hw.connections import Connections, all_of
from dcqcn_gym.hw.device_state import new_name
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.requests import Requests
from dcqcn_gym.hw.rollback import Failures, Rollback
from dcqcn_gym.hw.trials import Trials, reason


@dataclass(frozen=True)
class RunStart:
    """Where a fleet was when a tuning run began, for the way back."""

    targets: Mapping[str, Targets]
    run: str = ""
    """Its name in the audit log."""
    confirmed: Mapping[str, str] = field(default_factory=dict)
    """Device -> the transaction whose setting it held."""


class TuningRuns:
    """Begins, continues and ends the runs of a fleet."""

    def __init__(
        self,
        agents: Connections,
        log: AuditLog,
        requests: Requests,
        rollback: Rollback,
        trials: Trials,
    ) -> None:
        self._agents, self._log, self._requests = agents, log, requests
        self._rollback, self._trials = rollback, trials

    def end(self, run: str, why: str) -> Failures:
        """Send every device back to before a run; return those that may need its lease for that."""
        return self._rollback.end_trials(why, run)[1]

    def begin(self, why: str) -> RunStart:
        """Note where the fleet is before a tuning run; :meth:`put_back` goes there again.

        Raises StateError if a device is not at its confirmed setting: it could not be left alone.
        """
        for device, plan in self._agents.ask_all("Diff", pb.Nothing()).items():
            if plan.lines:
                raise StateError(
                    f"{device} is not at its confirmed setting (see `dcqcn-gym hw status`); "
                    "confirm what is on trial, or take it back with "
                    "`dcqcn-gym hw rollback --trial-only`"
                )
        read = self._agents.ask_all("Read", pb.Nothing())
        states = self._agents.ask_all("Status", pb.Nothing())
        began = RunStart(
            {device: targets_of(setting.targets) for device, setting in read.items()},
            new_name(),
            {device: status.confirmed for device, status in states.items()},
        )
        record = {"event": "run", "run": began.run, "why": why, "began": list(began.targets)}
        self._log.write(record)
        return began

    def begun(self) -> str:
        """Return the run that :meth:`begin` began last and that no step is of yet; or empty."""
        return self._log.begun_run()

    def note_kept(self, run: str, name: str) -> None:
        """Note that the change ``name`` is what a run found; :meth:`kept_of` tells it later."""
        self._log.note({"event": "kept", "run": run, "transaction": name})

    def kept_of(self, run: str) -> str:
        """Return the change that kept a run's setting, or empty; ConfigError if none is known."""
        found = self._log.kept_of(run)
        if found is None:
            raise ConfigError(f"run {quote(run)} is not in this fleet's audit log; see best.json")
        return found

    def put_back(self, began: RunStart, why: str) -> Failures:
        """Give devices their setting before a run, all at once; return those that did not take it.

        What is still on trial goes back first. A device that fails keeps no other from going, is
        tried once more, and a freeze does not matter.
        """
        targets, left = dict(began.targets), Failures()
        for _ in range(2):
            self._end_trials(targets, why)
            left = self._rollback.restore(began.confirmed, targets, why)
            targets = {device: began.targets[device] for device in left}
            if not left:
                break
        said = {device: str(error) for device, error in left.items()}
        event = "not put back" if left else "put back"
        self._log.note({"event": event, "run": began.run, "why": why, "left": said})
        return left

    def _end_trials(self, devices: Mapping[str, Any], why: str) -> None:
        """Send back what a run that was interrupted left on trial; nothing else may be staged then.

        An agent that does not answer is passed over: it fails again where that is said.
        """
        states, _ = self._agents.ask_each("Status", dict.fromkeys(devices, pb.Nothing()))
        trials = {d: s.transaction for d, s in states.items() if s.state in ("applied", "broken")}
        self._agents.ask_each(
            "Rollback", {d: self._requests.named(t, why) for d, t in trials.items()}
        )

    def step(self, run: str, number: int, targets: Mapping[str, Targets], lease_s: float) -> str:
        """Put the next setting of a run in force on all devices; return the step's name.

        All of a run is one trial: nothing is ever confirmed, and an agent that hears nothing of
        the run for ``lease_s`` goes back to before it. A failure ends the run everywhere, and is
        raised.
        """
        name = f"{run}:{number}"
        try:
            self._trials.refuse_in_a_freeze()
            why, begun_s = f"step {number} of run {run}", self._trials.clock()
            staged = all_of(self._agents.calls("Stage", self._requests.wanted(name, targets, why)))
            if number == 1:
                self._trials.refuse_too_slow(
                    self._trials.clock() - begun_s, lease_s / 2.0, len(staged)
                )
            changes = {d: {x.place: x.after for x in plan.lines} for d, plan in staged.items()}
            self._log.write({"event": "step", "transaction": name, "changes": changes})
            self._trials.apply(list(targets), pb.Trial(transaction=name, revert_after_s=lease_s))
        except BaseException as error:
            self.end(run, reason(error))
            raise
        return name

    def keep_alive(self, step: str, lease_s: float) -> None:
        """Tell all agents that the run is still there; raise if one has left it.

        One that does not answer may still be in it, until its lease ends.
        """
        trial = pb.Trial(transaction=step, revert_after_s=lease_s)
        _, failed = self._agents.ask_each("Apply", dict.fromkeys(self._agents.clients, trial))
        for error in failed.values():
            if not isinstance(error, UnreachableError):
                raise error
