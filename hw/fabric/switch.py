"""A switch of the digital fabric: a Redis server of its own, with SONiC's databases."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, MissingExtraError
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.device_units import from_device, to_device
from dcqcn_gym.hw.drivers.sonic_counters import POLLS, QUEUE_FIGURES, WATERMARK
from dcqcn_gym.hw.drivers.sonic_db import CONFIG_DB, COUNTERS_DB

__all__ = ["QUEUE", "PlayedSwitch", "port_name"]

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
