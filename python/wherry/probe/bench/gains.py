# SPDX-License-Identifier: Apache-2.0
"""Measures the gain of a path profile's settings over the default settings, in move and in route.

Each round alternates between both sets of settings (A B B A), so that a drift of the machine affects both equally. Each
ratio compares the two sets within one round. Several processes run one after another, because a process's memory pages
also affect its speed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wherry.errors import BenchError
from wherry.probe import profile as profiles
from wherry.probe import rules
from wherry.probe.bench.schema import BENCHMARK, Gain, ProfileSetting
from wherry.probe.lines import Progress

PROCESSES = 7
"""The number of processes of each program."""
USED = {"move": ("move.", "poll."), "route": ("route.",)}
"""The settings of each service, by the prefixes of their names."""
PROGRAMS: dict[Literal["move", "route"], str] = {"move": "bench_move", "route": "bench_route"}
KIND = {"move": "memory", "route": "placement"}


@dataclass(frozen=True, slots=True)
class Gains:
    """The results of all measurements."""

    settings: list[ProfileSetting]
    rows: list[Gain]


def measure(seconds: float, watch: Callable[[Progress], None]) -> list[rules.Setting]:
    """Measures this machine, and returns the settings that the rules derive. Raises BenchError."""
    run = profiles.run(seconds, watch)
    if run.stopped:
        raise KeyboardInterrupt
    return rules.apply(profiles.figures_of(run), profiles.caches())


def words(settings: Sequence[rules.Setting], service: str) -> list[str]:
    """The settings as arguments for the service's program."""
    found = [one for one in settings if one.key.startswith(USED[service])]
    return [word for one in found for word in ("--set", f"{one.key}={one.value}")]


def rows_of(service: Literal["move", "route"], documents: Sequence[Mapping[str, Any]]) -> list[Gain]:
    """The rows from the output of all processes. Raises BenchError."""
    by_cell: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for document in documents:
        for row in document["results"]["profile"]:
            by_cell.setdefault((row[KIND[service]], row["size"]), []).append(row)
    if not by_cell or any(len(rows) != len(documents) for rows in by_cell.values()):
        raise BenchError(f"{PROGRAMS[service]} wrote no rows of the experiment profile")
    return [gain_of(service, kind, size, rows) for (kind, size), rows in by_cell.items()]


def gain_of(service: Literal["move", "route"], kind: str, size: int, rows: Sequence[Mapping[str, Any]]) -> Gain:
    """The gain for one kind and size, from all processes."""

    def middle(name: str) -> float:
        return float(statistics.median(row[name] for row in rows))

    def pooled(name: str) -> tuple[float, float, float]:
        if name not in rows[0]:
            return 1.0, 1.0, 1.0
        of_process = [statistics.median(row[name]) for row in rows]
        return statistics.median(ratio for row in rows for ratio in row[name]), min(of_process), max(of_process)

    unit = "gbps" if service == "move" else "mmps"
    throughput, turn = pooled("ratios"), pooled("turn_ratios")
    return Gain(
        service=service,
        kind=kind,
        size=size,
        rounds=sum(len(row["ratios"]) for row in rows),
        default=middle(f"default_{unit}"),
        profile=middle(f"profile_{unit}"),
        throughput=throughput[0],
        throughput_least=throughput[1],
        throughput_most=throughput[2],
        turn=turn[0],
        turn_least=turn[1],
        turn_most=turn[2],
        paced=pooled("paced_ratios")[0],
    )


def gains(settings: Sequence[rules.Setting], *, quick: bool, say: Callable[[str], None]) -> Gains:
    """Runs the programs. Raises BenchError, NotFound."""
    rows = []
    with BENCHMARK.scratch_directory() as directory:
        for service, program in PROGRAMS.items():
            documents = []
            for number in range(2 if quick else PROCESSES):
                say(f"  {program}, process {number + 1}")
                file = directory / f"{program}-{number}.json"
                BENCHMARK.run_program(program, file, quick=True, more=["--only", "profile", *words(settings, service)])
                documents.append(BENCHMARK.read(file))
            rows += rows_of(service, documents)
    return Gains([ProfileSetting(one.key, str(one.value), one.rule, one.why) for one in settings], rows)
