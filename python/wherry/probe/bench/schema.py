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
"""The names that `--only` accepts."""

FAR, NEAR = "streams through memory", "stays in its level 2"
"""The kinds of neighbours, by their names in bench_probe_cache."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The summary of one run of wherry-probe."""

    suite: Literal["quick", "full", "twice", "spoiled"]
    seconds: float
    """The time that the caller waits, including the start of programs."""
    rows: int
    refused: int
    failed: int
    wrong: int
    unsettled: int
    harness_batched_ns: float
    harness_timed_ns: float


@dataclass(frozen=True, slots=True)
class PathFigures:
    """The figures of one path and shape, from the longest suite that was run."""

    id: str
    group: str
    provenance: Provenance
    size: int
    depth: int
    shape: str
    """Further properties of the cell: blocking, flushed, ..."""
    p50_ns: float
    least_ns: float
    most_ns: float
    p99_ns: float
    gbytes_per_s: float
    transfers_per_s: float
    cpu_ns: float
    """User and system time of the measuring thread per transfer."""
    other_cpu_ns: float
    unsettled: bool


@dataclass(frozen=True, slots=True)
class Same:
    """The comparison of two measurements of a path and shape in one run."""

    id: str
    size: int
    shape: str
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A test of a path in which one byte of the delivered data was flipped."""

    id: str
    cells: int
    noticed: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A path that cannot run on this machine."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class ThesisCell:
    """A simulated cell of Tables 5.1 to 5.6 or 5.12 of paper 003, with the published value."""

    id: str
    case: int
    """The paper's case, 1 to 3. 0: Table 5.12, which does not belong to a case."""
    published_ns: float
    simulated_ns: float
    off_percent: float
    """The absolute value of the error."""
    mark: Literal["fitted", "predicted"]
    why: str
    """Why the cell counts as fitted."""


@dataclass(frozen=True, slots=True)
class ThesisSpike:
    """The latency of 4 KiB from HBM to the host, with one or more possible causes of the spike removed."""

    variant: str
    transactions: int
    total_ns: float


@dataclass(frozen=True, slots=True)
class ThesisParameter:
    """A parameter of the simulation that is not in a data sheet."""

    name: str
    value: int
    unit: str
    mark: Literal["chosen", "fitted"]
    source: str


@dataclass(frozen=True, slots=True)
class ThesisLoad:
    """A path of the shell under load, with many packets in flight. It is simulated and predicted: the thesis has no
    such figure."""

    scenario: str
    """"alone", or the names of the paths that run at the same time."""
    case: int
    way: str
    bytes: int
    share: float
    """The offered load as a share of the path's rate alone. With "alone", 1 means more load than the path can carry."""
    offered_gbytes_per_s: float
    gbytes_per_s: float
    bound_gbytes_per_s: float
    """The rate of the path's slowest stage, calculated by hand."""
    bound_stage: str
    saturated: bool
    """Whether the path delivered less than the offered load."""
    packets: int
    delivered: int
    dropped: int
    """Packets that the packet adapter dropped because its buffer was full. packets = delivered + dropped."""
    unloaded_ns: float
    """The latency of a single packet, including its descriptor."""
    mean_ns: float
    """The mean latency from the time at which a packet is offered. The next fields use the same start."""
    p50_ns: float
    p99_ns: float
    told_ns: float
    """The mean time until the host is notified. 0: the path does not have a host queue."""
    interrupts: int
    """The number of interrupts of all queues in the run."""


@dataclass(frozen=True, slots=True)
class ThesisLoadVariant:
    """A path with one limit changed. The figures are simulated and predicted."""

    variant: str
    case: int
    way: str
    bytes: int
    gbytes_per_s: float
    """The rate at more load than the path can carry."""
    usual_gbytes_per_s: float
    """The same rate without the change."""
    half_mean_ns: float
    """The mean latency at half of that rate."""
    half_told_ns: float


@dataclass(frozen=True, slots=True)
class ThesisLimit:
    """A limit of the simulated shell under load. No limit was fitted to a published result."""

    name: str
    value: int
    unit: str
    mark: Literal["given", "bound"]
    """"given": a product guide or OpenNIC's source states the limit. "bound": there is no source, and the row states
    the possible effect."""
    source: str


