"""A transfer that has to complete: one host asks another by `ib_write_lat`, through agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.fleet import Probe
from dcqcn_gym.hw.load.jobs import results

PROGRAM = "ib_write_lat"
LOOK_S = 0.2
READY_S = 0.5
"""How long the host that waits is given before it is asked."""

Ask = Callable[[str, str, Any], Any]
"""Makes a call (device, method, request) and returns its answer."""


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
