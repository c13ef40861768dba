# SPDX-License-Identifier: Apache-2.0
"""Writes the path profile: what a run measured, and the settings that follow from it (docs/profile.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from wherry.errors import InvalidArgument
from wherry.probe import rules
from wherry.probe.schema import ProbeRun
from wherry.system import default_profile_file as default_profile_file
from wherry.system import machine_key, replacing

SCHEMA = 1
PATHS = ("ucx.get.shm", "ipc.cma.get", "cpu.memcpy", "cpu.stream", "wake.spin", "wake.nap")
"""What the rules ask for."""


def figures_of(run: ProbeRun) -> dict[str, list[rules.Figure]]:
    """Rows of one transfer at a time that are not refused; those that are not settled, only where no others are."""
    found: dict[str, list[rules.Figure]] = {}
    for path in run.paths:
        if path.provenance != "measured":
            continue
        plain = [
            row
            for row in path.rows
            if (row.depth, row.channels, row.align, row.load, row.pattern) == (1, 1, 0, "closed", "sequential")
            and not row.refused
        ]
        settled = [row for row in plain if not row.unsettled] or plain
        found[path.id] = [rules.Figure(row.bytes, row.p50_ns, row.cache) for row in settled]
    return found


def l2_bytes(cpu: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Of the first core's second cache; 0: unknown."""
    for index in sorted(cpu.glob("index*")):
        try:
            if (index / "level").read_text().strip() == "2":
                text = (index / "size").read_text().strip()
                return int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]]
        except (OSError, ValueError, KeyError):
            continue
    return 0


def document(run: ProbeRun) -> dict[str, Any]:
    """The profile, as JSON. Raises InvalidArgument: the run is of another machine, or no rule finds its figures."""
    here = machine_key()
    there = {"cpu": run.environment.get("cpu"), "kernel": run.environment.get("kernel")}
    if there != {"cpu": here["cpu"], "kernel": here["kernel"]}:
        raise InvalidArgument(f"the run is of another machine ({there['cpu']}, kernel {there['kernel']}): measure here")
    settings = rules.apply(figures_of(run), rules.Machine(l2_bytes=l2_bytes()))
    if not settings:
        raise InvalidArgument(f"the run has none of the paths that the rules ask for: {', '.join(PATHS)}")
    return {
        "name": "wherry-profile",
        "schema": SCHEMA,
        "date": run.when,
        "machine": here,
        "settings": {
            one.key: {"value": str(one.value), "rule": one.rule, "why": one.why}
            for one in sorted(settings, key=lambda one: one.key)
        },
        "paths": msgspec.to_builtins(run.paths),
    }


def write(profile: dict[str, Any], file: Path) -> None:
    """Puts it in place of what was there, for this user alone to write. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as whole:
        whole.write_bytes(msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n")
        whole.chmod(0o600)  # readers refuse what others may write
