# SPDX-License-Identifier: Apache-2.0
"""The report's sections of `wherry bench kv`."""

from __future__ import annotations

from collections.abc import Sequence

from wherry import _plots_kv
from wherry._sections import Section, Sections
from wherry.bench_schema_kv import Failover, KvBench, SoftwareLatency


def sections_of(bench: KvBench) -> list[Section]:
    """The experiments that this run holds."""
    results = bench.results
    sections = Sections("kv")
    add = sections.add
    add(
        results.rtl_latency,
        "rtl-latency",
        "The RTL core, one operation",
        "An idle card in simulation, in cycles of 4 ns, split as the thesis splits it; its CMAC's times are constants "
        "of the thesis, and the memory is a model that gives the thesis' own pipeline its times.",
        _plots_kv.rtl_latency,
        figures=("table 5.7", "table 5.9"),
    )
    add(
        results.line_rate,
        "line-rate",
        "The RTL core at 100 Gbit/s",
        "Requests sustained with inter-frame gaps, as a share of what Ethernet allows in the fuller direction.",
        _plots_kv.line_rate,
        figures=("chapter 1",),
    )
    add(
        results.resources,
        "resources",
        "Resources by core",
        "Yosys for UltraScale+. The thesis' figures are Vivado's, of its replication and memory parts.",
        _plots_kv.resources,
        figures=("table 5.10",),
    )
    add(
        results.software,
        "software",
        "Software nodes beside Redis and etcd",
        "One operation at a time on a leader and a follower, in turns, medians of rounds. A write is acknowledged by "
        "both. Each peer has the placement in which it is fastest.",
        _plots_kv.software,
        figures=("table 5.13",),
        ours=_software_sentence(results.software),
    )
    add(
        results.throughput,
        "throughput",
        "One node on one core",
        "Operations a second of one client that has many in flight, on the other core. Redis gets one WAIT for all "
        "writes that are in flight.",
        _plots_kv.throughput,
    )
    add(
        results.failover,
        "failover",
        "A killed leader",
        "From SIGKILL until a write that was posted after it is acknowledged: medians, and what they are made of.",
        _plots_kv.failover,
        figures=("section 3.1.9",),
        ours=_failover_sentence(results.failover),
    )
    return sections.found


def _software_sentence(rows: Sequence[SoftwareLatency]) -> str:
    places = {(row.system, row.operation, row.network): row.placement for row in rows}
    parts = [f"{system}, {operation}, {network}: {place}" for (system, operation, network), place in places.items()]
    return f"Placements: {'; '.join(parts)}." if parts else ""


def _failover_sentence(rows: Sequence[Failover]) -> str:
    parts = [
        f"{row.timing}: pings of {row.ping_ms} ms, {row.misses} missed, lease {row.lease_ms} ms: median "
        f"{row.eager_p50_ms:.3g} ms asking each millisecond, {row.p50_ms:.3g} ms as clients are by default"
        for row in rows
    ]
    return f"Ours, {'; '.join(parts)}." if parts else ""
