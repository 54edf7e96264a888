"""A setting as an operator's own commands: NICs, SONiC, Arista EOS, NVUE, a playbook of Ansible."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from dcqcn_gym.core.device_limits import MAKERS, held_range, is_safe, safe_range
from dcqcn_gym.core.device_units import to_device
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.knobs import ECN_KNOBS, KnobTable, Setting
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _too_large(
    table: KnobTable, values: Mapping[str, tuple[str, float]], form: str
) -> tuple[set[str], list[str]]:
    """Return the knobs whose value the device cannot hold, and the comments that say so.

    ``values`` has the device's name of a knob, and its value there.
    """
    outside = {}
    for name, (key, value) in values.items():
        low, high = held_range(form, table[name])
        if not low <= value <= high:
            outside[name] = (f"# Left out, out of range for {form}: {key} = {_number(value)}; it "
                             f"holds {low} to {high}.")  # fmt: skip
    return set(outside), list(outside.values())


def _unsafe(setting: Setting, chosen: Container[str], line_rate_bps: float | None) -> list[str]:
    """Return a comment on each value that agents refuse unless their files say otherwise."""
    said = []
    for row in (row for row in setting.table.rows if row.name in chosen):
        limits = safe_range(row, line_rate_bps)
        if limits is not None and not is_safe(row, setting[row.name], limits):
            said.append(
                f"# {row.name} = {_number(setting[row.name])} {row.unit} is beyond what agents "
                f"let a device be given, {limits[0]:g} to {limits[1]:g} {row.unit}."
            )
    return said


def _nic_part(
    setting: Setting, chosen: Container[str], form: str
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the NIC's knobs that a tool can hold, by its own names, and comments on the others."""
    rows = [setting.table[name] for name in setting.table.nic if name in chosen]
    named = {row.name: str(own) for row in rows if (own := getattr(row, form))}
    held = {name: (own, setting[name]) for name, own in named.items()}
    outside, comments = _too_large(setting.table, held, form)
    if unknown := [row.name for row in rows if row.name not in named]:
        comments.append(f"# Left out, no such name here: {', '.join(unknown)}.")
    pairs = [(own, _number(value)) for name, (own, value) in held.items() if name not in outside]
    return pairs, comments


def _mlxconfig(setting: Setting, chosen: Container[str]) -> list[str]:
    values, comments = _nic_part(setting, chosen, "mlxconfig")
    pairs = [f"{name}_P${{PORT:-1}}={value}" for name, value in values]
    if not pairs:
        if not any(row.mlxconfig for row in setting.table.rows if row.name in chosen):
            raise ConfigError(f"mlxconfig has none of the knobs of scheme {setting.table.scheme!r}")
        return ["# NICs: nothing that mlxconfig can hold.", *comments, ":"]
    return [
        "# NIC part, persistent: run on every host, then reset the NIC or reboot.",
        "# DEV is the PCI device or mst device, PORT the port (1 by default).",
        'mlxconfig -y -d "${DEV:?set DEV, for example 0000:3b:00.0}" set \\',
        *(f"  {pair} \\" for pair in pairs[:-1]),
        f"  {pairs[-1]}",
        *comments,
        "# The ECN part belongs to the switches: the form sonic.",
    ]


def _debugfs(setting: Setting, chosen: Container[str]) -> list[str]:
    values, comments = _nic_part(setting, chosen, "debugfs")
    return [
        "# NIC part, in force at once and until the next reset: run as root on every host.",
        "# A file that is missing means that the kernel or the firmware lacks that knob.",
        "CC=/sys/kernel/debug/mlx5/${BDF:?set BDF, for example 0000:3b:00.0}/cc_params",
        *(f'echo {value} > "$CC/{name}"' for name, value in values),
        *comments,
        "# The ECN part belongs to the switches: the form sonic.",
    ]


def _sonic(setting: Setting, chosen: Container[str]) -> list[str]:
    lines = _wred(setting, chosen) if any(name in chosen for name in ECN_KNOBS) else []
    if "pfc_alpha" in chosen:
        lines += _buffer_profile(setting["pfc_alpha"])
    return [*lines, "# The NIC part belongs to the hosts: the forms mlxconfig and debugfs."]


