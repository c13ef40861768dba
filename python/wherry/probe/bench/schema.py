# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry bench probe --json FILE`, as types, and the sources of its bars (docs/guide/probe.md,
Benchmark)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows
from wherry.probe.bench import designs
from wherry.probe.bench.designs import DesignFirmware, DesignLinux, DesignPoint, DesignTurns, DesignWay
from wherry.probe.lines import Provenance
from wherry.probe.model import basis as model_basis

EXPERIMENTS = ("quick", "full", "twice", "spoiled", "cache", "model", "thesis", "designs", "dma", "profile")
"""What `--only` takes."""

FAR, NEAR = "streams through memory", "stays in its level 2"
"""Neighbours, as bench_probe_cache calls them."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of the program."""

    suite: Literal["quick", "full", "twice", "spoiled"]
    seconds: float
    """The caller's waiting time, the start of programs included."""
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
    """Further properties: blocking, flushed, ..."""
    p50_ns: float
    least_ns: float
    most_ns: float
    p99_ns: float
    gbytes_per_s: float
    transfers_per_s: float
    cpu_ns: float
    """User and system time of the measuring thread, for one transfer."""
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
    """A path where one byte of the delivered data was flipped."""

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
    """1 to 3. 0: Table 5.12, which belongs to no case."""
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
class ThesisLoad:
    """A path of the shell with many packets in flight. Simulated and predicted, as the thesis has no such figure."""

    scenario: str
    """"alone", or the paths that run at the same time."""
    case: int
    way: str
    bytes: int
    share: float
    """The share of the path's rate alone. 1 and alone: more load than it can take."""
    offered_gbytes_per_s: float
    gbytes_per_s: float
    bound_gbytes_per_s: float
    """Of the path's slowest stage, by hand."""
    bound_stage: str
    saturated: bool
    """The path delivered less than was offered."""
    packets: int
    delivered: int
    dropped: int
    """Packets dropped in the packet adapter for lack of room. packets = delivered + dropped."""
    unloaded_ns: float
    """The time of one packet alone, with its descriptor."""
    mean_ns: float
    """From when a packet is offered. So the next ones."""
    p50_ns: float
    p99_ns: float
    told_ns: float
    """Mean time until the host knows. 0: the path has no queue of the host."""
    interrupts: int
    """Interrupts of all queues of the run."""


@dataclass(frozen=True, slots=True)
class ThesisLoadVariant:
    """A path with one limit changed. Simulated; predicted."""

    variant: str
    case: int
    way: str
    bytes: int
    gbytes_per_s: float
    """The rate with more load than it can take."""
    usual_gbytes_per_s: float
    """The same without the change."""
    half_mean_ns: float
    """At half of that rate."""
    half_told_ns: float


@dataclass(frozen=True, slots=True)
class ThesisLimit:
    """A limit of the simulated shell under load. No limit was set to a published result."""

    name: str
    value: int
    unit: str
    mark: Literal["given", "bound"]
    """given: by a product guide or OpenNIC's source; bound: there is no source, and its possible effect is stated."""
    source: str


@dataclass(frozen=True, slots=True)
class CacheAgent:
    """The routing kernel of an agent on its own core, with messages from another core. Measured."""

    buffer_bytes: int
    """Bytes of all communication buffers."""
    payload: int
    """Bytes of a message."""
    gbytes_per_s: float
    least: float
    most: float
    references_per_line: float | None
    """The processor's counter of cache references, for 64 bytes routed. None: see `not_counted`. The next field has the
    same form."""
    misses_per_line: float | None
    not_counted: str
    """Why the machine counts none. Empty: it does."""
    samples: list[float]


@dataclass(frozen=True, slots=True)
class CacheTraffic:
    """The same kernel's loads and stores, in a model of a machine's caches. Simulated."""

    system: str
    source: str
    """The source of the cache sizes."""
    direct: bool
    """Devices write into the last level: direct cache access."""
    buffer_bytes: int
    payload: int
    routed_bytes: int
    loads_per_byte: float
    """Bytes that loads bring from memory, for each byte routed."""
    fills_per_byte: float
    """The same of stores, which bring a line before they change it."""
    written_back_per_byte: float
    l1_misses_per_line: float
    l2_misses_per_line: float


@dataclass(frozen=True, slots=True)
class CacheTouch:
    """Messages that another core wrote, with a read of each of their bytes. Measured. For the share of misses see
    `share_is`."""

    place: str
    """The place of the data when the receiver reads it."""
    size: int
    ring_bytes: int
    received_bytes: int
    ns_per_line: float
    """Time for a line of 64 bytes."""
    least_ns: float
    most_ns: float
    miss_share: float | None
    """The share of received lines that came from memory."""
    share_is: Literal["measured", "estimated", "not known"]
    """Estimated: from the times, between the last level (none) and flushed lines (all)."""
    samples: list[float]


@dataclass(frozen=True, slots=True)
class CacheNeighbour:
    """The same agent beside a thread on another core. Measured."""

    neighbour: str
    intensity: float
    """Share of its time that the neighbour works."""
    working_set_bytes: int
    neighbour_gbytes_per_s: float
    agent_gbytes_per_s: float
    kept: float
    """The agent's rate beside a neighbour, as a share of its rate alone in the same repetition."""
    least: float
    most: float
    samples: list[float]


