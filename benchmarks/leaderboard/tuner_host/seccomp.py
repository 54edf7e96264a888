"""Which system calls a plug-in may make: all but those that reach out of its sandbox.

The filter is libseccomp's, by pyseccomp; bubblewrap installs it before the plug-in's first line.
"""

from __future__ import annotations

import errno
import importlib
import os
import tempfile
from functools import cache
from typing import Any

from dcqcn_gym.core.errors import install_command

DENIED = (
    # keys of the verifier's session, which outlive a sandbox
    "add_key", "keyctl", "request_key",
    # namespaces and mounts
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount",
    "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "open_by_handle_at",
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
    # large surfaces of the kernel
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "kexec_load", "init_module", "finit_module", "delete_module", "syslog",
    # memory that no limit of a file system or of the address space sees
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "semget", "semop", "semctl",
    "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open",
    # files that another sandbox sees too: what locks or watches them speaks to it
    "flock", "inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init",
)  # fmt: skip
"""They fail with EPERM."""
_SHARED = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026)
"""Requests of fcntl: the same by F_GETLK to F_OFD_SETLKW, F_SETLEASE, F_GETLEASE, F_NOTIFY."""

_NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
               0x00000080)  # fmt: skip
"""CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET, -TIME."""
_INET6 = 10
"""Families of sockets above it (netlink, packet, vsock, crypto) lead out of the sandbox."""


def seccomp_problem() -> str | None:
    """Return why there can be no filter here, in words; None if there can."""
    try:
        _library()
    except (ImportError, OSError, RuntimeError):
        return f"pyseccomp or libseccomp is not installed ({install_command('leaderboard')})"
    return None


def _library() -> Any:
    return importlib.import_module("pyseccomp")


@cache
def filter_file() -> str:
    """Return the path of the compiled filter; it is there as long as this process is."""
    seccomp = _library()
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    denied = seccomp.ERRNO(errno.EPERM)
    for name in DENIED:
        try:
            made.add_rule(denied, name)
        except (ValueError, OSError, RuntimeError):  # this architecture or library lacks it
            continue
    for flag in _NAMESPACES:
        made.add_rule(denied, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    for request in _SHARED:
        made.add_rule(denied, "fcntl", seccomp.Arg(1, seccomp.EQ, request))
    made.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")  # then libraries take clone
    made.add_rule(denied, "socket", seccomp.Arg(0, seccomp.GT, _INET6))
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        handle = os.memfd_create("seccomp")
        os.write(handle, file.read())
    return f"/proc/{os.getpid()}/fd/{handle}"
