"""A NIC of the digital fabric: the files and command outputs that a kernel would show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dcqcn_gym.core.knobs import DCQCN, NIC_KNOBS
from dcqcn_gym.hw.device_units import from_device, to_device
from dcqcn_gym.hw.drivers.mlx5 import number
from dcqcn_gym.hw.runner import recorded_name

__all__ = ["PlayedNic"]

PCI, NETDEV, IBDEV, PRIORITY = "0000:01:00.0", "eth0", "mlx5_0", 3
_CC = f"sys/kernel/debug/mlx5/{PCI}/cc_params"
_PORT = f"sys/class/infiniband/{IBDEV}/ports/1"


class PlayedNic:
    """One NIC below a root; knobs are read from its files, figures are written into them."""

    settings: Mapping[str, object] = {
        "pci": PCI, "netdev": NETDEV, "ibdev": IBDEV, "priority": PRIORITY, "rtt_file": "run/rtt",
    }  # fmt: skip
    """What its agent's file says."""

    def __init__(self, root: Path, knobs: Mapping[str, float]) -> None:
        """Lay out the files, with these knobs."""
        self._root = root
        for name in NIC_KNOBS:
            text = str(to_device(DCQCN[name], knobs[name]))
            self._write(f"{_CC}/{DCQCN[name].debugfs}", text)
        self._write(f"{_PORT}/hw_counters/lifespan", "10")
        command = recorded_name("mlxconfig", "-d", PCI, "query")
        keys = "".join(f"         {key:<44}False(0)\n" for key in ("USER_PROGRAMMABLE_CC",))
        self._write(f"commands/{command}", f"Configurations:{'Next Boot':>47}\n{keys}")

    def knobs(self) -> dict[str, float]:
        """Return the knobs that the files hold."""
        return {name: from_device(DCQCN[name], self._held(name)) for name in NIC_KNOBS}

    def _held(self, name: str) -> int:
        path = self._root / f"{_CC}/{DCQCN[name].debugfs}"
        return number(path.read_text(encoding="ascii"), str(path))

    def show(self, counters: Mapping[str, int]) -> None:
        """Write the figures of now (:class:`~dcqcn_gym.hw.figures.Ledger`)."""
        statistics = {
            f"rx_prio{PRIORITY}_bytes": 0,
            f"rx_prio{PRIORITY}_packets": 0,
            f"tx_prio{PRIORITY}_bytes": counters["tx_bytes"],
            f"tx_prio{PRIORITY}_packets": counters["tx_packets"],
            f"rx_prio{PRIORITY}_pause": counters["pfc_received"],
            f"tx_prio{PRIORITY}_pause": counters["pfc_sent"],
            f"rx_prio{PRIORITY}_pause_duration": counters["pause_us"],
        }
        lines = "".join(f"     {name}: {value}\n" for name, value in statistics.items())
        self._write(
            f"commands/{recorded_name('ethtool', '-S', NETDEV)}", f"NIC statistics:\n{lines}"
        )
        self._write(f"{_PORT}/hw_counters/np_cnp_sent", str(counters["cnps_sent"]))
        self._write(f"{_PORT}/counters/port_xmit_data", str(counters["tx_bytes"] // 4))
        peers = sorted(int(name.split("/")[1]) for name in counters if name.endswith("/count"))
        rows = (
            " ".join(str(counters[f"rtt/{peer}/{f}"]) for f in ("count", "sum_ns", "base_ns"))
            for peer in peers
        )
        table = "".join(f"{peer} {row}\n" for peer, row in zip(peers, rows, strict=True))
        self._write("run/rtt", table)

    def _write(self, path: str, text: str) -> None:
        """Write a file at once, so that nobody reads half of it."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(text if text.endswith("\n") or not text else text + "\n", encoding="ascii")
        os.replace(fresh, file)
