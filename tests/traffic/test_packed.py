"""Files of gzip are read like what they hold; damaged ones and bombs are refused in a sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from making import pcap, pcapng, roce
from test_text import nccl
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core import gzip_files
from dcqcn_gym.core.errors import ConfigError

FRAMES = [(i, roce("10.0.0.1", "10.0.0.2", 0x0A, i, 64)) for i in range(8)]
TABLE = b"src,dst,bytes,start_us\ngpu-a,gpu-b,9000,0\ngpu-b,gpu-c,70,1.5\n"


def typed(*words: str | Path) -> str:
    done = CliRunner().invoke(app, ["traffic", *map(str, words), "--quiet"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


@pytest.mark.parametrize("data", [TABLE, pcap(FRAMES), pcapng(FRAMES)], ids=["csv", "pcap", "ng"])
def test_a_packed_file_gives_the_same_flows(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    for name in ("plain", "packed"):
        typed("import", tmp_path / name, "--out", tmp_path / f"of-{name}")
    plain, packed = ((tmp_path / f"of-{n}" / "flows.csv").read_bytes() for n in ("plain", "packed"))
    assert plain == packed
    assert plain.count(b"\n") > 1


def test_a_packed_log_of_nccl_is_fitted(tmp_path: Path) -> None:
    log = "".join(nccl(rank, "AllReduce", 1000, 7, 8) for rank in range(8))
    (tmp_path / "nccl.log.gz").write_bytes(gzip.compress(log.encode()))
    said = typed(
        "import",
        tmp_path / "nccl.log.gz",
        "--fit",
        "-s",
        "mini-fb-hadoop",
        "--out",
        tmp_path / "out",
    )
    assert "8 calls of 1 kinds and sizes by 8 ranks" in said


@pytest.mark.parametrize("data", [TABLE * 200, pcap(FRAMES * 20)], ids=["csv", "pcap"])
@pytest.mark.parametrize("harm", ["cut", "changed"])
def test_a_damaged_one_is_refused(data: bytes, harm: str, tmp_path: Path) -> None:
    packed = gzip.compress(data)
    half = len(packed) // 2
    broken = packed[:half] + (b"" if harm == "cut" else b"\xff" * 9 + packed[half + 9 :])
    (tmp_path / "a.gz").write_bytes(broken)
    with pytest.raises(ConfigError, match=r"a\.gz: is damaged or breaks off \(gzip: ") as refused:
        typed("import", tmp_path / "a.gz", "--out", tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_bomb_is_refused_after_what_any_file_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gzip_files, "FREE_BYTES", 1 << 18)  # empty packets are read one by one
    beyond = gzip_files.FREE_BYTES + (1 << 20)
    for name, begin in (("csv", TABLE), ("pcap", pcap(FRAMES))):
        bomb = gzip.compress(begin + bytes(beyond))
        assert len(bomb) * gzip_files.MOST_TIMES < beyond
        (tmp_path / name).write_bytes(bomb)
        with pytest.raises(ConfigError, match="200 times its size"):
            typed("import", tmp_path / name, "--out", tmp_path / "out")
