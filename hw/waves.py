"""A change that rolls over a fleet in waves: who is in which, and what ends it after a wave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.sums import count
from dcqcn_gym.hw.completion import Completion
from dcqcn_gym.hw.drivers.mlx5_counters import ERRORS
from dcqcn_gym.hw.fleet import Gate
from dcqcn_gym.hw.gather import Gathered


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


class Watch:
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
