"""Files of jobs, damaged: read and made into a graph, or refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from random import Random

from fuzz_harness import Fuzzer, damage

from dcqcn_gym.envs.scenario.jobs.figures import figures_of
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.extras.jobs.files import read_job

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "jobs"))
import making_jobs as making

_PLAN = 'model = "llama-7b"\nlayers = 2\ntp = 2\ndp = 2\nbatch = 4\nsequence = 128\n'


def _traces(odd: Random | None = None) -> list[bytes]:
    """Return the traces of two ranks; with ``odd`` some numbers are others."""

    def some(value: int) -> int:
        if odd is None or odd.random() < 0.9:
            return value
        return odd.choice([0, 1, 2, 3, 4, value + 1, 10**6, 2**31 - 1, 2**63 - 1, -1])

    made = []
    for rank in range(2):
        other = making.SEND if rank == 0 else making.RECEIVE
        made.append(
            making.trace(
                making.node(1, some(making.COMPUTE), us=some(20), name="first"),
                making.collective(2, some(0), some(4096), [some(1)], "all"),
                making.message(3, other, some(0), some(1), some(999), [some(2)], 7),
                making.node(
                    4,
                    making.COMPUTE,
                    [some(3)],
                    making.attribute("num_ops", "int64", some(10**9)),
                    making.attribute("involved_dim", "bool", [True, False]),
                    ctrl=[1],
                ),
                schema="1.0.2-chakra.0.0.4",
            )
        )
    return made


_ROWS = [
    making.row("grad", weight=(1, "ALLGATHER", 4096)),
    *(
        making.row(n, (9, "ALLREDUCE", 8192), (9, "ALLTOALL_EP", 512), (9, "NONE", 0), 100)
        for n in ("embedding_layer", "mlp", "embedding_layer", "mlp")
    ),
]
_SIMAI = making.simai(_ROWS, making.header(pp=2, ga=2, ep=2) + " pp_comm 4096").encode()


_WORDS = (b"0", b"1", b"2", b"3", b"5", b"7", b"64", b"999999", b"-1", b"1e9", b"0.5", b"=", b'"x"',
          b"NONE", b"ALLREDUCE_DP_EP", b"ALLTOALL", b"vpp:", b"zero", b"decode")  # fmt: skip


def _reworded(random: Random, data: bytes) -> bytes:
    """Return a text with one to three words replaced, doubled, dropped or swapped."""
    words = re.findall(rb"\s+|\S+", data)
    for _ in range(random.randint(1, 3)):
        at, other = random.randrange(len(words)), random.randrange(len(words))
        what = random.randrange(10)
        if what < 7:
            words[at - at % 2] = random.choice(_WORDS)  # the others are blanks
        elif what == 7:
            words[at], words[other] = words[other], words[at]
        elif what == 8:
            words.insert(at, words[other])
        else:
            del words[at]
    return b"".join(words)


def _read(path: Path) -> None:
    """Read it as ``jobs`` does, and make its graph; the refusal names the file."""
    job = read_job(path)
    figures_of(job, graph_of(job, Algorithms(), 2))


def chakra(random: Random, folder: Path) -> None:
    """Damage a file of two traces, or some of their numbers."""
    odd = random.random() < 0.5
    path = making.write_traces(folder / "et", _traces(random if odd else None), {"all": [0, 1]})
    if not odd:
        file = path / random.choice(["job.0.et", "job.1.et"] * 3 + ["groups.json"])
        file.write_bytes(damage(random, file.read_bytes()))
    _read(path)


def simai(random: Random, folder: Path) -> None:
    """Damage bytes or words of a file of layers."""
    _damaged(random, folder / "job.txt", _SIMAI)


def plan(random: Random, folder: Path) -> None:
    """Damage bytes or words of a plan."""
    _damaged(random, folder / "job.toml", _PLAN.encode())


def _damaged(random: Random, file: Path, data: bytes) -> None:
    how = damage if random.random() < 0.3 else _reworded
    file.write_bytes(how(random, data))
    _read(file)


GRAPHS: dict[str, Fuzzer] = {"chakra": chakra, "simai": simai, "plan": plan}
