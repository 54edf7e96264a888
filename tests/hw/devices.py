"""Devices for tests, made by hand from the documented formats: nobody recorded them on a card.

Two kernels (the older one lacks the files that came later and prints counters of its age) and two
SONiC images (the older one binds queues with brackets, the newer one marks by thresholds of its
own), a mlxconfig that remembers, and a Redis server for as long as a test runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.drivers.sonic_db import CONFIG_DB, COUNTERS_DB
from dcqcn_gym.hw.runner import recorded_name

DATA = Path(__file__).parents[1] / "data" / "hw"
NIC = {"pci": "0000:3b:00.0", "netdev": "eth2", "ibdev": "mlx5_0"}
LATER = ("rp_max_rate", "np_min_time_between_cnps", "rtt_resp_dscp", "rtt_resp_dscp_valid")
"""Files that kernels got later (torvalds/linux, drivers/infiniband/hw/mlx5/cong.c)."""


def nic_tree(root: Path, generation: str) -> Path:
    """Write the files of a NIC as a kernel of this generation shows them; return the root."""
    files = json.loads((DATA / "mlx5-files.json").read_text())
    for path, text in files.items():
        if generation == "older" and path.rpartition("/")[2] in LATER:
            continue
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    commands = root / "commands"
    commands.mkdir()
    for program, arguments, name in (
        ("ethtool", ("-S", "eth2"), f"ethtool-{generation}.txt"),
        ("mlxconfig", ("-d", NIC["pci"], "query"), f"mlxconfig-{generation}.txt"),
    ):
        text = (DATA / name).read_text()
        (commands / recorded_name(program, *arguments)).write_text(text)
    return root


class PlayedMlxconfig:
    """A mlxconfig that remembers what was set, with the output of the real one."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def run(self, program: str, *arguments: str) -> str:
        if program != "mlxconfig":
            raise DeviceError(f"{program} is not installed on this host")
        if "query" in arguments:
            return "\n".join(self.lines) + "\n"
        for pair in arguments[arguments.index("set") + 1 :]:
            self._set(*pair.split("="))
        return "Applying... Done!\n-I- Please reboot machine to load new configurations.\n"

    def _set(self, key: str, value: str) -> None:
        for i, line in enumerate(self.lines):
            words = line.split()
            if words[:1] == [key]:
                named = {"0": "False(0)", "1": "True(1)"} if "(" in words[-1] else {}
                self.lines[i] = f"         {key:<44}{named.get(value, value)}"
                return
        raise DeviceError(f"mlxconfig: -E- The Device doesn't support {key} parameter")


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run a Redis server on a Unix socket; yield its path. Skips where there is no redis-server."""
    if shutil.which("redis-server") is None:
        if os.environ.get("DCQCN_GYM_REDIS_TESTS") == "required":
            pytest.fail("redis-server is not installed, and DCQCN_GYM_REDIS_TESTS requires it")
        pytest.skip("redis-server is not installed")
    socket = str(folder / "redis.sock")
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
               "--appendonly", "no", "--dir", str(folder), "--logfile", "redis.log"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(500):
            if Path(socket).exists():
                break
            time.sleep(0.01)
        yield socket
    finally:
        process.terminate()
        process.wait(10)


def load_sonic(socket: str, image: str) -> None:
    """Fill the databases with those of an image, whatever was in them."""
    import redis

    tables: dict[str, dict[str, dict[str, str]]] = json.loads((DATA / f"{image}.json").read_text())
    for number, name in ((CONFIG_DB, "CONFIG_DB"), (COUNTERS_DB, "COUNTERS_DB")):
        client = redis.Redis(unix_socket_path=socket, db=number)
        client.flushdb()
        for key, fields in tables[name].items():
            for field, text in fields.items():
                client.hset(key, field, text)
        client.close()