def _buffer_profile(alpha: float) -> list[str]:
    """Return the commands for the share of the buffer, a power of two on a device."""
    power = to_device(OPTIONAL_KNOBS["pfc_alpha"], alpha)
    lines = [
        "# Ingress buffer of every SONiC switch: BUFFER is the profile of the RoCE priority groups",
        "# (the field profile of BUFFER_PG|<port>|3-4).",
    ]
    if 2.0**power != alpha:
        lines.append(f"# pfc_alpha {alpha:g} is rounded: SONiC takes powers of two.")
    buffer = "${BUFFER:?set BUFFER, for example pg_lossless_100000_5m_profile}"
    return [*lines, f"sonic-db-cli CONFIG_DB hset 'BUFFER_PROFILE|'\"{buffer}\" dynamic_th {power}"]


def _wred(setting: Setting, chosen: Container[str]) -> list[str]:
    """Return the commands for the marking curve."""
    low, high, percent = _curve(setting, "sonic")
    lines = [
        "# Switch part: run on every SONiC switch. PROFILE must be the one that the RoCE queues",
        "# use (the field wred_profile of QUEUE|<port>|3).",
        "KEY='WRED_PROFILE|'${PROFILE:-AZURE_LOSSLESS}",
    ]
    lines += _rounded(setting["pmax"], percent, "SONiC")
    whole = all(name in chosen for name in ECN_KNOBS)
    lines.append(f'sonic-db-cli CONFIG_DB hset "$KEY"{" ecn ecn_all" if whole else ""} \\')
    for colour in ("green", "yellow", "red"):
        fields = {
            "kmin": f"{colour}_min_threshold {low}",
            "kmax": f"{colour}_max_threshold {high}",
            "pmax": f"{colour}_drop_probability {percent}",
        }
        words = [f"wred_{colour}_enable true"] if whole else []
        words += [field for name, field in fields.items() if name in chosen]
        end = "" if colour == "red" else " \\"
        lines.append(f"  {' '.join(words)}{end}")
    return lines


def _eos(setting: Setting, chosen: Container[str]) -> list[str]:
    """Return configuration lines of Arista EOS, as Arista's AVD writes them; weight 0: no average.

    A queue's line has all three values, so it is written whole.
    """
    low, high, percent = _curve(setting, "eos")
    return [
        "# Switch part: run in the bash of every EOS switch. INTERFACE is a range of its ports,",
        "# QUEUE the unicast queue of the RoCE traffic.",
        *_rounded(setting["pmax"], percent, "EOS"),
        "FastCli -p 15 <<END",
        "configure session dcqcn-gym",
        "interface ${INTERFACE:?set INTERFACE, for example Ethernet1/1-32/1}",
        "uc-tx-queue ${QUEUE:-3}",
        f"random-detect ecn minimum-threshold {low} bytes maximum-threshold {high} bytes "
        f"max-mark-probability {percent} weight 0",
        "commit",
        "END",
        "# The NIC part belongs to the hosts: the forms mlxconfig and debugfs.",
    ]


def _nvue(setting: Setting, chosen: Container[str]) -> list[str]:
    """Return NVUE's commands, applied for so long as nobody confirms (NVIDIA's NVUE reference)."""
    low, high, percent = _curve(setting, "nvue")
    fields = {"kmin": f"min-threshold {low}", "kmax": f"max-threshold {high}",
              "pmax": f"probability {percent}"}  # fmt: skip
    return [
        "# Switch part: run on every switch with NVUE. TC is the traffic class of RoCE; CONFIRM is",
        "# how long the change stays unless `nv config apply --confirm-yes` follows.",
        *_rounded(setting["pmax"], percent, "NVUE"),
        "CLASS='qos congestion-control default-global traffic-class '${TC:-3}",
        *(f"nv set $CLASS {field}" for name, field in fields.items() if name in chosen),
        "nv config apply --confirm ${CONFIRM:-300s} -y",
        "# The NIC part belongs to the hosts: the forms mlxconfig and debugfs.",
    ]


def _curve(setting: Setting, form: str) -> tuple[int, int, int]:
    """Return thresholds in bytes and a whole percent; ConfigError for what a switch cannot hold."""
    low, high = (round(setting.table[name].to_si(setting[name])) for name in ("kmin", "kmax"))
    percent = round(setting["pmax"] * 100)
    if setting["pmax"] > 0:
        percent = max(percent, 1)
    held: dict[str, tuple[str, float]] = {
        "kmin": ("min_threshold", low),
        "kmax": ("max_threshold", high),
        "pmax": ("drop_probability", percent),
    }
    outside, comments = _too_large(setting.table, held, form)
    if outside:  # the three make one profile
        raise ConfigError(f"{MAKERS[form]} cannot hold this setting: {' '.join(comments)}")
    return low, high, percent


