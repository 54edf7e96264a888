"""Sample a running simulation and write the tables of a trace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dcqcn_gym.core.collectives import Collective
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.interval import FinishedFlows, JobSpans
from dcqcn_gym.envs.backends import Backend
from dcqcn_gym.envs.backends.base import Eventful, Watchable
from dcqcn_gym.simulation.bins import Binned, CompletionBins, FlowLines
from dcqcn_gym.simulation.files import JobTrace, ResultFiles
from dcqcn_gym.simulation.trace import JOBS_FILE, Trace, need_pyarrow

SENDING_COLUMNS = ("time_ns", "src", "dst", "ordinal", "workload", "sending_bps")
TOTAL_COLUMNS = ("time_ns", "sending_bps")
COMPLETION_COLUMNS = ("time_ns", "workload", "messages", "bytes", "mct_mean_ns", "mct_max_ns")


class Sending:
    """The rate at which each queue pair, and all hosts together, put data on the wire.

    The rate of a period is the wire bytes whose transmission began in it, headers and repeated
    packets included, over its length. A queue pair that is gone at the end of a period has no row
    for it, but its bytes are in the total. ``lasting``: queue pairs outlive their flows, so one
    that had nothing to do goes on counting where it was.
    """

    def __init__(self, every_ps: int, *, lasting: bool = False) -> None:
        self._every_s = every_ps * 1e-12
        self._lasting = lasting
        self._sent: dict[tuple[int, int], int] = {}
        self._total = 0

    def rates(self, flows: Mapping[str, Any]) -> Any:
        """Return the rate of each row in bit/s, since the look before."""
        names = zip(flows["src"].tolist(), flows["queue_pair"].tolist(), strict=True)
        now = dict(zip(names, flows["sent_bytes"].tolist(), strict=True))
        before = [self._sent.get(key, 0) for key in now]
        self._sent = {**self._sent, **now} if self._lasting else now
        return (flows["sent_bytes"] - np.array(before, dtype=np.int64)) * 8 / self._every_s

    def total(self, tx_bytes: Any) -> float:
        """Return the rate of all hosts, of what their ports have sent since the start."""
        sent = int(tx_bytes.sum())
        rate = (sent - self._total) * 8 / self._every_s
        self._total = sent
        return rate


class Completions:
    """Messages by the period of ``every_ps`` and the workload in which they were completed.

    A period may go on in the next interval, so its figures wait until it is over.
    """

    def __init__(self, every_ps: int) -> None:
        self._every_ps = every_ps
        self._open: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        """(period, workload) -> messages, bytes, and sum and maximum of their times in ps."""

    def add(self, done: FinishedFlows) -> None:
        """Count messages, each in the period in which its last ACK came."""
        if not len(done.src):
            return
        keys = np.stack(
            [(done.start_ps + done.fct_ps) // self._every_ps + 1, done.workload], axis=1
        )
        periods, place = np.unique(keys, axis=0, return_inverse=True)
        place = place.reshape(-1)
        figures = np.zeros((4, len(periods)), dtype=np.int64)
        np.add.at(figures[0], place, 1)
        np.add.at(figures[1], place, done.bytes)
        np.add.at(figures[2], place, done.fct_ps)
        np.maximum.at(figures[3], place, done.fct_ps)
        for (period, workload), new in zip(periods.tolist(), figures.T.tolist(), strict=True):
            n, size, total, longest = self._open.get((period, workload), (0, 0, 0, 0))
            grown = n + new[0], size + new[1], total + new[2], max(longest, new[3])
            self._open[period, workload] = grown

    def take(self, until_ps: float = math.inf) -> dict[str, Any]:
        """Return, and forget, the periods that end by then, as :data:`COMPLETION_COLUMNS`.

        One row for each period and workload; ``time_ns`` is the end of the period.
        """
        over = sorted(key for key in self._open if key[0] * self._every_ps <= until_ps)
        rows = [(*key, *self._open.pop(key)) for key in over]
        period, workload, n, size, total, longest = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        values = (
            period * (self._every_ps / 1000), workload, n, size,
            total / np.maximum(n, 1) / 1000, longest / 1000,
        )  # fmt: skip
        return dict(zip(COMPLETION_COLUMNS, values, strict=True))


_PORT_COLUMNS = {
    "queue": ("queue_bytes",),
    "rate": ("rate_bps",),
    "pause": ("paused", "paused_share"),
}
_FLOW_COLUMNS = ("time_ns", "src", "dst", "ordinal", "workload", "rate_bps")
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


class _Tables:
    """The tables of a trace, and the samples of the interval that are not written yet."""

    def __init__(self, files: ResultFiles, file_format: str) -> None:
        self._files = files
        self._kind = _ParquetTable if file_format == "parquet" else _CsvTable
        self._tables: dict[str, _Table] = {}
        self._columns: dict[str, Sequence[str]] = {}
        self._samples: dict[str, list[tuple[Any, ...]]] = {}

    def begin(self, name: str, columns: Sequence[str]) -> None:
        """Begin a table."""
        self._tables[name] = self._kind(self._files, name, columns)
        self._columns[name], self._samples[name] = columns, []

    def sample(self, name: str, *columns: Any) -> None:
        """Remember rows for :meth:`flush`, column by column."""
        self._samples[name].append(columns)

    def add(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write rows at once."""
        self._tables[name].add(columns)

    def flush(self) -> None:
        """Write the samples."""
        for name, samples in self._samples.items():
            if samples:
                parts = [np.concatenate(column) for column in zip(*samples, strict=True)]
                self.add(name, dict(zip(self._columns[name], parts, strict=True)))
                samples.clear()

    def close(self) -> None:
        """Close every table."""
        for table in self._tables.values():
            table.close()


