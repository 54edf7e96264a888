"""The conformance kit of monitors in Python: subclass :class:`MonitorCase`, name it, run pytest.

.. code-block:: python

    from dcqcn_gym.testing.monitor_case import MonitorCase

    class TestMyMonitor(MonitorCase):
        kind = "my-monitor"  # a registered name, or "path/to/file.py:MyMonitor"

It takes a few seconds: two runs of the small network on the packet engine, and made-up logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.flow_log import FlowLogReader
from dcqcn_gym.envs.monitors import MONITORS, FlowMonitor, MonitorSettings
from dcqcn_gym.envs.scenario.monitor import OwnMonitor, monitor_of
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

MS = 1_000_000_000
SWITCHES = 3


def made_up_logs(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return the logs of ``count`` intervals: mice, long flows, an idle interval, one full one."""
    random = np.random.default_rng(seed)
    logs = []
    for interval in range(count):
        flows = {2: 0, 3: 5000}.get(interval, 40)
        long = np.arange(1, 11) if flows else np.arange(0)
        key = np.concatenate([long, 1000 * (interval + 1) + np.arange(flows)])
        size = np.where(key <= 10, 300_000, random.integers(1, 20_000, len(key)))
        tor = np.sort(key % SWITCHES)
        key = key[np.argsort(key % SWITCHES, kind="stable")]
        packets = np.maximum(1, size // 1000)
        logs.append({"tor": tor, "key": key, "payload_bytes": size, "packets": packets})
    return logs


class MonitorCase:
    """What every monitor in Python promises; ``options`` are those of ``[monitor.options]``."""

    kind: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    intervals: ClassVar[int] = 8

    def monitor(self) -> OwnMonitor:
        """Return the table of the monitor under test."""
        monitor = monitor_of({"kind": self.kind, "options": dict(self.options)})
        assert isinstance(monitor, OwnMonitor)
        return monitor

    def reader(self, seed: int = 1) -> FlowLogReader:
        """Return a fresh monitor behind its checks: what is no distribution raises."""
        return FlowLogReader(self.monitor(), SWITCHES, MS, seed)

    def said(self, reader: FlowLogReader, count: int | None = None) -> list[FlowSizeDistribution]:
        """Return what a monitor makes of the made-up logs."""
        logs = made_up_logs(self.intervals if count is None else count)
        return [reader.read(log, i * MS, (i + 1) * MS) for i, log in enumerate(logs)]

    def scenario(self) -> Scenario:
        """Return the small scenario with the monitor under test."""
        return load_scenario("mini-fb-hadoop").model_copy(update={"monitor": self.monitor()})

    def test_says_what_it_is(self) -> None:
        """Name, one-line summary, typed settings with descriptions."""
        found = MONITORS.load(self.kind)
        assert issubclass(found, FlowMonitor)
        assert found.name
        assert found.summary
        assert "\n" not in found.summary
        assert issubclass(found.Settings, MonitorSettings)
        assert all(field.description for field in found.Settings.model_fields.values())

    def test_says_a_legal_distribution(self) -> None:
        """Counts are finite, not negative and add up, also of an idle interval."""
        known = [fsd for fsd in self.said(self.reader()) if fsd.known]
        assert any(fsd.bins.sum() > 0 for fsd in known)
        assert all(0.5 <= fsd.mu <= 1.0 for fsd in known)

    def test_same_seed_same_words(self) -> None:
        """No clock, no unseeded randomness."""
        assert self.said(self.reader(7)) == self.said(self.reader(7))

    def test_two_monitors_do_not_disturb_each_other(self) -> None:
        """Two of a kind share nothing, even interval by interval."""
        alone = self.said(self.reader())
        first, second = self.reader(), self.reader()
        for i, log in enumerate(made_up_logs(self.intervals)):
            for reader in (first, second):
                assert reader.read(log, i * MS, (i + 1) * MS) == alone[i]

    def test_says_what_it_costs(self) -> None:
        """Bytes on the wire: a distribution that is known has travelled at least once."""
        said = self.said(self.reader())
        if any(fsd.known for fsd in said):
            assert any(fsd.monitor_bytes > 0 for fsd in said)

    def test_judges_flows_one_by_one_or_not_at_all(self) -> None:
        """Shares are one per row, in 0..1 or NaN, and stay what they are when asked again."""
        reader = self.reader()
        for i, log in enumerate(made_up_logs(self.intervals)):
            span = (i * MS, (i + 1) * MS)
            reader.read(log, *span)
            first, again = (reader.elephant_shares(log, *span) for _ in range(2))
            if first is None:
                assert again is None
                continue
            seen = first[~np.isnan(first)]
            assert ((seen >= 0.0) & (seen <= 1.0)).all()
            assert again is not None
            assert np.array_equal(first, again, equal_nan=True)

    def test_watches_the_packet_engine(self) -> None:
        """Two runs of one seed report the same, and traffic is seen."""
        first, second = (self._reports() for _ in range(2))
        assert first == second
        assert any(fsd.bins.sum() > 0 for fsd in first) or not any(fsd.known for fsd in first)

    def _reports(self) -> list[FlowSizeDistribution]:
        backend = make_backend("native")
        scenario = self.scenario()
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
        reports = [backend.advance().fsd for _ in range(4)]
        backend.close()
        return reports

    def test_resumed_equals_uninterrupted(self, tmp_path: Path) -> None:
        """A tuning run cut in the middle, continued, has the bytes of the whole one."""
        spec = RunSpec(self.scenario(), "paraleon", 1, 5, "native")
        whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
        run(spec, whole)
        lines = whole.read_bytes().splitlines(keepends=True)
        part.write_bytes(b"".join(lines[:4]))
        run(spec, part, replay=read_run(part))
        assert part.read_bytes() == whole.read_bytes()
