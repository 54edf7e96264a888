"""What a checkpoint's pickles must be before they are opened: the files that were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.extras.learn.spec import Checkpoint
from dcqcn_gym.extras.learn.state import digests, read_state


def checkpoint(tmp_path: Path) -> Checkpoint:
    made = Checkpoint(tmp_path / "step-000000064")
    made.folder.mkdir()
    made.model.write_bytes(b"model")
    made.replay.write_bytes(b"replay")
    made.state.write_text(json.dumps({"numpy": [], "sha256": digests(made)}))
    return made


def test_untouched_files_are_read(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    assert read_state(made)["numpy"] == []
    made.replay.unlink()
    made.state.write_text(json.dumps({"sha256": digests(made)}))  # PPO has no buffer
    read_state(made)


@pytest.mark.parametrize("name", ["model.zip", "replay.pkl"])
def test_another_file_is_refused(tmp_path: Path, name: str) -> None:
    made = checkpoint(tmp_path)
    (made.folder / name).write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(RunError, match=f"cannot be read: {name} is not the file that the training"):
        read_state(made)
    (made.folder / name).unlink()
    with pytest.raises(RunError, match=f"{name} is missing; remove it"):
        read_state(made)


def test_a_buffer_that_was_not_there_is_refused(tmp_path: Path) -> None:
    made = checkpoint(tmp_path)
    made.replay.unlink()
    made.state.write_text(json.dumps({"sha256": digests(made)}))
    made.replay.write_bytes(b"new")
    with pytest.raises(RunError, match=r"replay.pkl is not the file"):
        read_state(made)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sha256": 3}', "[" * 99_999, '{"x": NaN}'])
def test_a_state_without_digests_is_refused(tmp_path: Path, text: str) -> None:
    made = checkpoint(tmp_path)
    made.state.write_text(text)
    with pytest.raises(RunError, match=r"step-000000064 cannot be read: .*remove it") as caught:
        read_state(made)
    assert "\n" not in str(caught.value)
