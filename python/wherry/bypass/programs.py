# SPDX-License-Identifier: Apache-2.0
"""Finds the programs that bypass's commands run, and the files that they read. All functions raise NotFound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from wherry.errors import NotFound
from wherry.system import built, doing, repository, wherry_bypass


def host() -> Path:
    """The program that `wherry bypass` runs."""
    return wherry_bypass()


def start_host(command: str, *words: str | Path) -> subprocess.Popen[bytes]:
    """Starts the host's program with this process's standard streams. Raises Error."""
    program = host()
    with doing(f"cannot start {program}"):
        return subprocess.Popen([program, command, *words])


def model_bench() -> Path:
    """The benchmark that models the paper's core, NIC, topologies and baselines."""
    return built("sim/host_bypassing", "host_bypassing_bench")


def rtl_bench() -> Path:
    """The benchmark that simulates the Verilated core in the same PCIe fabric."""
    return built("sim/bypass", "bypass_rtl_bench")


def qemu_bench() -> Path:
    """The benchmark that runs the Verilated core behind a NIC of QEMU."""
    return built("sim/qemu", "bypass_qemu")


def newer_qemu() -> Path:
    """QEMU 10, which supports igb, from the place where tools/qemu-backports.sh unpacks it."""
    qemu = Path(sys.prefix) / "qemu-backports" / "usr" / "bin" / "qemu-system-x86_64"
    if not qemu.is_file():
        raise NotFound(f"no QEMU with igb: looked at {qemu}; tools/qemu-backports.sh unpacks one")
    return qemu


def resource_table() -> Path:
    """The table of the cores' resources, synthesised by Yosys: hdl/resources.json, which tools/synth.py writes."""
    root = repository()
    file = root / "hdl" / "resources.json" if root is not None else None
    if file is None or not file.is_file():
        raise NotFound("the table of resources is in a checkout: hdl/resources.json")
    return file
