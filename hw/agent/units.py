"""The systemd units of agents, as text."""

from __future__ import annotations

from dcqcn_gym.hw.agent.privileges import KEPT

_WRITES = {
    "nic": "-/sys/kernel/debug/mlx5 -/sys/class/infiniband /sys/devices /var/lib/dcqcn-gym",
    "switch": "/var/lib/dcqcn-gym",
}
"""Folders that stay writable; debugfs for the knobs, sysfs (and what it links to) for lifespan.

The module may be loaded later than the agent starts: such folders need not be there."""
_WORDS = {"nic": "NIC", "switch": "switch"}


def unit_text(command: str, kind: str, config: str) -> str:
    """Return the unit of an agent; ``kind`` is nic or switch, ``command`` what runs it."""
    # SONiC has a group redis, which may open the server's socket, and no such user
    user = "" if kind == "nic" else "User=dcqcn-gym\nSupplementaryGroups=redis\n"
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
LimitMEMLOCK=infinity
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK

[Install]
WantedBy=multi-user.target
"""
