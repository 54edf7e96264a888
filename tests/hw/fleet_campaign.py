"""Operations on a small fleet while one kind of fault strikes; the whole fleet is judged by files.

A kind is an operation (a change, at once or in waves, a trial and its confirmation, an undo, a
tuning run, a stop, a reconciliation) and a fault of `fault_cases.py` or `fleet_harms.py`, or the
controller killed. After each operation time passes, faults heal, and `fleet_oracle.py` reads
devices, journals and the audit log: every device is at its confirmed setting and has what the
log's last word says, or `hw status` names it; `hw reconcile` then brings the fleet to a side, and
`hw rollback` to exactly what was before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fleet_oracle as oracle
from counting import COUNTER_FAULTS
from fault_cases import FAULTS, arm
from faulty_network import (
    SWITCH,
    TRIAL_S,
    CrashError,
    FaultyClient,
    FaultyFleet,
)
from fleet_harms import HARMS
from fleets import typed

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.fleet import Gate

__all__ = ["KINDS", "Campaign", "controller_of", "run_kind"]

KILLED, SECOND = "controller-killed", "second-controller"
CALL_FAULTS = (*(name for name in FAULTS if name not in COUNTER_FAULTS), KILLED)
"""Faults of single calls, several of which may strike at once."""
STRUCK = (*CALL_FAULTS, *HARMS)
WAVES_S = 31.0
"""How much longer a trial in two waves is: a gate's 0.1 s and an answer's 10 s, three times."""
ALL_CALLS = ("Stage", "Apply", "Confirm", "Rollback", "Undo")
CALLS = {"change": ALL_CALLS, "trial": ALL_CALLS, "undo": ("Undo",),
         "waves": ALL_CALLS, "tune": ("Stage", "Apply", "Rollback"), "stop": ("Stop",),
         "reconcile": ("Undo", "Stage", "Apply", "Confirm")}  # fmt: skip
KINDS = tuple((operation, fault) for fault in STRUCK for operation in CALLS)


@dataclass
class Run:
    """What became of the operations of a run."""

    kind: tuple[str, str]
    done: int = 0
    refused: int = 0
    split: int = 0
    """Times that the fleet was split, which `hw status` said and `hw reconcile` mended."""


@dataclass
class Life:
    """A controller's: once it is over nothing goes out any more, and nothing is written."""

    ended: bool = False
    sent: list[Any] = field(default_factory=list)

    def end(self) -> None:
        """Be killed; what was sent before arrives."""
        self.ended = True
        for future in self.sent:
            try:
                future.result()
            except Exception:  # whatever the agent said, nobody hears it
                continue
        raise CrashError


class MortalClient(FaultyClient):
    """A connection of a controller that may be killed between two calls."""

    def __init__(self, life: Life, fleet: FaultyFleet, *args: Any, **more: Any) -> None:
        super().__init__(fleet, *args, **more)
        self._life = life

    def send(self, method: str, request: Any) -> Any:
        """Send a request, or die before it."""
        if self._life.ended:
            raise CrashError
        if self._fleet.armed.get((self.name, method)) == KILLED:
            del self._fleet.armed[(self.name, method)]
            self._life.end()
        future = super().send(method, request)
        self._life.sent.append(future)
        return future


def controller_of(fleet: FaultyFleet, audit: str = "audit.jsonl") -> Controller:
    life = Life()
    short = {"audit": Path(audit), "gate": Gate(seconds=0.1), "timeout_s": 10.0}
    controller = Controller(
        fleet.fleet.model_copy(update=short),
        fleet.folder,
        lambda *args, **more: MortalClient(life, fleet, *args, **more),
        sleep=lambda _: None,  # a wave is watched for no time
    )
    write = controller.log.write

    def mortal(record: dict[str, Any]) -> None:
        if life.ended:
            raise CrashError
        write(record)

    controller.log.write = mortal  # type: ignore[method-assign]
    controller.agents.open()
    return controller


