"""The list of faults keeps up with the code; the command shows that tests catch them."""

from __future__ import annotations

import pytest

from mutations import ROOT, Mutation, MutationError, load, main

MUTATIONS = load()


def test_there_are_at_least_twelve() -> None:
    assert len(MUTATIONS) >= 12


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_fault_can_be_put_in(name: str) -> None:
    mutation = MUTATIONS[name]
    before = (ROOT / mutation.file).read_text(encoding="utf-8")
    after = mutation.text(before)
    assert after != before
    assert abs(after.count("\n") - before.count("\n")) <= 1, "a fault is one line"
    assert mutation.file.startswith("engine/") != bool(mutation.tests)
    assert all((ROOT / test).is_file() for test in mutation.tests)


@pytest.mark.parametrize(("text", "times"), [("a = 2", 0), ("a = 1; a = 1", 2)])
def test_a_text_that_is_not_there_once_is_named(text: str, times: int) -> None:
    mutation = Mutation("some-fault", "nothing", "x.py", "a = 1", "a = 3")
    with pytest.raises(MutationError, match=rf"some-fault: 'a = 1' stands {times} times in x\.py"):
        mutation.text(text)
    assert mutation.text("b; a = 1") == "b; a = 3"


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-fault"]) == 2
    assert "no mutation 'no-such-fault'; there are: rto-not-rearmed" in capsys.readouterr().err
