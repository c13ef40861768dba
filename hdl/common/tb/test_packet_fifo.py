# SPDX-License-Identifier: Apache-2.0
"""Tests that packet_fifo passes a frame completely or not at all."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench, Item
from simulate import Instances, simulate

INSTANCES: Instances = {
    "waits_8_4": ("packet_fifo", {"Width": 8, "Depth": 4}),
    "waits_8_16": ("packet_fifo", {"Width": 8, "Depth": 16, "Block": 1}),
    "waits_577_128": ("packet_fifo", {"Width": 577, "Depth": 128}),
    "drops_8_4": ("packet_fifo", {"Width": 8, "Depth": 4, "DropWhenFull": 1, "Block": 1}),
    "drops_8_16": ("packet_fifo", {"Width": 8, "Depth": 16, "DropWhenFull": 1}),
    "drops_577_128": ("packet_fifo", {"Width": 577, "Depth": 128, "DropWhenFull": 1}),
    "ultra_9_64": ("packet_fifo", {"Width": 9, "Depth": 64, "DropWhenFull": 1, "Block": 1, "Ultra": 1}),
}


class Lane:
    """An instance, and a model that observes its input."""

    def __init__(self, bench: Bench, name: str) -> None:
        parameters = INSTANCES[name][1]
        self.bench, self.name, self.depth = bench, name, parameters["Depth"]
        self.drops, self.block = bool(parameters.get("DropWhenFull")), parameters.get("Block", self.depth > 64)
        scope: Any = getattr(bench.dut, name)
        self.source = bench.source(scope, fields=("payload", "last", "bad"))
        self.sink = bench.sink(scope, fields=("payload", "last"))
        self.dropped_bad, self.dropped_full = bench.pin(scope, "dropped_bad_o"), bench.pin(scope, "dropped_full_o")
        self.frame: list[Item] = []
        self.frames_in = self.bad = self.full = 0
        self.expected: list[Item] = []
        self._seen = 0
        bench.agents.append(self)

    def queue(self, length: int, bad: bool) -> None:
        draw = self.bench.random.getrandbits
        for i in range(length):
            last = i == length - 1
            self.source.items.append((draw(self.source.fields[0].width), last, bad if last else draw(1)))

    def drive(self) -> None:
        pass

    def sample(self) -> None:
        bad, full = self.dropped_bad.get(), self.dropped_full.get()
        self.bad, self.full = self.bad + bad, self.full + full
        for item in self.source.sent[self._seen :]:
            payload, last, is_bad = item
            self.frame.append((payload, last))
            if last:
                self.frames_in += 1
                assert bad == is_bad, self.name
                assert not full or self.drops or len(self.frame) > self.depth, self.name
                if not bad and not full:
                    self.expected += self.frame
                self.frame = []
        self._seen = len(self.source.sent)

    def reset(self) -> None:
        self.frame, self.expected = [], []

    @property
    def idle(self) -> bool:
        return not self.source.items and len(self.sink.items) == len(self.expected)


@cocotb.test()
async def whole_good_frames_come_out(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for idle, stall in [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.1, 0.8)]:
        for lane in lanes:
            lane.source.idle, lane.sink.stall = idle, stall
            for _ in range(60 if lane.depth <= 16 else 15):
                length = bench.random.choice(
                    [1, 1, 2, 3, lane.depth - 1, lane.depth, bench.random.randint(1, lane.depth)]
                )
                lane.queue(length, bad=bench.random.random() < 0.2)
        await bench.until(lambda: all(lane.idle for lane in lanes))
        await bench.cycle(5)
        for lane in lanes:
            assert lane.sink.items == lane.expected, lane.name
            frames_out = sum(item[1] for item in lane.sink.items if isinstance(item, tuple))
            lane.sink.items.clear()
            lane.expected.clear()
            assert lane.frames_in == frames_out + lane.bad + lane.full, lane.name
            assert lane.drops or lane.full == 0, lane.name
            lane.frames_in = lane.bad = lane.full = 0


@cocotb.test()
async def frames_without_room_are_dropped_and_counted(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES if name.startswith("drops")]
    await bench.reset()
    for lane in lanes:
        lane.sink.stall = 1.0
        for _ in range(20):
            lane.queue(bench.random.randint(1, lane.depth), bad=False)
    await bench.until(lambda: all(not lane.source.items for lane in lanes))
    for lane in lanes:
        assert lane.full > 0, lane.name
        lane.sink.stall = 0.2
    await bench.until(lambda: all(lane.idle for lane in lanes))
    for lane in lanes:
        assert lane.sink.items == lane.expected, lane.name


@cocotb.test()
async def a_frame_that_never_fits_is_dropped_not_stuck(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for lane in lanes:
        lane.queue(2, bad=False)
        lane.queue(lane.depth + 1, bad=False)
        lane.queue(3 * lane.depth, bad=True)
        lane.queue(3 * lane.depth, bad=False)
        lane.queue(lane.depth, bad=False)
    await bench.until(lambda: all(lane.idle for lane in lanes))
    for lane in lanes:
        assert (lane.frames_in, lane.bad, lane.full) == (5, 1, 2), lane.name
        assert lane.sink.items == lane.expected, lane.name


@cocotb.test()
async def comes_out_after_the_promised_latency_without_gaps(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for lane in lanes:
        lane.queue(3, bad=False)
    await bench.cycle(12)
    for lane in lanes:
        first = lane.source.cycles_of[2] + (2 if lane.block else 1)
        assert lane.sink.cycles_of == [first, first + 1, first + 2], lane.name


@cocotb.test()
async def reset_in_mid_frame_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset()
    for busy in (3, 10, 33):
        for lane in lanes:
            lane.sink.stall = 0.7
            for _ in range(20):
                lane.queue(bench.random.randint(1, lane.depth + 2), bad=False)
        await bench.cycle(busy)
        await bench.reset(1)
        for lane in lanes:
            lane.sink.stall = 0
            lane.queue(2, bad=False)
            lane.queue(2, bad=True)
            lane.queue(1, bad=False)
        await bench.until(lambda: all(lane.idle for lane in lanes))
        await bench.cycle(5)
        for lane in lanes:
            assert lane.sink.items == lane.expected, lane.name
            assert len(lane.expected) == 3, lane.name


def test_packet_fifo() -> None:
    simulate(__file__, INSTANCES)
