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
"""The names that `--only` accepts: those of the benchmark program, and `applications`. `applications` also runs `link`,
because the applications' network share refers to it."""

Placement = Literal["inline", "shared", "host"]
"""What routes: "inline": the ranks; "shared": an agent on the ranks' core; "host": an agent on another core."""


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """The rate at which two ranks on two cores update random counters, placement inline."""

    counters_log2: int
    updates: int
    mups: float
    """Million updates/s of both ranks together."""
    limit_mups: float
    """The rate of a hand-written exchange of 16-byte messages, measured in alternation in the same processes."""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's histogram, measured in alternation with ours."""

    peer: str
    counters_log2: int
    mups: float
    inline_mups: float
    ratio: float
    """The ratio of our rate to the peer's: the median over neighbouring rounds."""
    ratio_min: float
    ratio_max: float
    samples: list[float]
    """All measured rates of the peer, in million updates/s."""


@dataclass(frozen=True, slots=True)
class RandomSizes:
    """Messages of 8 to 4096 bytes compared with plain copies through the same buffers, in both directions."""

    payload_gbytes: float
    copy_gbytes: float
    ratio: float


@dataclass(frozen=True, slots=True)
class AgentRate:
    """The rate at which one routing thread forwards messages."""

    size: int
    mmps: float


@dataclass(frozen=True, slots=True)
class Latency:
    """One-way latency of single messages between two ranks on two nodes."""

    placement: Placement
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class MessageSizes:
    """Two ranks on two nodes send messages of one size to each other."""

    placement: Placement
    size: int
    mmps: float
    """Million messages/s of both ranks together."""
    gbps: float
    """The rate of payload."""
    transfer_bytes: float
    """The average size of a rank's transfers."""
    blocked_share: float
    """The share of a rank's time between a refused send and the acceptance of the message."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Results with one setting varied and the others at their defaults (paper 001, figure 7)."""

    placement: Placement
    parameter: Literal["buffer_bytes", "buffers", "routing_threads"]
    value: int
    is_default: bool
    mmps: float
    rank_transfer_bytes: float
    blocked_share: float
    agent_transfer_bytes: float | None
    """None: placement inline, without an agent."""
    agent_blocked_per_transfer: float | None


@dataclass(frozen=True, slots=True)
class WeakScaling:
    """Weak scaling: the same number of messages per node on more nodes, all on the same two cores (figure 8)."""

    nodes: int
    ns_per_message: float
    over_2_nodes: float
    rank_transfer_bytes: float
    agent_transfer_bytes: float


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """Resident memory of one routing agent by the number of nodes."""

    nodes: int
    rss_bytes: float
    pss_bytes: float
    idle_rss_bytes: float
    """The agent's resident memory before its first job."""
    inbox_bytes: int
    """The computed size of the agent's inbox, which counts against the budget."""
    lane_bytes: int
    """The computed size of the rings in other agents' inboxes that the agent writes into."""


@dataclass(frozen=True, slots=True)
class Link:
    """The rate between two nodes if ranks only pass on whole buffers."""

    placement: Placement
    gbps: float


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """An application on two nodes with one rank each (table 2)."""

    app: str
    arguments: list[str]
    inline_seconds: float
    shared_seconds: float
    host_seconds: float
    speedup: float
    """The speed-up of host over shared, which corresponds to x86 over None in the paper."""
    inline_speedup: float
    """The speed-up of inline over shared."""
    messages: int
    bytes: int
    """The bytes that all ranks passed on, including headers."""
    average_transfer: float
    network_share: float
    """The application's rate in bytes per second as a share of the rate of whole buffers (`link`, placement host)."""
    mc_ratio: float | None
    """The ratio of bytes from memory (last-level cache misses) to routed bytes. None: this machine could not count
    misses."""
    mc_estimate: float | None
    """If the ratio was not counted, the estimate of `wherry advise`, which is an upper bound."""
    mc_missing: str
    """The reason if mc_ratio is None."""
    category: str
    """The category: communication-dominated, balanced or host-dominated."""
    published_speedup: float
    published_network_share: float
    published_mc_ratio: float


@dataclass(frozen=True, slots=True)
class RouteResults:
    """The measurements by experiment; empty for experiments that --only left out. `size` is the bytes of payload in one
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
    """Returns the basis of the bar named `bar`."""
    app = next((row for row in results.applications if bar == f"offload_speedup_{row.app}"), None)
    beside = "" if app is None else f"inline over shared: {app.inline_speedup:.3g}"
    return Basis(next((uses for name, uses in _USES if re.fullmatch(name, bar)), ""), beside)


BENCHMARK = Benchmark(
    name="route",
    schema=RouteBench,
    basis=basis_of,
    paper="001 (Buddy, which route answers: Intel Xeon Gold 6326, BlueField-3, 100 Gbit/s)",
)
