# SPDX-License-Identifier: Apache-2.0
"""Tests cells with one input and one output stream in order: stream_register, stream_fifo, stream_fifo_level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cocotb
from bench import Bench, Sink, Source
from simulate import Instances, simulate


@dataclass(frozen=True)
class Cell:
    """The properties that an instance guarantees."""

    latency: int
    capacity: int
    cuts_ready: bool
    pace: int = 1  # cycles per beat


INSTANCES: Instances = {
    "register_1": ("stream_register", {"Width": 1}),
    "register_512": ("stream_register", {"Width": 512}),
    "skid_1": ("stream_register", {"Width": 1, "CutReady": 1}),
    "skid_512": ("stream_register", {"Width": 512, "CutReady": 1}),
    "half_1": ("stream_register", {"Width": 1, "Half": 1}),
    "half_512": ("stream_register", {"Width": 512, "Half": 1}),
    "fifo_8_2": ("stream_fifo_level", {"Width": 8, "Depth": 2}),
    "fifo_8_16": ("stream_fifo_level", {"Width": 8, "Depth": 16, "AlmostFull": 10}),
    "fifo_512_32": ("stream_fifo", {"Width": 512, "Depth": 32}),
    "fifo_8_2_block": ("stream_fifo_level", {"Width": 8, "Depth": 2, "Block": 1}),
    "fifo_8_16_block": ("stream_fifo_level", {"Width": 8, "Depth": 16, "Block": 1}),
    "fifo_72_128": ("stream_fifo", {"Width": 72, "Depth": 128}),
    "fifo_72_128_ultra": ("stream_fifo", {"Width": 72, "Depth": 128, "Ultra": 1}),
}


def promise(name: str) -> Cell:
    cell, parameters = INSTANCES[name]
    if cell.startswith("stream_fifo"):
        block = parameters.get("Block", parameters["Depth"] > 64)
        return Cell(latency=2 if block else 1, capacity=parameters["Depth"], cuts_ready=True)
    if parameters.get("Half"):
        return Cell(latency=1, capacity=1, cuts_ready=True, pace=2)
    cuts = bool(parameters.get("CutReady"))
    return Cell(latency=1, capacity=2 if cuts else 1, cuts_ready=cuts)


class Lane:
    """An instance with a sender and a receiver."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.name = name
        self.scope: Any = getattr(bench.dut, name)
        self.source: Source = bench.source(self.scope)
        self.sink: Sink = bench.sink(self.scope)
        self.promise = promise(name)


def lanes_of(bench: Bench) -> list[Lane]:
    return [Lane(bench, name) for name in INSTANCES]


@cocotb.test()
async def keeps_every_beat_in_order(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for idle, stall in [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.9, 0.1), (0.1, 0.9)]:
        expected = {}
        for lane in lanes:
            lane.source.idle, lane.sink.stall = idle, stall
            lane.sink.items.clear()
            expected[lane.name] = lane.source.random_items(300)
        await bench.until(lambda: all(len(lane.sink.items) == 300 for lane in lanes))
        await bench.cycle(5)
        for lane in lanes:
            assert lane.sink.items == expected[lane.name], lane.name


@cocotb.test()
async def full_throughput_after_the_promised_latency(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        lane.source.random_items(100)
    await bench.cycle(210)
    for lane in lanes:
        first = lane.source.cycles_of[0]
        if lane.promise.capacity < 2 * lane.promise.latency and lane.promise.latency > 1:
            continue  # two places cannot hide a latency of two cycles
        last = 100 * lane.promise.pace
        assert lane.source.cycles_of == list(range(first, first + last, lane.promise.pace)), lane.name
        first += lane.promise.latency
        assert lane.sink.cycles_of == list(range(first, first + last, lane.promise.pace)), lane.name


@cocotb.test()
async def holds_what_it_promises(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        lane.sink.stall = 1.0
        lane.source.random_items(200)
    await bench.cycle(200)
    for lane in lanes:
        assert len(lane.source.sent) == lane.promise.capacity, lane.name


@cocotb.test()
async def says_when_it_is_almost_full(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [lane for lane in lanes_of(bench) if INSTANCES[lane.name][0] == "stream_fifo_level"]
    await bench.reset()
    almost = {lane.name: bench.pin(lane.scope, "almost_full_o") for lane in lanes}
    seen: dict[str, set[int]] = {lane.name: set() for lane in lanes}
    for cycle in range(1500):
        for lane in lanes:
            lane.source.idle = 0.0 if cycle % 500 < 250 else 0.6
            lane.sink.stall = 0.7 if cycle % 500 < 250 else 0.2
            if not lane.source.items:
                lane.source.random_items(1)
        await bench.cycle()
        # The outputs now show the state after the clock edge.
        for lane in lanes:
            depth = INSTANCES[lane.name][1]["Depth"]
            within = len(lane.source.sent) - len(lane.sink.items)
            threshold = INSTANCES[lane.name][1].get("AlmostFull", depth - 1)
            assert almost[lane.name].get() == (within >= threshold), lane.name
            seen[lane.name].add(within)
    for lane in lanes:
        assert seen[lane.name] == set(range(INSTANCES[lane.name][1]["Depth"] + 1)), lane.name


@cocotb.test()
async def reset_in_mid_flight_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for busy in (3, 4, 11, 40):
        for lane in lanes:
            lane.source.idle, lane.sink.stall = 0.2, 0.7
            lane.source.random_items(100)
        await bench.cycle(busy)
        await bench.reset(1)
        expected = {lane.name: lane.source.random_items(20) for lane in lanes}
        for lane in lanes:
            lane.sink.stall = 0.3
        await bench.until(lambda: all(len(lane.sink.items) == 20 for lane in lanes))
        for lane in lanes:
            assert lane.sink.items == expected[lane.name], lane.name


@cocotb.test()
async def cuts_the_paths_that_it_says(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    changed: dict[str, bool] = {lane.name: False for lane in lanes}
    for _ in range(100):
        for lane in lanes:
            lane.source.idle, lane.sink.stall = 0.3, 0.5
            if len(lane.source.items) < 2:
                lane.source.random_items(5)
        await bench.cycle()
        # Change the inputs while the clock is high. m_valid and m_payload must not follow, nor s_ready in cells that
        # cut it.
        before = [(lane.source.ready.get(), lane.sink.valid.get(), lane.sink.fields[0].get()) for lane in lanes]
        for lane in lanes:
            lane.sink.ready.set(not lane.sink._ready)
            lane.source.valid.set(not lane.source._active)
            lane.source.fields[0].set(bench.random.getrandbits(lane.source.fields[0].width))
        await bench.settle()
        for lane, (ready, valid, payload) in zip(lanes, before, strict=True):
            assert (lane.sink.valid.get(), lane.sink.fields[0].get()) == (valid, payload), lane.name
            changed[lane.name] |= lane.source.ready.get() != ready
        for lane in lanes:  # restore the old values
            lane.sink.ready.set(lane.sink._ready)
            lane.source.valid.set(lane.source._active)
            if lane.source._active:
                lane.source.fields[0].set(lane.source.items[0])
        await bench.settle()
    for lane in lanes:
        assert changed[lane.name] != lane.promise.cuts_ready, lane.name


def test_queues() -> None:
    simulate(__file__, INSTANCES)
