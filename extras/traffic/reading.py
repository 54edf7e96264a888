"""Any file of traffic as records: which form it is, and the one reader for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.files import other_kind
from dcqcn_gym.core.gzip_files import open_text
from dcqcn_gym.envs.scenario.tables import FLOW_HEADER
from dcqcn_gym.extras.traffic.captures import CAPTURE_FORMS, Sampling, form_of_capture
from dcqcn_gym.extras.traffic.frames import is_capture
from dcqcn_gym.extras.traffic.nccl import is_nccl
from dcqcn_gym.extras.traffic.records import Record, Tally
from dcqcn_gym.extras.traffic.simulators import SIMULATORS, form_of_simulator
from dcqcn_gym.extras.traffic.tables import read_table

OWN = "flows"
FORMS = (*CAPTURE_FORMS, "csv", "nccl", OWN, *SIMULATORS)
"""Forms of traffic: captures by what they hold, text by its lines; ``flows`` is our own CSV."""
NUMBERED = (OWN, *SIMULATORS)
"""Forms whose hosts have numbers, which stay theirs."""


def form_of(path: Path, given: str | None) -> str:
    """Return the form of a file, one of :data:`FORMS`: as given, else by how it begins.

    Raises :class:`ConfigError` for what is no ordinary file.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from None
    if kind := other_kind(stat.S_IFMT(mode)):
        raise ConfigError(f"{path}: cannot be read: it is {kind}; expected a file")
    if given is not None:
        if given not in FORMS:
            raise UnknownNameError("form of traffic", given, FORMS)
        return given
    if is_capture(path):
        return form_of_capture(path)
    with open_text(path, "utf-8-sig") as file:
        if file.readline(len(FLOW_HEADER) + 2).strip() == FLOW_HEADER:
            return OWN
    return form_of_simulator(path) or ("nccl" if is_nccl(path) else "csv")


def read_records(
    path: Path, form: str, columns: str | None, tally: Tally, sampling: Sampling | None = None
) -> Iterator[Record]:
    """Yield the records of a file; what it holds beside them is counted in ``tally``."""
    if form == "nccl":
        raise ConfigError(
            f"{path}: a log of NCCL has collectives without times, so no flows; "
            "`dcqcn-gym traffic import --scenario FABRIC --fit` makes a scenario of it"
        )
    if columns and form != "csv":
        raise ConfigError(f"--columns is for CSV; {path} is {form}")
    if form in ("csv", OWN):
        return read_table(path, columns, tally, sampling)
    if form in SIMULATORS:
        return (sent.record() for sent in SIMULATORS[form](path, tally))
    return CAPTURE_FORMS[form](path, tally, sampling or Sampling())
