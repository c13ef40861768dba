# SPDX-License-Identifier: Apache-2.0
"""Writes the path profile: the measurements of a run, and the settings derived from them (docs/guide/profile.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from wherry.errors import InvalidArgument
from wherry.probe import rules
from wherry.probe.lines import Progress
from wherry.probe.measuring import measure
from wherry.probe.schema import ProbeRun
from wherry.system import Advice, machine_key, this_machine, write_profile
from wherry.system import default_profile_file as default_profile_file

PATHS = ("ucx.get.shm", "ipc.cma.get", "cpu.memcpy", "cpu.stream", "wake.spin", "wake.nap", "wake.futex")
"""The paths that the rules need, measured at the sizes of the suite."""
CHASE = "cpu.chase"
"""The path for rules that need one size larger than the caches (see chase_words())."""
KERNEL = "kernel"
"""The rule name of settings that `wherry advise --calibrate` wrote into the profile (wherry.route.calibration)."""
_MOST_CHASE_BYTES = 64 << 20
"""The largest memory of wherry-probe: kMostFootprint of src/probe/suite.hpp."""


def figures_of(run: ProbeRun) -> dict[str, list[rules.Figure]]:
    """The figures of rows with one transfer in flight that were not refused. Unsettled rows are used only if there are
    no others."""
    found: dict[str, list[rules.Figure]] = {}
    for path in run.paths:
        if path.provenance != "measured":
            continue
        plain = [
            row
            for row in path.rows
            if (row.channels, row.align, row.load) == (1, 0, "closed")
            and (path.id == CHASE or (row.depth, row.pattern) == (1, "sequential"))
            and not row.refused
        ]
        settled = [row for row in plain if not row.unsettled] or plain
        found[path.id] = [
            rules.Figure(
                row.bytes,
                row.p50_ns,
                row.cache,
                row.depth,
                row.other_user_ns + row.other_system_ns,
                tuple(row.rounds),
            )
            for row in settled
        ]
    return found


def caches(cpu: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> rules.Machine:
    """The cache sizes of the first core, and the number of cores."""
    sizes = {0: 0}
    for index in cpu.glob("index*"):
        try:
            text = (index / "size").read_text().strip()
            bytes_ = int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]]
            if (index / "type").read_text().strip() != "Instruction":
                sizes[int((index / "level").read_text())] = bytes_
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return rules.Machine(l2_bytes=sizes.get(2, 0), last_level_bytes=sizes[max(sizes)], cores=this_machine().cores)


def chase_words(machine: rules.Machine) -> list[str] | None:
    """Arguments of wherry-probe for a run of CHASE. None: the cache sizes are unknown, or too large for
    wherry-probe."""
    bytes_ = 2 * machine.last_level_bytes
    return ["--bytes", str(bytes_), "--depth", "8"] if 0 < bytes_ <= _MOST_CHASE_BYTES else None


def run(seconds: float, watch: Callable[[Progress], None]) -> ProbeRun:
    """Measures the values that the rules need. Raises BenchError."""
    found = measure(only=PATHS, more=["--seconds", str(seconds)], watch=watch)
    words = chase_words(caches())
    if found.stopped or words is None:
        return found
    chase = measure(only=[CHASE], more=[*words, "--seconds", str(max(1, seconds / 20))], watch=watch)
    return msgspec.structs.replace(found, paths=found.paths + chase.paths, stopped=chase.stopped)


def document(run: ProbeRun) -> dict[str, Any]:
    """The profile as JSON. Raises InvalidArgument if the run comes from another machine, or lacks the figures for every
    rule."""
    here = this_machine().key
    if run.machine_key.rpartition(" | UCX ")[0] != here:
        raise InvalidArgument(f"the run is of another machine ({run.machine_key}), this is {here}: measure here")
    settings = rules.apply(figures_of(run), caches())
    if not settings:
        raise InvalidArgument(f"the run has none of the paths that the rules ask for: {', '.join(PATHS)}")
    return {
        "date": run.when,
        "machine": machine_key(),
        "settings": {
            one.key: {"value": str(one.value), "rule": one.rule, "why": one.why}
            for one in sorted(settings, key=lambda one: one.key)
        },
        "paths": msgspec.to_builtins(run.paths),
    }


def write(profile: dict[str, Any], file: Path) -> None:
    """Replaces the profile's file. Only this user may write to the new file. Raises OSError.

    Keeps settings that `wherry advise --calibrate` measured on this machine: they took a minute, and measure the cost
    of a randomly touched line more directly.
    """
    settings = {key: Advice(**one) for key, one in profile["settings"].items()}
    write_profile(file, profile["date"], settings, {"paths": profile["paths"]}, lambda _key, one: one.rule == KERNEL)