def _rounded(pmax: float, percent: int, vendor: str) -> list[str]:
    """Return a comment if a probability is no whole percent."""
    said = f"# Pmax {pmax:g} is rounded: {vendor} takes whole percents."
    return [said] if percent != pmax * 100 else []


_NIC_GROUPS = ("cluster", "hosts", "nic")
_SWITCH_GROUPS = ("cluster", "switches", "tor", "spine", "core", "switch", "port")

FORMS: Mapping[str, Callable[[Setting, Container[str]], list[str]]] = {
    "mlxconfig": _mlxconfig,
    "debugfs": _debugfs,
    "sonic": _sonic,
    "eos": _eos,
    "nvue": _nvue,
}
_OF_SWITCHES = ("sonic", "eos", "nvue")


WORDS = (*FORMS, "ansible", "all")
"""What ``emit --format`` takes: a form, a playbook, or every form one after the other."""


@dataclass(frozen=True)
class _ScriptOptions:
    """What holds for every section of a script."""

    before: Setting | None
    said: str
    line_rate_bps: float | None
    classes: Mapping[int, Sequence[float]]


def emit(
    setting: DeviceSetting,
    form: str,
    *,
    before: Setting | None = None,
    said: str = "",
    line_rate_bps: float | None = None,
    classes: Mapping[int, Sequence[float]] | None = None,
) -> str:
    """Return shell commands that put ``setting`` in force; forms: :data:`WORDS`.

    Device names stay shell variables, because only the operator knows them. Values are in the
    units that the tool expects; a knob that the tool does not know is left out, with a comment. A
    setting per group gives one section per group that has such devices; the variable GROUP chooses
    one. ``all`` says in a comment which form cannot hold the setting. With ``before``, the setting
    in force so far, only knobs that differ from it are written. ``said`` is what the first line of
    each form says about the setting. A value that agents would refuse, at ``line_rate_bps`` where
    that counts, stays and has a comment. ``classes`` are priorities with curves of their own (kmin
    and kmax in bytes, pmax), which no knob moves: written where ``before`` is not given. Raises
    UnknownNameError for another form, ConfigError if the tool knows no knob at all.
    """
    if form not in WORDS:
        raise UnknownNameError("form", form, WORDS)
    return _written(setting, form, _ScriptOptions(before, said, line_rate_bps, classes or {}))


def _written(setting: DeviceSetting, form: str, how: _ScriptOptions) -> str:
    if form == "ansible":
        return _playbook(setting, how)
    if form == "all":
        return "\n".join(f"## {one}\n{_or_why(setting, one, how)}" for one in FORMS)
    concerned = _SWITCH_GROUPS if form in _OF_SWITCHES else _NIC_GROUPS
    sections = {
        group: _section(values, form, how)
        for group, values in by_group(setting)
        if group.partition(":")[0] in concerned
    }
    lines = sections["cluster"] if len(sections) == 1 else _sections(sections)
    return "\n".join([*([f"# {how.said}"] if how.said else []), *lines]) + "\n"


_PLAYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "debugfs": ("nics", ("bdf",)),
    "sonic": ("sonic", ("profile", "buffer")),
    "eos": ("eos", ("interfaces", "queue")),
    "nvue": ("nvue", ("tc", "confirm")),
}
"""Form -> the inventory's group of hosts, and the variables that they may have."""


