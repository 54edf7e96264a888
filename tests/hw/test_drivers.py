"""Every driver against the kit, on two kernels and two SONiC images; units, refusals, bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devices import DATA, LATER, NIC, PlayedMlxconfig, load_sonic, nic_tree, redis_server

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS, NIC_KNOBS, expert_setting
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.driver_case import DriverCase
from dcqcn_gym.hw.drivers import DRIVERS, Driver, Surroundings, Targets, make_driver
from dcqcn_gym.hw.drivers.mlx5_counters import ethtool_statistics, queue_pairs
from dcqcn_gym.hw.drivers.sonic import members
from dcqcn_gym.hw.drivers.sonic_db import CONFIG_DB
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.queue_pair_sizes import QueuePairSizes
from dcqcn_gym.hw.runner import RecordedRunner, recorded_name
from dcqcn_gym.hw.transaction import Guard

EXPERT = expert_setting()
NIC_WANTED = {name: EXPERT[name] for name in NIC_KNOBS if name not in LATER}
PORTS = ["Ethernet0", "Ethernet4", "Ethernet8"]


def mlx5(root: Path, **more: object) -> Driver:
    around = Surroundings(root, RecordedRunner(root / "commands"))
    return make_driver("mlx5", {**NIC, **more}, around, "test")


class TestMlx5(DriverCase):
    @pytest.fixture(autouse=True, params=["older", "newer"])
    def _tree(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self.root = nic_tree(tmp_path, request.param)

    def new_driver(self) -> Driver:
        return mlx5(self.root, assume_dcqcn=False)

    def targets(self) -> Targets:
        return {"": NIC_WANTED}


class TestMlxconfig(DriverCase):
    counts = False

    @pytest.fixture(autouse=True, params=["older", "newer"])
    def _text(self, request: pytest.FixtureRequest) -> None:
        self.text = (DATA / f"mlxconfig-{request.param}.txt").read_text()

    def new_driver(self) -> Driver:
        around = Surroundings(runner=PlayedMlxconfig(self.text))
        return make_driver("mlxconfig", {"pci": NIC["pci"]}, around, "test")

    def targets(self) -> Targets:
        return {"": {name: EXPERT[name] for name in NIC_KNOBS}}


@pytest.fixture(scope="module")
def redis_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as socket:
        yield socket


@pytest.fixture(scope="module")
def second_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as socket:
        yield socket


def sonic(socket: str, asic_wait_s: float = 0.0) -> Driver:
    settings = {"socket": socket, "ports": PORTS, "asic_wait_s": asic_wait_s}
    return make_driver("sonic", settings, Surroundings(), "test")


class TestSonicAsics(DriverCase):
    """Two ASICs: a Redis server, and ports, of their own each."""

    @pytest.fixture(autouse=True)
    def _images(self, redis_socket: str, second_socket: str) -> None:
        self.sockets = (redis_socket, second_socket)
        load_sonic(redis_socket, "sonic-older")
        load_sonic(second_socket, "sonic-newer")

    def new_driver(self) -> Driver:
        more = {"asic_wait_s": 0.0}
        asics = {
            "asic0": {"socket": self.sockets[0], "ports": PORTS[:2], **more},
            "asic1": {"socket": self.sockets[1], "ports": PORTS[2:], **more},
        }
        return make_driver("sonic-asics", {"asics": asics}, Surroundings(), "test")

    def targets(self) -> Targets:
        return {"": {name: EXPERT[name] for name in ECN_KNOBS}}

    def test_a_port_is_that_of_its_asic(self, driver: Driver) -> None:
        assert driver.ports == tuple(PORTS)
        staged = driver.stage({"Ethernet8": {"kmin": 30.0}})
        assert staged
        assert all(place.startswith("asic1/WRED_PROFILE|") for place in staged)
        with pytest.raises(DeviceError, match="port 'Ethernet12' is not one of Ethernet0, "):
            driver.stage({"Ethernet12": {"kmin": 30.0}})
        asic = {"socket": self.sockets[0], "ports": PORTS}
        with pytest.raises(ConfigError, match="port 'Ethernet0' is of two"):
            make_driver("sonic-asics", {"asics": {"a": asic, "b": asic}}, Surroundings(), "test")


class TestSonic(DriverCase):
    @pytest.fixture(autouse=True, params=["sonic-older", "sonic-newer"])
    def _image(self, request: pytest.FixtureRequest, redis_socket: str) -> None:
        self.socket = redis_socket
        load_sonic(redis_socket, request.param)

    def new_driver(self) -> Driver:
        return sonic(self.socket)

    def targets(self) -> Targets:
        return {"": {name: EXPERT[name] for name in ECN_KNOBS}}


def test_every_built_in_driver_is_tested_here() -> None:
    # test_eos.py, test_committed_switches.py, test_gnmi.py, test_nic_trees.py
    elsewhere = {"eos", "junos", "nvue", "gnmi", "ofed", "bnxt", "hiroce3", "hns"}
    assert {"mlx5", "mlxconfig", "sonic", "sonic-asics"} == set(DRIVERS.builtin) - elsewhere


def test_files_hold_the_bytes_that_the_kernel_takes(tmp_path: Path) -> None:
    for write_as, bytes_ in (("decimal", b"96\n"), ("hex", b"0x60\n")):
        root = nic_tree(tmp_path / write_as, "newer")
        driver = mlx5(root, write_as=write_as)
        driver.apply(driver.stage({"": {"np_min_time_between_cnps": 96.0}}))
        folder = root / f"sys/kernel/debug/mlx5/{NIC['pci']}/cc_params"
        assert (folder / "np_min_time_between_cnps").read_bytes() == bytes_
        assert driver.read()["np_min_time_between_cnps"] == "96"
        assert (folder / "np_cnp_dscp").read_bytes() == b"48\n"  # no knob, never touched


def test_files_are_written_in_the_order_that_the_diff_shows(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    driver = mlx5(root)
    before = driver.read()
    after = driver.stage({"": NIC_WANTED})
    written: list[str] = []
    inner = driver._root.write  # type: ignore[attr-defined]

    def write(path: str, text: str) -> None:
        written.append(path.rpartition("/")[2])
        inner(path, text)

    driver._root.write = write  # type: ignore[attr-defined]
    driver.apply(after)
    assert written == [line.place for line in driver.diff(before, after)] == list(after)
    assert len(written) >= 3


def test_an_older_kernel_lacks_two_knobs(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "older")
    lacking = {"rp_max_rate", "np_min_time_between_cnps"}
    assert set(NIC_KNOBS) - set(mlx5(root).knobs()) == lacking
    every = {"": {name: EXPERT[name] for name in NIC_KNOBS}}
    with pytest.raises(DeviceError, match="rp_max_rate"):
        mlx5(root).stage(every)
    staged = mlx5(root, skip=sorted(lacking)).stage(every)
    assert staged["rp_ai_rate"] == "50"
    assert not lacking & set(staged)


def test_programmable_congestion_control_is_refused(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    output = next((root / "commands").glob("mlxconfig*"))
    text = output.read_text().replace("USER_PROGRAMMABLE_CC" + " " * 24 + "False(0)",
                                      "USER_PROGRAMMABLE_CC" + " " * 24 + "True(1)")  # fmt: skip
    output.write_text(text)
    with pytest.raises(DeviceError, match=r"USER_PROGRAMMABLE_CC = 1.*may not apply"):
        mlx5(root).stage({"": NIC_WANTED})
    output.unlink()
    with pytest.raises(DeviceError, match="assume_dcqcn"):
        mlx5(root).read()
    assert mlx5(root, assume_dcqcn=True).read()["rp_gd"] == "11"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    driver = mlx5(root)
    linked = root / f"sys/kernel/debug/mlx5/{NIC['pci']}/cc_params/rp_gd"
    linked.unlink()
    linked.symlink_to("/dev/null")
    with pytest.raises(DeviceError, match="rp_gd: cannot be written"):
        driver.apply({"rp_gd": "12"})


def test_nic_counters_have_the_figures_of_the_tree(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    (root / "rtt").write_text("4 10 120000 10000\n7 1 9000 9000\n")
    found = mlx5(root, rtt_file="rtt").counters()
    wanted = {
        "tx_bytes": 1000000400, "tx_packets": 941619, "pause_us": 345, "pfc_received": 12,
        "pfc_sent": 7, "cnps_sent": 1201, "cnps_handled": 903, "port_tx_bytes": 1000000000,
        "rtt/4/count": 10, "rtt/4/sum_ns": 120000, "rtt/7/base_ns": 9000,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_the_cache_of_counters_ends_within_the_interval(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    file = root / "sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan"
    mlx5(root).prepare(100.0)
    assert file.read_text() == "10\n"
    mlx5(root).prepare(1.0)
    assert file.read_text() == "0\n"


def test_captured_output_is_read_strictly() -> None:
    assert ethtool_statistics("NIC statistics:\n     rx_prio3_pause: 12\n") == {
        "rx_prio3_pause": 12
    }
    with pytest.raises(DeviceError, match="NIC statistics"):
        ethtool_statistics("no stats available\n")
    pairs = (
        "link mlx5_0/1 cntn 4 type RC lqpn 178 \n    rx_write_requests 3 np_cnp_sent 9 \n"
        "link mlx5_0/1 cntn 5 type RC lqpn 179,180 \n    rx_write_requests 1 \n"
    )
    assert queue_pairs(pairs) == {
        178: {"rx_write_requests": 3, "np_cnp_sent": 9}, 179: {"rx_write_requests": 1}
    }  # fmt: skip


def test_a_shared_profile_is_shown_before_it_changes(redis_socket: str) -> None:
    load_sonic(redis_socket, "sonic-newer")
    driver = sonic(redis_socket)
    before = driver.read()
    lines = driver.diff(before, driver.stage({"": {"kmin": 600.0}}))
    shared = {line.place: line.shared_by for line in lines}
    assert shared["WRED_PROFILE|AZURE_LOSSLESS/ecn_green_min_threshold"] == (
        "Ethernet0|3", "Ethernet0|4", "Ethernet4|3", "Ethernet4|4",
    )  # fmt: skip
    assert shared["WRED_PROFILE|UPLINK/ecn_green_min_threshold"] == ()
    assert "WRED_PROFILE|AZURE_LOSSLESS/green_min_threshold" not in shared  # drops stay
    with pytest.raises(DeviceError, match="Ethernet0 and Ethernet4 share the profile AZURE"):
        driver.stage({"Ethernet0": {"kmin": 100.0}, "Ethernet4": {"kmin": 200.0}})
    one = driver.stage({"Ethernet8": {"kmin": 100.0}})
    assert {place.split("/")[0] for place in one} == {"WRED_PROFILE|UPLINK"}
    with pytest.raises(DeviceError, match="above the maximum"):
        driver.stage({"": {"kmin": 3000.0}})


def test_a_profile_is_written_whole_so_that_kmin_never_passes_kmax(redis_socket: str) -> None:
    import redis

    load_sonic(redis_socket, "sonic-older")
    driver = sonic(redis_socket)
    held = driver.setting()["Ethernet0"]
    beyond = {"kmin": held["kmax"] + 100, "kmax": held["kmax"] + 200, "pmax": 0.5}
    after = driver.stage({"": beyond})
    client: Any = redis.Redis(unix_socket_path=redis_socket)
    commands: list[str] = []
    with client.monitor() as seen:
        driver.apply(after)
        while not commands or commands[-1] != "EXEC":
            commands.append(seen.next_command()["command"])
    began = commands.index("MULTI")
    writes = [command for command in commands if command.startswith("HSET")]
    assert commands[began + 1 : -1] == writes
    assert writes
    for command in writes:
        fields = command.split()[2:]
        assert {"green_min_threshold", "green_max_threshold"} <= set(fields[::2])
        values = dict(zip(fields[::2], map(int, fields[1::2]), strict=True))
        assert values["green_min_threshold"] < values["green_max_threshold"]


def test_a_field_that_was_absent_is_absent_again(redis_socket: str, tmp_path: Path) -> None:
    import redis

    load_sonic(redis_socket, "sonic-older")
    client: Any = redis.Redis(unix_socket_path=redis_socket, db=4, decode_responses=True)
    key = "WRED_PROFILE|AZURE_LOSSLESS"
    client.hdel(key, "yellow_drop_probability", "red_drop_probability")
    before = client.hgetall(key)
    guard = Guard(sonic(redis_socket), Journal(tmp_path / "journal"))
    guard.start()
    guard.stage("t1", {"": {name: EXPERT[name] for name in ECN_KNOBS}}, Who("test"))
    guard.apply("t1", 5.0)
    assert client.hget(key, "red_drop_probability")
    guard.confirm("t1", Who("test"))
    guard.undo("t1", Who("test"))
    assert client.hgetall(key) == before
    assert guard.status.state == "idle"


def test_a_profile_that_does_not_mark_is_refused(redis_socket: str) -> None:
    import redis

    load_sonic(redis_socket, "sonic-older")
    client = redis.Redis(unix_socket_path=redis_socket, db=4)
    client.hset("WRED_PROFILE|AZURE_LOSSLESS", "ecn", "ecn_none")
    with pytest.raises(DeviceError, match="does not mark"):
        sonic(redis_socket).read()
    client.delete("QUEUE|Ethernet0,Ethernet4,Ethernet8|3-4")
    with pytest.raises(DeviceError, match="has no WRED profile"):
        sonic(redis_socket).read()
    with pytest.raises(DeviceError, match="Redis at /nowhere"):
        make_driver("sonic", {"socket": "/nowhere", "ports": PORTS}, Surroundings(), "test").read()


def test_switch_counters_have_the_figures_of_the_image(redis_socket: str) -> None:
    for image in ("sonic-older", "sonic-newer"):
        load_sonic(redis_socket, image)
        found = sonic(redis_socket).counters()
        assert {name: found[f"Ethernet4/{name}"] for name in (
            "tx_bytes", "tx_packets", "marked_packets", "marked_bytes", "dropped_packets",
            "queue_bytes", "max_queue_bytes", "pfc_received", "pfc_sent", "pause_us",
        )} == {
            "tx_bytes": 7001, "tx_packets": 61, "marked_packets": 6, "marked_bytes": 501,
            "dropped_packets": 1, "queue_bytes": 201, "max_queue_bytes": 901,
            "pfc_received": 41, "pfc_sent": 31, "pause_us": 71,
        }  # fmt: skip


def test_counters_slower_than_the_interval_are_refused(redis_socket: str) -> None:
    load_sonic(redis_socket, "sonic-older")
    with pytest.raises(DeviceError, match=r"PORT counters every 1000 ms.*100 ms"):
        sonic(redis_socket).prepare(100.0)
    load_sonic(redis_socket, "sonic-newer")
    sonic(redis_socket).prepare(100.0)


def test_keys_of_the_queue_table() -> None:
    assert members("QUEUE|Ethernet0|3") == [("Ethernet0", 3)]
    assert members("QUEUE|Ethernet0,Ethernet4|3-4") == [
        ("Ethernet0", 3), ("Ethernet0", 4), ("Ethernet4", 3), ("Ethernet4", 4)
    ]  # fmt: skip
    assert members("QUEUE|linecard|asic0|Ethernet0|3") == []
    assert members("QUEUE|Ethernet0|0-99999999999") == []


def test_a_wrong_key_of_a_device_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"test: pci = '\.\./\.\.'"):
        make_driver("mlx5", {**NIC, "pci": "../.."}, Surroundings(), "test")
    with pytest.raises(ConfigError, match="did you mean 'netdev'"):
        make_driver("mlx5", {**NIC, "netdv": "x"}, Surroundings(), "test")


def test_all_knobs_belong_to_a_device() -> None:
    assert len(DCQCN.rows) == len(NIC_KNOBS) + len(ECN_KNOBS) == 20


PAIRS_TEXT = """link mlx5_0/1 cntn 4 type RC lqpn 178 rdma_tx_bytes 5000 rdma_tx_packets 5
link mlx5_0/1 cntn 5 type RC lqpn 179 rdma_tx_bytes 70 rdma_tx_packets 1
"""


def test_bytes_of_queue_pairs_are_read_if_the_kernel_has_them(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    file = root / "commands" / recorded_name("rdma", "statistic", "qp", "show", "link", "mlx5_0/1")
    around = Surroundings(root, RecordedRunner(root / "commands"))
    driver = make_driver("mlx5", {**NIC, "pair_counter": "rdma_tx_bytes"}, around, "test")
    with pytest.raises(DeviceError, match="rdma is not installed"):
        driver.counters()
    file.write_text(PAIRS_TEXT)
    found = driver.counters()
    assert {n: v for n, v in found.items() if n.startswith("qp/")} == {
        "qp/178/tx_bytes": 5000, "qp/179/tx_bytes": 70,
    }  # fmt: skip
    file.write_text(PAIRS_TEXT.replace("rdma_tx_bytes", "rx_write_requests"))
    with pytest.raises(DeviceError, match=r"shows no rdma_tx_bytes .* shows rdma_tx_packets, rx_"):
        driver.counters()
    file.write_text("")
    assert not any(name.startswith("qp/") for name in driver.counters())


def test_flow_sizes_of_queue_pairs() -> None:
    start = {"nic-0": {"qp/1/tx_bytes": 10_000_000, "tx_bytes": 5}, "nic-1": {}}
    sizes = QueuePairSizes(1_000_000, 0.01, start)
    first = sizes.close({"nic-0": {"qp/1/tx_bytes": 12_000_000, "qp/2/tx_bytes": 400},
                         "nic-1": {"qp/1/tx_bytes": 900}})  # fmt: skip
    assert (first.elephants, first.mice) == (1, 2)
    assert first.monitor_bytes == sum(
        len(pb.Figures(values={n: v}).SerializeToString())
        for n, v in (("qp/1/tx_bytes", 12_000_000), ("qp/2/tx_bytes", 400), ("qp/1/tx_bytes", 900))
    )
    again = sizes.close({"nic-0": {"qp/1/tx_bytes": 300}, "nic-1": {"qp/1/tx_bytes": 900}})
    assert again.elephants + again.mice + again.potential == 1  # another pair, under its number


@pytest.mark.parametrize("image", ["sonic-older", "sonic-newer"])
def test_thresholds_of_colours_that_do_not_mark_are_left_alone(
    redis_socket: str, image: str
) -> None:
    import redis

    load_sonic(redis_socket, image)
    client = redis.Redis(unix_socket_path=redis_socket, db=CONFIG_DB, decode_responses=True)
    profile = next(iter(client.scan_iter(match="WRED_PROFILE|*")))
    drops = {
        f"{colour}_{field}": value
        for colour in ("yellow", "red")
        for field, value in (("min_threshold", "1000000"), ("max_threshold", "1500000"),
                             ("drop_probability", "20"))
    }  # fmt: skip
    for field, text in {"ecn": "ecn_green", **drops}.items():
        client.hset(profile, field, text)
    before = client.hgetall(profile)
    driver = sonic(redis_socket)
    wanted = {"": {"kmin": 20.0, "kmax": 60.0, "pmax": 1.0}}
    driver.apply(driver.stage(wanted))
    after = client.hgetall(profile)
    changed = {field for field in after if after[field] != before.get(field)}
    assert {after[field] for field in changed} == {"20000", "60000", "100"}
    assert all("green" in field for field in changed)
    assert driver.setting()["Ethernet0"] == {"kmin": 20.0, "kmax": 60.0, "pmax": 1.0}
    client.close()


def test_a_curve_of_its_own_marks_without_drops(redis_socket: str) -> None:
    import redis

    load_sonic(redis_socket, "sonic-newer")  # SAI: ECN's thresholds count by the mark mode alone
    client = redis.Redis(unix_socket_path=redis_socket, db=CONFIG_DB, decode_responses=True)
    for profile in client.scan_iter(match="WRED_PROFILE|*"):
        for colour in ("green", "yellow", "red"):
            client.hset(profile, f"wred_{colour}_enable", "false")
    driver = sonic(redis_socket)
    driver.apply(driver.stage({"": {"kmin": 20.0}}))
    assert client.hget("WRED_PROFILE|AZURE_LOSSLESS", "ecn_green_min_threshold") == "20000"
    assert driver.setting()["Ethernet0"]["kmin"] == 20.0
    client.close()


def test_mstconfig_stands_in_where_mlxconfig_is_not(tmp_path: Path) -> None:
    root = nic_tree(tmp_path, "newer")
    around = Surroundings(root, RecordedRunner(root / "commands"))
    driver = make_driver("mlxconfig", {"pci": NIC["pci"]}, around, "test")
    before = driver.read()
    names = [recorded_name(tool, "-d", NIC["pci"], "query") for tool in ("mlxconfig", "mstconfig")]
    (root / "commands" / names[0]).rename(root / "commands" / names[1])
    assert driver.read() == before
    assert mlx5(root).knobs()
