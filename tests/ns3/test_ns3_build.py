"""Finding ns-3 and building: what is missing is said, nothing is fetched that is forbidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import BackendError, ConfigError
from dcqcn_gym.extras.ns3.bridge import build, install


def silent(_: str) -> None:
    """Drop the progress."""


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DCQCN_GYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DCQCN_GYM_NS3", raising=False)
    return tmp_path / "cache"


def test_offline_forbids_the_download(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DCQCN_GYM_OFFLINE", "1")
    with pytest.raises(BackendError, match=r"DCQCN_GYM_OFFLINE=1 forbids .* \(69 MB\)"):
        build.ensure_built(say=silent)


def test_a_path_without_ns3_is_refused(empty_cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no ns-3 under"):
        install.find_ns3(tmp_path, say=silent)


def test_check_says_what_is_missing_and_changes_nothing(empty_cache: Path) -> None:
    done = CliRunner().invoke(app, ["ns3", "build", "--check"])
    assert done.exit_code == 1
    assert "dcqcn-gym ns3 build" in done.output
    assert not empty_cache.exists()


def test_an_installation_given_by_path_is_found() -> None:
    wheel = install.cached_wheel()
    if wheel is None:
        wheel = install.fetch_wheel(silent)
    found = install.find_ns3(wheel.root, say=silent)
    assert (found.source, found.version) == ("path", "3.44")
    assert [f.name for f in found.libraries] == [
        f"libns3.44-{name}.so" for name in ("network", "stats", "core")
    ]


def test_names_of_other_installations(tmp_path: Path) -> None:
    (tmp_path / "build" / "include" / "ns3").mkdir(parents=True)
    (tmp_path / "build" / "include" / "ns3" / "core-module.h").touch()
    (tmp_path / "build" / "lib").mkdir()
    for name in ("core", "network", "stats", "network-extra", "nix-vector-routing"):
        (tmp_path / "build" / "lib" / f"libns3-dev-{name}-optimized.so").touch()
    found = install.find_ns3(tmp_path, say=silent)
    assert found.version == "3-dev"
    assert [f.name for f in found.libraries] == [
        f"libns3-dev-{name}-optimized.so" for name in ("network", "stats", "core")
    ]


@pytest.mark.slow
def test_a_failing_compiler_is_quoted(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include, lib = tmp_path / "ns3" / "include" / "ns3", tmp_path / "ns3" / "lib"
    include.mkdir(parents=True)
    lib.mkdir()
    (include / "core-module.h").touch()
    for name in ("core", "network", "stats"):
        (lib / f"libns3.44-{name}.so").touch()
    # without it the engine, which needs no ns-3, is compiled first
    monkeypatch.setenv("CXXFLAGS", "-Dtemplate=broken -Wfatal-errors")
    with pytest.raises(BackendError, match="did not compile"):
        build.ensure_built(tmp_path / "ns3", say=silent)
    assert not list((empty_cache / "ns3").glob("build-*"))
    assert not list((empty_cache / "ns3").glob("compiling-*"))


def test_the_build_is_named_by_its_content(tmp_path: Path) -> None:
    ns3 = install.cached_wheel() or install.fetch_wheel(silent)
    other = install.Ns3Install(ns3.root, ns3.include, ns3.libraries, "3.45", "path")
    assert build.find_build(ns3) == build.find_build(ns3)
    assert build.find_build(ns3).build_id != build.find_build(other).build_id


def test_sources_are_found_in_an_installed_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "dcqcn_gym"
    monkeypatch.setattr("dcqcn_gym.__file__", str(package / "__init__.py"))
    with pytest.raises(BackendError, match="reinstall dcqcn-gym"):
        build.source_dirs()
    (package / "_sources" / "engine").mkdir(parents=True)
    (package / "_sources" / "ns3-scratch").mkdir()
    (package / "_sources" / "ns3-scratch" / "CMakeLists.txt").touch()
    assert [d.name for d in build.source_dirs()] == ["ns3-scratch", "engine"]
