"""NICs' files through FUSE: the order of calls, a write that fails, and no mount left behind."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fabrics import SMALL, fabric_of

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError, MissingExtraError
from dcqcn_gym.core.knobs import DCQCN, NIC_KNOBS, default_setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.fabric.devices import PlayedNic
from dcqcn_gym.hw.fabric.fabric import DigitalFabric
from dcqcn_gym.hw.fabric.mounted import FileCall, MountedFiles
from dcqcn_gym.hw.fabric.mounts import dead_mounts
from dcqcn_gym.hw.fleet import load_fleet
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from waiting import wait_for

CC = "sys/kernel/debug/mlx5/0000:01:00.0/cc_params"
NEW = {"rp_gd": 13.0, "rp_time_reset": 20.0, "rp_ai_rate": 50.0, "rp_hai_rate": 70.0}
"""SI units, in another order than the knob table's."""
IN_ORDER = [("rp_time_reset", "20"), ("rp_ai_rate", "50"), ("rp_hai_rate", "70"), ("rp_gd", "13")]
"""Files and their texts, as the table and the devices have them."""


@pytest.fixture(scope="module", autouse=True)
def _need_fuse() -> None:
    """Skip where nothing can be mounted, unless this run says that it must be possible."""
    files = MountedFiles(Path(tempfile.mkdtemp(prefix="dcqcn-")))
    try:
        files.start()
    except DcqcnGymError as error:
        if os.environ.get("DCQCN_GYM_FUSE_TESTS") == "required":
            raise
        pytest.skip(str(error))
    finally:
        files.close()
        shutil.rmtree(files.mount.parent)


@pytest.fixture(scope="module")
def fabric(small: Scenario) -> Iterator[DigitalFabric]:
    with fabric_of(small, fuse=True) as fabric:
        yield fabric


@pytest.fixture
def controller(fabric: DigitalFabric) -> Iterator[Controller]:
    controller = Controller(load_fleet(fabric.fleet), fabric.fleet.parent)
    try:
        controller.agents.open()
        yield controller
    finally:
        controller.close()


@contextmanager
def new_calls(fabric: DigitalFabric) -> Iterator[list[FileCall]]:
    """Give a list that has, after the block, the calls that were made in it."""
    assert fabric.mounted is not None
    before, found = len(fabric.mounted.calls()), list[FileCall]()
    yield found
    found += fabric.mounted.calls()[before:]


def held(fabric: DigitalFabric) -> list[dict[str, str]]:
    nics = sorted(fabric.fleet.parent.glob("nic-*/root"))
    return [{f.name: f.read_text() for f in sorted((nic / CC).iterdir())} for nic in nics]


def of(device: str, calls: list[FileCall], *kinds: str) -> list[tuple[str, str, str, str]]:
    return [
        (c.call, Path(c.file).name, c.text, c.error)
        for c in calls
        if c.device == device and (not kinds or c.call in kinds)
    ]


def test_a_change_is_written_file_by_file_in_the_order_of_the_knob_table(
    fabric: DigitalFabric, controller: Controller
) -> None:
    table = [DCQCN[name].debugfs for name in NIC_KNOBS]
    assert [file for file, _ in IN_ORDER] == sorted((f for f, _ in IN_ORDER), key=table.index)
    nics = [name for name in controller.agents.descriptions if name.startswith("nic-")]
    with new_calls(fabric) as calls:
        controller.carry_out({name: {"": NEW} for name in nics}, "to see the order")
    for nic in nics:
        mine = of(nic, calls)
        first, last = mine.index(("open", IN_ORDER[0][0], "", "")), 4 * len(IN_ORDER)
        assert mine[first : first + last] == [
            step
            for file, text in IN_ORDER
            for step in (
                ("open", file, "", ""), ("write", file, text, ""), ("close", file, "", ""),
                ("read", file, text, ""),
            )
        ]  # fmt: skip
        # before the first write and after the last one it was only read
        assert {call for call, *_ in mine[:first] + mine[first + last :]} == {"read"}
        assert {c.file.rpartition("/")[0] for c in calls if c.device == nic} == {CC}
    controller.rollback.undo(controller.rollback.newest(), "back")


def test_a_write_that_fails_half_way_is_seen_in_its_place(
    fabric: DigitalFabric, controller: Controller
) -> None:
    assert fabric.mounted is not None
    before = held(fabric)
    fabric.mounted.fail_write("nic-2", 3)
    with (
        new_calls(fabric) as calls,
        pytest.raises(DeviceError, match=r"nic-2: .*rp_hai_rate: cannot be written \(Input/output"),
    ):
        controller.carry_out({name: {"": NEW} for name in ("nic-1", "nic-2")}, "to fail")
    old = {file: text.strip() for file, text in before[2].items()}
    there = [("write", file, text, "") for file, text in IN_ORDER]
    back = [("write", file, old[file], "") for file, _ in IN_ORDER]
    # the third of four failed; the two that had been written were taken back, the fourth untouched
    failed = [*there[:2], ("write", "rp_hai_rate", "70", "EIO"), *back[:2]]
    assert of("nic-2", calls, "write") == failed
    assert of("nic-1", calls, "write") in ([], [*there, *back])  # asked at the same time, or later
    assert held(fabric) == before
    assert not of("nic-0", calls, "open", "write", "close")


@pytest.mark.slow
def test_settings_over_fuse_are_those_over_plain_files(
    small: Scenario, fabric: DigitalFabric, tmp_path: Path
) -> None:
    chosen = []
    with fabric_of(small) as plain:
        for number, where in enumerate((plain, fabric)):
            path = tmp_path / f"{number}.jsonl"
            run(RunSpec(small, "paraleon", 3, 8, f"hardware:{where.fleet}", {}), path)
            chosen.append(path.read_text().splitlines()[1:])
    assert chosen[0] == chosen[1]
    assert len({line.partition('"setting"')[2][:400] for line in chosen[0]}) > 3


