"""Logs that were edited, cut or made up: line and key are named, and no page is half-made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.report import build_report
from dcqcn_gym.runs.log import read_run
from synthetic_run import write_run

Change = Callable[[list[Any]], None]


def changed(tmp_path: Path, change: Change) -> Path:
    root = write_run(tmp_path / "run", intervals=4, seeds=1, flows=5)
    log = root / "run.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    change(lines)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    log.write_text("\n".join(texts) + "\n")
    return root


def put(line: int, value: Any, *keys: str) -> Change:
    def change(lines: list[Any]) -> None:
        inside = lines[line]
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = value

    return change


def raw(line: int, text: str) -> Change:
    def change(lines: list[Any]) -> None:
        lines[line] = text

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put(1, float("nan"), "utility"), "line 2 is not a line .*NaN is not a number"),
        (put(1, float("inf"), "terms"), "line 2 is not a line .*Infinity"),
        (raw(1, '{"i":0,"utility":1e400}'), "line 2 is not a line .*beyond"),
        (raw(1, "[" * 100_000 + "]" * 100_000), "line 2 is not a line .*nested too deeply"),
        (put(2, "0.8", "utility"), "line 3: utility = '0.8' is damaged; expected a number"),
        (put(2, True, "setting"), "line 3: setting = True is damaged; expected a table of knobs"),
        (put(2, {"cluster": 3}, "setting"), "line 3: setting = .* is damaged"),
        (put(2, [1, 2], "flows", "bytes"), "line 3: flows .*columns of one length"),
        (put(2, ["1"] * 5, "flows", "bytes"), "line 3: flows .*columns of one length"),
        (put(2, [0] * 5, "flows", "ideal_fct_ps"), "line 3: flows"),
        (put(2, [[1]] * 5, "flows", "src"), "line 3: flows"),
        (put(2, [10**30] * 5, "flows", "src"), "line 3: flows"),
        (put(2, 10**30, "end_ps"), "line 3: end_ps"),
        (put(2, 0, "end_ps"), "line 3: the interval ends before it begins"),
        (put(2, 7, "fsd"), "line 3: fsd = 7"),
        (put(2, [{}], "rounds"), "line 3: rounds"),
        (put(0, [1], "tuner_args"), "line 1: tuner_args"),
        (put(0, 3, "tuner"), "line 1: tuner = 3 is damaged; expected a text"),
        (raw(-1, '{"end":{}}'), "the last line is damaged: its key 'recommended' is missing"),
        (raw(-1, '{"end":3}'), "line 6: end = 3"),
        (put(-1, {"kmin": "x"}, "end", "recommended"), "line 6: recommended"),
        (lambda lines: lines.pop(4), "the last line ends 4 intervals, but the log holds 3"),
        (lambda lines: lines.__delitem__(slice(1, 5)), "the last line ends 4 intervals.* 0"),
        (put(1, "y" * 10**6, "idle"), r"line 2: idle = 'yyy.*\.\.\. is damaged"),
    ],
)  # fmt: skip
def test_the_place_is_named(tmp_path: Path, change: Change, says: str) -> None:
    root = changed(tmp_path, change)
    for use in (read_run, build_report):
        with pytest.raises(RunError, match=rf"^{root}/run\.jsonl: {says}") as caught:
            use(root)
        assert len(str(caught.value)) < 500
        assert "\n" not in str(caught.value)
    assert not list(root.glob("report.html*"))


def test_an_end_of_no_intervals_is_no_finished_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    end = {"recommended": {}, "intervals": 0, "mean_utility": None}
    path.write_text('{"schema":4,"kind":"run"}\n' + json.dumps({"end": end}) + "\n")
    with pytest.raises(RunError, match="ends 0 intervals"):
        read_run(path)


def test_a_page_needs_some_keys(tmp_path: Path) -> None:
    root = changed(tmp_path, lambda lines: lines[2].pop("start_ps"))
    with pytest.raises(RunError, match=r"line 3: the key 'start_ps' is missing"):
        build_report(root)
    assert not list(root.glob("report.html*"))


@pytest.mark.parametrize(
    "text",
    ["x", "[1]", "[" * 100_000, '{"run": {"wall_s": "a", "cpu_s": 1}}', '{"run": {"wall_s": NaN}}',
     '{"run": 3}', '{"run": {"wall_s": null, "cpu_s": []}}'],
)  # fmt: skip
def test_timings_never_stop_a_page(tmp_path: Path, text: str) -> None:
    root = write_run(tmp_path / "run", intervals=3, seeds=0, flows=2)
    (root / "timing.json").write_text(text)
    assert "time: run" not in build_report(root).read_text()


def test_a_page_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_run(tmp_path / "run", intervals=3, seeds=0, flows=2)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match=r"report.html cannot be written: No space left on device"):
        build_report(root)
    assert not list(root.glob("report.html*"))


def test_a_name_is_no_formula(tmp_path: Path) -> None:
    root = changed(tmp_path, put(0, "$\\frac{$ <script>alert(1)</script>", "tuner"))
    page = build_report(root).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_mean_that_its_intervals_do_not_have_is_refused(tmp_path: Path) -> None:
    log = write_run(tmp_path / "run", references=False, seeds=0) / "run.jsonl"
    text = log.read_text()
    log.write_text(re.sub(r'"mean_utility":[0-9.]+', '"mean_utility":0.99', text))
    with pytest.raises(RunError, match=r"mean_utility 0\.99, its intervals 0\.\d+; it was changed"):
        read_run(log)


def test_a_number_of_thousands_of_digits_is_no_advice_to_programmers(tmp_path: Path) -> None:
    log = write_run(tmp_path / "run", references=False, seeds=0) / "run.jsonl"
    log.write_text(log.read_text().replace('"utility":', '"utility":' + "9" * 5000 + ',"was":', 1))
    with pytest.raises(RunError, match=r"a number has thousands of digits$"):
        read_run(log)
