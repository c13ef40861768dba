# SPDX-License-Identifier: Apache-2.0
"""stream_width: to wider, narrower and equal buses, and there and back, against frames as bytes."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from bundles import Axis, Wrapped, simulate_wrapped
from frames import Frame, beats_of, length_of, send, sink_of, source_of


def instance(narrow: int, wide: int, user: int = 2) -> Wrapped:
    """From `narrow` bytes to `wide`."""
    return Wrapped("stream_width", [Axis("s", 8 * narrow, user, "s_axis"), Axis("m", 8 * wide, user, "m_axis")])


WIDTHS = [(1, 2), (2, 8), (8, 64), (4, 12), (2, 1), (8, 2), (64, 8), (12, 4), (8, 8)]
INSTANCES = {f"from_{one}_to_{to}": instance(one, to, 48 if 64 in (one, to) else 2) for one, to in WIDTHS}

Beat = tuple[int, int, int, int]


def widened(beats: list[Beat], narrow: int, wide: int) -> list[Beat]:
    """What narrow beats become."""
    found: list[Beat] = []
    gathered: list[Beat] = []
    for beat in beats:
        gathered.append(beat)
        if beat[2] or len(gathered) == wide // narrow:
            data = sum(part[0] << (8 * narrow * i) for i, part in enumerate(gathered))
            keep = sum(part[1] << (narrow * i) for i, part in enumerate(gathered))
            found.append((data, keep, beat[2], beat[3]))
            gathered = []
    return found


def narrowed(beats: list[Beat], wide: int, narrow: int) -> list[Beat]:
    """What wide beats become."""
    found: list[Beat] = []
    for data, keep, last, user in beats:
        mask, lanes = (1 << (8 * narrow)) - 1, (1 << narrow) - 1
        parts = [(data >> (8 * i) & mask, keep >> i & lanes) for i in range(0, wide, narrow)]
        while last and len(parts) > 1 and not parts[-1][1]:
            parts.pop()
        found += [(d, k, int(last and i == len(parts) - 1), user) for i, (d, k) in enumerate(parts)]
    return found


class Lane:
    """An instance with a sender and a receiver, and the beats that are to come out."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench, name
        scope = getattr(bench.dut, name)
        self.source, self.sink = source_of(bench, scope), sink_of(bench, scope)
        self.s, self.m = self.source.fields[1].width, self.sink.fields[1].width
        self.expected: list[Beat] = []
        self.beats_in = 0

    def frame(self, length: int, lane: int = 0) -> None:
        frame = Frame(self.bench.random.randbytes(length), lane)
        send(self.source, frame)
        beats: list[Beat] = [(*beat, user) for beat, user in zip(frame.beats(self.s), frame.user, strict=True)]
        self.beats_in += len(beats)
        if self.s < self.m:
            self.expected += widened(beats, self.s, self.m)
        elif self.s > self.m:
            self.expected += narrowed(beats, self.s, self.m)
        else:
            self.expected += beats

    def random_frame(self) -> None:
        """Often not from the lowest lane on."""
        lane = self.bench.random.choice([0, self.bench.random.randrange(self.s)])
        self.frame(length_of(self.bench, self.s, 5 * max(self.s, self.m)), lane)

    def done(self) -> bool:
        return len(self.sink.items) >= len(self.expected)

    def check(self) -> None:
        assert beats_of(self.sink) == self.expected, self.name
        self.sink.items.clear(), self.expected.clear()


def lanes_of(bench: Bench) -> list[Lane]:
    return [Lane(bench, name) for name in INSTANCES]


@cocotb.test()
async def bytes_keep_their_order_and_lanes(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for idle, stall in [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.9, 0.1), (0.1, 0.9)]:
        for lane in lanes:
            lane.source.idle, lane.sink.stall = idle, stall
            for _ in range(40):
                lane.random_frame()
        await bench.until(lambda: all(lane.done() for lane in lanes))
        await bench.cycle(5)
        for lane in lanes:
            lane.check()


@cocotb.test()
async def every_length(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        for length in range(1, 2 * max(lane.s, lane.m) + 2):
            lane.frame(length)
    await bench.until(lambda: all(lane.done() for lane in lanes))
    for lane in lanes:
        lane.check()


@cocotb.test()
async def the_narrow_side_never_waits(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        for _ in range(5):
            lane.frame(4 * max(lane.s, lane.m))
        lane.frame(1)
    expected = {lane.name: len(lane.expected) for lane in lanes}
    await bench.until(lambda: all(lane.done() for lane in lanes))
    for lane in lanes:
        narrow = lane.source if lane.s < lane.m else lane.sink
        count = lane.beats_in if lane.s < lane.m else expected[lane.name]
        assert narrow.cycles_of == list(range(narrow.cycles_of[0], narrow.cycles_of[0] + count)), lane.name
        assert lane.sink.cycles_of[-1] - lane.source.cycles_of[-1] == (1 if lane.s < lane.m else 0), lane.name


@cocotb.test()
async def a_receiver_that_takes_nothing_loses_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        lane.sink.stall = 1.0
        for _ in range(5):
            lane.frame(3 * max(lane.s, lane.m))
    await bench.cycle(100)
    for lane in lanes:
        taken = len(lane.source.sent)
        assert taken == (lane.m // lane.s if lane.s < lane.m else 0), lane.name
        lane.sink.stall = 0.0
    await bench.until(lambda: all(lane.done() for lane in lanes))
    for lane in lanes:
        lane.check()


@cocotb.test()
async def reset_in_mid_frame_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for busy in (3, 4, 11, 40):
        for lane in lanes:
            lane.source.idle, lane.sink.stall = 0.2, 0.5
            for _ in range(20):
                lane.random_frame()
        await bench.cycle(busy)
        await bench.reset(1)
        for lane in lanes:
            lane.expected.clear()
            for _ in range(10):
                lane.random_frame()
        await bench.until(lambda: all(lane.done() for lane in lanes))
        for lane in lanes:
            lane.check()


def test_stream_width() -> None:
    simulate_wrapped(__file__, INSTANCES)