@pytest.fixture
def nic(tmp_path: Path) -> Iterator[MountedFiles]:
    PlayedNic(tmp_path / "nic-0" / "root", default_setting())
    files = MountedFiles(tmp_path)
    files.start()
    yield files
    files.close()


def written(path: Path, data: bytes) -> str:
    """Write, in one call, what a kernel would be handed; return the error's name or nothing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def test_files_behave_as_a_kernel_s(nic: MountedFiles) -> None:
    gd = nic.mount / "nic-0" / CC / "rp_gd"
    assert gd.stat().st_mode & 0o777 == 0o600
    assert not written(gd, b"0xc\n")
    assert gd.read_text() == "12\n"
    refused = {b"twelve\n": "EINVAL", b"-1\n": "EINVAL", b"1 2\n": "EINVAL", b"": "",
               b"4294967296\n": "ERANGE"}  # fmt: skip
    for data, error in refused.items():
        assert written(gd, data) == error
        assert gd.read_text() == "12\n"  # nor did opening empty it
    assert written(gd, b"4294967295") == ""
    figure = nic.mount / "nic-0/commands/mlxconfig_-d_0000:01:00.0_query.txt"
    assert written(figure, b"5") == "EACCES"
    assert nic.calls()[-1].error == "EACCES"
    with pytest.raises(OSError, match="not implemented"):
        (gd.parent / "another").write_text("1")
    assert [(c.call, c.text) for c in nic.calls()[:4]] == [
        ("open", ""), ("write", "0xc"), ("close", ""), ("read", "12")
    ]  # fmt: skip
    nic.fail_write("nic-0", 1)
    assert [written(gd, b"11\n"), written(gd, b"10\n")] == ["EIO", ""]
    for device, which in (("nic-9", 1), ("nic-0", 0)):
        with pytest.raises(ConfigError, match=f"{device}: no write can be let fail"):
            nic.fail_write(device, which)


def mounted(folder: Path) -> bool:
    return f" {folder}/kernel " in Path("/proc/self/mountinfo").read_text()


def test_a_killed_fabric_leaves_no_mount(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib\nfrom dcqcn_gym.hw.fabric.mounted import MountedFiles\n"
        "MountedFiles(pathlib.Path(sys.argv[1])).start()\nprint('up', flush=True)\ntime.sleep(60)"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert mounted(tmp_path)
        process.kill()
    wait_for(lambda: not mounted(tmp_path), "the mount goes")


def test_what_a_killed_server_left_is_taken_away_at_the_next_start(
    nic: MountedFiles, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = MountedFiles(tmp_path_factory.mktemp("with space"))
    assert nic._server is not None
    nic._server.kill()
    nic._server.wait()
    assert dead_mounts() == [nic.mount]
    other.start()
    try:
        assert dead_mounts() == []
        assert not mounted(nic.mount.parent)
        assert other.mount.is_mount()
    finally:
        other.close()
    assert not other.mount.is_mount()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_without_a_mount_or_a_server(by: signal.Signals, tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    folder = Path(tempfile.mkdtemp(prefix="dcqcn-"))
    words = ["-m", "dcqcn_gym", "hw", "fabric", "--fuse", "-s", str(scenario), "--out"]
    try:
        with subprocess.Popen(
            [sys.executable, *words, str(folder / "f")], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert "7 agents run" in process.stdout.readline()
            assert mounted(folder / "f")
            while process.poll() is None:  # whoever is impatient asks more than once
                process.send_signal(by)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        assert not mounted(folder / "f")
        wait_for(lambda: not list(folder.glob("f/switch-*/redis.sock")), "the servers end, too")
        assert len(list((folder / "f").glob("nic-*/root"))) == 4  # plain files stay
    finally:
        shutil.rmtree(folder)


def started_in(words: list[str], folder: Path, code: str = "", **environment: str) -> str:
    """Return what starting says in a process with other surroundings."""
    code = (
        f"import sys, pathlib\n{code}\nfrom dcqcn_gym.hw.fabric.mounted import MountedFiles\n"
        "try:\n    MountedFiles(pathlib.Path(sys.argv[1])).start()\n"
        "except Exception as error:\n    print(f'{type(error).__name__}: {error}')"
    )
    done = subprocess.run(
        [*words, sys.executable, "-c", code, str(folder)],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout


NEEDS = "): it needs /dev/fuse, libfuse with fusermount3 (Debian: fuse3) and the right to mount; "


def test_who_has_no_fuse_reads_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"no library": started_in([], tmp_path / "a", FUSE_LIBRARY_NAME="none-of-this-name")}
    assert "(Unable to find libfuse)" in said["no library"]
    if os.getuid() == 0:  # a root that may not mount, as in a container
        lose = "from dcqcn_gym.hw.agent.privileges import keep_only\nkeep_only(())"
        said["no right"] = started_in([], tmp_path / "b", lose)
    if shutil.which("bwrap") is not None:
        cage = ["bwrap", "--bind", "/", "/", "--dev", "/dev"]
        said["no device"] = started_in(cage, tmp_path / "c")
    for text in said.values():
        assert text.startswith("ConfigError: FUSE cannot be used here (")
        assert NEEDS in text
        assert text.endswith("without --fuse files are plain ones\n")
        assert text.count("\n") == 1
    monkeypatch.setitem(sys.modules, "mfusepy", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[fuse\]'"):
        MountedFiles(tmp_path / "d").start()
    assert dead_mounts() == []
