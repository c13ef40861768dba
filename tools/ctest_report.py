# SPDX-License-Identifier: Apache-2.0
"""Reports the skipped tests of the last ctest run and, at the end, the failed ones: ctest_report.py build/asan
build/release.

Status 1 if a program failed. Also if NO_SKIPS=1 is set, as in CI, and a test that can run there was skipped. Also if
the first build did not run a test that the second build left to it (cmake/Tests.cmake, WHERRY_ALL_TESTS).
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# Tests of features that CI machines lack: virtual machines do not show the counter of cache misses.
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
    """A program's output, except the lines of tests that passed or were skipped, and GoogleTest's headings."""
    kept: list[str] = []
    test: list[str] = []  # the lines of the running test
    for line in output.splitlines():
        ends = ENDS.match(line)
        if line.startswith("[ RUN      ]"):
            kept += test  # not empty if a test did not end
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
    """The failed programs: name to output, without the lines of passed tests."""
    programs = PROGRAM.finditer(log)
    return {found["name"]: without_passed(found["output"]) for found in programs if found["verdict"] != "Test Passed."}


def forgotten(log: str, other: Path) -> list[str]:
    """Tests that another build left to this one, but that did not run here."""
    left = other / "left_to_asan.txt"
    ran = {found["name"] for found in PROGRAM.finditer(log)}
    return [name for name in left.read_text().split() if name not in ran] if left.exists() else []


def main(build: str, other: str | None = None) -> int:
    """Prints the report; returns 1 if a program failed, or if a test that must run was skipped or did not run."""
    log = (Path(build) / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    for test, why in skipped(log).items():
        print(f"skipped: {test}: {why}")
    wrong = skipped(log).keys() - LACKING if os.environ.get("NO_SKIPS") == "1" else ()
    for test in wrong:
        print(f"error: {test} must not be skipped here (NO_SKIPS=1)", file=sys.stderr)
    failures = failed(log)
    for name, words in failures.items():
        print(f"error: {name} of {build} failed:\n{words}", file=sys.stderr)
    missing = [] if other is None else forgotten(log, Path(other))
    if missing:
        print(f"error: {other} leaves to {build} what did not run there: {', '.join(missing)}", file=sys.stderr)
    return 1 if wrong or failures or missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
