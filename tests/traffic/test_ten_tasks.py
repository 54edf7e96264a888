"""Ten operators' tasks, as docs/operators.md prints them, each with a broken twin of its file.

The files are made by hand from the formats' public descriptions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from making import graphml, minigraph, neighbours, netflow5, netflow9, pcap, roce, sflow, udp
from test_text import nccl
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.scenario.tables import read_flows

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| `(dcqcn-gym (?:traffic|network|tune) [^`]+)` \|$", PAGE, re.M)
BLOCKS = dict(re.findall(r"<!-- file (\w+\.toml) -->\n```toml\n(.*?)```", PAGE, re.DOTALL))
EXPORTED = [("10.0.0.1", "10.0.0.2", 1_000_000, 1000, 0), ("10.0.0.3", "10.0.0.2", 70_000, 70, 5)]
Maker = Callable[[], dict[str, bytes]]


KINDS = {"tor1": "ToRRouter", "leaf1": "LeafRouter"} | {f"srv{i}": "Server" for i in range(3)}
CABLES = [(f"srv{i}", "tor1", 25_000) for i in range(3)] + [("tor1", "leaf1", 100_000)] * 2
NODES = {"sw": "switch", "gpu-a": "host", "gpu-b": "host"}
EDGES = [("gpu-a", "sw", "200G"), ("sw", "gpu-b", "200G")]


def exported(body: bytes, port: int) -> bytes:
    return pcap([(9, udp("192.0.2.1", "192.0.2.9", 2055, port, body))])


def message(source: str, target: str, packets: int) -> list[bytes]:
    """One write of so many packets of 1 KB."""
    kinds = [0x06] + [0x07] * (packets - 2) + [0x08]
    return [roce(source, target, kind, i, 1024) for i, kind in enumerate(kinds)]


def captured(packets: int) -> bytes:
    frames = message("10.0.0.1", "10.0.0.2", packets) + message("10.0.0.3", "10.0.0.1", 4)
    return pcap(list(enumerate(frames)))


def lldp() -> dict[str, bytes]:
    def leaf(number: int) -> bytes:
        hosts = [(f"e{i}", f"gpu-{2 * number + i}", False) for i in (0, 1)]
        return neighbours([*hosts, ("e8", "spine1", True)])

    spine = neighbours([("e0", "leaf1", True), ("e4", "leaf2", True)])
    return {"leaf1.json": leaf(1), "leaf2.json": leaf(2), "spine1.json": spine}


SAMPLE = roce("10.0.0.1", "10.0.0.2", 0x07, 1, 1024)
TASKS: list[tuple[str, Maker, Maker, str]] = [
    ("table", lambda: {"jobs.csv": b"at,sender,receiver,volume\n0,a,b,9000\n1.5,b,c,70\n"},
     lambda: {"jobs.csv": b"at,sender,receiver,volume\n0,a,b,many\n1.5,b,c,70\n3,,c,1\n"},
     "have"),
    ("RoCE", lambda: {"roce.pcap": captured(9)},
     lambda: {"roce.pcap": captured(9)[:-30]}, "breaks off"),
    ("NetFlow", lambda: {"netflow.pcap": exported(netflow5(EXPORTED), 2055)},
     lambda: {"netflow.pcap": exported(netflow9(EXPORTED)[:60], 2055)}, "no record"),
    ("sFlow", lambda: {"sflow.pcap": exported(sflow("192.0.2.1", [SAMPLE] * 3, 512), 6343)},
     lambda: {"sflow.pcap": exported(sflow("192.0.2.1", [SAMPLE] * 3, 512)[:40], 6343)}, ""),
    ("NCCL", lambda: {"nccl.log": "".join(nccl(r, "AllReduce", 1000, 7, 8) for r in range(8))
                      .encode()},
     lambda: {"nccl.log": b"node0:1:1 [0] NCCL INFO AllReduce: opCount 1f count many\n"}, ""),
    ("lldpctl", lldp, lambda: {**lldp(), "leaf2.json": lldp()["leaf2.json"][:-9]}, "not JSON"),
    ("SONiC", lambda: {"minigraph.xml": minigraph(CABLES, KINDS)},
     lambda: {"minigraph.xml": minigraph([*CABLES, ("srv9", "", 25_000)], KINDS)}, "lack an end"),
    ("GraphML", lambda: {"fabric.graphml": graphml(NODES, EDGES)},
     lambda: {"fabric.graphml": graphml(NODES, [*EDGES, ("sw", "gone", "")])}, "not there"),
    ("description", lambda: {"described.toml": BLOCKS["described.toml"].encode()},
     lambda: {"described.toml": BLOCKS["described.toml"].replace("= 2\n", "= 3\n").encode()},
     "whole number of spines"),
    ("in force", lambda: {"present.toml": BLOCKS["present.toml"].encode()},
     lambda: {"present.toml": BLOCKS["present.toml"].replace("RPG_AI", "RPG_IA").encode()},
     "rp_ai_rate"),
]  # fmt: skip


def typed(task: str, files: dict[str, bytes]) -> str:
    """Type the task's line of the page beside these files; return what it says, errors too."""
    (command,) = (command for have, command in ROWS if task in have)
    for name, data in files.items():
        Path(name).write_bytes(data)
    done = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": "200"})
    if isinstance(done.exception, DcqcnGymError):
        assert len(str(done.exception).splitlines()) == 1
        return f"refused: {done.exception}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_the_page_has_ten_tasks() -> None:
    assert len(ROWS) == len(TASKS) == 10


@pytest.mark.parametrize(
    "task",
    [pytest.param(t, id=t[0], marks=[pytest.mark.slow] if t in TASKS[-2:] else []) for t in TASKS],
)
def test_a_task_is_done_and_its_broken_twin_is_refused_or_counted(
    task: tuple[str, Maker, Maker, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, files, broken, words = task
    monkeypatch.chdir(tmp_path)
    said = typed(name, files())
    assert not said.startswith("refused"), said
    if Path("network").exists():
        net = load_scenario("network/scenario.toml").fabric
        assert net.n_hosts == len(Path("network/hosts.csv").read_text().splitlines()) - 1 >= 2
        assert Path("network/fabric.svg").read_text().startswith("<svg ")
    elif Path("traffic/flows.csv").exists():
        assert len(read_flows(Path("traffic/flows.csv"))) >= 1
    elif Path("traffic").exists():
        assert load_scenario("traffic/scenario.toml").workloads[0].kind == "ring"
    else:
        best = json.loads(Path("run/best.json").read_text())
        assert best["answer"]["action"] in ("deploy", "keep", "a choice", "cannot tell")
        yours = name == "in force"
        assert best["answer"]["baseline"] == ("yours" if yours else "default")
    (tmp_path / "twin").mkdir()
    monkeypatch.chdir(tmp_path / "twin")
    assert words in (twin := typed(name, broken())), twin
    assert twin.startswith("refused") or re.search(r"^  \d+ ", twin, re.M), twin
