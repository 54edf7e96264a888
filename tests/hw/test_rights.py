"""Roles by certificate, revoked ones, renewed ones, and a word before one ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import fleet_file, nic_fleet, rates, typed

from dcqcn_gym.hw.agent.config import READ, RELEASE, STOP
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.agent.service import METHODS
from dcqcn_gym.hw.certs import Authority, write_all

MORE = 'readers = ["screen"]\nstoppers = ["guard"]\nrevoked = "../certs/revoked.pem"\n'
CONTROLLER = {"ca": "certs/ca.pem", "cert": "certs/{0}.pem", "key": "certs/{0}.key"}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    write_all(tmp_path / "certs", [], ["controller", "screen", "guard", "nobody"])
    Authority(tmp_path / "certs").revoke([])
    with nic_fleet(tmp_path, 2, more=MORE) as agents:
        yield agents


def file_of(folder: Path, agents: dict[str, AgentServer], who: str) -> str:
    tls = {key: text.format(who) for key, text in CONTROLLER.items()}
    return fleet_file(folder, agents, who, tls=tls)


def test_a_role_reaches_as_far_as_its_certificate(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    files = {who: file_of(tmp_path, agents, who) for who in ("controller", "guard", "screen")}
    trial = ["--set", "rp_ai_rate=50", "--hold", "600"]
    assert typed("apply", "--fleet", files["controller"], *trial)[0] == 0
    for who, words in (("guard", "may only read and stop"), ("screen", "may only read")):
        assert typed("status", "--fleet", files[who])[1].count("applied") == 2
        for command in (["apply", *trial, "--device", "nic-0"], ["stop", "--release"]):
            code, said = typed(*command, "--fleet", files[who])
            assert code != 0
            assert f"this certificate {words}" in said
    assert "this certificate may only read" in typed("confirm", "--fleet", files["screen"])[1]
    code, said = typed("stop", "--fleet", files["screen"])
    assert code == 1
    assert rates(tmp_path) == [50, 50]
    assert typed("stop", "--fleet", files["guard"])[0] == 0
    assert rates(tmp_path) == [5, 5]
    assert typed("stop", "--release", "--fleet", files["guard"])[0] == 1
    assert typed("status", "--fleet", files["guard"])[1].count("stopped") == 2
    assert typed("stop", "--release", "--fleet", files["controller"])[0] == 0
    assert (
        "this certificate may not talk to it"
        in typed("status", "--history", "nic-0", "--fleet", file_of(tmp_path, agents, "nobody"))[1]
    )


def test_two_persons_make_a_change_and_one_may_undo_it(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", [], ["controller", "guard", "second"])
    more = 'controllers = ["controller", "second"]\nsecond_person = true\n'
    with nic_fleet(tmp_path, 2, more=more) as agents:
        first, second = (file_of(tmp_path, agents, who) for who in ("controller", "second"))
        code, said = typed("apply", "--fleet", first, "--set", "rp_ai_rate=50")
        assert code != 0
        assert "'controller', and this device wants a second person" in said
        assert rates(tmp_path) == [5, 5]
        trial = ("apply", "--fleet", first, "--set", "rp_ai_rate=50", "--hold", "600")
        assert typed(*trial)[0] == 0
        assert typed("confirm", "--fleet", second)[0] == 0
        assert rates(tmp_path) == [50, 50]
        confirmed = agents["nic-0"].journal.last("confirmed")
        assert confirmed is not None
        assert confirmed["certificate"] == "second"
        assert typed("rollback", "--fleet", first)[0] == 0
        assert rates(tmp_path) == [5, 5]


def test_the_authoritys_key_is_encrypted_and_nobody_signs_without_its_passphrase(
    tmp_path: Path,
) -> None:
    folder, secret = str(tmp_path / "certs"), tmp_path / "secret"
    secret.write_text("open sesame\n")
    words = ["certs", folder, "--agent", "nic-0", "--passphrase-file", str(secret)]
    assert typed(*words)[0] == 0
    assert "ENCRYPTED" in (tmp_path / "certs" / "ca.key").read_text()
    assert "ENCRYPTED" not in (tmp_path / "certs" / "nic-0.key").read_text()
    assert typed(*words)[0] == 0
    code, said = typed("certs", folder, "--agent", "nic-1")
    assert code != 0
    assert "ca.key is encrypted; see --passphrase-file" in said
    secret.write_text("another\n")
    assert "or not its passphrase" in typed(*words)[1]
    secret.write_text("\n")
    assert "its first line is empty" in typed(*words)[1]
    assert not (tmp_path / "certs" / "nic-1.pem").exists()


def test_every_call_is_of_a_role() -> None:
    assert READ < STOP < {*METHODS}
    assert RELEASE not in METHODS
    changes = {"Prepare", "Stage", "Apply", "Confirm", "Undo", "StartLoad"}
    assert {*METHODS} - STOP == changes


def test_a_revoked_certificate_counts_no_longer_and_no_agent_starts_again(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, certs = fleet_file(tmp_path, agents), str(tmp_path / "certs")
    stolen = tmp_path / "stolen"
    stolen.mkdir()
    for end in ("pem", "key"):
        (stolen / f"controller.{end}").write_bytes((Path(certs) / f"controller.{end}").read_bytes())
    tls = {"ca": "certs/ca.pem", "cert": "stolen/controller.pem", "key": "stolen/controller.key"}
    thief = fleet_file(tmp_path, agents, "thief", tls=tls)
    setting = ["--set", "rp_ai_rate=50"]
    assert typed("apply", "--fleet", thief, *setting)[0] == 0
    code, said = typed("certs", certs, "--revoke", "controller", "--controller", "controller")
    assert (code, "revoked.pem: for the agents" in said) == (0, True)
    for command in (["apply", *setting], ["status"], ["stop"]):
        code, said = typed(*command, "--fleet", thief)
        assert code != 0
        assert "this certificate was revoked" in said
    assert typed("rollback", "--fleet", fleet)[0] == 0  # the new one of the same name
    assert rates(tmp_path) == [5, 5]
    assert typed("certs", certs, "--revoke", "screen")[0] == 0
    assert "was revoked" in typed("status", "--fleet", thief)[1]  # the first one is still there


@pytest.mark.parametrize("damage", ["gone", "garbage", "foreign"])
def test_without_a_list_that_can_be_read_nothing_changes_and_all_may_stop(
    damage: str, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, path = fleet_file(tmp_path, agents), tmp_path / "certs" / "revoked.pem"
    trial = ["--set", "rp_ai_rate=50", "--hold", "600"]
    assert typed("apply", "--fleet", fleet, *trial)[0] == 0
    path.unlink()
    if damage == "garbage":
        path.write_text("-----BEGIN X509 CRL-----\n")
    elif damage == "foreign":
        path.write_bytes(Authority(tmp_path / "other").revoke([]).read_bytes())
    code, said = typed("confirm", "--fleet", fleet)
    assert code != 0
    assert "the list of revoked certificates cannot be read (" in said
    assert "so nothing may change" in said
    assert typed("apply", "--fleet", fleet, *trial)[0] != 0
    assert typed("stop", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5, 5]


def test_a_certificate_that_ends_soon_is_told_and_a_new_one_is_taken_up(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, certs = fleet_file(tmp_path, agents), tmp_path / "certs"
    assert "renew it" not in typed("status", "--fleet", fleet)[1]
    soon = Authority(certs, days=29)
    soon.agent("nic-1")
    soon.controller("controller")
    code, said = typed("status", "--fleet", fleet)
    assert code == 0
    assert "the certificate of nic-1 ends in 29 days: renew it" in said
    assert "the certificate of this controller ends in 29 days: renew it" in said
    assert "nic-0 ends" not in said
    (certs / "nic-1.pem").write_text("half")  # a copy under way: the one before still serves
    assert "nic-1 ends in 29 days" in typed("status", "--fleet", fleet)[1]
    Authority(certs).agent("nic-1")
    assert "nic-1 ends" not in typed("status", "--fleet", fleet)[1]
