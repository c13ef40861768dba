# SPDX-License-Identifier: Apache-2.0
"""Says which C++ tests of the last ctest run were skipped, and why: tools/skipped.py build/release.

Where the environment says NO_SKIPS=1, as in CI, that is a failure.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# What the machines of CI lack: a counter of cache misses (virtual machines hide it).
LACKING = {"EventCounter.CacheMisses_ExpectThoseOfARandomWalkThroughMemory"}
SKIPPED = re.compile(
    r"^[^\n]*: Skipped\n(?P<why>(?:(?!\[  SKIPPED \])[^\n]*\n)*)\[  SKIPPED \] (?P<test>\S+) \(", re.MULTILINE
)


def skipped(log: str) -> dict[str, str]:
    """Names of the skipped tests in the output of GoogleTest, and their reasons."""
    return {found["test"]: " ".join(found["why"].split()) for found in SKIPPED.finditer(log)}


def main(build: str) -> int:
    """1 if a test was skipped that must not be."""
    found = skipped((Path(build) / "Testing/Temporary/LastTest.log").read_text(errors="replace"))
    for test, why in found.items():
        print(f"skipped: {test}: {why}")
    wrong = found.keys() - LACKING if os.environ.get("NO_SKIPS") == "1" else ()
    for test in wrong:
        print(f"error: {test} must not be skipped here (NO_SKIPS=1)", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
