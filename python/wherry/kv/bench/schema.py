# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry bench kv --json FILE`, as types, and the sources of its bars (docs/reference/bench-json.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows

System = Literal["wherry", "redis", "etcd"]
Network = Literal["loopback", "veth"]
Path = Literal["sockets", "xdp"]
Operation = Literal["read", "leader_write"]
CardOperation = Literal["read", "replica_write", "leader_write"]
Policy = Literal["store", "accept", "none"]
"""When a card acknowledges a write. Reads have no policy."""

EXPERIMENTS = ("rtl_latency", "line_rate", "resources", "software", "throughput", "software_xdp", "failover", "gateway")
"""The names that `--only` accepts. The rows of `software_xdp` are in the results' `software`."""


@dataclass(frozen=True, slots=True)
class RtlLatency:
    """The latency of one operation on an idle simulated card (paper 003, tables 5.7 to 5.9)."""

    operation: CardOperation
    policy: Policy
    size: int
    followers: int
    memory: str
    """The preset of the HBM model: "simulated" or "hardware"."""
    cmac_ns: float
    """The time of the CMAC in both directions, a constant from the paper."""
    replication_rx_ns: float
    replication_tx_ns: float
    """The time in parser, engine, deparser and arbiter. For a leader's write: of the request's pass and of the
    acknowledgement's pass."""
    memory_ns: float
    total_ns: float


@dataclass(frozen=True, slots=True)
class LineRate:
    """The simulated rate of sustained requests at 100 Gbit/s with inter-frame gaps."""

    workload: str
    """"read", "replica_write", "leader_write", or the name of a variant or a mix."""
    size: int
    per_second: float
    limit_per_second: float
    """The Ethernet limit of the direction with more load."""
    share: float
    lost: int


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one core, synthesised by Yosys for UltraScale+ (table 5.10)."""

    name: str
    parameters: str
    lut: int
    lutram: int
    ff: int
    bram36: float
    """A BRAM18 counts half."""
    uram: int
    levels: int
    """The number of LUTs on the longest path."""


@dataclass(frozen=True, slots=True)
class SoftwareLatency:
    """Latency with one operation at a time, on two nodes: a leader and a follower."""

    system: System
    network: Network
    path: Path
    """"xdp": the nodes and the client bypass the kernel."""
    operation: Operation
    size: int
    p50_us: float
    p50_min_us: float
    p50_max_us: float
    p99_us: float
    placement: str
    """The cores of leader, follower and client, and how the client waits."""


@dataclass(frozen=True, slots=True)
class SoftwareRate:
    """Throughput of one node on one core, with many operations of one client in flight."""

    system: System
    operation: Operation
    size: int
    depth: int
    per_second: float
    per_second_min: float
    per_second_max: float


@dataclass(frozen=True, slots=True)
class Failover:
    """The time from the SIGKILL of a leader until a write that was posted after it is acknowledged."""

    timing: Literal["default", "tight"]
    nodes: int
    ping_ms: int
    misses: int
    lease_ms: int
    kills: int
    p50_ms: float
    p99_ms: float
    """The time for a client with default settings."""
    eager_p50_ms: float
    eager_p99_ms: float
    eager_min_ms: float
    eager_max_ms: float
    """The time for a client that repeats its request each millisecond."""
    detection_ms: float
    """The median time until the keeper publishes an epoch without the node: it misses pings, and its lease ends."""
    control_ms: float
    """The median time from then until all remaining members have entered that epoch."""
    leftovers_ms: float
    """The median time from then until the client that asks each millisecond gets its acknowledgement. In this time the
    new leader completes the dead leader's leftovers, and the client sends its request again."""
    backoff_ms: float
    """The median time from then until the client with default settings gets its acknowledgement."""


@dataclass(frozen=True, slots=True)
class GatewayRate:
    """Requests per second of redis-benchmark with `clients` connections, each with one request in flight: the median of
    the rounds."""

    system: Literal["wherry", "redis"]
    nodes: int
    operation: Literal["get", "set"]
    clients: int
    per_second: float
    per_second_min: float
    per_second_max: float


