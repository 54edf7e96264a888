"""The charts of the page: Vega-Lite by Altair, with its scripts from vl-convert.

A specification names its data (``by_size``, ``over_time``) and holds none: the page's own script
puts in what is ticked, and sets widths and colours. A datum names the colour it is drawn in.
"""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.errors import MissingExtraError

SIZE_CHARTS = (
    ("slowdown_mean", "Slowdown, mean", "times ideal"),
    ("slowdown_p99", "Slowdown, 99th percentile", "times ideal"),
    ("ms_mean", "Completion time, mean", "ms"),
    ("ms_p99", "Completion time, 99th percentile", "ms"),
)
"""Field of a datum, title and unit of each chart by flow size."""

TIME_CHARTS = (
    ("utility", "Utility", "0 to 1"),
    ("throughput", "Throughput", "Gb/s"),
    ("rtt", "Round trip, mean", "µs"),
    ("paused", "Paused, mean device", "% of the interval"),
)
"""The same of each chart over time."""

HEIGHT = 170


def scripts() -> str:
    """Return vega, vega-lite and vega-embed as one script, which needs no network.

    Raises MissingExtraError where the extra ``workbench`` is not installed.
    """
    try:
        import altair
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("drawing the workbench's charts", "workbench") from error
    version = altair.SCHEMA_VERSION.rpartition(".")[0]
    # a script element ends at its first end tag, wherever that stands
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version)).replace(
        "</script", "<\\/script"
    )


def specifications() -> dict[str, Any]:
    """Return the two specifications by the names of their data; MissingExtraError as above."""
    try:
        import altair as alt
    except ImportError as error:
        raise MissingExtraError("drawing the workbench's charts", "workbench") from error
    made = {
        "by_size": [_by_size(alt, *one) for one in SIZE_CHARTS],
        "over_time": [_over_time(alt, *one) for one in TIME_CHARTS],
    }
    return {
        name: alt.concat(*charts, columns=2, data=alt.NamedData(name)).to_dict(validate=True)
        for name, charts in made.items()
    }


def _by_size(alt: Any, field: str, title: str, unit: str) -> Any:
    """Draw a bar, or a point, for every class of sizes and setting."""
    ratio = field.startswith("slowdown")
    # a slowdown is at least 1, so a bar on its logarithmic axis has a foot; a time has none
    mark = alt.MarkDef("bar") if ratio else alt.MarkDef("point", filled=True, size=90)
    drawn = alt.Chart(mark=mark).encode(
        x=alt.X("size:N", sort=None, title="size of flows", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("place:O"),
        y=alt.Y(
            f"{field}:Q", scale=alt.Scale(type="log", nice=False),
            title=f"{unit} (log scale)", axis=_few_ticks(alt),
        ),
        color=alt.Color("colour:N", scale=None, legend=None),
        tooltip=[
            alt.Tooltip("label:N", title="setting"),
            alt.Tooltip("size:N", title="flows"),
            alt.Tooltip("count:Q", title="how many"),
            alt.Tooltip(f"{field}:Q", title=f"{title.lower()}, {unit}", format=".4~g"),
        ],
    )  # fmt: skip
    if ratio:
        drawn = drawn.encode(y2=alt.Y2Datum(1))
    return drawn.properties(title=title, height=HEIGHT, description=f"{title} by size of flows")


def _few_ticks(alt: Any) -> Any:
    return alt.Axis(tickCount=5, format=".4~g", labelOverlap="greedy")


def _over_time(alt: Any, field: str, title: str, unit: str) -> Any:
    """Draw a line for every setting, with the values at the interval that is nearest."""
    nearest = alt.selection_point(
        nearest=True, on="pointermove", clear="pointerout", fields=["ms"], empty=False,
        name=f"nearest_{field}",
    )  # fmt: skip
    base = alt.Chart().encode(
        x=alt.X(
            "ms:Q", title="time since the first interval, ms", scale=alt.Scale(nice=False),
            axis=_few_ticks(alt),
        ),
        y=alt.Y(
            f"{field}:Q", title=unit, scale=alt.Scale(zero=field == "paused", padding=6),
            axis=_few_ticks(alt),
        ),
        color=alt.Color("colour:N", scale=None, legend=None),
        detail="id:N",
    )  # fmt: skip
    lines = base.mark_line(strokeWidth=1.8, invalid="break-paths-show-path-domains").encode(
        strokeDash=alt.StrokeDash("dash:N", scale=None, legend=None)
    )
    points = base.mark_point(filled=True, size=70, tooltip=True).encode(
        opacity=alt.condition(nearest, alt.value(1), alt.value(0)),
        tooltip=[
            alt.Tooltip("label:N", title="setting"),
            alt.Tooltip("ms:Q", title="at, ms", format=".5~g"),
            alt.Tooltip(f"{field}:Q", title=f"{title.lower()}, {unit}", format=".4~g"),
        ],
    )
    return alt.layer(lines, points.add_params(nearest)).properties(
        title=title, height=HEIGHT, description=f"{title} over time"
    )
