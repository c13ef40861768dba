# SPDX-License-Identifier: Apache-2.0
"""What each bar is made of, and what the same comparison says under the conditions that the bar leaves out.

A bar is one figure; the benchmark measures most things under two conditions. Whoever reads the bar sees both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wherry.bench_schema import ApproachRow, FlightRow, Results, RouteResults
from wherry.bench_schema_kv import KvResults


@dataclass(frozen=True, slots=True)
class Basis:
    """Of one bar."""

    uses: str
    """The figure of the results that it is made of, and under which conditions; nothing for a bar that is not known."""
    beside: str = ""
    """The figure that it does not use, with its value in this run; nothing where there is none."""


_ROUTE = [
    (r"histogram_inline_mups_\d+", "histogram mups: both ranks together, inline"),
    (r"histogram_vs_limit_\d+", "histogram mups over limit_mups, turn by turn in the same processes"),
    (r"histogram_inline_vs_.+_\d+", "peers inline_mups over mups, in turns"),
    (r"random_size_gbps_ratio", "random_sizes ratio, turn by turn in the same processes"),
    (r"agent_mmps_per_core", "agent_rate mmps, 16 bytes"),
    (r"idle_latency_us", "latency p50_us, placement host: the ranks on one core, two agents on the other"),
    (r"weak_scaling_8", "weak_scaling over_2_nodes, 8 nodes"),
    (r"offload_speedup_.+", "applications shared_seconds over host_seconds, in turns"),
]


_KV = [
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


def _kv_basis(bar: str, results: KvResults) -> Basis:
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
    return Basis(next((uses for name, uses in _KV if re.fullmatch(name, bar)), ""), beside)


def basis_of(bar: str, results: Results | RouteResults | KvResults) -> Basis:
    """The basis of the bar of that name."""
    if isinstance(results, KvResults):
        return _kv_basis(bar, results)
    if isinstance(results, RouteResults):
        app = next((row for row in results.applications if bar == f"offload_speedup_{row.app}"), None)
        beside = "" if app is None else f"inline over shared: {app.inline_speedup:.3g}"
        return Basis(next((uses for name, uses in _ROUTE if re.fullmatch(name, bar)), ""), beside)
    if match := re.fullmatch(r"host_us_p50_(\d+)col", bar):
        cold = [row.after_wait_p50_us for row in results.initiate if row.columns == int(match[1])]
        return Basis("initiate p50_us, largest of all sizes: warm caches", _cold(max(cold, default=None), " us"))
    if bar == "host_us_size_spread":
        cold = [row.after_wait_p50_us for row in results.initiate if row.columns == 1]
        spread = max(cold) / min(cold) if cold and min(cold) > 0 else None
        return Basis("initiate p50_us, 1 column: warm caches", _cold(spread, ""))
    if bar == "get_vs_raw_min":
        return Basis("bandwidth ratio, smallest of all sizes: one at a time, warm destinations on both sides")
    if bar == "get_vs_memcpy_min":
        return Basis("mapped ratio, smallest of all sizes: warm destinations on both sides")
    if match := re.fullmatch(r"idp_paged_vs_host_(\d+)col_(\d+[km])", bar):
        rows = [row for row in results.approaches if (row.columns, row.size) == (int(match[1]), _size(match[2]))]
        ratio = _fresh_ratio(rows)
        beside = "" if ratio is None else f"fresh_gbps (source just written): {ratio:.3g}"
        return Basis("approaches gbps: source in no cache as modified, initiation not counted", beside)
    if re.fullmatch(r"host_time_saved_\d+[km]", bar):
        return Basis("approaches host_us, 16 columns: caches as the application's computing left them")
    if match := re.fullmatch(r"flight_(throughput|host_cpu)_ratio_(\d+[km])", bar):
        figure = "throughput_ratio" if match[1] == "throughput" else "cpu_ratio"
        wide = _flight(results.flight_16_columns, _size(match[2]), figure)
        return Basis(f"flight {figure}, 1 column", "" if wide is None else f"16 columns: {wide:.3g}")
    return Basis("")


def _cold(value: float | None, unit: str) -> str:
    return "" if value is None else f"after_wait_p50_us (cold caches): {value:.3g}{unit}"


def _size(text: str) -> int:
    return int(text[:-1]) << {"k": 10, "m": 20}[text[-1]]


def _fresh_ratio(rows: Iterable[ApproachRow]) -> float | None:
    fresh = {row.approach: row.fresh_gbps for row in rows}
    ours, host = fresh.get("idp_page_aligned_ipc"), fresh.get("host_serialization")
    return ours / host if ours is not None and host else None


def _flight(rows: Iterable[FlightRow], size: int, figure: str) -> float | None:
    return next((getattr(row, figure) for row in rows if row.size == size), None)