@dataclass(frozen=True, slots=True)
class KvResults:
    """The measurements by experiment; empty for an experiment that did not run. `size` is the bytes of a value."""

    rtl_latency: list[RtlLatency] = rows("The RTL core, idle, one operation (tables 5.7 to 5.9)")
    line_rate: list[LineRate] = rows("The RTL core at 100 Gbit/s")
    resources: list[Resources] = rows("Cores by Yosys (table 5.10)")
    software: list[SoftwareLatency] = rows("One operation at a time, a leader and a follower, in turns (table 5.13)")
    throughput: list[SoftwareRate] = rows("Many operations in flight, one node on one core, in turns")
    failover: list[Failover] = rows("Leader killed to first acknowledged write")
    gateway: list[GatewayRate] = rows("redis-benchmark on `wherry kv resp` and on Redis, in turns")


@dataclass(frozen=True, slots=True)
class KvBench(Run):
    """One run of `wherry bench kv`."""

    name: Literal["kv"]
    results: KvResults
    not_measured: dict[str, str] = field(default_factory=dict)
    """Requested experiments that could not run on this machine, and the reasons."""


_USES = [
    (r"rtl_(read|write)_repl_ns", "rtl_latency replication_rx_ns + replication_tx_ns, 1 KiB, the slower policy"),
    (r"rtl_leader_repl_ns", "the same of a leader's write, one follower: both passes"),
    (r"rtl_(read|write_store|write_accept)_ns", "rtl_latency total_ns, 1 KiB, memory as in the thesis (hardware)"),
    (r"rtl_leader_write_accept_ns", "rtl_latency total_ns, 1 KiB, one follower, no network"),
    (r"line_rate_small_read", "line_rate share, 64 bytes; 0 if a frame was lost"),
    (r"line_rate_.+", "line_rate share, 1 KiB; 0 if a frame was lost"),
    (r"rate_replica_write_64", "line_rate share of replica_write, with commits, 64 bytes; 0 if a write was lost"),
    (r"sw_throughput_vs_redis", "throughput per_second of reads, in turns, at the depth where Redis does most"),
    (r"sw_.+_xdp_vs_.+", "software p50_us over ours on AF_XDP, all on veth, in turns, the size with the smaller ratio"),
    (r"sw_.+", "software p50_us over ours, loopback, in turns, the size with the smaller ratio"),
    (r"resp_.+_one_node_vs_redis", "gateway per_second over Redis', in turns; one node, as Redis has"),
    (r"resp_.+", "gateway per_second over Redis', in turns; three nodes, each of which has every write"),
    (r"failover_ms_p\d+", "failover, tight timing, a client that asks each millisecond"),
    (r"failover_default_ms_p\d+", "failover, default timing and client"),
]


def basis_of(bar: str, results: KvResults) -> Basis:
    """Returns the basis of the bar named `bar`."""
    if bar in ("luts_total", "bram36_total", "lut_levels_max"):
        names = [row.name for row in results.resources]
        whole = "resources of kv_core" if "kv_core" in names else f"resources of the parts: {', '.join(names)}"
        return Basis(f"{whole}{', LUT + LUTRAM' if bar == 'luts_total' else ''}")
    beside = ""
    if bar.startswith("failover"):
        timing = "default" if "default" in bar else "tight"
        for row in (row for row in results.failover if row.timing == timing):
            beside = f"pings of {row.ping_ms} ms, {row.misses} missed, lease {row.lease_ms} ms; {row.kills} kills; " + (
                f"the default client: p50 {row.p50_ms:.3g} ms" if timing == "tight" else
                f"a client that asks each millisecond: p50 {row.eager_p50_ms:.3g} ms"
            )  # fmt: skip
    if bar.startswith("sw_") and "throughput" not in bar:
        operation = "leader_write" if "write" in bar else "read"
        path = "xdp" if "xdp" in bar else "sockets"
        ours = [r for r in results.software if (r.system, r.operation, r.path) == ("wherry", operation, path)]
        beside = ", ".join(f"ours at {row.size} B: {row.p50_us:.3g} us" for row in ours)
    return Basis(next((uses for name, uses in _USES if re.fullmatch(name, bar)), ""), beside)


BENCHMARK = Benchmark(
    name="kv",
    schema=KvBench,
    basis=basis_of,
    paper="003 (replication, which kv answers: Alveo U55C, 100 Gbit/s)",
)