class Campaign:
    """One fleet, the operations on it, and what is to be true after each."""

    def __init__(self, fleet: FaultyFleet, kind: tuple[str, str]) -> None:
        self.fleet, self.run = fleet, Run(kind)
        self.file = fleet.folder / "fleet.toml"
        model = fleet.fleet.model_dump(mode="json", exclude_none=True)
        self.file.write_text(toml_text(model))
        self.before: dict[str, dict[str, dict[str, str]]] = {}
        """Change -> what every device held before it."""
        self.kept: list[str] = []
        """What the log had before it was harmed."""
        self.skipped = 0
        """How many bytes of the log as it is are older than that harm."""
        self.longer_s = 0.0
        """How much longer than TRIAL_S a trial of the operation lasts."""
        self.lost = False
        """Whether the log of this controller may lack what agents know."""

    def targets(self) -> dict[str, Any]:
        """Return a new setting of every device."""
        rng = self.fleet.random
        nic = {"rp_ai_rate": float(rng.randrange(1, 500)), "rp_gd": float(rng.randrange(10, 14)),
               "rp_time_reset": float(rng.randrange(1, 900))}  # fmt: skip
        marking = {"kmin": float(rng.randrange(50, 400)), "kmax": float(rng.randrange(400, 1600))}
        return {name: {"": marking if name == SWITCH else nic} for name in self.fleet.names}

    def held(self, *but: str) -> dict[str, dict[str, str]]:
        """Return what every device, ``but`` these, holds, by its files."""
        switch = self.fleet.switch
        sockets = {SWITCH: switch.socket if switch is not None else None}
        return {
            name: oracle.held_by(self.fleet.folder / name, sockets.get(name))
            for name in self.fleet.names
            if name not in but
        }

    def strike(self) -> None:
        """Carry out the operation while faults strike; judge the fleet when it is over.

        The kind ``random`` draws an operation and one to three faults of calls.
        """
        operation, fault = self.run.kind
        struck = [fault]
        if operation == "random":
            operation = self.fleet.random.choice(sorted(CALLS))
            struck = self.fleet.random.sample(STRUCK, self.fleet.random.randrange(1, 4))
            struck.sort(key=SECOND.__eq__)  # when whatever else has a way back
        self.longer_s = WAVES_S if operation == "waves" else 0.0
        before, undo = self.held(), list[Callable[[], object]]()
        self.prelude(operation)
        self.note(before)
        controller = controller_of(self.fleet)
        try:
            for fault in struck:
                if fault in HARMS:
                    HARMS[fault](self, undo)
                    before = self.held() if fault == struck[-1] == SECOND else before
                elif fault == KILLED:
                    rng = self.fleet.random
                    at = (rng.choice(self.fleet.names), rng.choice(CALLS[operation]))
                    self.fleet.armed[at] = KILLED
                else:
                    arm(self.fleet, fault, undo, CALLS[operation])
            getattr(self, operation)(controller)
            self.run.done += 1
        except (DcqcnGymError, CrashError):
            self.run.refused += 1
        finally:
            controller.close()
        self.note(before)
        self.heal(undo)
        self.judge()

    def note(self, before: dict[str, dict[str, str]]) -> None:
        """Keep what was held before the changes that began since this was last called."""
        for name in oracle.decided_by(self.written()).changes:
            self.before.setdefault(name, before)

    def written(self) -> list[str]:
        """Return the lines that all controllers ever wrote, in the order of time."""
        away = self.audit.with_name("audit.jsonl-away")
        audit = away if self.audit.is_dir() else self.audit
        text = audit.read_bytes()[self.skipped :] if audit.is_file() else b""
        second = self.audit.with_name("second.jsonl")
        lines = second.read_text().splitlines() if second.is_file() else []
        lines += [*self.kept, *text.decode().splitlines()]
        return sorted(filter(None, lines), key=lambda line: float(json.loads(line)["unix_s"]))

    def heal(self, undo: list[Callable[[], object]]) -> None:
        """Let every trial end, then mend what is broken, and let agents notice."""
        fleet = self.fleet
        fleet.armed.clear()
        fleet.pass_time(2.0 * TRIAL_S + self.longer_s)
        for act in undo:
            act()
        for device in fleet.devices.values():
            device.fails = device.lies = 0
        fleet.cut.clear()
        fleet.pass_time(2.0 * TRIAL_S)

    def prelude(self, operation: str) -> None:
        """Bring the fleet, without faults, to where the operation begins."""
        if operation not in ("undo", "reconcile"):
            return
        controller = controller_of(self.fleet)
        rng = self.fleet.random
        device = rng.choice(self.fleet.names)
        if operation == "reconcile" and rng.random() < 0.5:
            self.fleet.armed[(device, "Confirm")] = KILLED
        elif operation == "reconcile":
            self.fleet.armed = {(device, "Confirm"): "reply-lost", (device, "Undo"): "partition"}
            self.fleet.armed[(device, "Rollback")] = "request-lost"
        try:
            controller.carry_out(self.targets(), "before the fault")
        except (DcqcnGymError, CrashError):
            self.fleet.pass_time(2.0 * TRIAL_S)
        finally:
            controller.close()
            self.fleet.armed.clear()
            self.fleet.cut.clear()

    def change(self, controller: Controller) -> None:
        """Change every device; if it says so, every device has it."""
        done = controller.carry_out(self.targets(), "a change")
        self.claims(done.transaction)

    def waves(self, controller: Controller) -> None:
        """Change every device in two waves, which the gate watches."""
        done = controller.carry_out(self.targets(), "waves", 2)
        self.claims(done.transaction)

    def trial(self, controller: Controller) -> None:
        """Put a change on trial, then confirm it as `hw confirm` does."""
        tried = controller.try_out(self.targets(), "a trial")
        states = controller.agents.ask_all("Status", pb.Nothing())
        name, devices = controller.whole_trial(states, dry_run=False)
        controller.confirm(name, devices, "a trial", min(s.left_s for s in states.values()))
        self.claims(tried.transaction)

    def undo(self, controller: Controller) -> None:
        """Undo the newest change."""
        states, _ = controller.agents.states()
        _, left = controller.rollback.undo(controller.rollback.newest(states), "an undo")
        for error in left.values():
            raise error

    def tune(self, controller: Controller) -> None:
        """Tune for two steps, and end."""
        for number in (1, 2):
            step = controller.runs.step("a-run", number, self.targets(), TRIAL_S)
            controller.runs.keep_alive(step, TRIAL_S)
        for error in controller.runs.end("a-run", "the end").values():
            raise error

    def stop(self, controller: Controller) -> None:
        """Stop a trial; who answers is at its confirmed setting; then allow changes again."""
        controller.try_out(self.targets(), "a trial")
        states, left = controller.rollback.stop(True, "an emergency")
        held = self.held()
        for name, status in states.items():
            _, confirmed = oracle.confirmed_of(self.fleet.folder / name / "journal")
            assert status.problem or not oracle.wrong_places(held[name], confirmed, {}), name
        for error in left.values():
            raise error

    def reconcile(self, controller: Controller) -> None:
        """Bring the split fleet to where the log decided."""
        _, left = controller.reconciler.reconcile("a way")
        for error in left.values():
            raise error

    def claims(self, name: str) -> None:
        """What was said to be confirmed is on every device."""
        held = self.held()
        changes = oracle.decided_by(self.written()).changes
        for device, change in changes[name].items():
            assert not oracle.wrong_places(held[device], {}, change), f"{device} lacks {name}"

    @property
    def audit(self) -> Path:
        """The controller's log."""
        return self.fleet.folder / "audit.jsonl"

    def judge(self) -> None:
        """Hold the fleet against the rule, and `hw status` against the fleet."""
        assert typed("stop", "--release", "--fleet", str(self.file))[0] == 0
        found = self.true_split()
        told = self.ask("status", *((1,) if found else (0, 1) if self.lost else (0,)))
        if self.lost:  # a log cut off within a line says so
            by_logs = found or oracle.split(self.decided(), self.confirmed())
            assert told["split"] or not found, (self.run, found)
            assert by_logs or not told["split"], (self.run, told["split"])
        else:
            assert told["split"].keys() == found.keys(), (self.run, told["split"], found)
            assert told["audit"] == "", self.run
        assert (told["places"], told["left"]) == ({}, {}), self.run
        if not found:
            return
        self.run.split += 1
        side = self.fleet.random.choice(("decided", "old", "new"))
        code = 1 if told["audit"] else 0
        self.ask("reconcile", code, words=("--to", side))
        assert self.true_split() == {}, self.run
        self.ask("status", code)

    def decided(self) -> oracle.Decided:
        """Return who is to have which change: by the log, less what a journal knows withdrawn."""
        found = oracle.decided_by(self.written())
        for name in self.fleet.names:
            journal = self.fleet.folder / name / "journal"
            oracle.withdraw(found, oracle.withdrawn_by(journal))
        return found

    def confirmed(self) -> dict[str, str]:
        """Return the change that each device confirmed last, by its journal."""
        folders = {name: self.fleet.folder / name for name in self.fleet.names}
        return {n: oracle.confirmed_of(f / "journal")[0] for n, f in folders.items()}

    def true_split(self) -> dict[str, str]:
        """Return who has another change than the log says; everybody has what was confirmed."""
        decided, held = self.decided(), self.held()
        names = self.confirmed()
        for name in names:
            _, confirmed = oracle.confirmed_of(self.fleet.folder / name / "journal")
            change = decided.changes.get(names[name], {}).get(name, {})
            wrong = oracle.wrong_places(held[name], confirmed, change)
            assert not wrong, f"{self.run.kind}: {name} holds {wrong}"
        if self.lost:  # what no agent knows is lost with the log: all hold one change, or it shows
            return names if len(set(names.values())) > 1 else {}
        return oracle.split(decided, names)

    def go_back(self) -> None:
        """Undo the newest change by hand: each of its devices holds exactly what was before."""
        decided = self.decided()
        if not any(decided.stacks.values()):
            return
        if self.lost and set(self.confirmed().values()) == {"start"}:
            held = self.held()  # the log alone knew that a change was decided, and it is lost
            assert typed("rollback", "--fleet", str(self.file))[0] == 1, self.run
            assert self.held() == held, self.run
            return
        told = self.ask("rollback", *((0, 1) if self.lost else (0,)))
        held = self.held()
        for device in told["back"]:
            assert held[device] == self.before[told["transaction"]][device], (self.run, device)
        assert self.true_split() == {}

    def ask(self, command: str, *codes: int, words: tuple[str, ...] = ()) -> Any:
        """Type a command, which ends with one of these codes; return its facts."""
        found, said = typed(command, "--fleet", str(self.file), "--json", *words)
        assert found in codes, f"{self.run}: {command} ended with {found}: {said}"
        return json.JSONDecoder().raw_decode(said[said.index("{\n") :])[0]


def run_kind(kind: tuple[str, str], seed: int, folder: Path, certs: Path, strikes: int = 3) -> Run:
    """Strike operations of a kind in an empty folder; AssertionError says what is wrong."""
    (folder / "certs").symlink_to(certs)
    fleet = FaultyFleet(folder, seed)
    try:
        campaign = Campaign(fleet, kind)
        for _ in range(strikes):
            campaign.strike()
        campaign.go_back()
        return campaign.run
    finally:
        fleet.close()
