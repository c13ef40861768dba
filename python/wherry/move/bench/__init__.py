# SPDX-License-Identifier: Apache-2.0
"""`wherry bench move`: what it writes, and what its bars are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wherry.bench import Basis, Benchmark
from wherry.move.bench.schema import ApproachRow, FlightRow, MoveBench, Results


def basis_of(bar: str, results: Results) -> Basis:
    """The basis of the bar of that name."""
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


BENCHMARK = Benchmark(
    name="move",
    schema=MoveBench,
    basis=basis_of,
    paper="004 (SDMS, which move answers: AMD EPYC 7543P, BlueField-2, 100 Gbit/s InfiniBand)",
)
