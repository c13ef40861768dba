# SPDX-License-Identifier: Apache-2.0
"""The machine that this process runs on, and the version of this package."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from wherry.system import paths


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured."""

    cpu: str
    cores: int
    kernel: str
    memory_bytes: int


def this_machine() -> Machine:
    """The machine that this process runs on."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # not Linux, or no /proc
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(cpu=cpu, cores=os.cpu_count() or 1, kernel=platform.release(), memory_bytes=pages * page)


def wherry_version() -> str:
    """The version of this package, as its compiled module, its metadata or its checkout say."""
    import importlib.metadata

    import wherry

    version = getattr(wherry, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version("wherry")
    except importlib.metadata.PackageNotFoundError:
        root = paths.repository()
        text = (root / "CMakeLists.txt").read_text() if root is not None else ""
        match = re.search(r"project\(wherry VERSION ([0-9.]+)", text)
        return match[1] if match else "unknown"
