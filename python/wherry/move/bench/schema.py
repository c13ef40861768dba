# SPDX-License-Identifier: Apache-2.0
"""The output of `wherry bench move --json FILE`, as types, and the sources of its bars
(docs/reference/bench-json.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from wherry.bench import Basis, Benchmark, Run, rows
from wherry.units import number_text

Allocator = Literal["malloc", "memalign"]
Api = Literal["cpp", "c_abi"]
Approach = Literal["host_serialization", "smartnic_serialization", "idp_ipc", "idp_page_aligned_ipc", "idp_c_abi"]
"""The five approaches of paper 004, section V-G."""

PYTHON, READERS = "python", "readers"
"""Experiments that run in this process. bench_move runs the others."""
EXPERIMENTS = ("initiate", "bandwidth", "mapped", "buffers", "conversion", "approaches", "flight", PYTHON, READERS)
"""The names that `--only` accepts. `flight` fills two sections of the results."""


@dataclass(frozen=True, slots=True)
class Initiate:
    """Host time of one offload call (paper 004, figure 2)."""

    columns: int
    size: int
    p50_us: float
    """The median with warm caches: in the steady state, after small offloads of the same columns."""
    min_us: float
    max_us: float
    p99_us: float
    after_wait_p50_us: float
    """The median with cold caches: of a call directly after the wait for a transfer of `size`."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """An offload compared with a raw get of the same size, from heap memory, one in flight (figure 3)."""

    size: int
    move_gbps: float
    raw_gbps: float
    ratio: float
    ratio_min: float
    ratio_max: float


@dataclass(frozen=True, slots=True)
class Mapped:
    """An offload from memory that Wherry allocated and the agent maps, compared with one memcpy of the same size."""

    size: int
    move_gbps: float
    memcpy_gbps: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Buffers:
    """Buffer management (figure 4): the allocators of both sides, and whether destination buffers are cached."""

    size: int
    client_alloc: Allocator
    server_alloc: Allocator
    cache: bool
    gbps: float


@dataclass(frozen=True, slots=True)
class Conversion:
    """The times of the four steps from columns to Arrow IPC on the host (figures 7 and 8)."""

    api: Api
    columns: int
    size: int
    arrays_us: float
    schema_us: float
    batch_us: float
    ipc_us: float
    total_us: float


@dataclass(frozen=True, slots=True)
class ApproachRow:
    """Host time and agent throughput of one approach (figure 11)."""

    approach: Approach
    columns: int
    size: int
    host_us: float
    gbps: float
    """The rate from a source without modified cache lines, which is the same state for all approaches."""
    fresh_gbps: float
    """The rate from a source that the host has just written or serialised. Its lines are then in the host core's
    caches."""


@dataclass(frozen=True, slots=True)
class FlightRow:
    """An offload compared with Arrow Flight's DoPut of the same batch on the same machine."""

    size: int
    move_gbps: float
    flight_gbps: float
    throughput_ratio: float
    move_cpu_us: float
    flight_cpu_us: float
    cpu_ratio: float


@dataclass(frozen=True, slots=True)
class PythonCall:
    """Host time of one offload call in Python for numpy arrays on the heap."""

    columns: int
    size: int
    call: Literal["offload", "bind"]
    """`offload`: each call names the arrays. `bind`: the arrays were bound once."""
    warm_us: float
    """The time directly after calls of the same kind."""
    cold_us: float
    """The time after a sweep through 64 MiB, which imitates a time step."""


Reader = Literal["none", "plain", "lz4", "lz4_operator", "sort_operator"]


@dataclass(frozen=True, slots=True)
class ReaderLoad:
    """Host time of one frame while a Flight reader, or the stream's operators, work on the agent's core."""

    reader: Reader
    """`lz4`: the agent compresses each frame for a reader. `lz4_operator`, `sort_operator`: no reader; operators that
    were declared at open compress each frame, or filter, sort and compress it."""
    size: int
    call_us: float
    wait_us: float
    """The time from the end of the host's own work until the ticket is ready."""
    step_us: float
    """The time of the whole time step: call, work and wait."""
    read_percent: float
    """Frames that the reader got, or the operators worked off, in percent of the posted ones. The others were evicted
    before."""


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements by experiment; empty for experiments that --only left out. Sizes are bytes of data in one
    offload, all columns together."""

    initiate: list[Initiate] = rows("Host time of one offload call (figure 2)")
    bandwidth: list[Bandwidth] = rows("Move against a raw get, heap memory (figure 3)")
    mapped: list[Mapped] = rows("Move from mapped memory against memcpy")
    buffers: list[Buffers] = rows("Buffer management (figure 4)")
    conversion: list[Conversion] = rows("Steps of the conversion on the host (figures 7 and 8)")
    approaches: list[ApproachRow] = rows("Five approaches (figure 11)")
    flight: list[FlightRow] = rows("Move against Arrow Flight DoPut, 1 column")
    """One column."""
    flight_16_columns: list[FlightRow] = rows("Move against Arrow Flight DoPut, 16 columns")
    python: list[PythonCall] = rows("Host time of one offload call in Python")
    readers: list[ReaderLoad] = rows("Host time of one frame beside readers")


@dataclass(frozen=True, slots=True)
class MoveBench(Run):
    """One run of `wherry bench move`."""

    name: Literal["move"]
    transports: str
    one_sided: Literal["one_sided", "emulated"]
    results: Results


def basis_of(bar: str, results: Results) -> Basis:
    """Returns the basis of the bar named `bar`."""
    if match := re.fullmatch(r"host_us_p50_(\d+)col", bar):
        cold = [row.after_wait_p50_us for row in results.initiate if row.columns == int(match[1])]
        return Basis("initiate p50_us, largest of all sizes: warm caches", _cold(max(cold, default=None), " us"))
    if match := re.fullmatch(r"python_call_us_(\d+)col_(warm|cold)", bar):
        state = match[2]
        named = [row for row in results.python if (row.columns, row.call) == (int(match[1]), "offload")]
        beside = "".join(
            f"{state}_us of offload(), each array named: {number_text(getattr(row, state + '_us'))} us" for row in named
        )
        return Basis(f"python {state}_us of bound steps: heap memory, one in flight", beside)
    if match := re.fullmatch(r"(plain|lz4|lz4_operator|sort_operator)(?:_reader)?_host_ratio", bar):
        steps: dict[str, float] = {row.reader: row.step_us for row in results.readers}
        beside = (
            f"step_us: {number_text(steps[match[1]] / steps['none'])}" if {match[1], "none"} <= steps.keys() else ""
        )
        return Basis(f"readers call_us + wait_us: {match[1]} over none, round by round", beside)
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
        beside = "" if ratio is None else f"fresh_gbps (source just written): {number_text(ratio)}"
        return Basis("approaches gbps: source in no cache as modified, initiation not counted", beside)
    if re.fullmatch(r"host_time_saved_\d+[km]", bar):
        return Basis("approaches host_us, 16 columns: caches as the application's computing left them")
    if match := re.fullmatch(r"flight_(throughput|host_cpu)_ratio_(\d+[km])", bar):
        figure = "throughput_ratio" if match[1] == "throughput" else "cpu_ratio"
        wide = _flight(results.flight_16_columns, _size(match[2]), figure)
        return Basis(f"flight {figure}, 1 column", "" if wide is None else f"16 columns: {number_text(wide)}")
    return Basis("")


def _cold(value: float | None, unit: str) -> str:
    return "" if value is None else f"after_wait_p50_us (cold caches): {number_text(value)}{unit}"


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
