"""The docs site: built by two tools, found by search, and nothing on it comes from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from browser import MISSING, browser, found, show

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The site as both tools build it from the same configuration, warnings being errors."""
    pytest.importorskip("mkdocs", reason="MkDocs is not installed")
    pytest.importorskip("zensical", reason="Zensical is not installed")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [sys.executable, str(ROOT / "docs/make_site.py"), str(folder / "build/docs")]
    subprocess.run(command, check=True)
    for tool, more in {"mkdocs": ["-d", "other"], "zensical": []}.items():
        command = [sys.executable, "-m", tool, "build", "--strict", *more]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
    return {"mkdocs": folder / "other", "zensical": folder / "build/site"}


@pytest.fixture(scope="module", params=["mkdocs", "zensical"])
def site(request: pytest.FixtureRequest, sites: dict[str, Path]) -> Path:
    return sites[request.param]


@pytest.mark.slow
def test_both_tools_build_the_same_pages(sites: dict[str, Path]) -> None:
    lists = [sorted(str(p.relative_to(of)) for p in of.rglob("*.html")) for of in sites.values()]
    assert lists[0] == lists[1]


def test_the_site_needs_no_hook_and_silences_no_warning() -> None:
    used = "".join((ROOT / name).read_text() for name in ("mkdocs.yml", "Makefile", ".ci/run"))
    assert "hooks:" not in used
    assert "NO_MKDOCS" not in used


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    loads = re.compile(r"<(?:script|img|iframe)[^>]*src=\"?https?:|<link[^>]*href=\"?https?:")
    styles = re.compile(r"@import|url\(['\"]?https?:")
    assert [p.name for p in pages if loads.search(p.read_text(encoding="utf-8"))] == []
    assert [p.name for p in site.rglob("*.css") if styles.search(p.read_text())] == []


@pytest.mark.slow
def test_search_finds_pages_and_names(sites: dict[str, Path]) -> None:
    other = json.loads((sites["mkdocs"] / "search/search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"]: entry["text"] for entry in other["docs"]}
    boosts = {entry["location"]: entry.get("boost", 1) for entry in other["docs"]}
    assert boosts["reference/knobs.html"] > 1 > boosts["reference/glossary.html"]
    ours = json.loads((sites["zensical"] / "search.json").read_text(encoding="utf-8"))
    for index in (places, {entry["location"]: entry["text"] for entry in ours["items"]}):
        assert any("rollback" in text for at, text in index.items() if at.startswith("operators"))
        assert "api/core.html#dcqcn_gym.core.space.KnobSpace.decode" in index


@pytest.mark.slow
@pytest.mark.skipif(not found(), reason=MISSING)
def test_search_works_in_pages_opened_from_a_folder(sites: dict[str, Path]) -> None:
    from selenium.webdriver import ActionChains, Keys

    with browser() as driver:
        show(driver, sites["zensical"] / "api/testing.html")
        time.sleep(1)
        ActionChains(driver).send_keys("/").pause(1).send_keys("mlxconfig").perform()
        until = time.monotonic() + 30
        while "testing.html" in driver.current_url and time.monotonic() < until:
            # the first result, once there is one
            ActionChains(driver).pause(1).send_keys(Keys.ENTER).perform()
        assert "testing.html" not in driver.current_url
        assert "mlxconfig" in driver.find_element("tag name", "article").text
        asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in asked if "request" in one["params"]}
    assert [url for url in urls if url.startswith("http")] == []


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


def test_links_out_of_the_folder_become_pages_or_names(script: ModuleType) -> None:
    def shown(text: str, at: Path = ROOT / "docs") -> str:
        return str(script.with_links(text, at, {"readme.md", "rl.md"}))

    assert shown("[README](../README.md)") == "[README](readme.md)"
    assert shown("[rl](docs/rl.md#training)", ROOT) == "[rl](rl.md#training)"
    assert shown("[core/knobs.py](../src/dcqcn_gym/core/knobs.py)") == (
        "core/knobs.py (`src/dcqcn_gym/core/knobs.py`)"
    )
    assert shown("[x](https://a.org/b)") == "[x](https://a.org/b)"
    with pytest.raises(SystemExit, match=r"\[gone\]\(nowhere.md\): there is no docs/nowhere.md"):
        shown("[gone](nowhere.md)")


def test_the_reference_has_signatures_docstrings_and_no_roles(script: ModuleType) -> None:
    page = script.api_page("core")
    at = page.index("{#dcqcn_gym.core.space.KnobSpace.decode}")
    assert "def decode(self, unit: npt.ArrayLike) -> dict[str, float]" in page[at : at + 200]
    assert "{#dcqcn_gym.core.score.GUARD}" in page  # a constant that says what it is
    assert ":class:`" not in page
    assert "._" not in "".join(line for line in page.splitlines() if "{#" in line)


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"[\w/-]+\.md", nav))
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set()


def test_every_package_of_the_api_is_there(script: ModuleType) -> None:
    assert script.PACKAGES
    for package in script.PACKAGES:
        assert script.public_modules(package)
        assert f"api/{package}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
