"""Settings that PARALEON found offline on one workload, never changed again.

PARALEON (ICNP'24) section IV compares with "Pretrained 1" (tuned on all-to-all) and "Pretrained 2"
(tuned on FB_Hadoop). Ours come from ``dcqcn-gym train --tuner pretrained``; the files in
``configs/tuners`` hold what it found and the command. On another line rate the knobs that scale
with it (ECN thresholds, first-CNP rate) are scaled from the rate of the search, and every value
stays in its legal range.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.config import CONFIGS, StrictModel, load_toml
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting, default_setting, knob_table
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.tuners.base import TunerContext, TunerSettings
from dcqcn_gym.tuners.fixed import StaticTuner

FOLDER = CONFIGS / "tuners"


class Search(StrictModel):
    """Where a pretrained setting comes from."""

    scenario: str
    tuner: str
    seed: int
    intervals: int
    line_rate_bps: float = Field(gt=0)
    best_utility: float
    version: str
    scheme: str = Field(default="dcqcn", description="whose knobs these are")


class PretrainedFile(StrictModel):
    """A file of ``configs/tuners``: the search and every knob."""

    search: Search
    setting: dict[str, float]


def pretrained_setting(path: Path, line_rate_bps: float, table: KnobTable = DCQCN) -> Setting:
    """Return the setting of a file for a line rate; knobs that it lacks have their default.

    A file of a search without the optional knobs of ``table`` gives one without them. Raises
    ConfigError for a bad file and for one of another scheme.
    """
    file = load_toml(path, PretrainedFile)
    if file.search.scheme not in (table.scheme, table.scheme.partition("+")[0]):
        raise ConfigError(
            f"{path} holds knobs of scheme {file.search.scheme!r}, not of {table.scheme!r}; "
            "search again on a scenario of that scheme: dcqcn-gym train --tuner pretrained"
        )
    own = table if file.search.scheme == table.scheme else knob_table(file.search.scheme)
    found = default_setting(file.search.line_rate_bps, own).replace(file.setting)
    found.check(file.search.line_rate_bps, str(path))
    ratio = line_rate_bps / file.search.line_rate_bps
    if ratio == 1.0:
        return found
    changed: dict[str, float] = {}
    for row in own.rows:
        value = found[row.name]
        if row.off is not None and value == row.off:
            continue
        low, high = row.legal_at(line_rate_bps)
        scaled = value * ratio if row.scaling != "none" else value
        changed[row.name] = min(max(scaled, low), high)
    return found.replace(changed)


class _FileSettings(TunerSettings):
    file: str = Field(default="", description="TOML file that `train --tuner pretrained` wrote")


class PretrainedTuner(StaticTuner):
    """Puts the setting of a file in force; base of the two of the paper."""

    Settings: ClassVar[type[TunerSettings]] = _FileSettings
    built_in: ClassVar[str] = ""

    def _choose(self, context: TunerContext) -> Setting:
        given = cast(_FileSettings, self.settings).file
        path = Path(given) if given else FOLDER / self.built_in
        table = context.space.table
        found = pretrained_setting(path, context.space.line_rate_bps, table)
        return found if found.table == table else keeping_optional(found, context.base)


class PretrainedAlltoallTuner(PretrainedTuner):
    """Pretrained 1 of the paper: tuned offline on the all-to-all of LLM training."""

    name = "pretrained-alltoall"
    summary = "the setting PARALEON found offline on llm-alltoall, never changed"
    built_in = "pretrained-alltoall.toml"


class PretrainedFbHadoopTuner(PretrainedTuner):
    """Pretrained 2 of the paper: tuned offline on FB_Hadoop."""

    name = "pretrained-fbhadoop"
    summary = "the setting PARALEON found offline on fb-hadoop, never changed"
    built_in = "pretrained-fbhadoop.toml"
