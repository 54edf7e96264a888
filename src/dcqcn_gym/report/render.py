"""The one place where pages are made of templates: every value in them is escaped.

The templates lie in ``templates/``; ``tables.html.j2`` holds the tables that pages share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.runs.table import four, number, times, with_interval


def render(template: str, **values: Any) -> bytes:
    """Return a page; a value that the template names and does not get is an error."""
    return _environment().get_template(template).render(values).encode()


@cache  # its templates are compiled once
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dcqcn_gym.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["made_by"] = code_versions()
    environment.filters |= {
        "num": number,
        "four": four,
        "times": times,
        "change": _change,
        "folded": _folded,
        "page_name": page_name,
    }
    return environment


def page_name(words: Sequence[str]) -> str:
    """Return the file name of a page on something, from the words that name it."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", "-".join(words)) + ".html"


def _change(estimate: Estimate | None) -> Markup:
    """Return a relative change in per cent, its interval in small print."""
    text = with_interval(estimate, "+.1f", 100, unit="\u00a0%", style="brackets")
    mean, _, interval = text.replace("-", "−").partition(" ")
    return Markup('{} <span class="ci">{}</span>' if interval else "{}").format(mean, interval)


def _folded(cell: str) -> Markup:
    """Return a cell whose interval may go under the mean where the column is narrow."""
    cell = re.sub(r"(?<![\w–-])-(?=[\d.])", "−", cell)
    for mark in (" ± ", " ["):
        mean, found, interval = cell.partition(mark)
        if found:
            return Markup('{} <span class="ci">{}</span>').format(mean, mark.lstrip() + interval)
    return escape(cell)
