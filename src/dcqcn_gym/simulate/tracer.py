"""Looks into a running simulation and writes what a trace wants: tables, and bins for the plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.backends.base import Eventful, Watchable
from dcqcn_gym.simulate.below import (
    COMPLETION_COLUMNS,
    SENDING_COLUMNS,
    TOTAL_COLUMNS,
    Completions,
    Sending,
)
from dcqcn_gym.simulate.bins import Binned, CompletionBins, FlowLines
from dcqcn_gym.simulate.files import ResultFiles
from dcqcn_gym.simulate.trace import Trace, need_pyarrow

__all__ = ["Tracer"]

_PORT_COLUMNS = {
    "queue": ("queue_bytes",),
    "rate": ("rate_bps",),
    "pause": ("paused", "paused_share"),
}


_EVENT_COLUMNS = ("time_ns", "src", "dst", "scheme", "event")


class _Table(Protocol):
    def add(self, columns: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class _CsvTable:
    """A growing CSV file; integers stay integers, floats are written in full."""

    def __init__(self, files: ResultFiles, name: str, columns: Sequence[str]) -> None:
        self._files, self._name = files, f"{name}.csv"
        files.rows(self._name, [columns])

    def add(self, columns: Mapping[str, Any]) -> None:
        lists = [np.asarray(column).tolist() for column in columns.values()]
        self._files.rows(self._name, zip(*lists, strict=True))

    def close(self) -> None: ...


class _ParquetTable:
    """A growing Parquet file, one row group per interval."""

    def __init__(self, files: ResultFiles, name: str, columns: Sequence[str]) -> None:
        self._arrow, self._parquet = need_pyarrow("pyarrow"), need_pyarrow("pyarrow.parquet")
        self._path = files.draft(f"{name}.parquet")
        self._columns = columns
        self._writer: Any = None

    def add(self, columns: Mapping[str, Any]) -> None:
        table = self._arrow.table({n: np.asarray(c) for n, c in columns.items()})
        try:
            if self._writer is None:
                self._writer = self._parquet.ParquetWriter(self._path, table.schema)
            self._writer.write_table(table)
        except OSError as error:
            raise RunError(f"{self._path} cannot be written: {error}") from error

    def close(self) -> None:
        if self._writer is None:  # nothing happened: a table without rows
            self.add({name: np.zeros(0) for name in self._columns})
        self._writer.close()


class Tracer:
    """Collects the samples of a run and writes them interval by interval.

    ``kept``: the scenario keeps queue pairs.
    """

    def __init__(self, trace: Trace, files: ResultFiles, *, kept: bool = False) -> None:
        self.trace = trace
        self._files = files
        ports = len(trace.ports)
        kind = _ParquetTable if trace.format == "parquet" else _CsvTable
        self._with_flows = "rate" in trace.quantities and trace.flows != ()
        columns = [c for q in trace.quantities for c in _PORT_COLUMNS[q]]
        self._port_columns = ["time_ns", "node", "port", "peer", *columns]
        self._flow_columns = ["time_ns", "src", "dst", "ordinal", "workload", "rate_bps"]
        self._table = partial(kind, files)
        self._ports_table: _Table | None = None
        if trace.quantities:
            self._ports_table = kind(files, "trace_ports", self._port_columns)
        self._world: Eventful | None = None
        self._events_table: _Table | None = None
        self._event_values: list[str] = []
        self._flows_table: _Table | None = None
        if self._with_flows:
            self._flows_table = kind(files, "trace_flows", self._flow_columns)
        self._sending_table: _Table | None = None
        self._total_table: _Table | None = None
        self._completions_table: _Table | None = None
        if trace.sending:
            self._sending_table = kind(files, "trace_sending", SENDING_COLUMNS)
            self._total_table = kind(files, "trace_total", TOTAL_COLUMNS)
        if trace.completions:
            self._completions_table = kind(files, "trace_completions", COMPLETION_COLUMNS)
        self._completions = Completions(trace.every_ps)
        self._sending = Sending(trace.every_ps, kept=kept)
        self._sending_rows: list[tuple[Any, ...]] = []
        self._total_rows: list[tuple[Any, ...]] = []
        self._names = np.array([(p.node, p.index, p.peer) for p in trace.ports], dtype=np.int64)
        self._names = self._names.reshape(ports, 3)
        self._sent = np.zeros(ports, dtype=np.int64)
        self._paused = np.zeros(ports, dtype=np.float64)
        self._port_rows: list[tuple[Any, ...]] = []
        self._flow_rows: list[tuple[Any, ...]] = []
        self.binned = {q: Binned(ports) for q in trace.quantities}
        self.flow_rates = FlowLines()
        self.flow_sending = FlowLines()
        self.total_sending = Binned(1)
        self.completed = CompletionBins()

    def attach(self, world: Backend) -> None:
        """Begin to look into an opened backend; raise ConfigError if it cannot be looked into."""
        looks = bool(self.trace.quantities) or self.trace.sending
        name = type(world).__name__
        if looks and not isinstance(world, Watchable):
            raise ConfigError(f"--trace: {name} cannot be looked into; use --backend native")
        if self.trace.events and not isinstance(world, Eventful):
            raise ConfigError(
                f"--trace rp: {name} keeps no events of senders; use --backend native, or leave "
                "rp out"
            )
        if self.trace.events:
            self._attach_events(world)
        if looks:
            self._attach_samples(world)

    def _attach_samples(self, world: Any) -> None:
        # the ports of hosts are the first ones, one each
        hosts = range(self.trace.hosts if self.trace.sending else 0)
        ports = [*(port.number for port in self.trace.ports), *hosts]
        world.watch(self.trace.every_ps, ports, self._look)

    def _attach_events(self, world: Any) -> None:
        self._world = world
        world.trace_schemes()
        values = [name for scheme in world.take_scheme_trace() for name in scheme["values"]]
        self._event_values = list(dict.fromkeys(values))
        columns = [*_EVENT_COLUMNS, *self._event_values]
        self._events_table = self._table("trace_rp", columns)

    def _write_events(self, table: _Table, world: Eventful) -> None:
        """Write what the schemes traced in the interval; NaN is a value that a scheme lacks."""
        for scheme in world.take_scheme_trace():
            n = len(scheme["time_ps"])
            if n == 0:
                continue
            columns = {
                "time_ns": scheme["time_ps"] / 1000,
                "src": scheme["src"],
                "dst": scheme["dst"],
                "scheme": np.full(n, scheme["scheme"]),
                "event": np.array(scheme["events"])[scheme["event"]],
            }
            nothing = np.full(n, np.nan)
            values = scheme["values"]
            table.add({**columns, **{v: values.get(v, nothing) for v in self._event_values}})

    def _look(self, now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> None:
        n = len(self._names)
        if self.trace.sending:
            self._look_at_sending(now_ps, ports["tx_bytes"][n:], flows)
        if self.trace.quantities:
            self._look_at_ports(now_ps, {name: ports[name][:n] for name in ports})
        if self._with_flows:
            self._look_at_flows(now_ps, flows)

    def _look_at_sending(self, now_ps: int, tx_bytes: Any, flows: Mapping[str, Any]) -> None:
        rates = self._sending.rates(flows)
        keys, kept = self._wanted(flows)
        self.flow_sending.add(keys, rates[kept])
        picked = [flows[name][kept] for name in ("src", "dst", "ordinal", "workload")]
        self._sending_rows.append((np.full(len(kept), now_ps / 1000), *picked, rates[kept]))
        total = self._sending.total(tx_bytes)
        self.total_sending.add(np.array([total]))
        self._total_rows.append((np.array([now_ps / 1000]), np.array([total])))

    def _wanted(self, flows: Mapping[str, Any]) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the names of the traced flows among these, and their rows."""
        names = zip(*(flows[n].tolist() for n in ("src", "dst", "ordinal")), strict=True)
        kept = [(i, key) for i, key in enumerate(names) if self.trace.wanted(*key)]
        return [key for _, key in kept], [i for i, _ in kept]

    def _look_at_ports(self, now_ps: int, ports: Mapping[str, Any]) -> None:
        every_s = self.trace.every_ps * 1e-12
        rate = (ports["tx_bytes"] - self._sent) * 8 / every_s
        share = (ports["pause_ps"] - self._paused) / self.trace.every_ps
        self._sent, self._paused = ports["tx_bytes"], ports["pause_ps"]
        series = {"queue": ports["queue_bytes"], "rate": rate, "pause": share}
        columns = {
            "queue": (ports["queue_bytes"],),
            "rate": (rate,),
            "pause": (ports["paused"].astype(np.int64), share),
        }
        times = np.full(len(self._names), now_ps / 1000)
        chosen = [column for q in self.trace.quantities for column in columns[q]]
        self._port_rows.append((times, *self._names.T, *chosen))
        for quantity, binned in self.binned.items():
            binned.add(np.asarray(series[quantity], dtype=np.float64))

    def _look_at_flows(self, now_ps: int, flows: Mapping[str, Any]) -> None:
        keys, kept = self._wanted(flows)
        self.flow_rates.add(keys, flows["rate_bps"][kept])
        picked = [flows[name][kept] for name in ("src", "dst", "ordinal", "workload", "rate_bps")]
        self._flow_rows.append((np.full(len(kept), now_ps / 1000), *picked))

    def end_interval(self, done: FinishedFlows, end_ps: int) -> None:
        """Write the samples of the interval up to ``end_ps``, in which these flows finished."""
        if self._sending_table is not None and self._total_table is not None:
            self._flush(self._sending_table, SENDING_COLUMNS, self._sending_rows)
            self._flush(self._total_table, TOTAL_COLUMNS, self._total_rows)
        if self._completions_table is not None and len(done.src):
            self._completions.add(done)
            self.completed.add(done, self.trace.every_ps)
        self._write_completions(end_ps)
        if self._ports_table is not None:
            self._flush(self._ports_table, self._port_columns, self._port_rows)
        if self._flows_table is not None:
            self._flush(self._flows_table, self._flow_columns, self._flow_rows)
        if self._events_table is not None and self._world is not None:
            self._write_events(self._events_table, self._world)

    def _write_completions(self, until_ps: float) -> None:
        """Write the periods that are over by then."""
        if self._completions_table is None:
            return
        rows = self._completions.take(until_ps)
        if len(rows["time_ns"]):
            self._completions_table.add(rows)

    @staticmethod
    def _flush(table: _Table, names: Iterable[str], rows: list[tuple[Any, ...]]) -> None:
        if rows:
            parts = [np.concatenate(column) for column in zip(*rows, strict=True)]
            table.add(dict(zip(names, parts, strict=True)))
            rows.clear()

    def close(self) -> None:
        """Write what is left, of a period that the run does not fill, and close the tables."""
        self._write_completions(math.inf)
        for table in self._tables.values():
            table.close()

    @property
    def files(self) -> list[Path]:
        """The tables that are written."""
        return [self._files.out / f"{name}.{self.trace.format}" for name in self._tables]

    @property
    def _tables(self) -> Mapping[str, _Table]:
        there = {
            "trace_ports": self._ports_table,
            "trace_flows": self._flows_table,
            "trace_rp": self._events_table,
            "trace_sending": self._sending_table,
            "trace_total": self._total_table,
            "trace_completions": self._completions_table,
        }
        return {name: table for name, table in there.items() if table is not None}
