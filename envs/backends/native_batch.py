"""Many runs of the native engine in one call, in threads; figures only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dcqcn_gym import _core
from dcqcn_gym.core.errors import BackendError, ConfigError
from dcqcn_gym.core.groups import DeviceSetting, resolve
from dcqcn_gym.core.interval import FinishedFlows, FloatArray, JobSpans, JudgedFigures, LiveFlows
from dcqcn_gym.envs.backends.native import SEED_LIMIT, by_source
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario


@dataclass
class Ground:
    """A scenario as the engine reads it, with the tables of the settings that were tried on it."""

    scenario: Scenario
    engine: str = "default"
    """``default`` moves packets, ``fluid`` rates."""
    _tables: dict[int, tuple[DeviceSetting, FloatArray, FloatArray]] = field(default_factory=dict)

    @cached_property
    def header(self) -> Mapping[str, Any]:
        """What a log's first line has of it: the scenario."""
        return {"scenario": self.scenario.model_dump(mode="json")}

    @cached_property
    def _network(self) -> _core.Simulation:
        """A simulation at time 0, whose network all others share."""
        try:
            return _core.Simulation(compile_scenario(self.scenario), 0, self.engine)
        except ValueError as error:
            raise ConfigError(f"scenario {self.scenario.name!r}: {error}") from error

    def begin(self, seed: int) -> LiveRun:
        """Return a run at time 0 under the scenario's initial setting."""
        if not 0 <= seed < SEED_LIMIT:
            raise ConfigError(f"seed {seed} is out of range; expected 0 to 2^64 - 1")
        run = LiveRun(self, self._network.fresh(seed))
        run.apply(self.scenario.initial_setting())
        return run

    def tables(self, setting: DeviceSetting) -> tuple[FloatArray, FloatArray]:
        """Return the rows of hosts and of ports; raise ConfigError for an illegal setting."""
        if id(setting) not in self._tables:
            devices = replace(self.scenario.fabric.devices, nic_knobs=self.scenario.nic_knobs())
            self._tables[id(setting)] = (setting, *resolve(setting, devices, self.scenario.table))
        return self._tables[id(setting)][1:]


class LiveRun:
    """One running simulation of a :class:`Ground`; :func:`advance` moves many at once."""

    def __init__(self, ground: Ground, simulation: _core.Simulation) -> None:
        self.ground = ground
        self.simulation = simulation

    def copy(self) -> LiveRun:
        """Return another one in this state; both go on with the same bytes."""
        return LiveRun(self.ground, self.simulation.clone())

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""
        try:
            self.simulation.apply(*self.ground.tables(setting))
        except ValueError as error:
            raise ConfigError(f"setting: {error}") from error

    def live_flows(self) -> LiveFlows:
        """Return the flows that have not finished, by source and ordinal."""
        return LiveFlows(**by_source(self.simulation.live_flows()))


@dataclass(frozen=True)
class Stretch:
    """What one run did in some intervals one after the other."""

    figures: Mapping[str, Any]
    host_rate_bps: FloatArray
    port_node: Any
    finished: FinishedFlows
    """The flows that finished in any of them."""
    job_spans: JobSpans
    """What jobs got done in any of them."""

    def intervals(self) -> Iterator[tuple[JudgedFigures, FinishedFlows, JobSpans]]:
        """Yield the figures, the finished flows and jobs' spans of one interval after the other."""
        rtts = _pieces({n: self.figures[n] for n in _RTT}, self.figures["rtt_rows"])
        flows = _pieces(vars(self.finished), self.figures["finished_rows"])
        spans = _pieces(vars(self.job_spans), self.figures["job_span_rows"])
        columns = {n: self.figures[n].tolist() for n in _NUMBERS}
        columns |= {n: self.figures[n] for n in ("host_tx_bytes", "port_pause_ps")}
        for i, (of_rtt, of_flows, of_spans) in enumerate(zip(rtts, flows, spans, strict=True)):
            row = {name: column[i] for name, column in columns.items()}
            yield (
                JudgedFigures(
                    host_rate_bps=self.host_rate_bps, port_node=self.port_node, **row, **of_rtt
                ),
                FinishedFlows(**of_flows),
                JobSpans(**of_spans),
            )


_RTT = ("rtt_count", "rtt_sum_ps", "rtt_base_ps")
_NUMBERS = (
    "start_ps", "end_ps", "delivered_bytes", "data_packets", "active_flows", "unlimited_flows",
)  # fmt: skip


def _pieces(columns: Mapping[str, Any], rows: Any) -> Iterator[dict[str, Any]]:
    """Yield so many rows of the columns, one number after the other."""
    end = 0
    for count in rows.tolist():
        begin, end = end, end + count
        yield {name: column[begin:end] for name, column in columns.items()}


def advance(
    runs: Sequence[LiveRun], spans_ps: Sequence[Sequence[int]], threads: int | None = None
) -> list[Stretch]:
    """Run each through its intervals of these lengths, or to the end of its traffic.

    ``threads`` is at most one per CPU without a number; it changes no byte. Ctrl-C ends it after
    the interval of each run that is under way.
    """
    now = [int(run.simulation.now_ps) for run in runs]
    stops = [
        (at + np.cumsum(spans, dtype=np.int64)).tolist()
        for at, spans in zip(now, spans_ps, strict=True)
    ]
    try:
        found = _core.run_batch(
            [run.simulation for run in runs], stops, threads or os.cpu_count() or 1
        )
    except (ValueError, RuntimeError) as error:
        raise BackendError(f"the packet engine stopped: {error}") from error
    return [_stretch(run, figures) for run, figures in zip(runs, found, strict=True)]


def _stretch(run: LiveRun, figures: dict[str, Any]) -> Stretch:
    ports = run.simulation.port_table()
    finished = FinishedFlows(**figures.pop("finished"))
    hosts = run.ground.scenario.n_hosts
    spans = JobSpans.of_rows(figures["job_spans"])
    return Stretch(figures, ports["rate_bps"][:hosts], ports["node"], finished, spans)
