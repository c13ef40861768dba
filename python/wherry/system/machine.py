# SPDX-License-Identifier: Apache-2.0
"""Describes the machine that this process runs on. `src/base/machine.hpp` reads the same values, and a test compares
both."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine on which something was measured."""

    cpu: str
    cores: int
    kernel: str
    memory_bytes: int

    @property
    def key(self) -> str:
        """The key that identifies the machine in runs of `wherry probe`."""
        return f"{self.cpu} | {self.cores} cores | Linux {self.kernel}"


def this_machine() -> Machine:
    """The machine that this process runs on."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # the system is not Linux, or /proc is missing
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(cpu=cpu, cores=os.cpu_count() or 1, kernel=platform.release(), memory_bytes=pages * page)
