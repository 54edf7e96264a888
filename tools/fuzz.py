"""Feeds random bad input to the program: ``python tools/fuzz.py [NAME...] --cases N``.

Without names all fuzzers run. ``--case I`` repeats one case and lets its error through.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fuzz"))
from fuzz_harness import fuzz
from fuzzers import FUZZERS


def main() -> int:
    """Return 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(FUZZERS)}")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    options = parser.parse_args()
    unknown = set(options.names) - set(FUZZERS)
    if unknown:
        parser.error(f"unknown fuzzer {sorted(unknown)[0]!r}; known: {', '.join(FUZZERS)}")
    cases = range(options.cases) if options.case is None else [options.case]
    failed = 0
    for name in options.names or FUZZERS:
        begin = time.perf_counter()
        outcome = fuzz(name, FUZZERS[name], cases, options.seed)
        for number, report in outcome.failures:
            print(f"--- {name}, case {number}\n{report}")
        failed += len(outcome.failures)
        print(
            f"{name}: {outcome.accepted} accepted, {outcome.refused} refused, "
            f"{len(outcome.failures)} failed, {time.perf_counter() - begin:.1f} s"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
