"""Static marking curves that ACC (SIGCOMM'21) is compared with; the NIC knobs stay as they are.

``vendor-ecn`` is printed in ACC, section 5.3.1. What ``secn1`` and ``secn2`` stand for is in a part
of that paper that we do not have: they are second-hand, the values of the DCQCN paper (SIGCOMM'15)
and of HPCC (SIGCOMM'19), whose thresholds follow the line rate. ACC's and HPCC's curves are given
for 25 Gb/s; ``secn1`` and ``vendor-ecn`` are the printed numbers at every rate.
"""

from __future__ import annotations

from typing import ClassVar

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import TunerContext
from dcqcn_gym.tuners.fixed import StaticTuner


class _CurveTuner(StaticTuner):
    """One marking curve on every switch: ``kmin`` and ``kmax`` in KB, ``pmax``, at 25 Gb/s."""

    kmin: ClassVar[float]
    kmax: ClassVar[float]
    pmax: ClassVar[float]
    scaled: ClassVar[bool] = False

    def _choose(self, context: TunerContext) -> Setting:
        rate = context.space.line_rate_bps
        scale = rate / 25e9 if self.scaled else 1.0
        curve = {"kmin": self.kmin * scale, "kmax": self.kmax * scale, "pmax": self.pmax}
        return context.base.replace(curve)


class Secn1Tuner(_CurveTuner):
    """5 KB, 200 KB, 1 %: the marking curve of the DCQCN paper."""

    name = "secn1"
    summary = "static ECN 5 KB / 200 KB / 1 % (DCQCN's paper; ACC's SECN1, second-hand)"
    kmin, kmax, pmax = 5.0, 200.0, 0.01


class Secn2Tuner(_CurveTuner):
    """100 KB, 400 KB, 20 % at 25 Gb/s, in proportion to the line rate: HPCC's curve."""

    name = "secn2"
    summary = "static ECN 100 KB / 400 KB / 20 % per 25 Gb/s (HPCC; ACC's SECN2, second-hand)"
    kmin, kmax, pmax = 100.0, 400.0, 0.2
    scaled = True


class VendorEcnTuner(_CurveTuner):
    """30 KB, 270 KB, 10 %: what ACC's authors had from a device vendor at 25 Gb/s."""

    name = "vendor-ecn"
    summary = "static ECN 30 KB / 270 KB / 10 %, a device vendor's advice at 25 Gb/s (ACC)"
    kmin, kmax, pmax = 30.0, 270.0, 0.1
