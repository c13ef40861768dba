# SPDX-License-Identifier: Apache-2.0
"""What `wherry bench kv --json FILE` writes, as types (docs/bench-json.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Run, rows

System = Literal["wherry", "redis", "etcd"]
Network = Literal["loopback", "veth"]
Path = Literal["sockets", "xdp"]
Operation = Literal["read", "leader_write"]
CardOperation = Literal["read", "replica_write", "leader_write"]
Policy = Literal["store", "accept", "none"]
"""When a card acknowledges a write; reads have none."""

EXPERIMENTS = ("rtl_latency", "line_rate", "resources", "software", "throughput", "software_xdp", "failover")
"""What `--only` takes. `software_xdp` has its rows in the results' `software`."""


@dataclass(frozen=True, slots=True)
class RtlLatency:
    """One operation of an idle card in simulation (paper 003, tables 5.7 to 5.9)."""

    operation: CardOperation
    policy: Policy
    size: int
    followers: int
    memory: str
    """The preset of the HBM model: simulated or hardware."""
    cmac_ns: float
    """A constant of the paper's, both ways."""
    replication_rx_ns: float
    replication_tx_ns: float
    """Of parser, engine, deparser, arbiter. A leader's write: its first pass, and the one of the acknowledgement."""
    memory_ns: float
    total_ns: float


@dataclass(frozen=True, slots=True)
class LineRate:
    """Sustained requests at 100 Gbit/s with inter-frame gaps, in simulation."""

    workload: str
    """read, replica_write, leader_write, or a mix in words."""
    size: int
    per_second: float
    limit_per_second: float
    """What Ethernet allows: the fuller of the two directions."""
    share: float
    lost: int


@dataclass(frozen=True, slots=True)
class Resources:
    """One core, by Yosys for UltraScale+ (table 5.10)."""

    name: str
    parameters: str
    lut: int
    lutram: int
    ff: int
    bram36: float
    """A BRAM18 counts half."""
    uram: int
    levels: int
    """LUTs on the longest path."""


@dataclass(frozen=True, slots=True)
class SoftwareLatency:
    """One operation at a time, of two nodes: a leader and a follower."""

    system: System
    network: Network
    path: Path
    """xdp: node and client are past the kernel."""
    operation: Operation
    size: int
    p50_us: float
    p50_min_us: float
    p50_max_us: float
    p99_us: float
    placement: str
    """Which cores leader, follower and client had, and what the client did while it waited."""


@dataclass(frozen=True, slots=True)
class SoftwareRate:
    """Many operations in flight of one client, one node on one core."""

    system: System
    operation: Operation
    size: int
    depth: int
    per_second: float
    per_second_min: float
    per_second_max: float


@dataclass(frozen=True, slots=True)
class Failover:
    """A leader is killed (SIGKILL): until a write that was posted after it is acknowledged."""

    timing: Literal["default", "tight"]
    nodes: int
    ping_ms: int
    misses: int
    lease_ms: int
    kills: int
    p50_ms: float
    p99_ms: float
    """With a client as it is by default."""
    eager_p50_ms: float
    eager_p99_ms: float
    eager_min_ms: float
    eager_max_ms: float
    """With one that asks again each millisecond."""
    detection_ms: float
    """Medians of the parts: until the keeper publishes an epoch without it (pings missed, and its lease over) ..."""
    control_ms: float
    """... until all who are left have entered it ..."""
    leftovers_ms: float
    """... until the client that asks each millisecond is told that its write is done: what the dead leader left is
    finished, and then that client's next try ..."""
    backoff_ms: float
    """... until the other client is told so."""


@dataclass(frozen=True, slots=True)
class KvResults:
    """The measurements, by experiment; what was not run is empty. A `size` is bytes of a value."""

    rtl_latency: list[RtlLatency] = rows("The RTL core, idle, one operation (tables 5.7 to 5.9)")
    line_rate: list[LineRate] = rows("The RTL core at 100 Gbit/s")
    resources: list[Resources] = rows("Cores by Yosys (table 5.10)")
    software: list[SoftwareLatency] = rows("One operation at a time, a leader and a follower, in turns (table 5.13)")
    throughput: list[SoftwareRate] = rows("Many operations in flight, one node on one core, in turns")
    failover: list[Failover] = rows("Leader killed to first acknowledged write")


@dataclass(frozen=True, slots=True)
class KvBench(Run):
    """One run of `wherry bench kv`."""

    name: Literal["kv"]
    results: KvResults
    not_measured: dict[str, str] = field(default_factory=dict)
    """Experiments that were asked for and could not be run here, and why."""
