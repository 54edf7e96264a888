"""A change of a SONiC switch counts once its ASIC holds it; a played orchagent follows, or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from devices import load_sonic, redis_server

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.drivers import Driver, Surroundings, make_driver
from dcqcn_gym.hw.drivers.sonic_db import ASIC_DB, CONFIG_DB, COUNTERS_DB
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import Guard

PORTS = ["Ethernet0", "Ethernet4", "Ethernet8"]
WANTED = {"": {"kmin": 20.0, "kmax": 60.0, "pmax": 0.5}}
WHO = Who("test")


def client_of(socket: str, database: int) -> Any:
    import redis

    return redis.Redis(unix_socket_path=socket, db=database, decode_responses=True)


class Orchagent:
    """What stands between CONFIG_DB and ASIC_DB: it is told of keys, and copies what it knows."""

    def __init__(self, socket: str, without: str) -> None:
        self.config, self.asic = client_of(socket, CONFIG_DB), client_of(socket, ASIC_DB)
        self.asic.flushdb()
        profiles = sorted(self.config.scan_iter(match="WRED_PROFILE|*"))
        self.objects = {name: f"oid:0x1300000000{i:04x}" for i, name in enumerate(profiles)}
        numbers = client_of(socket, COUNTERS_DB).hgetall("COUNTERS_QUEUE_NAME_MAP")
        for key in self.config.scan_iter(match="QUEUE|*|3*"):
            name = self.config.hget(key, "wred_profile").strip("[]").removeprefix("WRED_PROFILE|")
            for port in key.split("|")[1].split(","):
                queue = f"ASIC_STATE:SAI_OBJECT_TYPE_QUEUE:{numbers[f'{port}:3']}"
                number = self.objects[f"WRED_PROFILE|{name}"]
                self.asic.hset(queue, "SAI_QUEUE_ATTR_WRED_PROFILE_ID", number)
        self.follow("")
        self.config.config_set("notify-keyspace-events", "KEA")

    def follow(self, without: str) -> None:
        for name, number in self.objects.items():
            for field, text in self.config.hgetall(name).items():
                if not without or without not in field:
                    self.asic.hset(self.key(number), f"SAI_WRED_ATTR_{field.upper()}", text)

    def key(self, number: str) -> str:
        return f"ASIC_STATE:SAI_OBJECT_TYPE_WRED:{number}"

    def held(self) -> dict[str, dict[str, str]]:
        return {number: self.asic.hgetall(self.key(number)) for number in self.objects.values()}

    def asked(self) -> dict[str, dict[str, str]]:
        return {name: self.config.hgetall(name) for name in self.objects}


@contextmanager
def orchagent(socket: str, without: str = "") -> Iterator[Orchagent]:
    """Follow CONFIG_DB until the block ends, but for fields ``without`` that word."""
    played = Orchagent(socket, without)
    told = played.config.pubsub(ignore_subscribe_messages=True)
    keys = f"__keyspace@{CONFIG_DB}__:WRED_PROFILE|*"
    told.psubscribe(**{keys: lambda _: played.follow(without)})
    told.parse_response()  # from here on nothing is missed
    thread = told.run_in_thread(sleep_time=0.01, daemon=True)
    try:
        yield played
    finally:
        thread.stop()
        thread.join()


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as socket:
        yield socket


@pytest.fixture(params=["sonic-older", "sonic-newer"])
def switch(socket: str, request: pytest.FixtureRequest) -> str:
    load_sonic(socket, request.param)
    return socket


def sonic(socket: str, wait_s: float) -> Driver:
    settings = {"socket": socket, "ports": PORTS, "asic_wait_s": wait_s}
    return make_driver("sonic", settings, Surroundings(), "test")


def test_a_change_waits_for_the_asic_and_goes_back_with_it(switch: str, tmp_path: Path) -> None:
    with orchagent(switch) as played:
        before = played.held()
        guard = Guard(sonic(switch, 30.0), Journal(tmp_path / "journal"))
        guard.start()
        guard.stage("t1", WANTED, WHO)
        guard.apply("t1", 60.0)
        assert all("20000" in held.values() for held in played.held().values())
        guard.confirm("t1", WHO)
        guard.undo("t1", WHO)
        assert played.held() == before
        assert guard.status.state == "idle"


def test_what_the_asic_did_not_take_is_taken_back(switch: str, tmp_path: Path) -> None:
    with orchagent(switch, without="max_threshold") as played:
        before = played.asked()
        guard = Guard(sonic(switch, 0.1), Journal(tmp_path / "journal"))
        guard.start()
        guard.stage("t1", WANTED, WHO)
        with pytest.raises(DeviceError, match=r"max_threshold holds '\d+ in the ASIC'"):
            guard.apply("t1", 60.0)
        assert played.asked() == before
        assert guard.status.confirmed == "start"


def test_what_the_asic_lost_since_is_not_confirmed(switch: str, tmp_path: Path) -> None:
    with orchagent(switch) as played:
        guard = Guard(sonic(switch, 30.0), Journal(tmp_path / "journal"))
        guard.start()
        guard.stage("t1", WANTED, WHO)
        guard.apply("t1", 60.0)
        number, held = next(iter(played.held().items()))
        lost = [attribute for attribute, text in held.items() if text == "20000"]
        played.asic.hset(played.key(number), lost[0], "1")
        with pytest.raises(DeviceError, match="1 in the ASIC"):
            guard.confirm("t1", WHO)
        assert guard.status.confirmed == "start"


def test_config_save_follows_each_confirmation_where_it_is_wanted(
    switch: str, tmp_path: Path
) -> None:
    calls: list[tuple[str, ...]] = []

    class Told:
        def run(self, *words: str) -> str:
            calls.append(words)
            if len(calls) == 3:
                raise DeviceError("`config save -y` ended with 1")
            return ""

    settings = {"socket": switch, "ports": PORTS, "asic_wait_s": 0.0}
    for save, names in ((False, ("t1",)), (True, ("t2", "t3"))):
        around = Surroundings(runner=Told())
        driver = make_driver("sonic", {**settings, "save": save}, around, "test")
        guard = Guard(driver, Journal(tmp_path / f"journal-{save}"))
        guard.start()
        for i, name in enumerate(names):
            guard.stage(name, {"": {"kmin": 30.0 + i}} if save else WANTED, WHO)
            guard.apply(name, 60.0)
            assert len(calls) == (1 + i if save else 0)  # a trial is never saved
            guard.confirm(name, WHO)
    assert calls == [("config", "save", "-y")] * 3  # what it started with, too
    assert guard.status.confirmed == "t3"  # that it was not saved is noted, no more
    assert [r["name"] for r in guard.history if r["event"] == "not saved"] == ["t3"]


def test_a_queue_that_the_asic_does_not_know_is_named(switch: str) -> None:
    with orchagent(switch):
        client_of(switch, COUNTERS_DB).hdel("COUNTERS_QUEUE_NAME_MAP", "Ethernet4:3")
        driver = sonic(switch, 1.0)
        with pytest.raises(DeviceError, match="COUNTERS_DB has no queue Ethernet4:3"):
            driver.apply(driver.stage(WANTED))
