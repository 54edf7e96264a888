"""A change that rolls over a fleet in waves: who is in which, and what ends it after a wave.

A wave is judged by counters, and by a transfer that has to complete: one host asks another by
`ib_write_lat`, through agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.sums import count
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.drivers.mlx5_counters import ERRORS
from dcqcn_gym.hw.fleet import Gate, Probe
from dcqcn_gym.hw.gather import Gathered
from dcqcn_gym.hw.load.jobs import results

PROGRAM = "ib_write_lat"
LOOK_S = 0.2
READY_S = 0.5
"""How long the host that waits is given before it is asked."""

Ask = Callable[[str, str, Any], Any]
"""Makes a call (device, method, request) and returns its answer."""


def waves_of(devices: Sequence[str], nics: Sequence[str], waves: int) -> list[list[str]]:
    """Return the devices in so many parts, NICs and switches alike; none is empty."""
    hosts = set(nics)
    kinds = [[d for d in devices if d in hosts], [d for d in devices if d not in hosts]]
    found = []
    for i in range(waves):
        parts = (own[len(own) * i // waves : len(own) * (i + 1) // waves] for own in kinds)
        found.append([device for part in parts for device in part])
    return [wave for wave in found if wave]


Figures = Mapping[str, tuple[float, int, int]]
"""Device -> share of the time that it was paused, packets dropped, errors."""


class Completion:
    """The probe of a gate: how long a round trip of it took before a change, and takes now."""

    def __init__(
        self, probe: Probe, peer: str, seconds: float, ask: Ask, sleep: Callable[[float], None]
    ) -> None:
        """``peer`` is the address of the host that waits; the probe may take ``seconds``."""
        self._probe, self._peer, self._seconds = probe, peer, seconds
        self._ask, self._sleep = ask, sleep
        self._usual_s = self._measured_s()

    def judge(self, wave: str) -> None:
        """Probe again; raise DeviceError if it does not complete, or takes much longer."""
        now_s = self._measured_s()
        if now_s > self._probe.slower * self._usual_s:
            raise DeviceError(
                f"after wave {wave} a round trip from {self._probe.client} to {self._probe.server} "
                f"takes {now_s / self._usual_s:.3g} times as long as before, beyond "
                f"{self._probe.slower:g} of [gate.probe]; all were taken back"
            )

    def _measured_s(self) -> float:
        """Return the mean round trip; raise DeviceError if the probe does not complete."""
        both = (self._probe.server, self._probe.client)
        try:
            self._start(self._probe.server, self._probe.options)
            self._sleep(READY_S)
            self._start(self._probe.client, {**self._probe.options, "peer": self._peer})
            left_s = self._seconds
            while (state := self._ask(self._probe.client, "Load", pb.Nothing())).running:
                left_s -= LOOK_S
                if left_s < 0:
                    raise DeviceError(
                        f"the probe from {self._probe.client} to {self._probe.server} did not "
                        f"complete within {self._seconds:g} s"
                    )
                self._sleep(LOOK_S)
        finally:
            for device in both:
                self._ask(device, "StopLoad", pb.Nothing())
        if state.code:
            raise DeviceError(f"the probe ended with {state.code}: {state.output.strip()[-200:]!r}")
        mean_s: float = results(PROGRAM, state.output)[-1].mean_s
        return mean_s

    def _start(self, device: str, options: dict[str, str]) -> None:
        self._ask(device, "StartLoad", pb.LoadJob(program=PROGRAM, options=options))


class WaveWatch:
    """What every device counts while a wave is watched, against what it counted before."""

    def __init__(
        self,
        gate: Gate,
        gather: Callable[[], Gathered],
        sleep: Callable[[float], None],
        completion: Completion | None = None,
    ) -> None:
        """Watch the fleet once, for what is usual; raise DeviceError if a device does not tell."""
        self._gate, self._gather, self._sleep = gate, gather, sleep
        self._completion = completion
        self._usual = self._figures()

    def judge(self, wave: str) -> None:
        """Watch the fleet again; raise DeviceError if a device of it does worse than before."""
        if self._completion is not None:
            self._completion.judge(wave)
        words = ("was paused for {:.3g} more of the time", "dropped {:g} packets more",
                 "counted {:g} errors more")  # fmt: skip
        limits = (self._gate.paused, self._gate.drops, self._gate.errors)
        for device, figures in self._figures().items():
            before = self._usual[device]
            for now, then, limit, word in zip(figures, before, limits, words, strict=True):
                if now - then > limit:
                    raise DeviceError(
                        f"after wave {wave} {device} {word.format(now - then)} than before in "
                        f"{self._gate.seconds:g} s, beyond {limit:g} of [gate]; all were taken back"
                    )

    def _figures(self) -> Figures:
        first = _whole(self._gather())
        self._sleep(self._gate.seconds)
        last = _whole(self._gather())
        found = {}
        for device, figures in last.figures.items():
            passed_s = last.read_s[device] - first.read_s[device]
            grown = {name: value - first.figures[device].get(name, 0)
                     for name, value in figures.items()}  # fmt: skip
            pauses = [n for name, n in grown.items() if _is(name, "pause_us")]
            drops = [n for name, n in grown.items() if _is(name, "dropped_packets")]
            errors = [grown[name] for name in ERRORS if name in grown]
            if not pauses:
                raise DeviceError(f"{device} counts no pauses, so no wave can be watched there")
            if min((*pauses, *drops, *errors)) < 0:
                raise DeviceError(f"the counters of {device} began anew, so its wave is not known")
            found[device] = (max(pauses) * 1e-6 / passed_s, count(drops), count(errors))
        return found


def _is(name: str, figure: str) -> bool:
    return name.rpartition("/")[2] == figure


def _whole(found: Gathered) -> Gathered:
    for why in found.missing.values():
        raise DeviceError(f"a device does not report, so a wave cannot be watched: {why}")
    return found
