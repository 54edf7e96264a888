"""The docs site: built with --strict, found by search, and nothing on it comes from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    loads = re.compile(r"<(?:script|img|iframe)[^>]*src=\"?https?:|<link[^>]*href=\"?https?:")
    styles = re.compile(r"@import|url\(['\"]?https?:")
    assert [p.name for p in pages if loads.search(p.read_text(encoding="utf-8"))] == []
    assert [p.name for p in site.rglob("*.css") if styles.search(p.read_text())] == []


@pytest.mark.slow
def test_search_finds_pages_and_names(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"]: entry["text"] for entry in index["docs"]}
    assert any("rollback" in text for at, text in places.items() if at.startswith("operators"))
    assert "api/core.html#dcqcn_gym.core.space.KnobSpace.decode" in places
    boosts = {entry["location"]: entry.get("boost", 1) for entry in index["docs"]}
    assert boosts["reference/knobs.html"] > 1 > boosts["reference/glossary.html"]


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    shown = "".join(p.read_text(encoding="utf-8") for p in (site / "api").glob("*.html"))
    assert not re.search(r":(class|func|data|meth):<code>", shown)
    ids = set(re.findall(r'id="?(dcqcn_gym[\w.]+)', shown))
    for name in (
        "dcqcn_gym.envs.dcqcn.DcqcnEnv.step",
        "dcqcn_gym.envs.wrappers.DictAction",
        "dcqcn_gym.tuners.base.Tuner.ask",
        "dcqcn_gym.runs.loop.run",
        "dcqcn_gym.simulation.run.simulate",
        "dcqcn_gym.testing.tuner_case.TunerCase",
    ):
        assert name in ids


def test_links_out_of_the_folder_become_pages_or_names(hooks: ModuleType) -> None:
    from mkdocs.exceptions import PluginError

    class Pages:
        def get_file_from_path(self, name: str) -> object | None:
            return object() if name in ("readme.md", "rl.md") else None

    def shown(text: str, at: Path = ROOT / "docs") -> str:
        return str(hooks.LINK.sub(lambda found: hooks._link(found, at, Pages()), text))

    assert shown("[README](../README.md)") == "[README](readme.md)"
    assert shown("[rl](docs/rl.md#training)", ROOT) == "[rl](rl.md#training)"
    assert shown("[core/knobs.py](../src/dcqcn_gym/core/knobs.py)") == (
        "core/knobs.py (`src/dcqcn_gym/core/knobs.py`)"
    )
    assert shown("[x](https://a.org/b)") == "[x](https://a.org/b)"
    with pytest.raises(PluginError, match=r"\[gone\]\(nowhere.md\): there is no docs/nowhere.md"):
        shown("[gone](nowhere.md)")


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"[\w/-]+\.md", nav))
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set()


def test_every_package_of_the_api_is_there(hooks: ModuleType) -> None:
    assert hooks.PACKAGES
    for package in hooks.PACKAGES:
        assert hooks.public_modules(package)
        assert f"api/{package}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
