"""Ways out of the sandbox that a plug-in may try: each is tried, and none succeeds.

They run in the sandbox alone, never outside of it: there, as root, some would succeed and hide or
change what belongs to the machine. None would do harm beyond the sandbox if it got through there.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from submissions import need_sandbox, plugin, tiny_suite

from dcqcn_gym.benchmarks.leaderboard.protocol import Attempt
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.spec import RunSpec

PROBES = """
def tries(self):
    assert __file__.startswith("/plugin/"), "outside of the sandbox nothing is tried"
    import ctypes, fcntl, importlib, resource, struct
    libc = ctypes.CDLL(None, use_errno=True)

    def call(function, *words):
        if function(*words) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def suite():
        from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
        load_suite("test-v2")

    def seeds():
        from dcqcn_gym.benchmarks.leaderboard.protocol import Attempt
        return Attempt

    def roomy(place):
        found = os.statvfs(place)
        assert found.f_blocks * found.f_frsize > 2**30, "at most 1 GiB"

    def linked():
        assert len(socket.if_nameindex()) > 1, "nothing but the loopback"

    def engine_elsewhere():
        found = [so for place in sys.path for so in Path(place).rglob("*_core*.so")]
        assert any("dcqcn" in str(so) and so.stat().st_size for so in found), "masked"

    def locked(request):
        # every sandbox sees this file: who locks it, or asks for a lock, speaks to another one
        with open("/usr/bin/env", "rb") as file:
            fcntl.fcntl(file, request, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))

    def watched():
        handle = libc.inotify_init1(0)
        call(libc.inotify_add_watch, handle, b"/usr/bin/env", 0xfff)

    def sources():
        import dcqcn_gym
        found = [one for part in dcqcn_gym.__path__ for one in Path(part).glob("_sources/*")]
        assert found, "none of them"

    word = ctypes.create_string_buffer(8)
    shared = open("/usr/bin/env", "rb")
    yield "engine elsewhere", engine_elsewhere
    yield "flock", lambda: fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for request in (fcntl.F_SETLK, fcntl.F_GETLK, 36, 37, 38):
        yield f"lock by request {request}", lambda request=request: locked(request)
    yield "lease", lambda: fcntl.fcntl(shared, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    yield "notes of a folder", lambda: fcntl.fcntl(os.open("/usr", 0), fcntl.F_NOTIFY, 1)
    yield "watch", watched
    yield "fanotify", lambda: call(libc.syscall, 300, 0, 0)
    yield "memory without a file", lambda: os.memfd_create("x")
    yield "shared memory", lambda: call(libc.shmget, 0, 2**20, 0o1600)
    yield "semaphores", lambda: call(libc.semget, 0, 1, 0o1600)
    yield "messages", lambda: call(libc.msgget, 0, 0o1600)
    yield "a queue", lambda: call(libc.syscall, 240, b"probe", 0o102, 0o600, None)
    yield "the engine's sources", lambda: sources()
    yield "real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    yield "a device", lambda: os.mknod("/tmp/dev", 0o60600, os.makedev(8, 0))
    yield "the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())
    yield "a terminal", lambda: os.open("/dev/tty", os.O_RDWR)
    yield "engine", lambda: importlib.import_module("dcqcn_gym._core")
    yield "suites", suite
    yield "seed rules", seeds
    yield "keyring", lambda: call(libc.syscall, 248, b"user", b"k", b"v", 1, -3)
    yield "read keyring", lambda: call(libc.syscall, 250, 0, -3, 0)
    yield "user namespace", lambda: call(libc.unshare, 0x10000000)
    yield "mount", lambda: call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None)
    yield "ptrace", lambda: call(libc.ptrace, 16, 1, 0, 0)
    yield "memory of another", lambda: call(libc.syscall, 310, 1, word, 1, word, 1, 0)
    yield "bpf", lambda: call(libc.syscall, 321, 0, word, 8)
    yield "perf", lambda: call(libc.syscall, 298, word, 0, -1, -1, 0)
    yield "io_uring", lambda: call(libc.syscall, 425, 1, word)
    yield "file in /", lambda: Path("/probe").write_text("x")
    yield "file in /etc", lambda: Path("/etc/probe").write_text("x")
    yield "file in /dev", lambda: Path("/dev/probe").write_text("x")
    yield "kernel's settings", lambda: Path("/proc/sys/kernel/core_pattern").open("a").close()
    yield "root", lambda: os.setuid(0) if os.getuid() else os.chroot("/tmp")
    yield "more memory", lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    yield "more of /tmp", lambda: roomy("/tmp")
    yield "more of /dev/shm", lambda: roomy("/dev/shm")
    yield "a network", linked

def start(self, context):
    super().start(context)
    self.found = []
    for name, way in self.tries():
        try:
            way()
        except BaseException:
            continue
        self.found.append(name)

@property
def decisions(self):
    return self.found or ["none"]
"""


def test_every_probe_is_held(tmp_path: Path) -> None:
    need_sandbox()
    tuner = plugin(tmp_path / "code", PROBES)
    (scenario,) = load_suite(tiny_suite(tmp_path / "tiny")).scenarios.values()
    log = tmp_path / "run.jsonl"
    hosting = Hosting(60.0, enclosure=Enclosure(tmp_path / "code"))
    run(RunSpec(scenario, tuner, 5, 2, hosting=hosting, tuner_seed=7), log)
    assert (read_run(log).end or {})["decisions"] == ["none"]


def test_the_probes_of_imports_succeed_elsewhere() -> None:
    """So the names that they ask for are not misspelt."""
    assert load_suite("test-v2").scenarios
    assert all(map(importlib.import_module, ("dcqcn_gym._core", Attempt.__module__)))
