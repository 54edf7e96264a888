"""The systemd units of agents, as text."""

from __future__ import annotations

from dcqcn_gym.hw.agent.privileges import KEPT

_WRITES = {
    "nic": "-/sys/kernel/debug/mlx5 -/sys/kernel/config/bnxt_re /var/lib/dcqcn-gym "
    + " ".join(f"-/sys/class/infiniband/mlx5_{i}/ports" for i in range(8)),
    "switch": "/var/lib/dcqcn-gym",
}
"""Folders that stay writable: debugfs and configfs for the knobs, and a port's for ``lifespan``, by
links that the service manager follows; a NIC of another name needs a drop-in with its own.

The module may be loaded later than the agent starts: such folders need not be there."""
_WORDS = {"nic": "NIC", "switch": "switch"}


def unit_text(command: str, kind: str, config: str) -> str:
    """Return the unit of an agent; ``kind`` is nic or switch, ``command`` what runs it."""
    # SONiC has a group redis, which may open the server's socket, and no such user
    user = "" if kind == "nic" else "User=dcqcn-gym\nSupplementaryGroups=redis\n"
    nic = kind == "nic"
    # perftest registers memory and `rdma` talks netlink; a switch's agent needs neither device
    memory = "LimitMEMLOCK=infinity\n" if nic else ""
    netlink = " AF_NETLINK" if nic else ""
    private = (
        "ProtectKernelTunables=no"  # knobs are files of the kernel
        if nic
        else "ProtectKernelTunables=yes\nPrivateDevices=yes\nPrivateUsers=yes\nProcSubset=pid"
    )
    return f"""[Unit]
Description=dcqcn-gym agent of this {_WORDS[kind]}
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart={command} --config {config}
Restart=always
RestartSec=1
{user}StateDirectory=dcqcn-gym
CapabilityBoundingSet={" ".join(KEPT[kind])}
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={_WRITES[kind]}
ProtectHome=yes
PrivateTmp=yes
UMask=0077
LimitNOFILE=1024
MemoryMax=256M
CPUQuota=50%
TasksMax=64
{memory}RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX{netlink}
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectProc=invisible
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources @mount @swap @reboot @module @raw-io @obsolete @debug
{private}

[Install]
WantedBy=multi-user.target
"""
