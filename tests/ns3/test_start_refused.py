"""A start that the system refuses: files, space. One sentence, and no folder that stays."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bridge_helpers import toy_command

from dcqcn_gym.core.errors import BackendError, ConfigError
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend

SCENARIO = load_scenario("mini-fb-hadoop")
AT_THE_LIMIT = """
import os, sys
from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.envs.scenario.scenario import load_scenario
import json, resource
scenario = load_scenario("mini-fb-hadoop")
backend = Ns3Backend(command=json.loads(sys.argv[2]))
backend.open(scenario, 1)  # everything is imported and made once
backend.close()
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
for fd in held[: int(sys.argv[1])]:
    os.close(fd)
try:
    backend.open(scenario, 1)
except BackendError as error:
    print("refused:", str(error).splitlines()[0])
else:
    backend.close()
    print("opened")
"""


@pytest.mark.parametrize(
    "free", [0, 23, 60, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5, 12))]
)
def test_at_the_limit_of_open_files(tmp_path: Path, free: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_LIMIT, str(free), json.dumps(toy_command())],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith(("refused: ", "opened")), done.stderr
    assert ("cannot be started: Too many open files" in done.stdout) == (free < 24)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_scratch_files_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/dcqcn-gym-x")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(BackendError, match=r"No space left on device \(/tmp/dcqcn-gym-x\); close"):
        Ns3Backend(command=toy_command()).open(SCENARIO, 1)


@pytest.mark.parametrize("place", ["none/x", "."])
def test_a_recording_that_has_no_place(place: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^record = .*expected a file that can be written"):
        Ns3Backend(command=toy_command(), record=tmp_path / place).open(SCENARIO, 1)
