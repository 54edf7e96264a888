"""Files of jobs with bytes changed, dropped, doubled or cut: read, or refused in one sentence.

``python tests/jobs/mutated.py 10000 SEED`` tries so many within 1 GB and a minute of CPU each.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import making_jobs as making

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.figures import figures_of
from dcqcn_gym.envs.scenario.jobs.links import Algorithms
from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
from dcqcn_gym.extras.jobs.files import read_job

_PLAN = 'model = "llama-7b"\nlayers = 2\ntp = 2\ndp = 2\nbatch = 4\nsequence = 128\n'


def _traces(odd: random.Random | None = None) -> list[bytes]:
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


def mutant(data: bytes, draw: random.Random) -> bytes:
    """Return data with one to four changes."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(out) + 1)
        what = draw.randrange(6)
        if what == 0 and at < len(out):
            out[at] = draw.randrange(256)
        elif what == 1 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif what == 2:
            del out[at : at + draw.randint(1, 12)]
        elif what == 3:
            out[at:at] = out[max(0, at - draw.randint(1, 40)) : at]
        elif what == 4:
            out[at:at] = draw.choice(
                [b"\xff" * 9, b"99999999999999999", b" ", b"\n", b"-1", b"1e9"]
            )
        elif draw.random() < 0.3:
            del out[at:]
    return bytes(out)


_WORDS = (b"0", b"1", b"2", b"3", b"5", b"7", b"64", b"999999", b"-1", b"1e9", b"0.5", b"=", b'"x"',
          b"NONE", b"ALLREDUCE_DP_EP", b"ALLTOALL", b"vpp:", b"zero", b"decode")  # fmt: skip


def reworded(data: bytes, draw: random.Random) -> bytes:
    """Return a text with one to three words replaced, doubled, dropped or swapped."""
    words = re.findall(rb"\s+|\S+", data)
    for _ in range(draw.randint(1, 3)):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        what = draw.randrange(10)
        if what < 7:
            words[at - at % 2] = draw.choice(_WORDS)  # the others are blanks
        elif what == 7:
            words[at], words[other] = words[other], words[at]
        elif what == 8:
            words.insert(at, words[other])
        else:
            del words[at]
    return b"".join(words)


def try_one(folder: Path, case: int) -> str:
    """Read one mutated file; return ``read``, or the sentence that refuses it."""
    draw = random.Random(case)
    kind = case % 4
    if kind == 0:
        odd = draw.random() < 0.5
        path = making.write_traces(folder / "et", _traces(draw if odd else None), {"all": [0, 1]})
        target = draw.choice(["job.0.et", "job.1.et"] * 3 + ["groups.json"])
        if not odd:
            (path / target).write_bytes(mutant((path / target).read_bytes(), draw))
    else:
        path = folder / ("job.toml" if kind == 1 else "job.txt")
        how = mutant if draw.random() < 0.3 else reworded
        path.write_bytes(how(_PLAN.encode() if kind == 1 else _SIMAI, draw))
    try:
        job = read_job(path)
        path = folder  # what follows names no file
        figures_of(job, graph_of(job, Algorithms(), 2))
    except MemoryError:
        raise AssertionError(f"case {case}: too much memory") from None
    except ConfigError as error:
        text = str(error)
        named = path == folder or text.startswith(str(path))
        if "\n" in text or not named or len(text) > 700:
            raise AssertionError(f"case {case}: not one sentence with the file: {text}") from error
        return text
    return "read"


def main(cases: int, seed: int) -> None:
    """Try many cases and say what came of them."""
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(cases):
            signal.setitimer(signal.ITIMER_PROF, 60)  # a hang ends the program
            found["read" if try_one(Path(folder), seed * 10**9 + i) == "read" else "refused"] += 1
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{cases} files: {dict(found)}; {most} MB at most")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
