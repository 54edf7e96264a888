"""The changelog of entries: what this build of the site shows that the last one did not.

``entries.json`` in the site's folder holds the entries of the last build, ``history.json`` every
change so far. Equal results give an equal site: a day is noted only where something changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.runs.log import write_json

Change = dict[str, Any]


def update_history(out: Path, suites: Sequence[SiteSuite], day: str) -> list[Change]:
    """Note what changed since the last build and return every change, the latest first.

    An change has ``day``, ``suite``, ``entry``, ``what`` (added, changed, removed or the new
    status), ``text`` and ``version``. Raises RunError if the files of the last build are not
    readable.
    """
    before = _read(out / "entries.json", {})
    history: list[Change] = _read(out / "history.json", {"changes": []})["changes"]
    now = {
        f"{suite.name}/{entry.name}": _state(suite, entry)
        for suite in suites
        for entry in suite.entries
    }
    new = [
        {"day": day, **change}
        for key in sorted({*before, *now})
        for change in _changes(key, before.get(key), now.get(key))
    ]
    history = [*new, *history]
    write_json(out / "entries.json", now)
    write_json(out / "history.json", {"changes": history})
    return history


def _read(path: Path, empty: Mapping[str, Any]) -> dict[str, Any]:
    if not path.exists():
        return dict(empty)
    try:
        return dict(parse_json(read_text(path)))
    except (TypeError, ValueError):
        raise RunError(
            f"{path} is not what the last build of a site left; remove it to begin the changelog "
            "of entries anew, or give another --out"
        ) from None


def _state(suite: SiteSuite, entry: SiteEntry) -> Change:
    score = entry.line.final.score.value if entry.line.final else None
    return {
        "suite_digest": suite.digest,
        "tuner_sha256": entry.tuner["sha256"],
        "version": entry.versions["dcqcn_gym"],
        "repetitions": entry.line.repetitions,
        "status": entry.verification.status,
        "flags": len(entry.flags),
        "score": score,
    }


def _changes(key: str, old: Change | None, new: Change | None) -> list[Change]:
    suite, _, entry = key.partition("/")
    found = {"suite": suite, "entry": entry}
    if new is None:
        assert old is not None
        return [{**found, "what": "removed", "text": "no longer shown", "version": old["version"]}]
    made = {**found, "version": new["version"]}
    if old is None:
        return [{**made, "what": "added", "text": f"{_score(new)}, {new['status']}"}]
    changed = [
        words
        for name, words in (
            ("suite_digest", "another version of the suite"), ("tuner_sha256", "other code"),
            ("version", f"version {new['version']}"),
            ("repetitions", f"{new['repetitions']} repetitions"),
            ("flags", f"flags on {new['flags']} instead of {old['flags']} limits"),
        )
        if old[name] != new[name]
    ]  # fmt: skip
    changes = []
    if old["status"] != new["status"]:
        changes.append({**made, "what": new["status"], "text": f"was {old['status']}"})
    if changed or old["score"] != new["score"]:
        moved = [f"{_score(old)} became {_score(new)}"] if old["score"] != new["score"] else []
        changes.append({**made, "what": "changed", "text": "; ".join([*moved, *changed])})
    return changes


def _score(state: Change) -> str:
    return "incomplete" if state["score"] is None else f"S {state['score']:+.3f}"
