"""Devices of the digital fabric: a switch is a Redis server with SONiC's databases; and NICs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.core.device_units import from_device, to_device
from dcqcn_gym.core.errors import ConfigError, MissingExtraError
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, NIC_KNOBS
from dcqcn_gym.hw.drivers.base import number
from dcqcn_gym.hw.drivers.sonic_counters import POLLS, QUEUE_FIGURES, WATERMARK
from dcqcn_gym.hw.drivers.sonic_db import CONFIG_DB, COUNTERS_DB
from dcqcn_gym.hw.runner import recorded_name

QUEUE = 3
START_S = 10.0
COLOURS = ("green", "yellow", "red")
_FIELDS = {"kmin": "min_threshold", "kmax": "max_threshold", "pmax": "drop_probability"}


def port_name(index: int) -> str:
    """Return SONiC's name of a port of four lanes: Ethernet0, Ethernet4, ..."""
    return f"Ethernet{4 * index}"


class PlayedSwitch:
    """One switch: created with its Redis server running, closed with it gone."""

    def __init__(
        self,
        folder: Path,
        n_ports: int,
        knobs: Mapping[str, float],
        interval_ms: float,
        *,
        shared_profile: bool,
    ) -> None:
        """Start Redis in ``folder`` and fill it; every port has these knobs."""
        if shutil.which("redis-server") is None:
            raise ConfigError("the digital fabric needs redis-server; install it (Debian: apt)")
        self.ports = [port_name(i) for i in range(n_ports)]
        self.socket = folder / "redis.sock"
        if len(str(self.socket)) > 100:  # what a Unix socket's address can hold
            raise ConfigError(
                f"the path {folder} is too long for a socket; choose a shorter folder"
            )
        self._profiles = [
            "AZURE_LOSSLESS" if shared_profile else f"AZURE_LOSSLESS_{port}" for port in self.ports
        ]
        folder.mkdir(parents=True, exist_ok=True)
        self._process = self._server()
        try:
            self._config = self._client(CONFIG_DB)
            self._counters = self._client(COUNTERS_DB)
            self._wait()
            self.fill(knobs, interval_ms)
        except BaseException:
            self.close()
            raise

    def _server(self) -> subprocess.Popen[bytes]:
        words = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", "",
                 "--unixsocketperm", "700", "--appendonly", "no", "--dir",
                 str(self.socket.parent), "--logfile", "redis.log"]  # fmt: skip
        return subprocess.Popen(words, stdout=subprocess.DEVNULL)

    @property
    def runs(self) -> bool:
        """True while the server is there."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Have the server end, as at a restart of SONiC's database; what it holds is kept."""
        self._config.shutdown(save=True)
        self._process.wait(10)

    def restart(self) -> None:
        """Bring a stopped server back, with what it held."""
        self._process = self._server()
        self._wait()

    def _client(self, database: int) -> Any:
        try:
            import redis
        except ImportError:
            raise MissingExtraError("the digital fabric", "hw") from None
        return redis.Redis(unix_socket_path=str(self.socket), db=database, decode_responses=True)

    def _wait(self) -> None:
        import redis

        until = time.monotonic() + START_S
        while True:
            try:
                self._config.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise ConfigError(f"redis-server does not answer at {self.socket}") from None
                time.sleep(0.01)

    def fill(self, knobs: Mapping[str, float], interval_ms: float) -> None:
        """Write the databases as after a boot: every port has these knobs."""
        held = {name: str(to_device(DCQCN[name], knobs[name])) for name in ECN_KNOBS}
        profile = {"ecn": "ecn_all"}
        for colour in COLOURS:
            profile[f"wred_{colour}_enable"] = "true"
            profile |= {f"{colour}_{field}": held[name] for name, field in _FIELDS.items()}
        pipe = self._config.pipeline()
        for name in set(self._profiles):
            pipe.hset(f"WRED_PROFILE|{name}", mapping=profile)
        for port, name in zip(self.ports, self._profiles, strict=True):
            pipe.hset(f"QUEUE|{port}|{QUEUE}", "wred_profile", name)
            pipe.hset(f"PORT_QOS_MAP|{port}", "pfc_enable", str(QUEUE))
        for group in POLLS:
            poll = {"FLEX_COUNTER_STATUS": "enable", "POLL_INTERVAL": str(int(interval_ms))}
            pipe.hset(f"FLEX_COUNTER_TABLE|{group}", mapping=poll)
        pipe.execute()
        pipe = self._counters.pipeline()
        for i, port in enumerate(self.ports):
            pipe.hset("COUNTERS_PORT_NAME_MAP", port, _oid(0x1000, i))
            pipe.hset("COUNTERS_QUEUE_NAME_MAP", f"{port}:{QUEUE}", _oid(0x1500, i))
        pipe.execute()

    def knobs(self) -> list[dict[str, float]]:
        """Return the knobs of every port."""
        pipe = self._config.pipeline(transaction=True)
        for name in self._profiles:
            pipe.hgetall(f"WRED_PROFILE|{name}")
        return [
            {n: from_device(DCQCN[n], int(held[f"green_{field}"])) for n, field in _FIELDS.items()}
            for held in pipe.execute()
        ]

    def show(self, ports: Sequence[Mapping[str, int]]) -> None:
        """Write the figures of now of every port, all at one instant."""
        pipe = self._counters.pipeline(transaction=True)
        for i, counters in enumerate(ports):
            queue = {field: counters[name] for field, name in QUEUE_FIGURES.items()}
            pipe.hset(f"COUNTERS:{_oid(0x1500, i)}", mapping=queue)
            mark = {WATERMARK: counters["max_queue_bytes"]}
            pipe.hset(f"PERIODIC_WATERMARKS:{_oid(0x1500, i)}", mapping=mark)
            pfc = f"SAI_PORT_STAT_PFC_{QUEUE}_"
            own = {
                "SAI_PORT_STAT_IF_OUT_OCTETS": counters["tx_bytes"],
                f"{pfc}RX_PKTS": counters["pfc_received"],
                f"{pfc}TX_PKTS": counters["pfc_sent"],
                f"{pfc}RX_PAUSE_DURATION_US": counters["pause_us"],
            }
            pipe.hset(f"COUNTERS:{_oid(0x1000, i)}", mapping=own)
        pipe.execute()

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(10)


def _oid(kind: int, index: int) -> str:
    return f"oid:{kind:#x}{index:012x}"


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
        """Write the figures of now (:class:`~dcqcn_gym.hw.device_counters.Ledger`)."""
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
