"""Memory and time of a large import: ``python tests/traffic/many_records.py [RECORDS] [WORK]``.

Writes a CSV of so many flow records (10 million without a number, 0.4 GB) between 256 names,
imports it with ``dcqcn-gym traffic import``, whose progress bar it leaves on, and prints CPU
seconds and the most memory that the import had.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from pathlib import Path


def write(path: Path, records: int) -> None:
    """Write the records, in order of their starts but for a few."""
    draw = random.Random(10)
    with path.open("w") as file:
        file.write("start_us,src,dst,bytes\n")
        for i in range(records):
            late = draw.randrange(20)
            size = int(draw.lognormvariate(8, 2)) + 1
            file.write(f"{i + late},gpu-{draw.randrange(128)},gpu-{128 + i % 128},{size}\n")


def main() -> None:
    """Write, import, print."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    work = Path(sys.argv[2] if len(sys.argv) > 2 else "runs/many-records")
    work.mkdir(parents=True, exist_ok=True)
    write(work / "flows-in.csv", records)
    command = ["traffic", "import", str(work / "flows-in.csv"), "--out", str(work / "out")]
    subprocess.run([sys.executable, "-m", "dcqcn_gym", *command], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{records:,} records: {cpu:.1f} CPU s, {used.ru_maxrss / 1024:.0f} MB at most")


if __name__ == "__main__":
    main()
