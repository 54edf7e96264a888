"""Graphs of a job: what the builder makes and refuses, and what files survive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder, NodeKind


def _loops() -> JobGraph:
    b = JobGraphBuilder(3)
    forward = b.label("forward")
    start = b.delay(0, 5, label=forward)
    with b.repeat(3, after=[start]) as outer:
        first = b.transfer(0, 1, 1000, connection=2)
        with b.repeat(2, after=[first]) as inner:
            b.local(1, 2, 7)
            b.delay(1, 0)
        b.join([inner.end, first], endpoint=2)
    b.join([outer.end])
    return b.build()


def test_a_graph_by_hand() -> None:
    g = _loops()
    k = NodeKind
    assert g.kind.tolist() == [
        k.DELAY, k.JOIN, k.TRANSFER, k.JOIN, k.LOCAL, k.DELAY, k.REPEAT, k.JOIN, k.REPEAT, k.JOIN,
    ]  # fmt: skip
    edges = [g.successors[g.first[i] : g.first[i + 1]].tolist() for i in range(len(g))]
    assert edges == [[1], [2], [3, 7], [4, 5], [6], [6], [7], [8], [9], []]
    assert g.executions.tolist() == [1, 3, 3, 6, 6, 6, 6, 3, 3, 1]
    assert g.src.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 0, 0]
    assert g.loops.tolist() == [[1, 8], [3, 6]]
    assert g.labels == ("", "forward")
    assert g.sizes.tolist() == [0, 0, 1000, 0, 7, 0, 0, 0, 0, 0]
    assert g.delay_ps.tolist()[0] == 5


def test_a_file_gives_the_same_graph(tmp_path: Path) -> None:
    g = _loops()
    g.to_file(tmp_path / "x.job")
    again = JobGraph.from_file(tmp_path / "x.job")
    assert again.to_bytes() == g.to_bytes()
    assert again.labels == g.labels


def test_mistakes_are_one_sentence() -> None:
    b = JobGraphBuilder(2)
    a = b.delay(0, 1)
    with b.repeat(2, after=[a]) as loop:
        inside = b.delay(0, 1)
    mistakes: list[tuple[Callable[[], int], str]] = [
        (lambda: b.transfer(0, 0, 1), "to itself"),
        (lambda: b.transfer(0, 2, 1), "endpoint 2; expected 0 to 1"),
        (lambda: b.transfer(0, 1, 0), "of 0 bytes"),
        (lambda: b.delay(0, -1), "-1 bytes or picoseconds"),
        (lambda: b.delay(0, 1, [9]), "does not exist yet"),
        (lambda: b.delay(0, 1, [inside]), f"expected after its end, node {loop.end}"),
        (lambda: b.delay(0, 1, label=3), "label 3"),
    ]
    for build, words in mistakes:
        size = len(b)
        with pytest.raises(ConfigError, match=words):
            build()
        assert len(b) == size
    with pytest.raises(ConfigError, match="outside of it"), b.repeat(2):
        b.delay(0, 1, [a])
    with pytest.raises(ConfigError, match="still open"):
        b.build()


def test_no_broken_file_is_taken_or_raises_anything_else(tmp_path: Path) -> None:
    good = _loops().to_bytes()
    draws = np.random.default_rng(1)
    taken = 0
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(int(draws.integers(1, 4))):
            data[int(draws.integers(len(data)))] = int(draws.integers(256))
        if draws.random() < 0.2:
            del data[int(draws.integers(len(data))) :]
        path = tmp_path / "x.job"
        path.write_bytes(data)
        try:
            g = JobGraph.from_file(path)
        except ConfigError:
            continue
        taken += 1
        before = np.repeat(np.arange(len(g)), np.diff(g.first))
        assert np.all(g.successors > before)
    assert 0 < taken < 1900  # a number of bytes may be another one
