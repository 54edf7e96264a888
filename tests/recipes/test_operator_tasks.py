"""Ten tasks of an operator are done from docs/operators.md alone, each in at most ten minutes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from operator_tasks import TASKS, Task, carry_out, unknown_words

MOST_S = 600


def test_there_are_ten() -> None:
    assert len({task.name for task in TASKS}) == 10


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_page_shows_every_command_and_option_that_is_typed(task: Task) -> None:
    assert unknown_words(task) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_ends_with_what_was_asked_for(task: Task, tmp_path: Path) -> None:
    spent, said = carry_out(task, tmp_path)
    assert re.search(task.answer, said), said
    assert spent < MOST_S
