"""The commands that measure more cores do the work that they time; nothing here asserts a speed."""

from __future__ import annotations

import more_cores
import pytest
from more_cores import thread_speed, worker_speed


def test_threads_are_timed_on_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    job, _, _ = more_cores.THREAD_JOBS["all-to-all"]
    monkeypatch.setitem(more_cores.THREAD_JOBS, "short", (job, 50, 100))
    found = thread_speed("short", 2, pairs=2)
    assert len(found.wall_s) == 2
    assert found.row()[0] == "short"


@pytest.mark.slow
def test_every_run_of_a_campaign_on_dask_counts() -> None:
    pytest.importorskip("distributed")
    found = worker_speed(2, 3, "mini-fb-hadoop", 2)
    assert len(found.cpu_s) == 3
    assert min(found.cpu_s) > 0
