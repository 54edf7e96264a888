"""A picture of a network: tiers above each other, hosts of a rack as one box."""

from __future__ import annotations

from collections import Counter

from markupsafe import Markup, escape

from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.report.chart import file_css

MOST_IN_A_ROW = 64
"""Switches of a tier up to which they are drawn."""
_WIDTH, _ROW, _BOX = 800, 92, 20


def fabric_svg(net: Fabric) -> Markup:
    """Return the picture for a page, in its colours; empty where a tier has too many switches."""
    tiers = Counter(net.tiers)
    if max(tiers.values()) > MOST_IN_A_ROW:
        return Markup()
    top = max(tiers)
    places = _places(net, top)
    height = _ROW * top + 84  # the words of the lowest racks end here
    parts = [_lines(net, places), *_switches(net, places), *_racks(net, places)]
    label = f"{net.n_hosts} hosts, {len(net.tiers)} switches"
    return Markup(
        f'<svg class="fabric" role="img" aria-label="{label}" '
        f'viewBox="0 0 {_WIDTH} {height}">{"".join(parts)}</svg>'
    )  # every text is escaped


def fabric_file(net: Fabric) -> str:
    """Return the picture as a file, in light colours; empty as :func:`fabric_svg`."""
    drawn = str(fabric_svg(net))
    style = f"<style>{file_css('fabric')}</style>"
    head = '<svg xmlns="http://www.w3.org/2000/svg" style="background:#ffffff" '
    return drawn.replace("<svg ", head, 1).replace(">", f">{style}", 1) + "\n" if drawn else ""


def _places(net: Fabric, top: int) -> dict[int, tuple[float, float]]:
    """Return the middle of every switch."""
    rows: dict[int, list[int]] = {}
    for node, tier in net.tier_of.items():
        rows.setdefault(tier, []).append(node)
    return {
        node: (_WIDTH * (i + 0.5) / len(row), 16.0 + _ROW * (top - tier))
        for tier, row in rows.items()
        for i, node in enumerate(row)
    }


def _lines(net: Fabric, places: dict[int, tuple[float, float]]) -> str:
    """Draw the links between switches, broader where they carry more."""
    rates: Counter[tuple[int, int]] = Counter()
    for link in net.links:
        if link.a in places and link.b in places:
            rates[min(link.a, link.b), max(link.a, link.b)] += round(link.rate_bps)
    most = max(rates.values(), default=1)
    found = []
    for (a, b), rate in rates.items():
        (x, y), (u, v) = places[a], places[b]
        width = 0.6 + 2.4 * rate / most
        found.append(
            f'<path class="cable" stroke-width="{width:.1f}" d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"/>'
        )
    return "".join(found)


def _switches(net: Fabric, places: dict[int, tuple[float, float]]) -> list[str]:
    count = Counter(net.tiers)
    found = []
    for node, (x, y) in places.items():
        room = _WIDTH / count[net.tier(node)]
        wide = min(44.0, room * 0.8)
        found.append(
            f'<rect class="switch" x="{x - wide / 2:.1f}" y="{y - _BOX / 2:.1f}" '
            f'width="{wide:.1f}" height="{_BOX}" rx="3"/>'
        )
        if wide >= 24:
            found.append(
                f'<text class="in" x="{x:.1f}" y="{y + 4:.1f}">s{node - net.n_hosts}</text>'
            )
    return found


def _racks(net: Fabric, places: dict[int, tuple[float, float]]) -> list[str]:
    """Draw the hosts of each switch as one box below it, or beside it where it is no ToR."""
    found = []
    for rack in net.racks:
        x, y = places[net.tor(rack[0])]
        room = _WIDTH / Counter(net.tiers)[net.tier(net.tor(rack[0]))]
        rates = sorted({round(net.host_link[host].rate_bps / 1e9) for host in rack})
        first = f"h{rack[0]}" + (f"-h{rack[-1]}" if len(rack) > 1 else "")
        if rack[-1] - rack[0] != len(rack) - 1:
            first = f"h{rack[0]}, …"
        rate = "/".join(map(str, rates)) + "G"
        found.append(f'<path class="cable" d="M{x:.1f} {y + 10:.1f}V{y + 34:.1f}"/>')
        lines = (first, f"{len(rack)} x {rate}") if room >= 56 else (str(len(rack)),)
        for i, text in enumerate(lines):
            found.append(
                f'<text class="rack" x="{x:.1f}" y="{y + 46 + 13 * i:.1f}">{escape(text)}</text>'
            )
    return found
