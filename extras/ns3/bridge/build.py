"""Compile ``dcqcn_gym._ns3`` and the program ``dcqcn-ns3`` against an ns-3, and cache them.

The cache is addressed by content: sources, compiler, ns-3 and Python decide the folder, so a
change of any of them builds anew and nothing is ever stale.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import dcqcn_gym
from dcqcn_gym.core.errors import BackendError, MissingExtraError
from dcqcn_gym.extras.ns3.bridge.install import (
    Ns3Install,
    Say,
    cache_dir,
    find_ns3,
    locked,
)

PROGRAM = "dcqcn-ns3"
_MOST_BUILDS = 4
# beside engine/model, what the build takes from the engine
_ENGINE_FILES = tuple(
    f"sim/{name}" for name in ("engine.hpp", "port_reports.hpp", "simulation.hpp", "simulation.cpp")
)
_SUFFIXES = (".cc", ".h", ".hpp", ".cpp", ".txt")


@dataclass(frozen=True)
class Build:
    """A finished build: where module and program lie, and what they were built from."""

    folder: Path
    build_id: str
    ns3: Ns3Install

    @property
    def module(self) -> Path:
        """The file of the Python module ``_ns3``."""
        return self.folder / f"_ns3{sysconfig.get_config_var('EXT_SUFFIX')}"

    @property
    def program(self) -> Path:
        """The standalone program."""
        return self.folder / PROGRAM

    @property
    def complete(self) -> bool:
        """True if both files are there."""
        return self.module.exists() and self.program.exists()


def source_dirs() -> tuple[Path, Path]:
    """Return the folders of the ns-3 sources and of the engine, in a checkout or a wheel.

    Raises :class:`BackendError` if this installation carries no sources.
    """
    package = Path(dcqcn_gym.__file__).resolve().parent
    for root in (package.parents[1], package / "_sources"):
        if (root / "ns3-scratch" / "CMakeLists.txt").exists() and (root / "engine").is_dir():
            return root / "ns3-scratch", root / "engine"
    raise BackendError(
        f"the sources of the ns-3 backend are not in {str(package / '_sources')!r}; "
        "reinstall dcqcn-gym"
    )


def tools() -> dict[str, str | None]:
    """Return what the build needs and where it was found: compiler, cmake, make, nanobind."""
    return {
        "C++ compiler": _which(os.environ.get("CXX", "c++")) or _which("g++"),
        "cmake": _cmake(),
        "make": _which("ninja") or _which("make"),
        "nanobind": _package("nanobind"),
        "pyzmq": _package("pyzmq"),
        "protobuf": _package("protobuf"),
    }


def find_build(ns3: Ns3Install) -> Build:
    """Return the build that belongs to this ns-3 and the present sources; it may not exist yet."""
    build_id = _build_id(ns3)
    return Build(cache_dir() / "ns3" / f"build-{build_id[:16]}", build_id, ns3)


def ensure_built(path: str | Path | None = None, *, say: Say, force: bool = False) -> Build:
    """Return the build for the ns-3 at ``path`` (None: the wheel), making it first if needed.

    Raises :class:`BackendError` with the compiler's last words if the build fails,
    :class:`MissingExtraError` if a Python package of the build is missing.
    """
    _require_tools()
    build = find_build(find_ns3(path, say=say))
    if build.complete and not force:
        return build
    with locked(cache_dir() / "ns3" / ".lock", say):
        if build.complete and not force:
            return build
        _compile(build, say)
    return build


def import_module(folder: Path) -> ModuleType:
    """Import ``dcqcn_gym._ns3`` from the folder of a build.

    Once per process, and in a simulation process only: ns-3's simulator is a process-wide
    singleton.
    """
    name = "dcqcn_gym._ns3"
    if name in sys.modules:
        return sys.modules[name]
    file = folder / f"_ns3{sysconfig.get_config_var('EXT_SUFFIX')}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.exists():
        raise BackendError(f"{file} is not there; build it with: dcqcn-gym ns3 build")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _which(name: str) -> str | None:
    beside = Path(sys.executable).parent
    return shutil.which(name) or shutil.which(name, path=str(beside))


def _cmake() -> str | None:
    """Return a cmake that runs, the one beside this Python first."""
    return shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")


def _package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _require_tools() -> None:
    have = tools()
    if any(have[name] is None for name in ("nanobind", "pyzmq", "protobuf", "cmake")):
        raise MissingExtraError("the ns-3 backend", "ns3")
    if have["C++ compiler"] is None:
        raise BackendError(
            "building the ns-3 backend needs a C++20 compiler; install g++ >= 11, or set CXX"
        )
    if have["make"] is None:
        raise BackendError("building the ns-3 backend needs make or ninja; install one of them")


def _source_files() -> list[tuple[str, Path]]:
    scratch, engine = source_dirs()
    files = [
        f for f in (*scratch.iterdir(), *(engine / "model").rglob("*")) if f.suffix in _SUFFIXES
    ]
    files += [*engine.glob("*.hpp"), *(engine / name for name in _ENGINE_FILES)]
    return sorted((f"{f.parent.name}/{f.name}", f) for f in files)


def _build_id(ns3: Ns3Install) -> str:
    """Return the SHA-256 of everything that decides what the build is."""
    digest = hashlib.sha256()
    for label, file in _source_files():
        digest.update(f"{label}\0".encode())
        digest.update(file.read_bytes())
    compiler = tools()["C++ compiler"]
    version = ""
    if compiler:
        version = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, check=False
        ).stdout.partition("\n")[0]
    for part in (version, ns3.fingerprint(), sys.version, tools()["nanobind"] or ""):
        digest.update(f"\0{part}".encode())
    return digest.hexdigest()


def _compile(build: Build, say: Say) -> None:
    """Configure and build in a scratch folder, then put both results into the cache."""
    scratch, _ = source_dirs()
    cmake = _cmake()
    assert cmake is not None
    build.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build.folder.parent, prefix="compiling-") as folder:
        say(f"compiling the ns-3 backend against ns-3 {build.ns3.version} (about a minute)")
        _run([*_configure(cmake, scratch, folder, build.ns3)], say, "configure")
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")
        _run([cmake, "--build", folder, "-j", jobs], say, "compile")
        target = Path(folder) / "result"
        target.mkdir()
        for result in (Path(folder) / build.module.name, Path(folder) / PROGRAM):
            shutil.copy2(result, target / result.name)
        shutil.rmtree(build.folder, ignore_errors=True)
        target.rename(build.folder)
    _prune(build.folder)
    say(f"built {build.folder}")


def _prune(newest: Path) -> None:
    """Keep the newest builds; a process that has loaded an older one is not disturbed."""
    builds = sorted(newest.parent.glob("build-*"), key=lambda f: f.stat().st_mtime, reverse=True)
    for old in builds[_MOST_BUILDS:]:
        if old != newest:
            shutil.rmtree(old, ignore_errors=True)


def _configure(cmake: str, source: Path, folder: str, ns3: Ns3Install) -> list[str]:
    ninja = _which("ninja")
    return [
        cmake,
        *(["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []),
        "-S",
        str(source),
        "-B",
        folder,
        "-DCMAKE_BUILD_TYPE=Release",
        "-DDCQCN_NS3_PYTHON=ON",
        f"-DNS3_INCLUDE={ns3.include}",
        f"-DNS3_LIBRARIES={';'.join(map(str, ns3.libraries))}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]


def _run(command: list[str], say: Say, what: str) -> None:
    """Run one step of the build; pass on its progress, and on failure its last words."""
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if match := re.match(r"\[ *(\d+%|\d+/\d+)\] (?:Build|Link).*?([\w.-]+)$", lines[-1]):
                say(f"  {match.group(1)} {match.group(2)}")
    if process.returncode != 0:
        errors = [line for line in lines if "error" in line.lower()][:5]
        tail = "\n".join([*errors, "...", *lines[-20:]])
        raise BackendError(f"the ns-3 backend did not {what}; the end of the output:\n{tail}")
