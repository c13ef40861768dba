# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of `wherry bench kv`: its sections, then their plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from wherry.kv.bench.schema import (
    Failover,
    GatewayRate,
    KvBench,
    LineRate,
    Resources,
    RtlLatency,
    SoftwareLatency,
    SoftwareRate,
)
from wherry.report import (
    COLOURS,
    PUBLISHED,
    Chapter,
    Published,
    Section,
    Sections,
    bench_chapter,
    cores_text,
    grouped_bars,
    legend_above,
    panels,
    plain_axis,
    stacked_bars,
)
from wherry.units import size_text

OPERATIONS = {"read": "read", "replica_write": "replica write", "leader_write": "leader write"}
SYSTEMS = {"wherry": COLOURS[0], "wherry (AF_XDP)": COLOURS[2], "redis": COLOURS[4], "etcd": COLOURS[3]}


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document of kv. Raises BenchError."""
    return bench_chapter(KvBench, document, file, sections_of, _facts)


CHAPTERS = {"kv": chapter}


def _facts(bench: KvBench) -> dict[str, object]:
    facts: dict[str, object] = {"cores": cores_text(bench.pinning)}
    if bench.not_measured:
        facts["not measured"] = "; ".join(f"{name}: {why}" for name, why in bench.not_measured.items())
    return facts


def sections_of(bench: KvBench) -> list[Section]:
    """The sections of the experiments that this run contains."""
    results = bench.results
    sections = Sections("kv")
    add = sections.add
    add(
        results.rtl_latency,
        "rtl-latency",
        "The RTL core, one operation",
        "An idle card in simulation, in cycles of 4 ns, split as the thesis splits it; its CMAC's times are constants "
        "of the thesis, and the memory is a model that gives the thesis' own pipeline its times.",
        rtl_latency,
        figures=("table 5.7", "table 5.9"),
    )
    add(
        results.line_rate,
        "line-rate",
        "The RTL core at 100 Gbit/s",
        "Requests sustained with inter-frame gaps, as a share of what Ethernet allows in the fuller direction.",
        line_rate,
        figures=("chapter 1",),
    )
    add(
        results.resources,
        "resources",
        "Resources by core",
        "Yosys for UltraScale+. The thesis' figures are Vivado's, of its replication and memory parts.",
        resources,
        figures=("table 5.10",),
    )
    add(
        results.software,
        "software",
        "Software nodes beside Redis and etcd",
        "One operation at a time on a leader and a follower, in turns, medians of rounds. A write is acknowledged by "
        "both. Each peer has the placement in which it is fastest.",
        software,
        figures=("table 5.13",),
        ours=_software_sentence(results.software),
    )
    add(
        results.throughput,
        "throughput",
        "One node on one core",
        "Operations a second of one client that has many in flight, on the other core. Redis gets one WAIT for all "
        "writes that are in flight.",
        throughput,
    )
    add(
        results.failover,
        "failover",
        "A killed leader",
        "From SIGKILL until a write that was posted after it is acknowledged: medians, and what they are made of.",
        failover,
        figures=("section 3.1.9",),
        ours=_failover_sentence(results.failover),
    )
    add(
        results.gateway,
        "gateway",
        "`wherry kv resp` beside Redis",
        "Requests a second of redis-benchmark, whose connections each wait for their answer, in turns. Three nodes "
        "each have every write before it is acknowledged; Redis is one process that replicates to nobody.",
        gateway,
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


def rtl_latency(rows: Sequence[RtlLatency], published: Published) -> Figure:
    """The parts of each operation's latency, and the thesis' totals."""
    figure, ((axes,),) = panels(1, 1, 9.0, 1.4 + 0.26 * len(rows))
    names = [
        f"{OPERATIONS[row.operation]}{'' if row.policy == 'none' else ', ' + row.policy}, {size_text(row.size)}, "
        f"{row.followers} followers, {row.memory}" for row in rows
    ]  # fmt: skip
    stacked_bars(axes, names, [
        ("CMAC (the thesis' constant)", [row.cmac_ns for row in rows], COLOURS[5]),
        ("replication, in", [row.replication_rx_ns for row in rows], COLOURS[0]),
        ("replication, out", [row.replication_tx_ns for row in rows], COLOURS[2]),
        ("memory", [row.memory_ns for row in rows], COLOURS[1]),
        ("other", [max(0.0, row.total_ns - row.cmac_ns - row.replication_rx_ns - row.replication_tx_ns - row.memory_ns)
                   for row in rows], COLOURS[3]),
    ])  # fmt: skip
    of = {
        "read": "rep_t5_7_read_total",
        "replica_write": "rep_t5_7_write_total",
        "leader_write": "rep_t5_9_without_network",
    }
    for place, row in enumerate(rows):
        at = published[of[row.operation]]["value"]
        axes.plot([at, at], [place - 0.4, place + 0.4], "--", color=PUBLISHED, linewidth=1.6,
                  label="paper: total" if place == 0 else None)  # fmt: skip
    axes.set_xlabel("ns")
    legend_above(figure, axes, 3)
    return figure


def line_rate(rows: Sequence[LineRate], published: Published) -> Figure:
    """Request rates as shares of the Ethernet limit."""
    figure, ((axes,),) = panels(1, 1, 8.0, 1.2 + 0.3 * len(rows))
    names = [f"{row.workload}, {size_text(row.size)}{f', {row.lost} lost' if row.lost else ''}" for row in rows]
    stacked_bars(axes, names, [("share of the line rate", [row.share for row in rows], COLOURS[0])])
    axes.axvline(1, color=PUBLISHED, linestyle="--", linewidth=1.6, label="paper: claimed")
    axes.set_xlabel("of what 100 Gbit/s Ethernet allows")
    legend_above(figure, axes, 2)
    return figure


def resources(rows: Sequence[Resources], published: Published) -> Figure:
    """LUTs and block RAM of each core, and of the thesis' replication and memory blocks."""
    names = [*(row.name for row in rows), "paper: replication", "paper: memory"]

    def paper(of: str) -> list[float]:
        return [published[f"rep_t5_10_{of}_{part}"]["value"] for part in ("replication", "memory")]

    figure, ((left, right),) = panels(1, 2, 10.0, 1.2 + 0.28 * len(names), sharey=True)
    none = [0.0, 0.0]
    rest = [0.0] * len(rows)
    stacked_bars(left, names, [
        ("LUT", [*(float(row.lut) for row in rows), *none], COLOURS[0]),
        ("LUT as RAM", [*(float(row.lutram) for row in rows), *none], COLOURS[1]),
        ("paper: LUT and LUT as RAM",
         [*rest, *(a + b for a, b in zip(paper("lut_logic"), paper("lut_mem"), strict=True))], PUBLISHED),
    ])  # fmt: skip
    left.set_xlabel("LUTs")
    stacked_bars(right, names, [
        ("BRAM36", [*(row.bram36 for row in rows), *none], COLOURS[2]),
        ("paper", [*rest, *paper("bram")], PUBLISHED),
    ])  # fmt: skip
    right.invert_yaxis()  # both panels inverted the shared axis; this restores its direction
    right.set_xlabel("BRAM36")
    legend_above(figure, left, 3)
    return figure


