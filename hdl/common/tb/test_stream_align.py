# SPDX-License-Identifier: Apache-2.0
"""stream_align: every first lane to every first lane, against frames as bytes."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from bundles import Axis, Wrapped, simulate_wrapped
from frames import Frame, beats_of, length_of, send, sink_of, source_of

INSTANCES = {
    f"align_{count}_{user}": Wrapped(
        "stream_align", [Axis("s", 8 * count, user), Axis("m", 8 * count, user, "")], {"Bytes": count}
    )
    for count, user in [(2, 1), (4, 3), (8, 1), (64, 48)]
}


class Lane:
    """An instance with a sender and a receiver, and the beats that are to come out."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench, name
        scope = getattr(bench.dut, name)
        self.source, self.sink = source_of(bench, scope, "s_shift"), sink_of(bench, scope)
        self.bus = INSTANCES[name].parameters["Bytes"]
        self.expected: list[tuple[int, int, int, int]] = []

    def frame(self, length: int, lane: int, to: int) -> tuple[int, int]:
        """Queues one; returns its beats in and out."""
        data = self.bench.random.randbytes(length)
        frame = Frame(data, lane)
        send(self.source, frame, 0)
        beats = frame.beats(self.bus)
        # The shift counts with the first beat only.
        first = len(self.source.items) - len(beats)
        for i in range(first, len(self.source.items)):
            shift = (to - lane) % self.bus if i == first else self.bench.random.randrange(self.bus)
            self.source.items[i] = (*self.source.items[i][:4], shift)
        moved = Frame(data, to).beats(self.bus)
        for i, beat in enumerate(moved):
            # The newest byte in this beat, and the beat in that it came with.
            newest = min((i + 1) * self.bus - to, length) - 1
            self.expected.append((*beat, frame.user[(lane + newest) // self.bus]))
        return len(beats), len(moved)

    def random_frame(self) -> None:
        draw = self.bench.random
        lane, to = draw.randrange(self.bus), draw.randrange(self.bus)
        self.frame(length_of(self.bench, self.bus, 6 * self.bus), lane, to)

    def reset(self) -> None:
        self.expected.clear()

    def done(self) -> bool:
        return len(self.sink.items) >= len(self.expected)

    def check(self) -> None:
        assert beats_of(self.sink) == self.expected, self.name
        self.sink.items.clear(), self.expected.clear()


@cocotb.test()
async def moves_every_frame_whole(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for idle, stall in [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.9, 0.1), (0.1, 0.9)]:
        for lane in lanes:
            lane.source.idle, lane.sink.stall = idle, stall
            for _ in range(80):
                lane.random_frame()
        await bench.until(lambda: all(lane.done() for lane in lanes))
        await bench.cycle(5)
        for lane in lanes:
            lane.check()


@cocotb.test()
async def every_lane_to_every_lane(dut: Any) -> None:
    bench = Bench(dut)
    lane = Lane(bench, "align_8_1")
    wide = Lane(bench, "align_64_48")
    await bench.reset()
    for one, to, length in [(i, j, n) for i in range(8) for j in range(8) for n in (1, 2, 7, 8, 9, 16, 17)]:
        lane.frame(length, one, to)
    for one in range(64):
        for to in (0, 1, one, 63 - one, 63):
            wide.frame(bench.random.choice([1, 63, 64, 65, 128]), one, to)
    await bench.until(lambda: lane.done() and wide.done())
    lane.check(), wide.check()


@cocotb.test()
async def a_beat_a_cycle(dut: Any) -> None:
    """Long frames without a pause: as many cycles as the side with more beats needs, and the latency."""
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for lane in lanes:
        came = went = 0
        for one, to in [(0, 0), (1, 0), (0, 1), (lane.bus - 1, 0), (0, lane.bus - 1), (1, lane.bus - 1)] * 4:
            beats = lane.frame(20 * lane.bus, one, to)
            came, went = came + beats[0], went + beats[1]
        await bench.until(lane.done)
        lane.check()
        # Of one of its frames at a time the sides' beats differ by one at most.
        cycles = lane.sink.cycles_of[-1] - lane.source.cycles_of[0] + 1
        assert cycles <= max(came, went) + 2 + 6, f"{lane.name}: {cycles} cycles for {came} and {went} beats"
    for lane in lanes:
        lane.sink.cycles_of.clear(), lane.source.cycles_of.clear()
        lane.frame(3 * lane.bus, 0, 1)
    await bench.until(lambda: all(lane.done() for lane in lanes))
    for lane in lanes:
        first = lane.source.cycles_of[0]
        assert lane.sink.cycles_of == [first + 2 + i for i in range(4)], lane.name


@cocotb.test()
async def a_frame_that_flushes_lets_the_next_one_in(dut: Any) -> None:
    """A beat more out, then a beat more in: no cycle is lost on either side."""
    bench = Bench(dut)
    lane = Lane(bench, "align_8_1")
    await bench.reset()
    beats = 0
    for _ in range(10):
        lane.frame(32, 0, 4)  # 4 in, 5 out
        lane.frame(32, 4, 0)  # 5 in, 4 out
        beats += 9
    await bench.until(lane.done)
    lane.check()
    assert lane.sink.cycles_of[-1] - lane.sink.cycles_of[0] + 1 == beats


@cocotb.test()
async def reset_in_mid_frame_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
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
            for _ in range(20):
                lane.random_frame()
        await bench.until(lambda: all(lane.done() for lane in lanes))
        for lane in lanes:
            lane.check()


def test_stream_align() -> None:
    simulate_wrapped(__file__, INSTANCES)
