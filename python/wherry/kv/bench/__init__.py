# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`: what it writes, and what its bars are made of."""

from __future__ import annotations

import re

from wherry.bench import Basis, Benchmark
from wherry.kv.bench.schema import KvBench, KvResults

_USES = [
    (r"rtl_(read|write)_repl_ns", "rtl_latency replication_rx_ns + replication_tx_ns, 1 KiB, the slower policy"),
    (r"rtl_leader_repl_ns", "the same of a leader's write, one follower: both passes"),
    (r"rtl_(read|write_store|write_accept)_ns", "rtl_latency total_ns, 1 KiB, memory as in the thesis (hardware)"),
    (r"rtl_leader_write_accept_ns", "rtl_latency total_ns, 1 KiB, one follower, no network"),
    (r"line_rate_small_read", "line_rate share, 64 bytes; 0 if a frame was lost"),
    (r"line_rate_.+", "line_rate share, 1 KiB; 0 if a frame was lost"),
    (r"sw_throughput_vs_redis", "throughput per_second of reads, in turns, at the depth where Redis does most"),
    (r"sw_.+_xdp_vs_.+", "software p50_us over ours on AF_XDP, all on veth, in turns, the size with the smaller ratio"),
    (r"sw_.+", "software p50_us over ours, loopback, in turns, the size with the smaller ratio"),
    (r"failover_ms_p\d+", "failover, tight timing, a client that asks each millisecond"),
    (r"failover_default_ms_p\d+", "failover, default timing and client"),
]


def basis_of(bar: str, results: KvResults) -> Basis:
    """The basis of the bar of that name."""
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
