"""Which host of the scenario a name in a trace is: a file of names, or numbers in natural order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.envs.scenario.tables import lines_of

HOSTS_HEADER = "name,host"
MOST_HOSTS = 65_536
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the begin of a formula."""


def read_hosts(path: Path) -> dict[str, int]:
    """Read ``name,host`` rows, host as ``12`` or ``h12``; several names may be one host.

    Raises :class:`ConfigError` with file and line.
    """
    found: dict[str, int] = {}
    for line, text in lines_of(path):
        if text.startswith("#") or (text.replace(" ", "").lower() == HOSTS_HEADER and not found):
            continue
        name, comma, host = (part.strip() for part in text.rpartition(","))
        match = re.fullmatch(r"h?(\d{1,5})", host)
        if not comma or not name or match is None or int(match[1]) >= MOST_HOSTS:
            raise ConfigError(
                f"{path} line {line}: {quote(text)}; expected {HOSTS_HEADER}, such as gpu-a1,h0"
            )
        if name[:1] == "'" and name[1:2] in FORMULA:  # as `traffic import` wrote it
            name = name[1:]
        if found.setdefault(name, int(match[1])) != int(match[1]):
            raise ConfigError(f"{path} line {line}: {quote(name)} is h{found[name]} further up")
    if not found:
        raise ConfigError(f"{path}: names no host; expected lines {HOSTS_HEADER}")
    return found


def number_hosts(names: Iterable[str]) -> dict[str, int]:
    """Return names in natural order (gpu-2 before gpu-10) as hosts 0, 1, ..."""
    return {name: i for i, name in enumerate(sorted(set(names), key=_natural))}


def own_numbers(names: Iterable[str]) -> dict[str, int] | None:
    """Return names that are numbers of hosts (``12``, ``h12``, ``n12``) by these; None if not."""
    matches = {name: re.fullmatch(r"[hn]?(\d{1,5})", name) for name in names}
    found = {name: int(match[1]) for name, match in matches.items() if match}
    several = len(set(found.values())) < len(matches)  # 3 and h3, or a name that is none
    if several or any(n >= MOST_HOSTS for n in found.values()):
        return None
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], name


def unknown_name(name: str, hosts: Mapping[str, int]) -> str:
    """Return the name, with the nearest known one beside it."""
    return name + did_you_mean(name, hosts)
