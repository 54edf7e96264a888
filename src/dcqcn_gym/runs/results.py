"""``results.json``: every figure of a page for programs, and what the figures were made from.

:class:`Results` describes it for who writes and who reads. Numbers that are unknown or infinite
are null. With pyarrow (extra ``parquet``) the rows are in ``results.parquet`` as well, nested names
joined by dots.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from dcqcn_gym.core.compressed_files import read_packed
from dcqcn_gym.core.config import StrictModel, json_object, validate
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.version import code_versions
from dcqcn_gym.envs.observation import OBSERVATION_VERSION
from dcqcn_gym.envs.scenario.scenario import Scenario, scenario_digest
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.log import SCHEMA, write_json
from dcqcn_gym.runs.plugin_host import plugins_of
from dcqcn_gym.tuners import TUNERS, Tuner, parse_settings

RESULTS_SCHEMA = 2
"""Version of the file's layout; it rises when a field changes its meaning or goes away.

2: slowdowns count unfinished flows at their age; those of finished flows alone are beside them.
"""

TunerCall = tuple[str, Mapping[str, Any]]
"""A tuner and its arguments."""


class ScenarioOf(StrictModel):
    """What a scenario was: the sha256 of its canonical JSON."""

    sha256: str


class TunerOf(StrictModel):
    """Which tuner a row's name stands for; ``sha256`` is that of its code, null if unknown."""

    tuner: str
    arguments: dict[str, Any]
    sha256: str | None


class Results(StrictModel):
    """The file. ``versions``, digests and ``seeds`` say what to repeat.

    ``kind`` is the command that wrote it, ``rows`` are the lines of the page's table, ``figures``
    whatever else it shows.
    """

    schema_version: int = Field(alias="schema", ge=RESULTS_SCHEMA, le=RESULTS_SCHEMA)
    kind: str
    versions: dict[str, Any]
    scenarios: dict[str, ScenarioOf]
    tuners: dict[str, TunerOf]
    seeds: dict[str, list[Any]]
    rows: list[dict[str, Any]]
    figures: dict[str, Any]

    def data(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return self.model_dump(by_alias=True)


def read_results(path: Path, kind: str) -> Results:
    """Return a file, packed or not, that a command of this kind wrote; ConfigError otherwise."""
    data = json_object(read_packed(path), str(path))
    if data.get("kind") != kind:
        raise ConfigError(f"{path}: its kind is {quote(data.get('kind'))}; expected {kind!r}")
    return validate(data, Results, source=str(path))


def write_results(
    out: Path,
    kind: str,
    rows: Iterable[object],
    *,
    scenarios: Iterable[Scenario | Mapping[str, Any]],
    tuners: Mapping[str, TunerCall] | None = None,
    seeds: Mapping[str, Sequence[int]],
    figures: Mapping[str, Any] | None = None,
) -> Path:
    """Write ``results.json`` (and ``.parquet``) into ``out``; return the path of the first.

    ``kind`` is the command's name. ``tuners`` are those of the rows by the rows' names.
    """
    models = [s.model_dump(mode="json") if isinstance(s, Scenario) else s for s in scenarios]
    found = Results(
        schema=RESULTS_SCHEMA,
        kind=kind,
        versions=_versions(),
        scenarios={str(s.get("name")): ScenarioOf(sha256=scenario_digest(s)) for s in models},
        tuners={
            name: TunerOf(tuner=tuner, arguments=plain(given), sha256=tuner_digest(tuner, given))
            for name, (tuner, given) in (tuners or {}).items()
        },
        seeds=plain(seeds),
        rows=[plain(row) for row in rows],
        figures=plain(figures or {}),
    )
    path = out / "results.json"
    write_json(path, found.data())
    write_parquet(out / "results.parquet", found.rows)
    return path


def _versions() -> dict[str, Any]:
    return {
        **code_versions(),
        "observation": OBSERVATION_VERSION,
        "log_schema": SCHEMA,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def plain(value: object) -> Any:
    """Return a value as strict JSON has it: no NaN, no infinity, dataclasses and arrays opened.

    Fields of a dataclass whose metadata say ``in_results=False`` are left out.
    """
    if is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in fields(value) if f.metadata.get("in_results", True)]
        return {name: plain(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def tuner_digest(tuner: str, arguments: Mapping[str, Any] | None = None) -> str | None:
    """Return the sha256 of the files that hold a tuner's class and those it inherits from.

    Of a plug-in, also inside a built-in tuner, it is that of its file and its class's name: whoever
    only reads results must not run what they name. A trained policy's numbers count as its code;
    other modules that the class imports do not. None if there is no such tuner here.
    """
    given = arguments or {}
    try:
        parts = [_plugin_digest(name) for name in plugins_of(tuner, given)]
        if tuner in TUNERS.builtin:
            parts.insert(0, _builtin_digest(tuner, given))
    except (DcqcnGymError, OSError, TypeError):
        return None
    return parts[0] if len(parts) == 1 else hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _plugin_digest(tuner: str) -> str:
    path, attribute = TUNERS.source(tuner)
    return hashlib.sha256(f"{attribute}\n".encode() + read_file(path)).hexdigest()


def _builtin_digest(tuner: str, arguments: Mapping[str, Any]) -> str:
    digest = hashlib.sha256()
    found = TUNERS.load(tuner)
    for part in found.__mro__:
        if issubclass(part, Tuner):
            digest.update(f"{part.__qualname__}\n".encode())
            digest.update(Path(inspect.getfile(part)).read_bytes())
    modules = {part.__module__ for part in found.__mro__}  # only a trained tuner loads its reader
    if "dcqcn_gym.tuners.policy" in modules:
        from dcqcn_gym.tuners.policy import load_policy

        settings = parse_settings(tuner, found, dict(arguments))
        digest.update(load_policy(getattr(settings, "file", found.name)).to_bytes())
    if "dcqcn_gym.tuners.acc" in modules:
        from dcqcn_gym.tuners.acc import load_network

        settings = parse_settings(tuner, found, dict(arguments))
        digest.update(load_network(settings.model_dump()["file"]).to_bytes())
    return digest.hexdigest()


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows where pyarrow is installed; remove what an earlier call left otherwise.

    Nested names are joined by dots.
    """
    try:
        arrow, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
    except ImportError:
        path.unlink(missing_ok=True)
        return
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist([dict(_flat(row)) for row in rows]), sink)
    write_atomically(path, sink.getvalue().to_pybytes())


def _flat(row: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value
