"""Any file of a job as one: a folder of traces or dumps, SimAI's ``.txt``, a plan in TOML."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.known_files import other_use
from dcqcn_gym.envs.scenario.jobs.model import Job
from dcqcn_gym.envs.scenario.jobs.transformer import read_plan
from dcqcn_gym.envs.scenario.jobs.transformer_job import job_of_plan
from dcqcn_gym.extras.jobs.aicb import read_aicb
from dcqcn_gym.extras.jobs.chakra import ChakraOptions, read_chakra
from dcqcn_gym.extras.jobs.flight_recorder import is_flight_recorder, read_flight_recorder
from dcqcn_gym.extras.jobs.simai import read_simai


def read_job(
    path: Path,
    ranks: int | None = None,
    *,
    reading: ChakraOptions | None = None,
    layers: int | None = None,
) -> Job:
    """Return the job in a file or directory; ``ranks`` is for SimAI files that do not say it.

    ``reading`` is for Chakra traces that are not whole, ``layers`` takes the first so many of a
    SimAI file, whose whole may be too large to simulate.

    Raises :class:`ConfigError` with what was found and expected.
    """
    if path.is_dir() and not any(path.glob("*.et*")) and is_flight_recorder(path):
        job = read_flight_recorder(path)
    elif path.is_dir() or path.name.endswith((".et", ".et.gz")):
        job = read_chakra(path if path.is_dir() else path.parent, reading)
    elif path.suffix == ".toml":
        job = job_of_plan(read_plan(path))
    elif path.suffix == ".txt":
        job = read_simai(path, ranks, layers)
    elif path.suffix == ".csv":
        job = read_aicb(path, ranks)
    else:
        raise ConfigError(
            f"{path}: expected a directory of Chakra traces (NAME.RANK.et) or of dumps of "
            "PyTorch's flight recorder (NAME_RANK), a workload file of SimAI (.txt), a log of "
            f"AICB (.csv) or a plan (.toml){other_use(path)}"
        )
    if ranks is not None and ranks != job.ranks:
        raise ConfigError(f"{path}: has {job.ranks} ranks, and --ranks says {ranks}")
    if not job.ops:
        raise ConfigError(f"{path}: has nothing to compute or send")
    return job
