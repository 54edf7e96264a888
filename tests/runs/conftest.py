"""What tests of runs share."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dcqcn_gym.benchmarks.leaderboard.tuner_host.process import HostProcess
from waiting import LONG_S


@pytest.fixture
def from_the_third_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline of a tuner's process holds from its third ask on: no slow start decides."""
    call, asks = HostProcess.call, Counter[int]()

    def later(self: HostProcess, name: str, **fields: Any) -> Any:
        given = self._deadline_s
        asks[id(self)] += name == "ask"
        self._deadline_s = given if asks[id(self)] > 2 else LONG_S
        try:
            return call(self, name, **fields)
        finally:
            self._deadline_s = given

    monkeypatch.setattr(HostProcess, "call", later)
