# SPDX-License-Identifier: Apache-2.0
"""Says what was skipped in the last ctest run and, at the end, what failed: tools/ctest_report.py build/release.

Status 1 if a program failed, or if one was skipped that can run there and the environment says NO_SKIPS=1, as in CI.
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
PROGRAM = re.compile(
    r"^Output:\n-+\n(?P<output>.*?)<end of output>\nTest time =[^\n]*\n-+\n(?P<verdict>[^\n]*)\n"
    r'"(?P<name>[^"\n]+)" end time:',
    re.MULTILINE | re.DOTALL,
)
ENDS = re.compile(r"\[ +(?P<how>OK|FAILED|SKIPPED) +\] \S+ \(")
HEADING = re.compile(r"\[[-=]{10}\]|Running main\(\)")


def skipped(log: str) -> dict[str, str]:
    """Names of the skipped tests in the output of GoogleTest, and their reasons."""
    return {found["test"]: " ".join(found["why"].split()) for found in SKIPPED.finditer(log)}


def without_passed(output: str) -> str:
    """A program's output but for the lines of tests that passed or were skipped, and GoogleTest's headings."""
    kept: list[str] = []
    test: list[str] = []  # the lines of the one that runs
    for line in output.splitlines():
        ends = ENDS.match(line)
        if line.startswith("[ RUN      ]"):
            kept += test  # empty unless one did not end
            test = [line]
        elif ends:
            kept += [*test, line] if ends["how"] == "FAILED" else []
            test = []
        elif test:
            test.append(line)
        elif line and not HEADING.match(line):
            kept.append(line)
    return "\n".join(kept + test)


def failed(log: str) -> dict[str, str]:
    """Names of the programs that failed, and what they said but for the tests that passed."""
    programs = PROGRAM.finditer(log)
    return {found["name"]: without_passed(found["output"]) for found in programs if found["verdict"] != "Test Passed."}


def main(build: str) -> int:
    """1 if a program failed, or a test was skipped that must not be."""
    log = (Path(build) / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    for test, why in skipped(log).items():
        print(f"skipped: {test}: {why}")
    wrong = skipped(log).keys() - LACKING if os.environ.get("NO_SKIPS") == "1" else ()
    for test in wrong:
        print(f"error: {test} must not be skipped here (NO_SKIPS=1)", file=sys.stderr)
    failures = failed(log)
    for name, words in failures.items():
        print(f"error: {name} of {build} failed:\n{words}", file=sys.stderr)
    return 1 if wrong or failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