@dataclass(frozen=True, slots=True)
class CacheAgent:
    """Measured figures of an agent's routing kernel on its own core. Another core sends the messages."""

    buffer_bytes: int
    """The size of all communication buffers in bytes."""
    payload: int
    """Bytes of a message."""
    gbytes_per_s: float
    least: float
    most: float
    references_per_line: float | None
    """Cache references per 64 routed bytes, from the processor's counter. None: see `not_counted`. The next field has
    the same form."""
    misses_per_line: float | None
    not_counted: str
    """Why the machine cannot count them. Empty: it can."""
    samples: list[float]


@dataclass(frozen=True, slots=True)
class CacheTraffic:
    """Simulated memory traffic of the same kernel's loads and stores, in a model of a machine's caches."""

    system: str
    source: str
    """The source of the cache sizes."""
    direct: bool
    """Whether devices write into the last-level cache (direct cache access)."""
    buffer_bytes: int
    payload: int
    routed_bytes: int
    loads_per_byte: float
    """Bytes that loads fetch from memory per routed byte."""
    fills_per_byte: float
    """Bytes that stores fetch from memory per routed byte: a store fetches a line before it changes it."""
    written_back_per_byte: float
    l1_misses_per_line: float
    l2_misses_per_line: float


@dataclass(frozen=True, slots=True)
class CacheTouch:
    """Measured time to read every byte of messages that another core wrote. `share_is` says where the share of misses
    comes from."""

    place: str
    """Where the data is when the receiver reads it."""
    size: int
    ring_bytes: int
    received_bytes: int
    ns_per_line: float
    """The time to read a line of 64 bytes."""
    least_ns: float
    most_ns: float
    miss_share: float | None
    """The share of received lines that came from memory."""
    share_is: Literal["measured", "estimated", "not known"]
    """"estimated": interpolated from the times. Data in the last level counts as a share of 0, and flushed lines as
    1."""
    samples: list[float]


@dataclass(frozen=True, slots=True)
class CacheNeighbour:
    """Measured rate of the same agent while a neighbour, a thread on another core, runs."""

    neighbour: str
    intensity: float
    """The share of time during which the neighbour works."""
    working_set_bytes: int
    neighbour_gbytes_per_s: float
    agent_gbytes_per_s: float
    kept: float
    """The agent's rate with a neighbour as a share of its rate alone, in the same repetition."""
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
    """A comparison of the profile's settings with the defaults, for one service, kind and size."""

    service: Literal["move", "route"]
    kind: str
    """move: the kind of memory. route: the placement."""
    size: int
    rounds: int
    default: float
    """The throughput with the defaults. move: Gbit/s of consecutive offloads. route: M messages/s."""
    profile: float
    throughput: float
    """The ratio of throughput, profile to defaults: the median of all rounds. `throughput_least` and `throughput_most`:
    the range of the processes' medians."""
    throughput_least: float
    throughput_most: float
    turn: float
    """move: the ratio of times, defaults to profile, of an offload of 64 KiB that queues behind one of this size.
    route: 1."""
    turn_least: float
    turn_most: float
    paced: float
    """move: the ratio of times, defaults to profile, with one offload each millisecond. route: 1."""


@dataclass(frozen=True, slots=True)
class DmaRate:
    """The simulated rate of the DMA engine as a card behind simulated PCIe, used by its driver."""

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
    """The rate divided by the bound."""
    latency_us: float
    unfair: float
    up_use: float
    """The utilisation of the link towards the host."""
    down_use: float
    status_words: float
    """Status words per transfer."""
    cycles: int
    bound_with_dllps_gbytes_per_s: float | None = None
    """The bound minus the acknowledgements and credits that every host must send. None: an older program wrote the
    row."""
    share_with_dllps: float | None = None


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """The rows by experiment."""

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
    """One run of `wherry bench probe`."""

    name: Literal["probe"]
    results: ProbeResults
    environment: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    """Bars without a value in this run, and the reasons."""


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
    """The errors of a case's latencies and sections, grouped by mark."""
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
"""Bars without a target: the published values (paper 001, section 6) are of other machines."""

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
    """Returns the basis of the bar named `bar`."""
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
