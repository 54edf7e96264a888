"""The agent as a wheel of its own: its modules, those that they import, and the knob table.

No engine, and nothing to compile; beside the wheel lie the versions and hashes of what it needs and
both systemd units. The same sources give the same bytes.

    python -m dcqcn_gym.hw.agent.wheel dist
    pip install --require-hashes -r dist/requirements.txt
    pip install --no-deps dist/dcqcn_gym_agent-*.whl
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import dcqcn_gym
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.version import __version__
from dcqcn_gym.hw.agent.privileges import KEPT
from dcqcn_gym.hw.agent.units import unit_text

TOP = Path(dcqcn_gym.__file__).parent
FIRST = ("hw/agent/main.py", "hw/agent/agent_pb2.pyi", "configs/schema/knobs.json", "py.typed")
PROGRAM = "/opt/dcqcn-gym/bin/dcqcn-gym-agent"
_STAMP = (1980, 1, 1, 0, 0, 0)


def modules() -> list[str]:
    """Return the files of the agent, by their path in the package, sorted."""
    found: set[str] = set()
    waiting = [*FIRST, *(f"hw/drivers/{file.name}" for file in (TOP / "hw/drivers").glob("*.py"))]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += [f"{parent}/__init__.py".removeprefix("./") for parent in Path(path).parents
                    if (TOP / parent / "__init__.py").exists()]  # fmt: skip
        if path.endswith(".py") and path != "__init__.py":  # which imports others when asked
            waiting += _imports(TOP / path)
    return sorted({*found, "_late.py"})


def _imports(file: Path) -> Iterator[str]:
    """Yield the project's files that a file imports, wherever in it but for types alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for block in [node for node in ast.walk(tree) if isinstance(node, ast.If)]:
        if ast.unparse(block.test) == "TYPE_CHECKING":
            block.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dcqcn_gym"):
            names = [str(node.module), *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names if name.name.startswith("dcqcn_gym")]
        else:
            continue
        for name in names:
            path = name.removeprefix("dcqcn_gym").strip(".").replace(".", "/")
            for found in (f"{path}.py", f"{path}/__init__.py"):
                if (TOP / found).is_file():
                    yield found


def requirements() -> list[str]:
    """Return what the wheel needs, with the versions that are pinned."""
    text = (TOP / "hw/agent/requirements.txt").read_text(encoding="utf-8")
    return [line.rstrip(" \\") for line in text.splitlines() if not line.startswith(" ")]


def build(folder: Path) -> Path:
    """Write the wheel, its requirements and units into ``folder``; return the wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"dcqcn_gym_agent-{__version__}.dist-info"
    files = {f"dcqcn_gym/{path}": (TOP / path).read_bytes() for path in modules()}
    if any("_core" in path for path in files):
        raise ConfigError("the agent imports the engine; it is to do without")
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: dcqcn-gym\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    entry = "[console_scripts]\ndcqcn-gym-agent = dcqcn_gym.hw.agent.main:main\n"
    files[f"{info}/entry_points.txt"] = entry.encode()
    record = "".join(f"{path},{_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"dcqcn_gym_agent-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, data in files.items():
            one = zipfile.ZipInfo(path, _STAMP)
            one.compress_type, one.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(one, data)
    (folder / "requirements.txt").write_bytes((TOP / "hw/agent/requirements.txt").read_bytes())
    for kind in KEPT:
        text = unit_text(f"{PROGRAM} {kind}", kind, "/etc/dcqcn-gym/agent.toml")
        (folder / f"dcqcn-gym-{kind}.service").write_text(text, encoding="utf-8")
    return wheel


def _metadata() -> str:
    needs = "".join(f"Requires-Dist: {line}\n" for line in requirements())
    return (
        f"Metadata-Version: 2.1\nName: dcqcn-gym-agent\nVersion: {__version__}\n"
        "Summary: The agent of dcqcn-gym, beside a NIC or a switch\nRequires-Python: >=3.10\n"
        f"{needs}"
    )


def _digest(data: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={found.decode()}"


def main() -> None:
    """Build, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    print(build(parser.parse_args().folder))


if __name__ == "__main__":
    main()
