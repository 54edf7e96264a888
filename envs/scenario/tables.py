"""Tables that a scenario reads from CSV: flow-size distributions and explicit flow lists.

A table is read once, checked line by line, and stored in the scenario, so that a recorded run
can be replayed where the file does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, WrapValidator, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, StrictModel
from dcqcn_gym.core.errors import QUOTED, ConfigError, UnknownNameError, quote
from dcqcn_gym.core.files import read_text

CDF_HEADER = "bytes,cumulative_probability"
FLOW_HEADER = "src,dst,bytes,start_ns"
MOST = 2**63
"""Of no number in a table can more be meant."""
MOST_FLOW_BYTES = 2**50
LAST_START_NS = 2**55 / 1000
"""The end of time (docs/reference/model.md): no run gets to a later flow."""
UNLIMITED: Final = "unlimited"
"""The size of a flow that never ends."""


def _flow_size(value: Any, handler: Any) -> Any:
    try:
        return handler(value)
    except ValueError:
        expected = f'expected a whole number of bytes, 1 to 2^50, or "{UNLIMITED}"'
        raise PydanticCustomError("flow_size", expected) from None


FlowSize = Annotated[
    int | Literal["unlimited"],
    WrapValidator(_flow_size),
    Field(description='payload bytes of a flow, or "unlimited": it never ends'),
]


class Cdf(StrictModel):
    """A flow-size distribution: cumulative probability at sizes in bytes, linear in between.

    A first probability above 0 is a point mass at the first size; equal sizes in two rows are a
    point mass there. ``thinned`` marks a table that keeps the shape but not the mean of its
    source: it cannot be used with a load.
    """

    name: str
    points: tuple[tuple[int, float], ...] = Field(min_length=1)
    thinned: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        for i, (size, share) in enumerate(self.points):
            before = self.points[i - 1] if i else (0, 0.0)
            problem = _cdf_problem(size, share, *before)
            if problem:
                raise ConfigError(f"point {i + 1} of CDF {quote(self.name)}: {problem}")
        size, share = self.points[-1]
        if share != 1.0:
            raise ConfigError(
                f"CDF {quote(self.name)} ends with probability {share:g} at {size} bytes; "
                "expected 1"
            )
        if size < 1:
            raise ConfigError(f"CDF {quote(self.name)} has only flows of 0 bytes; expected a size")
        return self

    @property
    def mean_bytes(self) -> float:
        """Exact mean of the distribution in bytes (flows below 1 byte count as drawn)."""
        total, size, share = Fraction(0), Fraction(self.points[0][0]), Fraction(0)
        for next_size, text in self.points:
            next_share = Fraction(repr(text))  # the decimal number as it was written
            total += (next_share - share) * (size + next_size) / 2
            size, share = Fraction(next_size), next_share
        return float(total)


def _cdf_problem(size: int, share: float, size_before: int, share_before: float) -> str:
    """Return what is wrong with a point after its predecessor, or an empty string."""
    if not 0.0 <= share <= 1.0:
        hint = " (divide percent by 100)" if 1 < share <= 100 else ""
        return f"probability {share:g} is out of range; expected 0 to 1{hint}"
    if not 0 <= size <= MOST_FLOW_BYTES:
        what = "is negative" if size < 0 else "is beyond any flow"
        return f"size {size} {what}; expected 0 to {MOST_FLOW_BYTES} bytes"
    if size < size_before:
        return f"size {size} is smaller than {size_before} before it; expected ascending sizes"
    if share < share_before:
        return f"probability {share:g} is below {share_before:g} before it; it must not fall"
    return ""


class Flow(NamedTuple):
    """One flow of an explicit list: hosts, payload bytes (or no end), start in nanoseconds."""

    src: int
    dst: int
    bytes: FlowSize
    start_ns: float

    def problem(self, n_hosts: int | None) -> str:
        """Return what is wrong with this flow, or an empty string."""
        for key, host in (("src", self.src), ("dst", self.dst)):
            if host < 0 or (n_hosts is not None and host >= n_hosts):
                top = f" to {n_hosts - 1}" if n_hosts is not None else " or more"
                return f"{key} = {host} is not a host; expected 0{top}"
        if self.src == self.dst:
            return f"src and dst are both {self.src}; expected two different hosts"
        if self.bytes != UNLIMITED:
            if self.bytes < 1:
                return f"bytes = {self.bytes}; expected at least 1, or {UNLIMITED!r}"
            if self.bytes > MOST_FLOW_BYTES:
                return f"bytes = {self.bytes}; expected at most {MOST_FLOW_BYTES}"
        if not 0 <= self.start_ns < LAST_START_NS:
            return f"start_ns = {self.start_ns:g}; expected 0 or more, below {LAST_START_NS:.10g}"
        return ""


_FOLDER = CONFIGS / "workloads"


def cdf_names() -> list[str]:
    """Return the names of the flow-size distributions that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.csv"))


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of a file, comments included, blank lines left out."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def numbers_of(
    path: Path, line: int, text: str, header: str, whole: tuple[bool, ...], word: str | None = None
) -> list[Any]:
    """Return the numbers of a row; raise :class:`ConfigError` with file, line and column.

    ``word`` may stand in the place of the third one.
    """
    cells = [cell.strip() for cell in text.split(",")]
    if len(cells) == 1 or not any(map(_is_number, cells)):
        lacks = "comma" if len(cells) == 1 else "number"  # perhaps of a file that is none of ours
        raise ConfigError(f"{path} line {line} has no {lacks}; expected {header}")
    if len(cells) != len(whole):
        raise ConfigError(
            f"{path} line {line}: {quote(text)} has {len(cells)} columns; expected {header}"
        )
    values: list[Any] = []
    for cell, name, is_whole in zip(cells, header.split(","), whole, strict=True):
        if cell == word and len(values) == 2:
            values.append(cell)
            continue
        try:
            value: float = int(cell) if is_whole else float(cell)
        except ValueError:
            value = MOST
        if not -MOST < value < MOST:  # also what is no number
            kind = "a whole number" if is_whole else "a number"
            raise ConfigError(f"{path} line {line}: {name} = {quote(cell)}; expected {kind}")
        values.append(value)
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_cdf(path: Path) -> Cdf:
    """Read ``bytes,cumulative_probability`` rows; ``#`` lines are comments, a header is optional.

    A comment line ``# thinned`` marks the table as thinned. Rows of two numbers with a blank
    between are HPCC's, in percent where they end with 100. Raises :class:`ConfigError` with the
    line number.
    """
    points: list[tuple[int, float]] = []
    thinned = False
    last_line = 0
    rows = list(lines_of(path))
    percent = rows and rows[-1][1].split()[1:] in (["100"], ["100.0"], ["100.00"])
    for line, text in rows:
        if text.startswith("#"):
            thinned = thinned or text.lstrip("# ").lower() == "thinned"
            continue
        if text.replace(" ", "").lower() == CDF_HEADER and not points:
            continue
        cells = text.split() if "," not in text else []
        if len(cells) == 3:
            raise ConfigError(
                f"{path} line {line}: three columns, as ns-2 has them, whose sizes are packets; "
                f"expected {CDF_HEADER}"
            )
        row = ",".join(cells) if len(cells) == 2 else text
        size, share = numbers_of(path, line, row, CDF_HEADER, (True, False))
        share /= 100 if percent else 1
        problem = _cdf_problem(size, share, *(points[-1] if points else (0, 0.0)))
        if problem:
            raise ConfigError(f"{path} line {line}: {problem}")
        points.append((size, share))
        last_line = line
    if not points:
        raise ConfigError(f"{path}: holds no point; expected lines {CDF_HEADER}")
    if points[-1][1] != 1.0:
        raise ConfigError(
            f"{path} line {last_line}: the table ends with {points[-1][1]:g}; expected it to end "
            "with 1"
        )
    return Cdf(name=path.stem, points=tuple(points), thinned=thinned)