class Tracer:
    """Collects the samples of a run and writes them interval by interval.

    ``lasting``: queue pairs outlive their flows.
    """

    def __init__(
        self,
        trace: Trace,
        files: ResultFiles,
        jobs: Sequence[Collective] = (),
        *,
        lasting: bool = False,
    ) -> None:
        self.trace = trace
        if trace.jobs and not any(c.operations for c in jobs):
            raise ConfigError("--trace jobs: the scenario has no workload of kind 'job'")
        self._jobs = JobTrace(files, JOBS_FILE, jobs) if trace.jobs else None
        self._with_flows = "rate" in trace.quantities and trace.flows != ()
        self._tables = _Tables(files, trace.format)
        self._begin_tables()
        self._events: Eventful | None = None
        self._event_values: list[str] = []
        self._completions = Completions(trace.every_ps)
        self._sending = Sending(trace.every_ps, lasting=lasting)
        ports = len(trace.ports)
        self._names = np.array([(p.node, p.index, p.peer) for p in trace.ports], dtype=np.int64)
        self._names = self._names.reshape(ports, 3)
        self._sent = np.zeros(ports, dtype=np.int64)
        self._paused = np.zeros(ports, dtype=np.float64)
        self.binned = {q: Binned(ports) for q in trace.quantities}
        self.flow_rates = FlowLines()
        self.flow_sending = FlowLines()
        self.total_sending = Binned(1)
        self.completed = CompletionBins()

    def _begin_tables(self) -> None:
        if self.trace.quantities:
            columns = [c for q in self.trace.quantities for c in _PORT_COLUMNS[q]]
            self._tables.begin("trace_ports", ["time_ns", "node", "port", "peer", *columns])
        if self._with_flows:
            self._tables.begin("trace_flows", _FLOW_COLUMNS)
        if self.trace.sending:
            self._tables.begin("trace_sending", SENDING_COLUMNS)
            self._tables.begin("trace_total", TOTAL_COLUMNS)
        if self.trace.completions:
            self._tables.begin("trace_completions", COMPLETION_COLUMNS)

    def attach(self, backend: Backend) -> None:
        """Begin to look into an opened backend; raise ConfigError if it cannot be looked into."""
        looks = bool(self.trace.quantities) or self.trace.sending
        name = type(backend).__name__
        if looks and not isinstance(backend, Watchable):
            raise ConfigError(f"--trace: {name} cannot be looked into; use --backend native")
        if self.trace.events and not isinstance(backend, Eventful):
            raise ConfigError(
                f"--trace rp: {name} keeps no events of senders; use --backend native, or leave "
                "rp out"
            )
        if self.trace.events:
            self._attach_events(backend)
        if looks:
            self._attach_samples(backend)

    def _attach_samples(self, backend: Any) -> None:
        # the ports of hosts are the first ones, one each
        hosts = range(self.trace.hosts if self.trace.sending else 0)
        ports = [*(port.number for port in self.trace.ports), *hosts]
        backend.watch(self.trace.every_ps, ports, self._look)

    def _attach_events(self, backend: Any) -> None:
        self._events = backend
        backend.trace_schemes()
        values = [name for scheme in backend.take_scheme_trace() for name in scheme["values"]]
        self._event_values = list(dict.fromkeys(values))
        self._tables.begin("trace_rp", [*_EVENT_COLUMNS, *self._event_values])

    def _write_events(self, backend: Eventful) -> None:
        """Write what the schemes traced in the interval; NaN is a value that a scheme lacks."""
        for scheme in backend.take_scheme_trace():
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
            own = {v: values.get(v, nothing) for v in self._event_values}
            self._tables.add("trace_rp", {**columns, **own})

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
        keys, wanted = self._wanted(flows)
        self.flow_sending.add(keys, rates[wanted])
        picked = [flows[name][wanted] for name in ("src", "dst", "ordinal", "workload")]
        times = np.full(len(wanted), now_ps / 1000)
        self._tables.sample("trace_sending", times, *picked, rates[wanted])
        total = self._sending.total(tx_bytes)
        self.total_sending.add(np.array([total]))
        self._tables.sample("trace_total", np.array([now_ps / 1000]), np.array([total]))

    def _wanted(self, flows: Mapping[str, Any]) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the names of the traced flows among these, and their rows."""
        names = zip(*(flows[n].tolist() for n in ("src", "dst", "ordinal")), strict=True)
        wanted = [(i, key) for i, key in enumerate(names) if self.trace.wanted(*key)]
        return [key for _, key in wanted], [i for i, _ in wanted]

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
        self._tables.sample("trace_ports", times, *self._names.T, *chosen)
        if self._jobs is not None and "queue" in self.binned:
            self._jobs.count(now_ps, "largest queue, bytes", float(series["queue"].max(initial=0)))
        if self._jobs is not None and "pause" in self.binned:
            self._jobs.count(now_ps, "paused ports", float(series["pause"].sum()))
        for quantity, binned in self.binned.items():
            binned.add(np.asarray(series[quantity], dtype=np.float64))

    def _look_at_flows(self, now_ps: int, flows: Mapping[str, Any]) -> None:
        keys, wanted = self._wanted(flows)
        self.flow_rates.add(keys, flows["rate_bps"][wanted])
        picked = [flows[name][wanted] for name in ("src", "dst", "ordinal", "workload", "rate_bps")]
        self._tables.sample("trace_flows", np.full(len(wanted), now_ps / 1000), *picked)

    def add_jobs(self, spans: JobSpans) -> None:
        """Write what jobs did in the interval."""
        if self._jobs is not None:
            self._jobs.add(spans)

    def end_interval(self, done: FinishedFlows, end_ps: int) -> None:
        """Write the samples of the interval up to ``end_ps``, in which these flows finished."""
        if self.trace.completions:
            if len(done.src):
                self._completions.add(done)
                self.completed.add(done, self.trace.every_ps)
            self._write_completions(end_ps)
        self._tables.flush()
        if self._events is not None:
            self._write_events(self._events)

    def _write_completions(self, until_ps: float) -> None:
        """Write the periods that are over by then."""
        rows = self._completions.take(until_ps)
        if len(rows["time_ns"]):
            self._tables.add("trace_completions", rows)

    def close(self) -> None:
        """Write what is left, of a period that the run does not fill, and close the tables."""
        if self.trace.completions:
            self._write_completions(math.inf)
        if self._jobs is not None:
            self._jobs.close()
        self._tables.close()
