"""What an agent refuses whatever a controller asks: values that firmware takes, and deadly."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import load_sonic, redis_server
from fleets import controller_of, fleet_of, nic_agent_file, nic_fleet, rates, typed

from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent.config import AgentConfig
from dcqcn_gym.hw.drivers import Surroundings, make_driver
from dcqcn_gym.hw.limits import Range, check_limits

DEADLY = {
    "rp_min_rate": 2147483647, "rp_max_rate": 1, "rp_rate_to_set_on_first_cnp": 86_000,
    "kmin": 4_000_000, "kmax": 4_000_000, "rp_gd": 12, "rp_ai_rate": 131071,
}  # fmt: skip
BORDER = {
    "rp_min_rate": 5000, "rp_max_rate": 10_000, "rp_rate_to_set_on_first_cnp": 85_000,
    "kmin": 1600, "kmax": 6400, "rp_gd": 10, "rp_ai_rate": 500,
}  # fmt: skip
"""At 100 Gb/s."""


def check(name: str, value: float, gbps: float | None = 100.0, **own: Range) -> None:
    check_limits({"": {name: value}}, own, lambda: None if gbps is None else gbps * 1e9)


@pytest.mark.parametrize("name", sorted(DEADLY))
def test_what_is_legal_and_deadly_is_refused_by_line_rate(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} = .* is beyond this agent's limits"):
        check(name, DEADLY[name])
    check(name, BORDER[name])
    check(name, DCQCN[name].default)
    off = DCQCN[name].off
    if off is not None:
        check(name, off)
    follows = name not in ("rp_gd", "rp_ai_rate", "rp_max_rate")
    if follows:
        with pytest.raises(ConfigError, match="beyond"):
            check(name, BORDER[name], gbps=25.0)
        with pytest.raises(ConfigError, match="put line_rate_gbps into its file"):
            check(name, BORDER[name], gbps=None)
    check(name, DEADLY[name], gbps=None, **{name: Range(low=0, high=2**32)})


def test_defaults_of_the_vendor_are_within_the_limits() -> None:
    check_limits({"": {row.name: row.default for row in DCQCN.rows}}, {}, lambda: 100e9)


def test_an_agent_refuses_it_by_plan_and_by_apply_and_its_file_may_say_otherwise(
    tmp_path: Path,
) -> None:
    with nic_fleet(tmp_path, 2) as agents:
        file = tmp_path / "fleet.toml"
        file.write_text(toml_text(fleet_of(agents).model_dump(mode="json", exclude_none=True)))
        for dry in (["--dry-run"], []):
            code, said = typed("apply", "--fleet", str(file), "--set", "rp_ai_rate=100000", *dry)
            assert code != 0
            assert "nic-0: rp_ai_rate = 100000 Mb/s is beyond this agent's limits, 1 to 500" in said
        assert rates(tmp_path) == [5, 5]
        with controller_of(tmp_path, fleet_of(agents)) as controller:
            targets = {"nic-0": {"": {"rp_min_rate": 5000.0}}}
            with pytest.raises(ConfigError, match="line_rate_gbps"):
                controller.carry_out(targets, "no")
            speed = tmp_path / "nic-0" / "root" / "sys" / "class" / "net" / "eth2" / "speed"
            speed.parent.mkdir(parents=True)
            speed.write_text("100000\n")
            assert controller.carry_out(targets, "by the kernel's speed").changed == ("nic-0",)
    more = "[limits]\nrp_ai_rate = { low = 1, high = 100000 }\n"
    with nic_fleet(tmp_path / "b", 1, more=more) as agents:
        with controller_of(tmp_path / "b", fleet_of(agents)) as controller:
            controller.carry_out({"nic-0": {"": {"rp_ai_rate": 100_000.0}}}, "the owner's word")
        assert rates(tmp_path / "b") == [100000]


def test_limits_of_a_file_are_of_known_knobs(tmp_path: Path) -> None:
    file = nic_agent_file(tmp_path, "nic-0", "[limits]\nrp_ai_rat = { low = 1, high = 2 }\n")
    with pytest.raises(ConfigError, match="limits: unknown knob 'rp_ai_rat'; did you mean 'rp_ai"):
        load_toml(file, AgentConfig)
    file.write_text(file.read_text().replace("rp_ai_rat = { low = 1,", "rp_ai_rate = { low = 3,"))
    with pytest.raises(ConfigError, match="low = 3 is above high = 2"):
        load_toml(file, AgentConfig)


def test_a_switch_knows_the_speed_of_its_ports(tmp_path: Path) -> None:
    import redis

    with redis_server(tmp_path) as socket:
        load_sonic(socket, "sonic-newer")
        ports = ["Ethernet0", "Ethernet4"]
        driver = make_driver("sonic", {"socket": socket, "ports": ports}, Surroundings(), "test")
        client = redis.Redis(unix_socket_path=socket, db=4)
        for port in ports:
            client.hdel(f"PORT|{port}", "speed")
        assert driver.line_rate_bps() is None
        client.hset("PORT|Ethernet4", "speed", "100000")
        assert driver.line_rate_bps() == 100e9
        client.close()
