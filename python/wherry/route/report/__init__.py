# SPDX-License-Identifier: Apache-2.0
"""The report's chapter of `wherry bench route`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wherry.report import Chapter, Section, Sections, bench_chapter
from wherry.route.bench.schema import ApplicationRow, RouteBench, Sweep, WeakScaling
from wherry.route.report import plots


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document of route. Raises BenchError."""
    return bench_chapter(RouteBench, document, file, sections_of)


CHAPTERS = {"route": chapter}


def sections_of(bench: RouteBench) -> list[Section]:
    """The sections of the experiments that this run contains."""
    results = bench.results
    sections = Sections("route")
    add = sections.add
    add(
        results.histogram,
        "histogram",
        "Histogram against a hand-written exchange and peers",
        "Increments of random counters, by two ranks on two cores, inline. The exchange takes turns with ours in the "
        "same processes; peers run in turns with them.",
        lambda rows, known: plots.histogram(rows, results.peers, known),
    )
    add(
        results.peers,
        "peers",
        "How many times faster than peers",
        "Each peer's rates in this run, and how many times faster route is inline: medians of neighbours.",
        plots.peers,
    )
    add(
        results.random_sizes,
        "random-sizes",
        "Messages of random sizes",
        "Payload of messages of 8 to 4096 bytes that a handler copies out, inline, both ways at once, against plain "
        "copies through the same buffers.",
        plots.random_sizes,
    )
    add(
        results.agent_rate,
        "agent-rate",
        "What one routing thread forwards",
        "Messages that lie ready in buffers, through the agent and back to their sender.",
        plots.agent_rate,
    )
    add(
        results.latency,
        "latency",
        "One message on an idle system",
        "From rank to rank of two nodes, one at a time, by the clock of the one who gets it back, halved. Where rank "
        "and agent share a core, the kernel's scheduler is part of it.",
        plots.latency,
    )
    add(
        results.message_sizes,
        "message-sizes",
        "Messages by size and placement",
        "Two ranks of two nodes send each other messages of one size. All placements have the same two cores.",
        plots.message_sizes,
    )
    add(
        results.sweeps,
        "sweeps",
        "Transfer size, buffers, routing threads",
        "Eight bytes to random ranks, two nodes of four ranks, one setting changed at a time; defaults are ringed. All "
        "routing threads of this run share one core: more of them can do no more work.",
        plots.sweeps,
        figures=("figure 7",),
        ours=_sweeps_sentence(results.sweeps),
    )
    add(
        results.weak_scaling,
        "weak-scaling",
        "Weak scaling",
        "Each node's rank sends the same number of messages to random ranks; ranks share one core, agents the other. "
        "What a message costs should not grow with the nodes.",
        plots.weak_scaling,
        figures=("figure 8",),
        ours=_scaling_sentence(results.weak_scaling),
    )
    add(
        results.agent_memory,
        "agent-memory",
        "Memory of an agent",
        "Resident memory of one routing agent while all ranks send to all, and what src/route/layout.hpp says that its "
        "own inbox and the rings that it writes into take.",
        plots.agent_memory,
    )
    add(
        results.applications,
        "applications",
        "Five applications by placement",
        "Two nodes of a rank each. shared: ranks and agents on one core (the paper's None); host: the agents on the "
        "other (x86); inline: a core for each rank. Network share: bytes a second over those of whole buffers that "
        "ranks do nothing but hand on (the paper: over the link's speed). M:C: bytes from memory over bytes routed.",
        plots.applications,
        figures=("table 2",),
        ours=_applications_sentence(results.applications),
    )
    return sections.found


def _sweeps_sentence(rows: Sequence[Sweep]) -> str:
    parts = []
    for parameter, noun in (("buffer_bytes", "bytes a buffer"), ("buffers", "buffers"), ("routing_threads", "threads")):
        host = [row for row in rows if row.parameter == parameter and row.placement == "host"]
        usual = next((row for row in host if row.is_default), None)
        if usual is None or usual.mmps == 0:
            continue
        best = max(host, key=lambda row: row.mmps)
        parts.append(f"{best.value} {noun}: {best.mmps / usual.mmps:.2f} times the default ({usual.value})")
    return f"Ours, best of each with agents: {'; '.join(parts)}." if parts else ""


def _scaling_sentence(rows: Sequence[WeakScaling]) -> str:
    last = max(rows, key=lambda row: row.nodes, default=None)
    if last is None:
        return ""
    return f"Ours: a message at {last.nodes} nodes costs {last.over_2_nodes:.2f} times what it does at 2."


def _applications_sentence(rows: Sequence[ApplicationRow]) -> str:
    missing = next((row.mc_missing for row in rows if row.mc_ratio is None), "")
    return f"M:C could not be counted here, only estimated from above: {missing}." if missing else ""
