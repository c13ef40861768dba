# SPDX-License-Identifier: Apache-2.0
"""The output of wherry-probe: one JSON object on each line (docs/guide/probe.md, Lines).

Any other line ends the run with an error, because its meaning is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import msgspec

from wherry.errors import BenchError

Flow = Literal["h2c", "c2h", "both"]
Notice = Literal["polled", "interrupt", "blocking"]
Pattern = Literal["sequential", "strided", "random"]
CacheState = Literal["warm", "flushed", "remote"]
Load = Literal["closed", "open"]
Initiator = Literal["host", "device"]
Provenance = Literal["measured", "simulated", "modelled"]
LONGEST = 1 << 16
"""The most characters of a line. A row with a thousand rounds has some twenty thousand."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of one cell. `series`: 0, or 1 for the second measurement if a run measures each cell twice."""

    id: str
    bytes: int
    depth: int
    channels: int
    pattern: Pattern
    flow: Flow
    notice: Notice
    cache: CacheState
    align: int
    load: Load
    series: int

    @property
    def key(self) -> tuple[str | int, ...]:
        """The fields that must be equal so that rows of two runs can be compared."""
        return (self.id, self.bytes, self.depth, self.channels, self.pattern, self.flow, self.notice, self.cache,
                self.align, self.load)  # fmt: skip

    @property
    def words(self) -> str:
        """How the shape differs from the simplest shape of its path and size, in words."""
        found = [f"depth {self.depth}"] if self.depth > 1 else []
        found += [f"{self.channels} channels"] if self.channels > 1 else []
        found += [self.notice] if self.notice != "polled" else []
        found += [self.cache] if self.cache != "warm" else []
        found += [f"+{self.align}"] if self.align else []
        found += ["open loop"] if self.load == "open" else []
        return ", ".join(found)


class Figures(Shape, frozen=True, kw_only=True):
    """The figures of a row. Times are per transfer, in nanoseconds."""

    p50_ns: float
    """The median of the rounds' medians."""
    p90_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    """The maximum over all rounds."""
    gbytes_per_s: float
    """The rate in 10^9 bytes per second, the median of the rounds. 0: the path does not move bytes."""
    transfers_per_s: float
    offered_per_s: float
    """The offered rate of an open loop; 0 for a closed one."""
    cpu_user_ns: float
    cpu_system_ns: float
    other_user_ns: float
    other_system_ns: float
    """CPU time of the process at the other end."""
    least: float
    most: float
    """The smallest and largest of the rounds' medians."""
    rounds: list[float]
    """The median of each round, in the order of the rounds."""
    disturbed: int
    """The number of rounds with an involuntary context switch or with steal time."""
    warm: int
    """The number of rounds whose warm-up ended because three batches agreed to within 5 %."""
    p50_undisturbed_ns: float
    """The median of the rounds that were not disturbed. 0: all rounds were disturbed."""
    variation: float
    unsettled: bool
    samples: int
    batch: int
    """The number of transfers that are timed together. 1: each transfer is timed."""
    bound_gbytes_per_s: float
    """An upper bound of the path's rate. 0: no bound is known."""
    bound_why: str
    refused: str
    """Why the figures are not reliable. Empty: no reason is known."""


class Start(msgspec.Struct, frozen=True, tag="start", tag_field="kind"):
    """The first line of a run."""

    wherry: str
    environment: dict[str, str]
    machine_key: str
    clock_ghz: float
    clock_resolution_ns: float
    harness_batched_ns: float
    harness_timed_ns: float
    cells: int
    rounds: int
    seed: int


class PathLine(msgspec.Struct, frozen=True, tag="path", tag_field="kind"):
    """A line that describes a path."""

    id: str
    group: str
    from_: str = msgspec.field(name="from")
    to: str
    initiator: Initiator
    provenance: Provenance
    absent: str
    note: str


class Progress(Shape, frozen=True, kw_only=True, tag="progress", tag_field="kind"):
    """`done` of `of` visits are complete. The next visit is to this cell."""

    done: int
    of: int
    seconds: float


class RowLine(Figures, frozen=True, kw_only=True, tag="row", tag_field="kind"):
    """A cell that was measured."""


class Wrong(Shape, frozen=True, kw_only=True, tag="wrong", tag_field="kind"):
    """A cell whose data arrived with errors."""

    why: str


class Failed(Shape, frozen=True, kw_only=True, tag="failed", tag_field="kind"):
    """A cell that could not be measured."""

    why: str


class End(msgspec.Struct, frozen=True, tag="end", tag_field="kind"):
    """The last line of a run: numbers of cells, and the duration."""

    measured: int
    wrong: int
    refused: int
    failed: int
    stopped: bool
    seconds: float


Line = Start | PathLine | Progress | RowLine | Wrong | Failed | End
_decoder = msgspec.json.Decoder(Line)


def parse(text: str | bytes) -> Line:
    """Parses one line. Raises BenchError, which quotes the beginning of a wrong line."""
    if len(text) > LONGEST:
        raise BenchError(f"wherry-probe wrote a line of {len(text)} characters")
    try:
        line: Line = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BenchError(f"wherry-probe wrote {text[:80]!r}: {error}") from None
    for name in line.__struct_fields__:
        value = getattr(line, name)
        for figure in value if isinstance(value, list) else [value]:
            if isinstance(figure, int | float) and not (math.isfinite(figure) and figure >= 0):
                raise BenchError(f"wherry-probe wrote {name} = {figure}; a number of 0 or more is expected")
    if isinstance(line, RowLine) and not line.rounds:
        raise BenchError(f"wherry-probe wrote a row of {line.id} without rounds")
    return line


def paths_of(lines: Iterable[Line]) -> list[PathLine]:
    """The lines that describe paths, in their order."""
    return [line for line in lines if isinstance(line, PathLine)]