def read_flows(path: Path, n_hosts: int | None = None) -> tuple[Flow, ...]:
    """Read ``src,dst,bytes,start_ns`` rows; ``#`` lines are comments, a header is optional.

    With ``n_hosts`` the hosts are checked as well. Raises :class:`ConfigError` with the line.
    """
    flows: list[Flow] = []
    for line, text in lines_of(path):
        if text.startswith("#") or (text.replace(" ", "").lower() == FLOW_HEADER and not flows):
            continue
        whole = (True, True, True, False)
        flow = Flow(*numbers_of(path, line, text, FLOW_HEADER, whole, UNLIMITED))
        problem = flow.problem(n_hosts)
        if problem:
            raise ConfigError(f"{path} line {line}: {problem}")
        flows.append(flow)
    if not flows:
        raise ConfigError(f"{path}: holds no flow; expected lines {FLOW_HEADER}")
    return tuple(flows)


def path_of(text: str, info: ValidationInfo) -> Path:
    """Return the path of a table that a scenario file names, relative to that file."""
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / text


def _to_cdf(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    if value in cdf_names():
        return read_cdf(_FOLDER / f"{value}.csv")
    path = path_of(value, info)
    if path.suffix or "/" in value or (len(value) < QUOTED and path.exists()):
        return read_cdf(path)
    raise UnknownNameError("CDF", value, cdf_names())


def _to_flows(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return read_flows(path_of(value, info), (info.context or {}).get("n_hosts"))
    return value


CdfField = Annotated[
    Cdf,
    BeforeValidator(_to_cdf, json_schema_input_type=str | Cdf),
    Field(description="the name of a CDF, the path of a CSV file, or a table of points"),
]
FlowsField = Annotated[
    tuple[Flow, ...],
    BeforeValidator(_to_flows, json_schema_input_type=str | tuple[Flow, ...]),
    Field(description="the path of a CSV file src,dst,bytes,start_ns or a list of such rows"),
]
