# SPDX-License-Identifier: Apache-2.0
"""The report's sections of `wherry bench kv`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry import _plots_kv, _published
from wherry._plots import Published
from wherry._sections import Section
from wherry.bench_schema_kv import Failover, KvBench, SoftwareLatency


def sections_of(bench: KvBench) -> list[Section]:
    """The experiments that this run holds."""
    known = _published.values("kv")
    results = bench.results
    found: list[Section] = []

    def add(
        rows: Sequence[Any],
        anchor: str,
        title: str,
        question: str,
        draw: Callable[[Any, Published], Figure],
        *,
        tables: Sequence[str] = (),
        ours: str = "",
    ) -> None:
        if rows:
            shown = [entry for entry in known.values() if entry["shown_in"] in tables]
            figure = ", ".join(name.replace("_", " ", 1).replace("_", ".") for name in tables)
            found.append(Section(anchor, title, figure, question, lambda: draw(rows, known), shown, ours, rows))

    add(
        results.rtl_latency,
        "rtl-latency",
        "The RTL core, one operation",
        "An idle card in simulation, in cycles of 4 ns, split as the thesis splits it; its CMAC's times are constants "
        "of the thesis, and the memory is a model that gives the thesis' own pipeline its times.",
        _plots_kv.rtl_latency,
        tables=("table_5_7", "table_5_9"),
    )
    add(
        results.line_rate,
        "line-rate",
        "The RTL core at 100 Gbit/s",
        "Requests sustained with inter-frame gaps, as a share of what Ethernet allows in the fuller direction.",
        _plots_kv.line_rate,
        tables=("chapter_1",),
    )
    add(
        results.resources,
        "resources",
        "Resources by core",
        "Yosys for UltraScale+. The thesis' figures are Vivado's, of its replication and memory parts.",
        _plots_kv.resources,
        tables=("table_5_10",),
    )
    add(
        results.software,
        "software",
        "Software nodes beside Redis and etcd",
        "One operation at a time on a leader and a follower, in turns, medians of rounds. A write is acknowledged by "
        "both. Each peer has the placement in which it is fastest.",
        _plots_kv.software,
        tables=("table_5_13",),
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
        tables=("section_3_1_9",),
        ours=_failover_sentence(results.failover),
    )
    return found


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
