"""Faults by name on a small fleet: whatever happens, every device ends at a confirmed setting.

A case draws changes and faults from its seed: on the network (a lost, late, repeated or outdated
message, a partition), in processes (a crash of an agent or of the controller, a full disk, a clock
that jumps, a wrong certificate) and in devices (a write that fails half-way, a read-back that lies,
a reboot, a file or a database that is gone, a counter that wraps, sticks or begins anew). Around
each change an interval is read; one that is reported is held against what devices really sent.
Agents, gRPC, TLS, journals and Redis are real; timers run on the case's clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from counting import COUNTER_FAULTS, check_interval, read_all
from faulty_network import (
    METHODS,
    NAMES,
    STEP_S,
    SWITCH,
    TRIAL_S,
    CrashError,
    FaultyClient,
    FaultyFleet,
    Outcome,
)

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError, UnknownNameError
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.drivers import Targets

__all__ = ["FAULTS", "NAMES", "STEP_S", "TRIAL_S", "Outcome", "arm", "run_case"]

FAULTS: Mapping[str, str] = {
    "request-lost": "a request never arrives",
    "request-late": "a request arrives after a later one, when nobody waits for it any more",
    "reply-lost": "a call is carried out and its answer lost",
    "duplicated": "a request arrives twice",
    "outdated": "an earlier request arrives again, after a later one",
    "partition": "an agent is out of reach from some call on",
    "agent-crash": "an agent dies and starts again",
    "controller-crash": "the controller dies between two steps",
    "write-fails": "a write fails half-way",
    "read-back-lies": "a write changes nothing and reports no error",
    "reboot": "a device comes back with the vendor's values",
    "file-gone": "a kernel file is gone for a while",
    "disk-full": "the journal cannot be written for a while",
    "clock-jump": "an agent's clock jumps ahead",
    "redis-restart": "a switch's database is gone for a while",
    "certificate-expired": "an agent shows a certificate that has expired, for a while",
    "certificate-foreign": "an agent shows a certificate of another fleet, for a while",
    **COUNTER_FAULTS,
}


def _no_space(record: object) -> None:
    raise DeviceError("the journal cannot be written (no space left, on purpose)")


def arm(
    fleet: FaultyFleet,
    name: str,
    undo: list[Callable[[], object]],
    methods: Sequence[str] = METHODS,
) -> None:
    """Prepare one fault for the next change; those of the network strike one of these calls."""
    rng = fleet.random
    nic_only = name == "file-gone" or name in COUNTER_FAULTS
    device = rng.choice(fleet.names[:3] if nic_only else fleet.names)
    device = fleet.names[-1] if name == "redis-restart" else device
    fleet.outcome.faults.append(f"{name} at {device}")
    if name == "write-fails":
        fleet.devices[device].fails = rng.randrange(1, 6)
    elif name == "read-back-lies":
        fleet.devices[device].lies = rng.randrange(1, 6)
    elif name == "clock-jump":
        fleet.now += rng.uniform(0.0, 3.0 * TRIAL_S)
    elif name == "file-gone":
        file = fleet.cc_file(device, rng.choice(("rp_gd", "rp_ai_rate", "rp_time_reset")))
        file.rename(file.with_name("gone"))
        undo.append(lambda: os.rename(file.with_name("gone"), file))
    elif name == "disk-full":
        journal = fleet.agents[device].journal
        vars(journal)["append"] = _no_space
        undo.append(lambda: vars(journal).pop("append"))
    elif name == "redis-restart":
        if fleet.switch is not None:
            fleet.switch.stop()
            undo.append(fleet.switch.restart)
    elif name in COUNTER_FAULTS:
        _spoil_counters(fleet, name, device, undo)
    elif name.startswith("certificate"):
        fleet.show_certificate(device, name.partition("-")[2])
        undo.append(lambda: fleet.show_certificate(device))
    else:
        fleet.armed[(device, rng.choice(methods))] = name


def _spoil_counters(
    fleet: FaultyFleet, name: str, device: str, undo: list[Callable[[], object]]
) -> None:
    """Let a NIC's counters do what they must not, in the interval that begins."""
    act = {"counter-wraps": fleet.traffic.wrap, "counter-stuck": fleet.traffic.stick,
           "counter-reset": fleet.traffic.restart}[name]  # fmt: skip
    if name == "counter-wraps":
        act(device)  # it has come near its end before the interval
    else:
        fleet.spoil.append(lambda: act(device))
    undo.append(fleet.traffic.heal)


