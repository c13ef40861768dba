# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry bench bypass --json FILE`, as types, and the sources of its bars
(docs/reference/bench-bypass.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, published_text, published_values, rows

Topology = Literal["switch", "intel", "amd", "host"]
Way = Literal["in_place", "stream"]
Reading = Literal["one_fetch", "any_fetches"]
"""A reading: the model's assumptions about details of the NIC and the core that the paper does not state
(docs/reference/bench-bypass.md)."""
Mark = Literal["given", "chosen", "fitted", "predicted", "bound", "simulated", "not modelled"]
"""The mark of a figure. fitted: a constant was set to reproduce this figure; predicted: no constant was set for it."""
Scenario = Literal["software", "both", "receive", "transmit"]

RTL = {"rtl_rates": "rates", "rtl_latency": "latency", "rtl_curves": "curve", "rtl_overload": "overload",
       "rtl_cycles": "cycles"}  # fmt: skip
"""The RTL experiments, and their names in bypass_rtl_bench."""
MODELS = ("latency", "rates", "overload", "tcp", "batching")
EXPERIMENTS = (*RTL, *MODELS, "resources", "qemu")
"""The names that `--only` accepts."""


KNOWN = published_values("bypass")
"""The paper's published values, by id."""


def known_text(identifier: str) -> str:
    """A published value in words."""
    return published_text(KNOWN[identifier])


@dataclass(frozen=True, slots=True)
class RtlRate:
    """Our core at line rate in both directions at once: the Verilated RTL with a model of a NIC."""

    name: str
    """Names that begin with rate_ belong to a NIC that holds enough descriptors. Other names explain themselves."""
    mbits: int
    size: int
    """Bytes of a frame. The sizes 300 and 1514 are without FCS; the others, up to 1024, are with FCS."""
    way: Way
    nic: str
    card_link: str
    mpps: float
    share_of_line: float
    bound_mpps: float
    """The highest rate of such packets that the card's link can carry."""
    share_of_link: float
    lost: int
    tails_per_packet: float
    bytes_in: float
    """Bytes on the card's link for each packet, with headers, from the NIC. `bytes_out`: the bytes in the other
    direction, to the NIC."""
    bytes_out: float
    flow_control_bytes: float


@dataclass(frozen=True, slots=True)
class RtlCore:
    """The simulated core: bypass_core with its default parameters. `resources` describes the same core."""

    clock_mhz: int
    queue_pairs: int
    slots: int
    """Slots of 2 KiB in the core's window, one for each receive descriptor."""
    tx_descriptors: int
    pack_bytes: int
    """Bytes of the packed transmit buffer."""


@dataclass(frozen=True, slots=True)
class RtlLatency:
    """Latency and loss of our core: frames of 300 bytes at 10 Gbit/s line rate."""

    topology: Topology
    way: Way
    mean_us: float
    p99_us: float
    std_us: float
    loss: float
    tails_per_packet: float
    requests_per_packet: float
    published: str
    """The latency or loss of the paper's core in the same topology."""


@dataclass(frozen=True, slots=True)
class RtlPoint:
    """Our core with frames of 300 bytes, answered in place, at one input rate (figure 8)."""

    topology: Topology
    rate_gbps: float
    """The input rate, counting frames with FCS, without preamble and gap."""
    latency_us: float
    loss_percent: float
    tails_per_packet: float


@dataclass(frozen=True, slots=True)
class RtlOverload:
    """Our core under more load than it can handle."""

    name: str
    topology: Topology
    way: Way
    limited_by: str
    share_of_limit: float
    """Our core's rate as a share of an ideal core's rate."""
    dropped_by_nic: int
    reordered: int
    lost_uncounted: int
    mean_us: float


@dataclass(frozen=True, slots=True)
class RtlCycles:
    """Latency of our core in cycles of 4 ns, with one packet at a time."""

    path: str
    least: int
    most: int
    samples: int
    published: str


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of a model of the paper's core, or of software, at line rate (figure 7), from the last bit in to the
    last bit out."""

    scenario: Scenario
    reading: Reading
    frames: int
    mean_us: float
    deviation_ns: float
    min_us: float
    max_us: float
    published_us: str
    error_percent: float | None
    """The absolute value of the error. Null: the paper does not give a number."""
    mark: Mark


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The packets that left within a span of time (figure 7)."""

    scenario: Scenario
    reading: Reading
    at_us: float
    mean_us: float
    min_us: float
    max_us: float
    reordered: int


@dataclass(frozen=True, slots=True)
class RatePoint:
    """Latency and loss at one input rate (figure 8)."""

    system: Literal["host_bypassing", "dpdk", "dpdk_fpga"]
    topology: Topology
    reading: Reading
    rate_gbps: float
    """The input rate, counting frames with FCS, without preamble and gap. Line rate is 9.38 Gbit/s."""
    latency_us: float
    nic_loss_percent: float
    loss_percent: float
    """Frames in minus frames out. Near the limit this also counts frames that still wait."""
    frames: int


@dataclass(frozen=True, slots=True)
class Overload:
    """The model of the paper's core at line rate, with or without flow control by write-backs (figure 9)."""

    topology: Topology
    writeback: bool
    frames: int
    loss_percent: float
    """Loss in the NIC's packet buffer."""
    end_to_end_loss_percent: float
    reordered_percent: float
    requests_per_packet: float
    latency_us: float
    published_loss_percent: float | None
    mark: Mark


@dataclass(frozen=True, slots=True)
class OverloadSlice:
    """The packets that left within a span of time (figure 9)."""

    topology: Topology
    writeback: bool
    at_us: float
    mean_us: float
    min_us: float
    max_us: float
    reordered: int


@dataclass(frozen=True, slots=True)
class Tcp:
    """Frames of 1514 bytes at line rate, like TCP traffic that never has to slow down (table I)."""

    topology: Topology
    frames: int
    goodput_gbps: float
    latency_us: float
    loss_percent: float
    published_goodput_gbps: float
    published_latency_us: float
    published_loss_percent: float
    mark: Mark


@dataclass(frozen=True, slots=True)
class Batching:
    """Results by batch size: the core writes the tail once for each batch (table II)."""

    reading: Reading
    batch: int
    timeout_ns: int
    frames: int
    latency_us: float
    deviation_ns: float
    outgoing: float
    """Bytes that leave the FPGA for each packet. Like the paper, this does not count receive descriptors."""
    ingoing: float
    packets_per_tail: float
    published_latency_us: float
    published_deviation_ns: float
    published_outgoing: float
    published_ingoing: float
    mark: Mark
    """The mark of the latency."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the models."""

    name: str
    value: float
    unit: str
    mark: Mark
    source: str


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one block, synthesised by Yosys for UltraScale+."""

    name: str
    parameters: str
    """Parameters that differ from the block's defaults, such as "RxRingBits = 8". Empty: no parameter differs."""
    lut: int
    lutram: int
    ff: int
    bram36: float
    """A BRAM18 counts half."""
    uram: int
    levels: int
    """The number of LUTs on the longest path."""


@dataclass(frozen=True, slots=True)
class Qemu:
    """The Verilated core behind a NIC of QEMU. This checks formats and the order of accesses, not times."""

    nic: str
    qemu: str
    frames: int
    """Frames sent and echoed in phases without a reset, link down or removal of the NIC."""
    wrong: int
    lost: int
    tx_writebacks: int
    messages_per_frame: float
    tails_per_frame: float
    good: bool
    """Whether traffic was complete again after resets, link down and removal, and all frames are accounted for."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A run of a Debian guest with an IOMMU that set up the card and was then stopped (tools/guest)."""

    setup_s: float
    frames_while_stopped: int
    frames_wrong: int


@dataclass(frozen=True, slots=True)
class KvBehind:
    """The kv core behind the bypass core, with NIC models on both sides."""

    runs: int
    linearizable: int
    read_us: float
    kv_read_us: float
    """The read latency of kv's core without bypass and without a NIC."""


@dataclass(frozen=True, slots=True)
class BypassResults:
    """The figures, by experiment. Experiments that did not run are empty."""

    rtl_core: list[RtlCore] = rows("Our core, simulated RTL: its size")
    rtl_rates: list[RtlRate] = rows("Our core, simulated RTL: both directions at line rate")
    rtl_latency: list[RtlLatency] = rows("Our core, simulated RTL: 300 bytes at 10 Gbit/s")
    rtl_curves: list[RtlPoint] = rows("Our core, simulated RTL: latency and loss by rate (figure 8)")
    rtl_overload: list[RtlOverload] = rows("Our core, simulated RTL: overload")
    rtl_cycles: list[RtlCycles] = rows("Our core, simulated RTL: cycles of 4 ns")
    latency: list[Latency] = rows("The paper's core as a model, and software: latency at line rate (figure 7)")
    latency_over_time: list[TimeSlice] = rows("The same over time")
    rates: list[RatePoint] = rows("Models: latency and loss by rate, 300 bytes (figure 8)")
    overload: list[Overload] = rows("The paper's core as a model: overload (figure 9)")
    overload_over_time: list[OverloadSlice] = rows("The same over time")
    tcp: list[Tcp] = rows("The paper's core as a model: 1514 bytes at line rate (table I)")
    batching: list[Batching] = rows("The paper's core as a model: tail writes by batches (table II)")
    constants: list[Constant] = rows("Constants of the models")
    resources: list[Resources] = rows("Our core by Yosys")
    qemu: list[Qemu] = rows("Our core, simulated RTL, behind QEMU's NICs")
    guest: list[Guest] = rows("A guest sets up, and is stopped")
    kv: list[KvBehind] = rows("kv behind bypass")


@dataclass(frozen=True, slots=True)
class BypassBench(Run):
    """One run of `wherry bench bypass`."""

    name: Literal["bypass"]
    results: BypassResults
    not_measured: dict[str, str] = field(default_factory=dict)
    """Requested experiments that could not run on this machine, and the reasons."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Bars without a value in this run, and the reasons. These bars count as not met."""


_USES = [
    (r"rate_64b_\d+g", "rtl_rates share_of_line, 64 bytes, the slower way; 0 if a frame was lost. Simulated"),
    (r"rate_64b_100g_of_link", "rtl_rates share_of_link, 64 bytes, Gen3 x16, the slower way. Simulated"),
    (r"(rx|tx|inplace)_cycles", "rtl_cycles, most. Simulated"),
    (r"flow_control_bytes_per_packet", "rtl_rates, 64 bytes, 10 Gbit/s: write-backs of sent packets. Simulated"),
    (r"overload_(reordered|lost_uncounted)", "rtl_overload, the sum of all rows. Simulated"),
    (r"overload_cost", "rtl_overload, 1 - share_of_limit, the worst row. Simulated"),
    (r"intel_root_loss_10g", "rtl_latency, Intel root, the worse way. Simulated; the root's rate is fitted"),
    (r"intel_root_latency_us", "rtl_latency mean_us, Intel root, the worse way. Simulated"),
    (r"switch_latency_us", "rtl_latency mean_us, switch, the worse way. Simulated; the NIC's own times are fitted"),
    (r"tails_per_packet", "rtl_latency, switch, the worse way: tail writes of both rings. Simulated"),
    (r"model_error_table2_bytes", "batching, the largest of six errors in per cent. Modelled"),
    (
        r"model_error_loss_writeback",
        "overload, Intel root, write-back on, in points. Modelled; it rests on two fitted settings",
    ),
    (r"model_error_batch16_latency", "batching latency_us, 16 by 2500 ns, one_fetch (chosen), per cent. Modelled"),
    (r"model_error_switch_latency", "latency mean_us, both, one_fetch, per cent. Modelled"),
    (r"model_error_tcp_goodput", "tcp goodput_gbps, switch, per cent. Modelled"),
    (r"personality_luts", "resources: bypass_expand + bypass_decode, LUT + LUTRAM"),
    (r"luts_total", "resources of bypass_core, LUT + LUTRAM"),
    (r"(uram|bram36)_total", "resources of bypass_core; a BRAM18 counts half"),
    (r"lut_levels_max", "resources, the longest path of all blocks"),
    (r"qemu_frames_wrong_.+", "qemu wrong + lost, where nothing happens to the NIC"),
    (r"qemu_tx_writebacks", "qemu tx_writebacks, all NICs that were run"),
    (r"guest_.+", "guest: tools/guest/run.py, handed in by --guest"),
    (r"kv_behind_bypass", "kv: linearizable / runs, handed in by --kv"),
]


def basis_of(bar: str, results: BypassResults) -> Basis:
    """Returns the basis of the bar named `bar`."""
    beside = ""
    if bar == "model_error_batch16_latency":
        beside = _other_reading([row.latency_us for row in results.batching
                                 if (row.reading, row.batch) == ("any_fetches", 16)], 9.92)  # fmt: skip
    elif bar == "model_error_switch_latency":
        beside = _other_reading([row.mean_us for row in results.latency
                                 if (row.reading, row.scenario) == ("any_fetches", "both")], 7.99)  # fmt: skip
    elif bar.startswith("qemu_frames_wrong"):
        nic = bar.removeprefix("qemu_frames_wrong_")
        beside = ", ".join(f"of {row.frames} frames, {row.qemu}" for row in results.qemu if row.nic == nic)
    elif bar == "kv_behind_bypass":
        beside = ", ".join(f"read {row.read_us:.3g} us; kv's own {row.kv_read_us:.3g} us" for row in results.kv)
    uses = next((uses for name, uses in _USES if re.fullmatch(name, bar)), "")
    return Basis(uses + _size_of(uses, results), beside)


def _size_of(uses: str, results: BypassResults) -> str:
    """The size of the core that a bar refers to: the simulated core or the synthesised one."""
    if uses.startswith("rtl_"):
        return "".join(f"; a core of {one.slots} slots" for one in results.rtl_core[:1])
    if uses.startswith("resources of bypass_core"):
        core = next((row for row in results.resources if row.name == "bypass_core"), None)
        return "" if core is None else f"; its parameters: {core.parameters or 'the defaults (256 slots)'}"
    return ""


def _other_reading(found: list[float], published: float) -> str:
    return "".join(f"any_fetches: {us:.2f} us, {100 * abs(us / published - 1):.1f} %" for us in found)


BENCHMARK = Benchmark(
    name="bypass",
    schema=BypassBench,
    basis=basis_of,
    paper="002 (host bypassing, which bypass answers: Alveo U50, Intel 82599, 10 Gbit/s)",
)