def software(rows: Sequence[SoftwareLatency], published: Published) -> Figure:
    """The p50 latency of each system, and of the thesis' software."""
    networks = list(dict.fromkeys(row.network for row in rows))
    figure, grid = panels(1, len(networks), 5.0 + 4.2 * (len(networks) - 1), 3.6, sharey=True)

    def name_of(row: SoftwareLatency) -> str:
        return "wherry (AF_XDP)" if row.path == "xdp" else row.system

    for axes, network in zip(grid[0], networks, strict=True):
        here = [row for row in rows if row.network == network]
        groups = list(dict.fromkeys((row.operation, row.size) for row in here))
        by_group = {(name_of(row), row.operation, row.size): row.p50_us for row in here}
        present = [name for name in SYSTEMS if any(name_of(row) == name for row in here)]
        series = {name: ([by_group.get((name, *group)) for group in groups], SYSTEMS[name]) for name in present}
        grouped_bars(axes, [f"{OPERATIONS[op]}\n{size_text(size)}" for op, size in groups], series)
        for operation, of in (("read", "rep_t5_13_read_sw"), ("leader_write", "rep_t5_13_leader_write_sw")):
            places = [place for place, group in enumerate(groups) if group[0] == operation]
            if places:
                label = "paper: software" if operation == groups[0][0] else None
                at = [published[of]["value"]] * 2
                axes.plot([places[0] - 0.45, places[-1] + 0.45], at, "--", color=PUBLISHED, linewidth=1.6, label=label)
        axes.set_yscale("log")
        plain_axis(axes.yaxis)
        axes.set_title(network, loc="left")
        axes.set_ylabel("p50 [us]")
    legend_above(figure, grid[0][0], 3)
    return figure