@dataclass(frozen=True, slots=True)
class ProfileSetting:
    """A setting of the profile whose gain was measured."""

    key: str
    value: str
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Gain:
    """A service with the profile's settings and with the defaults, at one size."""

    service: Literal["move", "route"]
    kind: str
    """Memory, or placement."""
    size: int
    rounds: int
    default: float
    """Gbit/s of offloads that follow each other; M messages/s."""
    profile: float
    throughput: float
    """Profile over defaults: the median of all rounds. `least`, `most`: of the processes' medians."""
    throughput_least: float
    throughput_most: float
    turn: float
    """move: the defaults' time over the profile's, of an offload of 64 KiB behind one of this size; else 1."""
    turn_least: float
    turn_most: float
    paced: float
    """move: the defaults' time over the profile's, of an offload each millisecond; else 1."""


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
    """The rate as a share of the bound."""
    latency_us: float
    unfair: float
    up_use: float
    """The used share of the link's time, towards the host."""
    down_use: float
    status_words: float
    """Status words of a transfer."""
    cycles: int
    bound_with_dllps_gbytes_per_s: float | None = None
    """The bound, less the acknowledgements and credits that every host must send. None: the program was older."""
    share_with_dllps: float | None = None


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
    thesis_load: list[ThesisLoad] = rows("The simulated shell under load: rates, latencies, losses; predicted")
    thesis_load_variants: list[ThesisLoadVariant] = rows("The same with one limit changed; predicted")
    thesis_limits: list[ThesisLimit] = rows("Limits of the simulated shell under load")
    cache_agent: list[CacheAgent] = rows("An agent's routing kernel on a core of its own: measured")
    cache_traffic: list[CacheTraffic] = rows("Its memory traffic for each byte routed: simulated")
    cache_touch: list[CacheTouch] = rows("Receive and touch each byte: measured, 64 KiB a message")
    cache_neighbour: list[CacheNeighbour] = rows("The agent beside a neighbour on the other core: measured")
    settings: list[ProfileSetting] = rows("The profile whose gain was measured")
    gains: list[Gain] = rows("The profile's settings over the defaults; ratios of rounds")
    designs: list[DesignPoint] = rows("Four FPGA designs of paper 000, simulated: bandwidth by size")
    design_turns: list[DesignTurns] = rows("Simulated: streams that take turns in one bank")
    design_ways: list[DesignWay] = rows("Simulated: one channel, by the length of the way to the memory")
    design_linux: list[DesignLinux] = rows("Simulated: beside Linux' own traffic")
    design_firmwares: list[DesignFirmware] = rows("Simulated: beside a soft core's firmware")
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
    **{f"thesis_case{case}_error": f"thesis: the largest error of the cells of Table 5.{2 * case - 1}. Simulated"
       for case in (1, 2, 3)},
    "profile_move_gain": "gains of move, turn: the geometric mean over the sizes, and over the kinds of each",
    "profile_move_worst_size": "gains of move, the least of throughput and turn, the mean over the kinds of each size",
    "profile_route_gain": "gains of route, throughput: the geometric mean over the sizes, and over the kinds of each",
    "profile_route_worst_size": "gains of route, throughput: the least size, the mean over its kinds",
}  # fmt: skip


def thesis_beside(cells: Sequence[ThesisCell], case: int) -> str:
    """The errors of a case's latencies and of its sections, by their marks."""
    words = []
    for name, table in (("latencies", 2 * case - 1), ("sections", 2 * case)):
        for mark in ("predicted", "fitted"):
            of = [cell.off_percent for cell in cells if cell.id.startswith(f"rep_t5_{table}_") and cell.mark == mark]
            if of:
                words.append(f"{len(of)} {name} {mark}: mean {statistics.mean(of):.1f} %, worst {max(of):.1f} %")
    return "; ".join(words)


CACHE_USES = {
    "cache_traffic_without": "cache_traffic, simulated: loads_per_byte + fills_per_byte of bluefield_3 without direct "
    "cache access, the larger rings",
    "cache_loads_direct": "cache_traffic, simulated: loads_per_byte of xeon_6326 with direct cache access, the larger "
    "rings",
    "cache_flushed_times": "cache_touch, measured: ns_per_line of flushed lines over that of the last level",
    "cache_neighbour_kept": "cache_neighbour, measured: kept beside one that always streams through memory",
}
"""These have no target, because section 6 of paper 001 compares machines that are not here."""

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
    elif bar.startswith("thesis_case"):
        beside = thesis_beside(results.thesis, int(bar[len("thesis_case")]))
    elif bar == "cache_neighbour_kept":
        near = [row.kept for row in results.cache_neighbour if row.neighbour == NEAR]
        beside = f"{near[0]:.3g} beside one that stays in its own cache" if near else ""
    elif bar.startswith("profile_"):
        beside = ", ".join(f"{one.key} = {one.value}" for one in results.settings)
    if bar.startswith("dma_"):
        return Basis(DMA_USES[bar], "simulated")
    if bar in USES or bar in CACHE_USES:
        return Basis((USES | CACHE_USES)[bar], beside)
    if bar in designs.USES:
        return Basis(designs.USES[bar], "")
    return Basis(*model_basis(bar))


BENCHMARK = Benchmark(
    name="probe",
    schema=ProbeBench,
    basis=basis_of,
    paper="000 (paths between a host and an FPGA card)",
)
