"""Charts: well-formed whatever is drawn, in the right place, the same bytes each time."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dcqcn_gym.core.statistics import slowdown_by_size
from dcqcn_gym.report.axes import linear_axis, log_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.figures import slowdown_figure

A, B = Key("tuned", "a <b> & \"c\""), Key("default", "default")  # fmt: skip


def chart() -> Chart:
    panel = Panel("<title>", linear_axis([np.arange(4.0)], exact=True),
                  linear_axis([np.array([0.0, 10.0])], exact=True), follow=True)  # fmt: skip
    x = np.arange(4.0)
    panel.line(A, x, np.array([0.0, 5.0, math.nan, 10.0]))
    panel.band(B, x, np.zeros(4), np.full(4, 2.0), "band")
    panel.dot(B, 3.0, 10.0, "tip & <tip>", hollow=True)
    panel.dot(B, math.nan, 1.0, "nowhere")
    panel.stem(A, (1.0, 0.0), (1.0, 10.0))
    panel.rule(y=0.0)
    return Chart([panel], hidden=[B])


def test_page_and_file_are_well_formed() -> None:
    for text in (str(chart().html()), chart().file()):
        root = ElementTree.fromstring(text)
        words = re.sub("<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
        page = root.tag == "div"  # a file leaves out hidden series, and a legend of one
        assert ("a &lt;b&gt; &amp; " in words) == (B.label in words) == page
        assert text.count('class="series default"') == 2 * page
        assert "&lt;title&gt;" in words
        assert "nowhere" not in text
        assert "nan" not in text
    assert "var(--" not in chart().file()
    assert chart().html() == chart().html()


def test_marks_stand_where_their_values_are() -> None:
    text = str(chart().html())
    (line,) = re.findall(r'class="line" d="(M[^"]*L[^"]*)"/></g>', text)
    # 0 is at the lower left, 10 at the upper right; the unknown value leaves a hole
    assert line == "M0.0 1000.0L333.3 500.0M1000.0 0.0"
    assert 'data-x="0 1 3" data-y="0 5 10"' in text
    assert 'class="dot" d="M1000.0 0.0L1000.0 0.0" data-tip="tip &amp; &lt;tip&gt;"' in text
    assert text.count('aria-pressed="false"') == 1


@pytest.mark.parametrize(
    "values",
    [[], [math.nan], [0.0], [5.0, 5.0], [1e308, -1e308], [5e-324], [1e-300, 2e-300], [-3.0],
     [0.8123, 0.8124], [1e12, 1e12 + 1], [math.inf, 1.0]],
)  # fmt: skip
def test_an_axis_of_any_values_has_few_round_ticks(values: list[float]) -> None:
    given = [np.array(values)]
    for axis in (linear_axis(given), linear_axis(given, exact=True), log_axis(given)):
        assert axis.low < axis.high
        assert len([label for _, label in axis.ticks if label]) <= 12
        places = axis.at([place for place, _ in axis.ticks])
        assert np.all((places > -1e-6) & (places < 1 + 1e-6))
        assert np.all(np.diff(places) > 0)
        known = [v for v in values if math.isfinite(v) and abs(v) < 1e290]
        if not axis.log and known:
            inside = axis.at(known)
            assert np.all((inside > -1e-6) & (inside < 1 + 1e-6))


def test_ticks_are_what_a_person_would_write() -> None:
    labels = [label for _, label in linear_axis([np.array([0.0, 1.0])], exact=True).ticks]
    assert labels == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [label for _, label in linear_axis([np.array([-2.0, 2.0])], exact=True).ticks] == [
        "−2", "−1", "0", "1", "2"
    ]  # fmt: skip
    assert [label for _, label in log_axis([np.array([1.0, 90.0])], "×").ticks] == [
        "1×", "2×", "5×", "10×", "20×", "50×", "100×"
    ]  # fmt: skip
    assert [label for _, label in log_axis([np.array([900.0, 6e4])]).ticks] == [
        "1000", "2000", "5000", "10000", "20000", "50000"
    ]  # fmt: skip
    assert named_axis(["x", "y"], down=True).at([0.0, 1.0])[0] > 0.5


def test_a_logarithmic_scale_says_so_on_either_axis() -> None:
    values = [np.array([3.0, 4000.0])]
    panel = Panel("Round trip", log_axis(values), log_axis(values), x_label="N")
    panel.line(A, *values, *values)
    for text in (str(Chart([panel]).html()), Chart([panel]).file()):
        assert "Round trip (log scale)<" in text
        assert ">N, log scale<" in text
    plain = Panel("Round trip", linear_axis(values), linear_axis(values), x_label="N")
    assert "log scale" not in Chart([plain]).file()


def test_a_logarithmic_axis_has_ticks_at_1_2_and_5() -> None:
    ticks = log_axis([np.array([1.0, 9000.0])]).ticks
    assert [label for _, label in ticks if label] == ["1", "10", "100", "1000", "10000"]
    assert [round(place) for place, _ in ticks][:6] == [1, 2, 5, 10, 20, 50]
    shown = [label for _, label in log_axis([np.array([6.4, 37.8])]).ticks]  # of P-tab2
    assert shown == ["7", "10", "20", "30"]


def test_an_interval_that_leaves_the_frame_ends_in_an_arrow() -> None:
    panel = Panel("S", linear_axis([np.array([0.0, 1.0])]), named_axis(["a", "b"], down=True))
    panel.span(A, -0.01, 1.01, 0)
    assert "arrow" not in panel.svg([A])
    panel.span(A, -9.0, 9.0, 1)
    assert panel.svg([A]).count('class="line arrow"') == 2


def test_a_size_that_became_worse_says_so() -> None:
    table = slowdown_by_size(np.array([500, 50_000]), np.array([1.5, 3.0]))
    text = str(slowdown_figure({"tuned": ("ours", table)}, worse={"10–100 KB"}).html())
    assert text.count("▲ worse") == 1
    assert "ours, 10–100 KB: p99 3.00×" in text
    assert "1–10 KB" not in text  # without flows
    labels = re.findall(r'class="tick x"[^>]*>([^<]*)<', text)
    assert labels == ["below", "1\u00a0KB", "10–", "100\u00a0KB", "▲ worse", "all", "sizes"]
