"""The fluid backend: flows as rates, in this process (``dcqcn_gym._core``); fast and not exact."""

from __future__ import annotations

from dcqcn_gym.envs.backends.native import NativeBackend


class FluidBackend(NativeBackend):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` in which no packet moves.

    Traffic, jobs, reaction and notification points are those of the packet engine; queues, marks
    and pauses are integrals over steps of some microseconds. How wrong that is, by kind of
    traffic, is measured: ``docs/measured/fluid.md``. Only DCQCN on one lossless priority; what else
    a scenario asks for is refused by name. PFC frames are not counted, only the time they cost.
    """

    unknown = frozenset({"pauses", "resumes", "port_pfc_sent", "port_pfc_received"})
    engine = "fluid"
