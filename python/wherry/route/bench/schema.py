# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry bench route --json FILE`, as types, and the sources of its bars
(docs/reference/bench-json.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows

PROGRAM = (
    "histogram", "random_sizes", "agent_rate", "latency", "message_sizes", "sweeps", "weak_scaling", "agent_memory",
    "link",
)  # fmt: skip
EXPERIMENTS = (*PROGRAM, "applications")
"""The words of `--only`: those of the benchmark program, and `applications`. The latter also run `link`, because their
network share refers to it."""

Placement = Literal["inline", "shared", "host"]
"""The processor that routes: the ranks; an agent on the ranks' core; an agent on another core."""


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """Updates of random counters by two ranks on two cores, inline."""

    counters_log2: int
    updates: int
    mups: float
    """M updates/s of both ranks together."""
    limit_mups: float
    """The rate of a hand-written exchange of 16-byte messages, measured alternately in the same processes."""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's histogram, which took turns with ours."""

    peer: str
    counters_log2: int
    mups: float
    inline_mups: float
    ratio: float
    """Our rate over the peer's: the median over neighbouring rounds."""
    ratio_min: float
    ratio_max: float
    samples: list[float]
    """All of the peer's M updates/s."""


@dataclass(frozen=True, slots=True)
class RandomSizes:
    """Messages of 8 to 4096 bytes against plain copies through the same buffers, each way."""

    payload_gbytes: float
    copy_gbytes: float
    ratio: float


@dataclass(frozen=True, slots=True)
class AgentRate:
    """The rate at which one routing thread forwards."""

    size: int
    mmps: float


@dataclass(frozen=True, slots=True)
class Latency:
    """One message at a time between two ranks of two nodes, one way."""

    placement: Placement
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class MessageSizes:
    """Two ranks of two nodes that send each other messages of one size."""

    placement: Placement
    size: int
    mmps: float
    """M messages/s of both together."""
    gbps: float
    """Of payload."""
    transfer_bytes: float
    """The average size of a rank's transfers."""
    blocked_share: float
    """The share of a rank's time from a refused send until the message was accepted."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting varied, the others at their defaults (paper 001, figure 7)."""

    placement: Placement
    parameter: Literal["buffer_bytes", "buffers", "routing_threads"]
    value: int
    is_default: bool
    mmps: float
    rank_transfer_bytes: float
    blocked_share: float
    agent_transfer_bytes: float | None
    """None: inline, no agent."""
    agent_blocked_per_transfer: float | None


@dataclass(frozen=True, slots=True)
class WeakScaling:
    """The same number of messages for each node on more nodes, all of them on the same two cores (figure 8)."""

    nodes: int
    ns_per_message: float
    over_2_nodes: float
    rank_transfer_bytes: float
    agent_transfer_bytes: float


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """Resident memory of one routing agent as nodes grow."""

    nodes: int
    rss_bytes: float
    pss_bytes: float
    idle_rss_bytes: float
    """Before its first job."""
    inbox_bytes: int
    """The size of its own inbox by the layout, which counts against the budget."""
    lane_bytes: int
    """And of the rings in others' inboxes that it writes into."""


@dataclass(frozen=True, slots=True)
class Link:
    """The rate between two nodes if ranks only hand on whole buffers."""

    placement: Placement
    gbps: float


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """An application on two nodes of a rank each (table 2)."""

    app: str
    arguments: list[str]
    inline_seconds: float
    shared_seconds: float
    host_seconds: float
    speedup: float
    """host over shared: the paper's x86 over None."""
    inline_speedup: float
    """inline over shared."""
    messages: int
    bytes: int
    """The bytes that all ranks handed on, headers included."""
    average_transfer: float
    network_share: float
    """The application's bytes a second over those of whole buffers (`link`, placement host)."""
    mc_ratio: float | None
    """Bytes from memory (last-level cache misses) over bytes routed. None: not counted here."""
    mc_estimate: float | None
    """The estimate of `wherry advise` if it was not counted: an upper bound."""
    mc_missing: str
    """Why mc_ratio is None."""
    category: str
    """The category: communication-dominated, balanced or host-dominated."""
    published_speedup: float
    published_network_share: float
    published_mc_ratio: float


@dataclass(frozen=True, slots=True)
class RouteResults:
    """The measurements, by experiment. Experiments that --only left out are empty. A `size` is bytes of payload in one
    message."""

    histogram: list[HistogramRow] = rows("Histogram, inline, against a hand-written exchange")
    peers: list[PeerRow] = rows("Histogram against peers in the same run")
    random_sizes: list[RandomSizes] = rows("Messages of 8 to 4096 bytes against plain copies")
    agent_rate: list[AgentRate] = rows("What one routing thread forwards")
    latency: list[Latency] = rows("One message on an idle system")
    message_sizes: list[MessageSizes] = rows("Messages by size and placement")
    sweeps: list[Sweep] = rows("Transfer size, number of buffers, routing threads (figure 7)")
    weak_scaling: list[WeakScaling] = rows("Weak scaling on the same two cores (figure 8)")
    agent_memory: list[AgentMemory] = rows("Memory of an agent as nodes grow")
    link: list[Link] = rows("Whole buffers between two nodes")
    applications: list[ApplicationRow] = rows("Applications by placement (table 2)")


@dataclass(frozen=True, slots=True)
class RouteBench(Run):
    """One run of `wherry bench route`."""

    name: Literal["route"]
    results: RouteResults


_USES = [
    (r"histogram_inline_mups_\d+", "histogram mups: both ranks together, inline"),
    (r"histogram_vs_limit_\d+", "histogram mups over limit_mups, turn by turn in the same processes"),
    (r"histogram_inline_vs_.+_\d+", "peers inline_mups over mups, in turns"),
    (r"random_size_gbps_ratio", "random_sizes ratio, turn by turn in the same processes"),
    (r"agent_mmps_per_core", "agent_rate mmps, 16 bytes"),
    (r"idle_latency_us", "latency p50_us, placement host: the ranks on one core, two agents on the other"),
    (r"weak_scaling_8", "weak_scaling over_2_nodes, 8 nodes"),
    (r"offload_speedup_.+", "applications shared_seconds over host_seconds, in turns"),
]


def basis_of(bar: str, results: RouteResults) -> Basis:
    """The basis of the bar of that name."""
    app = next((row for row in results.applications if bar == f"offload_speedup_{row.app}"), None)
    beside = "" if app is None else f"inline over shared: {app.inline_speedup:.3g}"
    return Basis(next((uses for name, uses in _USES if re.fullmatch(name, bar)), ""), beside)


BENCHMARK = Benchmark(
    name="route",
    schema=RouteBench,
    basis=basis_of,
    paper="001 (Buddy, which route answers: Intel Xeon Gold 6326, BlueField-3, 100 Gbit/s)",
)
