"""ns-3's own TCP: compile ``ns3-scratch/tests/tcp-peer.cc`` against its libraries, and run it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from dcqcn_gym.extras.ns3.bridge import install

__all__ = ["build", "of_ns3"]

SOURCE = Path(__file__).parents[1] / "ns3-scratch/tests/tcp-peer.cc"
LIBRARIES = ("internet", "point-to-point", "traffic-control", "bridge", "network", "stats", "core")


def build(program: Path) -> None:
    """Compile the program that runs one flow of ns-3's TCP; ns-3 is fetched if it is not there."""
    ns3 = install.find_ns3(say=lambda line: print(line, file=sys.stderr))
    folder = _libraries(ns3)
    files = [min(map(str, folder.glob(f"libns3*-{name}*.so")), key=len) for name in LIBRARIES]
    link = [f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{folder}"]
    command = ["c++", "-O1", "-std=c++20", "-isystem", str(ns3.include), str(SOURCE), *files, *link]
    subprocess.run([*command, "-o", str(program)], check=True)


def of_ns3(peer: Path, *options: str) -> list[tuple[float, int]]:
    """Return (ms, bytes acknowledged), at times and when all are."""
    done = subprocess.run([str(peer), *options], capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines())
    return [(int(ns) * 1e-6, int(acked)) for ns, acked in rows]


def _libraries(ns3: install.Ns3Install) -> Path:
    """Return the folder of ns-3's libraries, those of its internet module among them."""
    own = ns3.libraries[0].parent
    if any(own.glob("libns3*-internet*.so")):
        return own
    folder = install.cache_dir() / "ns3" / f"internet-{install.WHEEL_VERSION}"
    kept = "|".join(LIBRARIES)
    if not folder.exists():  # the backend unpacks three of the wheel's libraries
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            with zipfile.ZipFile(install._download(Path(name))) as wheel:
                for member in wheel.namelist():
                    if re.match(f"ns3/lib64/lib(ns3.44-({kept}).so|gsl|sqlite3)", member):
                        wheel.extract(member, name)
            (Path(name) / "ns3/lib64").rename(folder)
    return folder
