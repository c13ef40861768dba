# SPDX-License-Identifier: Apache-2.0
"""What `wherry bench probe --json FILE` writes, as types, and what its bars are made of (docs/probe.md, Benchmark)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows
from wherry.probe.lines import Provenance
from wherry.probe.model import basis as model_basis

EXPERIMENTS = ("quick", "full", "twice", "spoiled", "model", "thesis")
"""What `--only` takes."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of the program."""

    suite: Literal["quick", "full", "twice", "spoiled"]
    seconds: float
    """As the caller waits, the start of programs included."""
    rows: int
    refused: int
    failed: int
    wrong: int
    unsettled: int
    harness_batched_ns: float
    harness_timed_ns: float


@dataclass(frozen=True, slots=True)
class PathFigures:
    """A path and shape of the longest suite that was run."""

    id: str
    group: str
    provenance: Provenance
    size: int
    depth: int
    shape: str
    """What else sets it apart: blocking, flushed, ..."""
    p50_ns: float
    least_ns: float
    most_ns: float
    p99_ns: float
    gbytes_per_s: float
    transfers_per_s: float
    cpu_ns: float
    """User and system, of the measuring thread, for one transfer."""
    other_cpu_ns: float
    unsettled: bool


@dataclass(frozen=True, slots=True)
class Same:
    """A path and shape that one run measured twice."""

    id: str
    size: int
    shape: str
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A path of whose landed data one byte was flipped."""

    id: str
    cells: int
    noticed: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A path that cannot run here."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class ThesisCell:
    """A cell of Tables 5.1 to 5.6 or 5.12 of paper 003."""

    id: str
    case: int
    """1 to 3; 0: Table 5.12, which has none."""
    published_ns: float
    simulated_ns: float
    off_percent: float
    """The size of the error."""
    mark: Literal["fitted", "predicted"]
    why: str
    """Why it is fitted."""


@dataclass(frozen=True, slots=True)
class ThesisSpike:
    """4 KiB from HBM to the host, with one cause or another taken away."""

    variant: str
    transactions: int
    total_ns: float


@dataclass(frozen=True, slots=True)
class ThesisParameter:
    """A number of the simulation that no datasheet gives."""

    name: str
    value: int
    unit: str
    mark: Literal["chosen", "fitted"]
    source: str


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """By experiment."""

    suites: list[Suite] = rows("Runs of the program")
    paths: list[PathFigures] = rows("Paths; times in ns, of one transfer")
    same: list[Same] = rows("One run, everything twice: the ratio of the two, and its 99 % interval")
    spoiled: list[Spoiled] = rows("One byte flipped where the data landed")
    absent: list[Absent] = rows("Paths that cannot run here")
    thesis: list[ThesisCell] = rows("Cells of paper 003 and the simulation of its shell; ns")
    thesis_spike: list[ThesisSpike] = rows("4 KiB from HBM to the host, simulated")
    thesis_parameters: list[ThesisParameter] = rows("Numbers of the simulated shell that no datasheet gives")


@dataclass(frozen=True, slots=True)
class ProbeBench(Run):
    """One run."""

    name: Literal["probe"]
    results: ProbeResults
    environment: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    """Bars that are not known, and why."""


USES = {
    "probe_quick_s": "suites seconds, quick",
    "probe_full_s": "suites seconds, full",
    "harness_ns": "suites, the larger of harness_batched_ns and harness_timed_ns, the worst run",
    "aa_no_difference": "same: the share whose verdict is 'no difference'",
    "flipped_byte_noticed": "spoiled: the share of paths of which every cell was noticed",
    "paths_without_figures": "paths that are neither absent nor have a row in the longest suite",
    **{f"thesis_case{case}_error": f"thesis: the largest error of the cells of Table 5.{2 * case - 1}. Simulated"
       for case in (1, 2, 3)},
}  # fmt: skip


def thesis_beside(cells: Sequence[ThesisCell], case: int) -> str:
    """The errors of a case's latencies and of its sections, by what may be claimed of them."""
    words = []
    for name, table in (("latencies", 2 * case - 1), ("sections", 2 * case)):
        for mark in ("predicted", "fitted"):
            of = [cell.off_percent for cell in cells if cell.id.startswith(f"rep_t5_{table}_") and cell.mark == mark]
            if of:
                words.append(f"{len(of)} {name} {mark}: mean {statistics.mean(of):.1f} %, worst {max(of):.1f} %")
    return "; ".join(words)


def basis_of(bar: str, results: ProbeResults) -> Basis:
    """The basis of the bar of that name."""
    beside = ""
    if bar == "aa_no_difference":
        beside = f"of {len(results.same)} paths and shapes"
    elif bar == "flipped_byte_noticed":
        beside = f"of {len(results.spoiled)} paths, {sum(row.cells for row in results.spoiled)} cells"
    elif bar == "paths_without_figures":
        beside = f"{len(results.absent)} more are absent"
    elif bar.startswith("thesis_case"):
        beside = thesis_beside(results.thesis, int(bar[len("thesis_case")]))
    if bar in USES:
        return Basis(USES[bar], beside)
    return Basis(*model_basis(bar))


BENCHMARK = Benchmark(
    name="probe",
    schema=ProbeBench,
    basis=basis_of,
    paper="000 (paths between a host and an FPGA card)",
)
