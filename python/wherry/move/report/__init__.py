# SPDX-License-Identifier: Apache-2.0
"""The report's chapters of `wherry bench move`, and of the two LAMMPS jobs, which demonstrate move."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wherry.move.bench.schema import Buffers, Initiate, MoveBench
from wherry.move.report import lammps, plots
from wherry.report import Chapter, Section, Sections, bench_chapter


def chapter(document: Any, file: str) -> Chapter:
    """Makes the chapter of a JSON document of move. Raises BenchError."""
    return bench_chapter(MoveBench, document, file, sections_of, _facts)


CHAPTERS = {"move": chapter, "lammps_lj": lammps.chapter, "lammps_fix": lammps.fix_chapter}


def _facts(bench: MoveBench) -> dict[str, object]:
    return {
        "pinning": ", ".join(f"{who} on core {core}" for who, core in bench.pinning.items()),
        "transports": f"{bench.transports} ({bench.one_sided})",
    }


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation coefficient. None if the coefficient is not defined (fewer than two points, or no
    variation)."""
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        return None


def buffer_gains(rows: Iterable[Buffers]) -> dict[str, float]:
    """The gains of figure 4 in percent, as far as the rows allow: the peak rate with page-aligned destinations over
    other destinations ("alignment"), and the gain of caching at 1 MiB with a page-aligned source ("cache_aligned",
    "cache_unaligned")."""
    rows = list(rows)
    gains: dict[str, float] = {}
    peak = {kind: max((r.gbps for r in rows if r.server_alloc == kind), default=0.0) for kind in ("memalign", "malloc")}
    if peak["malloc"] > 0 and peak["memalign"] > 0:
        gains["alignment"] = 100 * (peak["memalign"] / peak["malloc"] - 1)
    for name, kind in (("cache_aligned", "memalign"), ("cache_unaligned", "malloc")):
        chosen = [r for r in rows if (r.size, r.server_alloc, r.client_alloc) == (1 << 20, kind, "memalign")]
        with_cache = [r.gbps for r in chosen if r.cache]
        without = [r.gbps for r in chosen if not r.cache]
        if with_cache and without and without[0] > 0:
            gains[name] = 100 * (with_cache[0] / without[0] - 1)
    return gains


def _initiate_sentence(rows: Sequence[Initiate]) -> str:
    medians = [row.p50_us for row in rows]
    cold = [row.after_wait_p50_us for row in rows]
    parts = [
        f"Ours: medians from {min(medians):.3g} to {max(medians):.3g} us with warm caches, "
        f"from {min(cold):.3g} to {max(cold):.3g} us right after the wait for a transfer"
    ]
    for columns in sorted({row.columns for row in rows}):
        chosen = [row for row in rows if row.columns == columns]
        r = pearson([row.size for row in chosen], [row.p50_us for row in chosen])
        if r is not None:
            parts.append(f"correlation with the size {r:+.2f} ({columns} column{'s' if columns > 1 else ''})")
    return "; ".join(parts) + "."


def sections_of(bench: MoveBench) -> list[Section]:
    """The sections of the experiments that this run contains, in the order of the paper's figures."""
    results = bench.results
    sections = Sections("move")
    add = sections.add
    add(
        results.initiate,
        "initiate",
        "What an offload costs the host",
        "Time that the offload call keeps the host, by size. It should not depend on the size.",
        plots.initiate,
        figures=("figure 2",),
        ours=_initiate_sentence(results.initiate) if results.initiate else "",
    )
    add(
        results.python,
        "python",
        "What an offload costs a Python program",
        "Time that the call keeps the host, of arrays that are named each time, and of arrays that were bound once.",
        plots.python_calls,
    )
    add(
        results.readers,
        "readers",
        "What readers and operators cost the host",
        "Host time of one frame: the call, and the wait after the host's own work. Agent and reader share a core. The "
        "agent compresses each frame for the LZ4 reader, or works off the stream's operators. The host should not "
        "notice.",
        plots.readers,
    )
    add(
        results.bandwidth,
        "bandwidth",
        "Bandwidth against a raw get",
        "One transfer at a time from heap memory, against a raw UCX get of the same size (the paper: qperf, NCQE 1).",
        plots.bandwidth,
        figures=("figure 3",),
    )
    add(
        results.mapped,
        "mapped",
        "Memory that the agent maps",
        "Memory that Wherry allocated is mapped by an agent on the same machine: plain loads, against one memcpy.",
        plots.mapped,
    )
    gains = buffer_gains(results.buffers)
    names = {"alignment": "page-aligned destinations", "cache_aligned": "caching at 1 MiB, page-aligned",
             "cache_unaligned": "caching at 1 MiB, from malloc"}  # fmt: skip
    sentence = "; ".join(f"{names[name]} {gain:+.0f} %" for name, gain in gains.items())
    add(
        results.buffers,
        "buffers",
        "Buffer management",
        "Allocators of both sides, and whether the agent keeps its destination buffers.",
        plots.buffers,
        figures=("figure 4",),
        ours=f"Ours: {sentence}." if sentence else "",
    )
    for api, figure, name in (("cpp", "7", "C++ API"), ("c_abi", "8", "C ABI")):
        add(
            [row for row in results.conversion if row.api == api],
            f"conversion-{api}",
            f"Where the host's conversion time goes: {name}",
            "Share of each step from columns to Arrow IPC. What the largest steps are, in-transit placement saves.",
            functools.partial(plots.conversion, api=api),
            figures=(f"figure {figure}",),
        )
    add(
        results.approaches,
        "approaches",
        "Five ways to Arrow IPC",
        "Host time, and throughput from the first get to the finished IPC buffer on the agent. As in the paper, the "
        "throughput leaves out the initiation, and for host serialization the serialization. In the middle the source "
        "is in no cache as modified, the same for all; on the right the host has written it just before.",
        plots.approaches,
        figures=("figure 11",),
    )
    flight = [
        {"columns": columns, **dataclasses.asdict(row)}
        for columns, rows in ((1, results.flight), (16, results.flight_16_columns))
        for row in rows
    ]
    add(
        flight,
        "flight",
        "Against Arrow Flight",
        "DoPut of the same batch over loopback: throughput, and the CPU time of the application's process.",
        lambda _rows, known: plots.flight(results.flight, results.flight_16_columns, known),
    )
    return sections.found
