"""The sketch in XDP: a real kernel takes the program and counts what was sent."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FILE = Path(__file__).resolve().parents[2] / "tools" / "xdp_sketch" / "accuracy.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("xdp_measure", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_a_real_kernel_counts_what_was_sent(tool: ModuleType) -> None:
    try:
        tool.check()
        (large,) = tool.measured(2048, [5.0], 3, 1)
        (small,) = tool.measured(16, [5.0], 3, 1)
    except tool.MissingError as error:
        pytest.skip(f"no XDP here: {error}")
    memory, _, flows, held, right, worst, in_light, lost, _ = large
    assert (memory, flows, right, worst, lost) == ("640 KiB", held, "1.0000", "1.0000", "0")
    assert in_light == "0.00%"
    assert float(small[4]) < 1  # sixteen buckets cannot hold 200 flows
    assert int(small[3]) <= 16 * tool.WAYS < int(small[2])


def test_a_frame_is_roce_by_the_projects_own_reader(tool: ModuleType) -> None:
    from dcqcn_gym.core.flow_export.packets import RocePacket, classify

    packet = classify(tool.frame(3, 77))
    assert isinstance(packet, RocePacket)
    assert (packet.key[3], packet.payload_bytes) == (77, tool.PAYLOAD)


def test_accuracy_by_hand(tool: ModuleType) -> None:
    exact = tool.bins(np.array([1000, 1000, 5000]))
    found = tool.bins(np.array([1000, 2500, 5000]))
    assert tool.accuracy(exact, exact) == 1
    assert tool.accuracy(found, exact) == pytest.approx(1 - 2 / 6)