def throughput(rows: Sequence[SoftwareRate], published: Published) -> Figure:
    """Operations per second by depth."""
    operations = list(dict.fromkeys(row.operation for row in rows))
    figure, grid = panels(1, len(operations), 5.0 + 4.2 * (len(operations) - 1), 3.4)
    for axes, operation in zip(grid[0], operations, strict=True):
        here = [row for row in rows if row.operation == operation]
        depths = sorted({row.depth for row in here})
        series: dict[str, tuple[Sequence[float | None], str]] = {
            system: (
                [next((r.per_second / 1e6 for r in here if (r.system, r.depth) == (system, d)), None) for d in depths],
                SYSTEMS[system],
            )
            for system in dict.fromkeys(row.system for row in here)
        }
        grouped_bars(axes, [f"{depth} in flight" for depth in depths], series)
        axes.set_title(OPERATIONS[operation], loc="left")
        axes.set_ylabel("M operations/s")
    legend_above(figure, grid[0][0], 3)
    return figure


def failover(rows: Sequence[Failover], published: Published) -> Figure:
    """The parts of the time during which writes are interrupted."""
    figure, grid = panels(1, len(rows), 5.6 + 4.0 * (len(rows) - 1), 2.6)
    for axes, row in zip(grid[0], rows, strict=True):
        parts = [
            ("detection, lease", row.detection_ms, COLOURS[0]),
            ("control", row.control_ms, COLOURS[1]),
            ("leftovers, next try", row.leftovers_ms, COLOURS[2]),
            ("client's backoff", row.backoff_ms, COLOURS[3]),
        ]
        stacked_bars(axes, [row.timing], [(name, [value], colour) for name, value, colour in parts])
        axes.axvline(published["rep_rw_mu_failover"]["value"] / 1000, color=PUBLISHED, linestyle="--", linewidth=1.6,
                     label="Mu, as the paper cites it")  # fmt: skip
        axes.set_title(f"{row.ping_ms} ms x {row.misses}, lease {row.lease_ms} ms: {row.kills} kills", loc="left")
        axes.set_xlabel("ms after the kill")
    legend_above(figure, grid[0][0], 3)
    return figure


def gateway(rows: Sequence[GatewayRate], published: Published) -> Figure:
    """Requests per second of each system."""
    figure, ((axes,),) = panels(1, 1, 6.4, 3.2)
    operations = list(dict.fromkeys(row.operation for row in rows))
    places = [("wherry", 3, COLOURS[0]), ("wherry", 1, COLOURS[1]), ("redis", 1, COLOURS[2])]
    series: dict[str, tuple[Sequence[float | None], str]] = {
        f"{system}, {nodes} {'node' if nodes == 1 else 'nodes'}": (
            [
                next((r.per_second / 1e3 for r in rows if (r.system, r.nodes, r.operation) == (system, nodes, o)), None)
                for o in operations
            ],
            colour,
        )
        for system, nodes, colour in places
    }
    grouped_bars(axes, [operation.upper() for operation in operations], series)
    axes.set_ylabel("thousand requests/s")
    legend_above(figure, axes, 3)
    return figure
