"""SONiC's databases in Redis: their numbers, the few keys that are read, the one that is written.

Numbers as in sonic-swss-common: APPL 0, ASIC 1, COUNTERS 2, CONFIG 4, FLEX_COUNTER 5, STATE 6.
Keys of CONFIG_DB are separated by ``|``, those of COUNTERS_DB by ``:``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dcqcn_gym.core.errors import DeviceError, MissingExtraError, in_one_line

ASIC_DB = 1
COUNTERS_DB = 2
CONFIG_DB = 4
TIMEOUT_S = 2.0


class Databases:
    """A connection to the Redis of one switch; opened by the first call, again after a failure.

    Every method raises DeviceError if Redis cannot be asked.
    """

    def __init__(self, socket: str | None, host: str, port: int) -> None:
        self._where = socket or f"{host}:{port}"
        self._kind: dict[str, Any] = (
            {"unix_socket_path": socket} if socket else {"host": host, "port": port}
        )
        self._clients: dict[int, Any] = {}

    def queues(self) -> dict[str, dict[str, str]]:
        """Return every key of the table QUEUE with its fields."""
        with self._client(CONFIG_DB) as client:
            keys = sorted(client.scan_iter(match="QUEUE|*", count=1000))
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.hgetall(key)
            return dict(zip(keys, pipe.execute(), strict=True))

    def profile(self, name: str) -> dict[str, str]:
        """Return the fields of a WRED profile; empty if there is none."""
        return self.config(f"WRED_PROFILE|{name}")

    def config(self, key: str) -> dict[str, str]:
        """Return the fields of a key of CONFIG_DB."""
        with self._client(CONFIG_DB) as client:
            found: dict[str, str] = client.hgetall(key)
            return found

    def write_profiles(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Write fields of WRED profiles that exist, all or none.

        Empty text deletes a field: SONiC knows absent ones, not empty ones. If a profile changes
        meanwhile, nothing is written: DeviceError.
        """
        import redis

        keys = {f"WRED_PROFILE|{name}": dict(fields) for name, fields in changes.items()}
        with self._client(CONFIG_DB) as client, client.pipeline() as pipe:
            try:
                pipe.watch(*keys)
                for key in keys:
                    if not pipe.exists(key):
                        raise DeviceError(f"{key} has gone from CONFIG_DB; nothing was written")
                pipe.multi()
                for key, fields in keys.items():
                    absent = [field for field, text in fields.items() if not text]
                    if absent:
                        pipe.hdel(key, *absent)
                    given = {field: text for field, text in fields.items() if text}
                    if given:
                        pipe.hset(key, mapping=given)
                pipe.execute()
            except redis.WatchError:
                raise DeviceError(
                    f"somebody else changed {' or '.join(keys)} meanwhile; nothing was written"
                ) from None

    def read(self, database: int, keys: list[str]) -> list[dict[str, str]]:
        """Return the fields of keys of a database, all read at one instant."""
        with self._client(database) as client:
            pipe = client.pipeline(transaction=True)
            for key in keys:
                pipe.hgetall(key)
            found: list[dict[str, str]] = pipe.execute()
            return found

    @contextmanager
    def _client(self, database: int) -> Iterator[Any]:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtraError("the driver of SONiC switches", "hw") from None
        try:
            if database not in self._clients:
                self._clients[database] = redis.Redis(
                    db=database,
                    decode_responses=True,
                    socket_timeout=TIMEOUT_S,
                    socket_connect_timeout=TIMEOUT_S,
                    retry=Retry(NoBackoff(), 0),
                    **self._kind,
                )
            yield self._clients[database]
        except (redis.RedisError, OSError, UnicodeDecodeError) as error:
            raise DeviceError(f"Redis at {self._where}: {in_one_line(error)}") from None
