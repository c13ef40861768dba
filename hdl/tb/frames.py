# SPDX-License-Identifier: Apache-2.0
"""Byte frames on streams with keep and last (axis_t of hdl/common/axi.svh)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench import Bench, Sink, Source

FIELDS = ("data", "keep", "last", "user")


@dataclass
class Frame:
    """A frame's bytes, the lane of the first byte, and the user bits of each beat."""

    data: bytes
    lane: int = 0
    user: list[int] = field(default_factory=list)

    def beats(self, bus: int) -> list[tuple[int, int, int]]:
        """Returns data, keep and last of each beat on a bus of `bus` bytes. Lanes without a byte are 0."""
        total = self.lane + len(self.data)
        found = []
        for start in range(0, total, bus):
            lanes = range(max(start, self.lane), min(start + bus, total))
            data = sum(self.data[i - self.lane] << (8 * (i - start)) for i in lanes)
            found.append((data, sum(1 << (i - start) for i in lanes), int(start + bus >= total)))
        return found


def send(source: Source, frame: Frame, *more: int) -> None:
    """Queues a frame. Lanes without a byte have random values. `more` holds fields in addition to a beat's."""
    bus = source.fields[1].width
    beats = frame.beats(bus)
    draw = source.bench.random
    if not frame.user:
        frame.user = [draw.getrandbits(source.fields[3].width) for _ in beats]
    for (data, keep, last), user in zip(beats, frame.user, strict=True):
        noise = sum(draw.getrandbits(8) << (8 * i) for i in range(bus) if not keep >> i & 1)
        source.items.append((data | noise, keep, last, user, *more))


def beats_of(sink: Sink) -> list[tuple[int, int, int, int]]:
    """Returns the received beats, with 0 in lanes without a byte."""
    found = []
    for data, keep, last, user in sink.items:
        mask = sum(0xFF << (8 * i) for i in range(sink.fields[1].width) if keep >> i & 1)
        found.append((data & mask, keep, last, user))
    return found


def source_of(bench: Bench, scope: Any, *more: str) -> Source:
    """Returns the sender at s_*. `more` are ports in addition to a beat's."""
    source: Source = bench.source(scope, fields=FIELDS)
    source.fields += [bench.pin(scope, name) for name in more]
    return source


def sink_of(bench: Bench, scope: Any) -> Sink:
    """Returns the receiver at m_*."""
    return bench.sink(scope, fields=FIELDS)


def length_of(bench: Bench, bus: int, most: int) -> int:
    """Returns a random frame length, often near a multiple of the bus width."""
    draw = bench.random
    near = bus * draw.randint(0, most // bus) + draw.randint(-2, 2)
    return max(1, min(most, draw.choice([near, near, draw.randint(1, most)])))