def _change(fleet: FaultyFleet, chosen: Sequence[str]) -> None:
    """Carry out one change of all devices, within an interval, while up to three faults strike.

    If some are ``chosen``, all of these and no others.
    """
    rng = fleet.random
    wanted = {"rp_ai_rate": float(rng.randrange(1, 500)), "rp_gd": float(rng.randrange(10, 14)),
              "rp_time_reset": float(rng.randrange(1, 900)),
              "rp_hai_rate": float(rng.randrange(10, 5000))}  # fmt: skip
    marking = {"kmin": float(rng.randrange(50, 400)), "kmax": float(rng.randrange(400, 1600))}
    undo: list[Callable[[], object]] = []
    armed = list(chosen) or rng.sample(sorted(FAULTS), rng.randrange(0, 4))
    for name in armed:
        arm(fleet, name, undo)
    targets = {name: {"": marking if name == SWITCH else wanted} for name in fleet.names}
    _interval(fleet, targets, sound=not armed and not fleet.cut)
    fleet.armed.clear()
    fleet.pass_time(rng.uniform(0.0, 1.5 * TRIAL_S))
    for heal in undo:
        heal()
    for device in fleet.devices.values():
        device.fails = device.lies = 0
    if rng.random() < 0.5:
        fleet.cut.clear()


def _interval(fleet: FaultyFleet, targets: Mapping[str, Targets], *, sound: bool) -> None:
    """Read all counters, change everything, read again; a ``sound`` interval must be reported."""
    controller = Controller(
        fleet.fleet, fleet.folder, lambda *args, **more: FaultyClient(fleet, *args, **more)
    )
    reported = False
    try:
        controller.agents.open()
        before, sent = read_all(controller, controller.agents.gather(1)), fleet.traffic.truth()
        _carry_out(fleet, controller, targets)
        for strike in fleet.spoil:
            strike()
        fleet.traffic.grow()
        after = read_all(controller, controller.agents.gather(2))
        if before is not None and after is not None:
            reported = check_interval(fleet.traffic, before, after, sent)
    except (DcqcnGymError, CrashError):
        fleet.pass_time(fleet.delays.uniform(0.0, TRIAL_S))
    finally:
        fleet.spoil.clear()
        controller.close()
    fleet.outcome.reported += reported
    fleet.outcome.refused += not reported
    assert reported or not sound, f"seed {fleet.outcome.seed}: a sound interval was refused"


def _carry_out(fleet: FaultyFleet, controller: Controller, targets: Mapping[str, Targets]) -> None:
    try:
        controller.carry_out(targets, "a case")
        fleet.outcome.confirmed += 1
    except DcqcnGymError:
        fleet.pass_time(fleet.delays.uniform(0.0, TRIAL_S))


def run_case(seed: int, folder: Path, certs: Path, chosen: Sequence[str] = ()) -> Outcome:
    """Run a case in an empty folder; AssertionError names what is not as it must be.

    Faults are drawn from the seed, or ``chosen`` by name for every change.
    """
    for name in chosen:
        if name not in FAULTS:
            raise UnknownNameError("fault", name, FAULTS)
    (folder / "certs").symlink_to(certs)
    fleet = FaultyFleet(folder, seed)
    try:
        for _ in range(4):
            _change(fleet, chosen)
        fleet.cut.clear()
        fleet.pass_time(2.0 * TRIAL_S)
        for name, agent in fleet.agents.items():
            what = f"seed {seed}, {name}: {agent.guard.status} after {fleet.outcome.faults}"
            assert fleet.held(name) == fleet.confirmed(name), what
            assert agent.guard.status.state in ("idle", "staged"), what
        return fleet.outcome
    finally:
        fleet.close()
