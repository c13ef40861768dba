# SPDX-License-Identifier: Apache-2.0
"""Copies what the Python package needs from a virtual environment into an installed tree.

bundle_python.py PYPROJECT TARGET copies the distributions that the project in PYPROJECT needs, directly or indirectly.
It copies them from the environment of the running interpreter to the folder TARGET, which can then be added to
PYTHONPATH. Parts that serve only for compiling and testing are left out.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

LEFT_OUT = re.compile(r"\.\./|.*(__pycache__|/tests?/|/include/|/src/|\.pyx$|\.pxd$|\.a$|/libarrow_python_)")


def needed(requirements: Iterable[str]) -> dict[str, metadata.Distribution]:
    """The distributions that `requirements` name, with all their dependencies. Raises PackageNotFoundError for a
    missing one."""
    found: dict[str, metadata.Distribution] = {}
    open_ = list(requirements)
    while open_:
        name, _, marker = open_.pop().partition(";")
        match = re.match(r"[\w.-]+", name.strip())
        if match is None or "extra" in marker:
            continue
        key = re.sub(r"[-_.]+", "-", match[0]).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(key)
        except metadata.PackageNotFoundError:
            if marker:  # for another platform or version of Python
                continue
            raise
        open_ += found[key].requires or []
    return found


def copy(distribution: metadata.Distribution, target: Path) -> int:
    """Copies the files of one distribution; returns their size in bytes."""
    total = 0
    for file in distribution.files or []:
        if LEFT_OUT.match(str(file)):
            continue
        source, copied = Path(str(distribution.locate_file(file))), target / file
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copied)
        total += source.stat().st_size
    return total


def main() -> int:
    """Runs the command line; returns its exit status."""
    project, target = Path(sys.argv[1]), Path(sys.argv[2])
    requirements = tomllib.loads(project.read_text())["project"]["dependencies"]
    try:
        all_ = needed(requirements)
    except metadata.PackageNotFoundError as error:
        print(f"bundle_python: {sys.prefix} has no {error.name}: run tools/setup.sh", file=sys.stderr)
        return 1
    total = sum(copy(one, target) for one in all_.values())
    print(f"-- Python packages: {len(all_)}, {total >> 20} MiB, in {target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