def _playbook(setting: DeviceSetting, how: _ScriptOptions) -> str:
    """Return plays of Ansible that run the same commands: a play a group and kind of device.

    Hosts are the inventory's groups ``nics``, ``sonic``, ``eos`` and ``nvue``, of a group of
    devices with its name behind (``sonic_tor``); each host's variables are those of the commands.
    EOS is configured by the collection ``arista.eos``, whose hosts name ``interfaces``.
    """
    lines = ["---", f"# {how.said or 'DCQCN by dcqcn-gym'}"]
    for group, values in by_group(setting):
        end = "" if group == "cluster" else "_" + re.sub(r"\W", "_", group)
        for form, (hosts, known) in _PLAYS.items():
            own = [f"profile_{n}" for n in how.classes] if form == "sonic" else []
            names = (*known, *own)
            concerned = _SWITCH_GROUPS if form in _OF_SWITCHES else _NIC_GROUPS
            if group.partition(":")[0] not in concerned:
                continue
            try:
                commands = _section(values, form, how)
            except ConfigError as error:
                lines.append(f"# {error}")
                continue
            lines += [f"- name: DCQCN of {group}, {form}", f"  hosts: {hosts}{end}"]
            if form == "eos":
                lines += _eos_task(commands)
                continue
            lines += [
                "  become: true",
                "  tasks:",
                "    - name: Put the setting in force",
                "      environment:",
                *(f"        {name.upper()}: \"{{{{ {name} | default('') }}}}\"" for name in names),
                "      ansible.builtin.shell: |",
                "        set -e",
                *(f"        {line}" for line in commands),
            ]
    return "\n".join(lines) + "\n"


def _eos_task(commands: list[str]) -> list[str]:
    """Return the task that gives every interface's queue its line; none if nothing changes."""
    said = [f"    {line}" for line in commands if line.startswith("# Pmax")]
    found = [line for line in commands if line.startswith("random-detect")]
    if not found:
        return ["  gather_facts: false", "  tasks: []  # nothing to change"]
    return [
        "  gather_facts: false",
        "  tasks:",
        *said,
        "    - name: Put the setting in force",
        "      arista.eos.eos_config:",
        "        parents:",
        '          - "interface {{ item }}"',
        "          - \"uc-tx-queue {{ queue | default('3') }}\"",
        "        lines:",
        f"          - {found[0]}",
        '      loop: "{{ interfaces }}"',
    ]


def _or_why(setting: DeviceSetting, form: str, how: _ScriptOptions) -> str:
    """Return the commands of one of several forms, or a comment that says why there are none."""
    try:
        return _written(setting, form, how)
    except ConfigError as error:
        return f"# {error}\n:\n"


def _section(setting: Setting, form: str, how: _ScriptOptions) -> list[str]:
    """Return the commands of one form for one group."""
    own = setting.table.ecn if form in _OF_SWITCHES else setting.table.nic
    was = {} if how.before is None else how.before
    chosen = frozenset(name for name in own if was.get(name) != setting[name])
    if own and not chosen:
        return [f"# {'Switches' if form in _OF_SWITCHES else 'NICs'}: nothing to change.", ":"]
    lines = _unsafe(setting, chosen, how.line_rate_bps) + FORMS[form](setting, chosen)
    if form in _OF_SWITCHES and how.before is None:
        for priority, curve in how.classes.items():
            lines += _of_class(setting, form, priority, curve)
    return lines


_OF_QUEUE: Mapping[str, tuple[str, str]] = {
    "sonic": ("${PROFILE:-AZURE_LOSSLESS}", "${PROFILE_N:?set PROFILE_N, or leave this out}"),
    "eos": ("${QUEUE:-3}", "N"),
    "nvue": ("${TC:-3}", "N"),
}
"""What names the queue in a form, and what does in the part of class N."""


def _of_class(setting: Setting, form: str, priority: int, curve: Sequence[float]) -> list[str]:
    """Return the commands for a class whose curve no knob moves; its queue is its priority."""
    low, high, pmax = curve
    own = setting.replace(kmin=low / 1000, kmax=high / 1000, pmax=pmax)
    variable, name = _OF_QUEUE[form]
    lines = [line.replace(variable, name.replace("N", str(priority)))
             for line in FORMS[form](own, ECN_KNOBS) if not line.startswith("# ")]  # fmt: skip
    return [f"# The class of priority {priority}, whose curve nothing moved.", *lines]


def _sections(sections: Mapping[str, list[str]]) -> list[str]:
    """Return one script that runs the section of the group that GROUP names."""
    names = ", ".join(sections)
    lines = [
        "# One section per group of devices. Set GROUP to the most specific one that a device is",
        f"# in, 'cluster' for all others: {names}.",
        f'case "${{GROUP:?set GROUP to one of: {names}}}" in',
    ]
    for group, commands in sections.items():
        lines += [f'"{group}")', *commands, ";;"]
    refusal = f'echo "unknown GROUP $GROUP; expected one of: {names}" >&2'
    return [*lines, f"*) {refusal}; exit 2 ;;", "esac"]
