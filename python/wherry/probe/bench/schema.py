# SPDX-License-Identifier: Apache-2.0
"""What `wherry bench probe --json FILE` writes, as types, and what its bars are made of (docs/probe.md, Benchmark)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows
from wherry.probe.lines import Provenance
from wherry.probe.model import basis as model_basis

EXPERIMENTS = ("quick", "full", "twice", "spoiled", "model", "dma")
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
class DmaRate:
    """The DMA engine as a card behind simulated PCIe, by its driver. Simulated."""

    name: str
    way: Literal["h2c", "c2h"]
    bytes: int
    depth: int
    channels: int
    bell: Literal["tail", "descriptor"]
    rtt_ns: float
    gbytes_per_s: float
    millions_per_s: float
    bound_gbytes_per_s: float
    share: float
    """Of the bound."""
    latency_us: float
    unfair: float
    up_use: float
    """Of the link's time, to the host."""
    down_use: float
    status_words: float
    """Of a transfer."""
    cycles: int


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """By experiment."""

    suites: list[Suite] = rows("Runs of the program")
    paths: list[PathFigures] = rows("Paths; times in ns, of one transfer")
    same: list[Same] = rows("One run, everything twice: the ratio of the two, and its 99 % interval")
    spoiled: list[Spoiled] = rows("One byte flipped where the data landed")
    absent: list[Absent] = rows("Paths that cannot run here")
    dma: list[DmaRate] = rows("The DMA engine as a card, simulated: RTL, driver and PCIe")


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
}

DMA_USES = {
    "dma_h2c_4k_depth16": "dma: share of h2c_4k_depth16",
    "dma_c2h_4k_depth16": "dma: share of c2h_4k_depth16",
    "dma_h2c_512b": "dma: share of h2c_512",
    "dma_c2h_512b": "dma: share of c2h_512",
    "dma_h2c_4k_rtt2us": "dma: share of h2c_4k_rtt2us",
    "dma_c2h_4k_rtt2us": "dma: share of c2h_4k_rtt2us",
    "dma_64b_mps": "dma: millions_per_s of h2c_64",
    "dma_4k_depth1_us": "dma: latency_us of h2c_4k_depth1",
    "dma_4k_depth1_doorbell_us": "dma: latency_us of h2c_4k_depth1_doorbell",
    "dma_half_rate_bytes": "dma_card_bench, from host to card at depth 1: the size at half of the bound",
    "dma_channels_unfair": "dma: the larger unfair of h2c_4k_4channels and c2h_4k_4channels",
}


def basis_of(bar: str, results: ProbeResults) -> Basis:
    """The basis of the bar of that name."""
    beside = ""
    if bar == "aa_no_difference":
        beside = f"of {len(results.same)} paths and shapes"
    elif bar == "flipped_byte_noticed":
        beside = f"of {len(results.spoiled)} paths, {sum(row.cells for row in results.spoiled)} cells"
    elif bar == "paths_without_figures":
        beside = f"{len(results.absent)} more are absent"
    if bar.startswith("dma_"):
        return Basis(DMA_USES[bar], "simulated")
    if bar in USES:
        return Basis(USES[bar], beside)
    return Basis(*model_basis(bar))


BENCHMARK = Benchmark(
    name="probe",
    schema=ProbeBench,
    basis=basis_of,
    paper="000 (paths between a host and an FPGA card)",
)
