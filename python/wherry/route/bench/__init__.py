# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`: what it writes, and what its bars are made of."""

from __future__ import annotations

import re

from wherry.bench import Basis, Benchmark
from wherry.route.bench.schema import RouteBench, RouteResults

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
