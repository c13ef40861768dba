# SPDX-License-Identifier: Apache-2.0
"""Tests sync, reset_sync, cdc_bus, cdc_fifo and cdc_reset with several clock ratios and phases, pauses and resets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import cocotb
from bench import Pin, Sink, Source
from cocotb.triggers import Timer
from simulate import Instances, elaborate, simulate
from two_clocks import CLOCKS, Crossing

WIDTH = 16
FIFOS: Instances = {
    f"fifo_{depth}_{stages}": ("cdc_fifo", {"Width": WIDTH, "Depth": depth, "Stages": stages})
    for depth, stages in ((2, 2), (4, 3), (8, 2), (16, 2), (16, 4))
}
BUSES: Instances = {f"bus_{stages}": ("cdc_bus", {"Width": WIDTH, "Stages": stages}) for stages in (2, 3, 4)}
SYNCS: Instances = {
    f"sync_{width}_{stages}_{initial}": ("sync", {"Width": width, "Stages": stages, "Initial": initial})
    for width, stages, initial in ((1, 2, 0), (3, 3, 1), (8, 4, 0))
}
RESETS: Instances = {f"reset_{stages}": ("reset_sync", {"Stages": stages}) for stages in (2, 3)}
STREAMS = FIFOS | BUSES
PACES = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3), (0.9, 0.1), (0.1, 0.9)]


def top() -> str:
    """Returns a top with all instances between two clocks."""
    lines = ["module top (input wire s_clk_i, input wire s_rst_i, input wire m_clk_i, input wire m_rst_i);"]
    for name, (cell, parameters) in (STREAMS | SYNCS | RESETS).items():
        assigned = ", ".join(f".{key}({value})" for key, value in parameters.items())
        ports = ".s_clk_i, .s_rst_i, .m_clk_i, .m_rst_i" if name in STREAMS else ".clk_i(m_clk_i)"
        lines.append(f"  {cell} #({assigned}) {name} ({ports});")
    return "\n".join([*lines, "endmodule", ""])


class Lane:
    """A stream whose beats are numbered, so the test sees if one is missing or repeated."""

    def __init__(self, crossing: Crossing, dut: Any, name: str) -> None:
        scope = getattr(dut, name)
        self.name = name
        self.parameters = STREAMS[name][1]
        self.held = self.parameters.get("Depth", 0) + 1  # beats that the cell can hold
        self.source: Source = crossing.s.source(scope)
        self.sink: Sink = crossing.m.sink(scope)
        self.count = 0
        self.before: list[int] = []  # beats that arrived before a reset

    def send(self, count: int) -> None:
        """Queues `count` beats."""
        self.source.items.extend(range(self.count, self.count + count))
        self.count += count

    def pace(self, idle: float, stall: float) -> None:
        self.source.idle, self.sink.stall = idle, stall

    def through(self) -> bool:
        """Returns true if the last beat has arrived."""
        return not self.source.items and bool(self.sink.items) and self.sink.items[-1] == self.count - 1


async def begin(dut: Any, clocks: tuple[int, int, int], **options: int) -> tuple[Crossing, list[Lane]]:
    """Resets both sides and returns when the reset is over."""
    crossing = Crossing(dut, clocks, **options)
    lanes = [Lane(crossing, dut, name) for name in STREAMS]
    await crossing.reset(*crossing.sides)
    await settled(crossing)
    return crossing, lanes


async def settled(crossing: Crossing) -> None:
    """Waits until no reset is in progress. The handshake takes four crossings."""
    for _ in range(6):
        for side in crossing.sides:
            await crossing.cycle(side, 5)


@cocotb.test()
async def all_begin_as_configured(dut: Any) -> None:
    """Runs as the first test, before any clock edge."""
    await Timer(1, "ns")
    for name, (_, parameters) in SYNCS.items():
        scope = getattr(dut, name)
        assert int(scope.value_o.value) == ((1 << parameters["Width"]) - 1 if parameters["Initial"] else 0), name
    for name in RESETS:
        assert int(getattr(dut, name).rst_o.value), name


@cocotb.test()
async def every_beat_arrives_once_and_in_order(dut: Any) -> None:
    for i, clocks in enumerate(CLOCKS):
        crossing, lanes = await begin(dut, clocks, seed=i, jitter=min(clocks[:2]) // 2 if i % 2 else 0)
        for idle, stall in PACES:
            for lane in lanes:
                lane.pace(idle, stall)
                lane.send(60)
            await crossing.until(lambda: all(lane.through() for lane in lanes))  # noqa: B023
        for lane in lanes:
            assert lane.sink.items == list(range(lane.count)), (lane.name, clocks)


@cocotb.test()
async def latency_and_throughput_are_as_promised(dut: Any) -> None:
    for clocks in CLOCKS:
        crossing, lanes = await begin(dut, clocks)
        for lane in lanes:
            lane.send(100)
        await crossing.until(lambda: all(lane.through() for lane in lanes))  # noqa: B023
        slow_s = clocks[0] >= clocks[1]
        for lane in lanes:
            stages = lane.parameters["Stages"]
            if clocks == (8, 8, 0):
                cycles = lane.sink.cycles_of[0] - lane.source.cycles_of[0]
                assert cycles == 1 + stages + (lane.name in FIFOS), lane.name
            if lane.name in FIFOS and lane.held - 1 >= 2 * stages + 4:
                cycles_of = lane.source.cycles_of if slow_s else lane.sink.cycles_of
                assert cycles_of == list(range(cycles_of[0], cycles_of[0] + 100)), (lane.name, clocks)


@cocotb.test()
async def a_sink_that_takes_nothing_fills_it_and_loses_nothing(dut: Any) -> None:
    for clocks in CLOCKS:
        crossing, lanes = await begin(dut, clocks)
        for lane in lanes:
            lane.pace(0.0, 1.0)
            lane.send(50)
        for side in crossing.sides:
            await crossing.cycle(side, 200)
        for lane in lanes:
            # A FIFO holds one more beat in its output register. A bus holds only the beat in its register.
            assert len(lane.source.sent) == lane.held, lane.name
            assert not lane.sink.items
            lane.pace(0.0, 0.0)
        await crossing.until(lambda: all(lane.through() for lane in lanes))  # noqa: B023
        for lane in lanes:
            assert lane.sink.items == list(range(50)), lane.name


def cases() -> Iterator[tuple[tuple[int, int, int], str, int]]:
    """Clocks, sides that are reset, and cycles of the reset."""
    return product(CLOCKS, ("s", "m", "sm"), (1, 7))


@cocotb.test()
async def a_reset_of_either_side_empties_both(dut: Any) -> None:
    for i, (clocks, names, cycles) in enumerate(cases()):
        crossing, lanes = await begin(dut, clocks, seed=i, jitter=i % 2)
        sides = [side for name, side in zip("sm", crossing.sides, strict=True) if name in names]
        for idle, stall in PACES[:4]:
            for lane in lanes:
                lane.pace(idle, stall)
                lane.sink.items.clear()
                lane.send(30)
            first = lanes[0].count - 30
            await crossing.cycle(crossing.random.choice(sides), crossing.random.randrange(1, 25))
            for lane in lanes:
                lane.before = list(lane.sink.items)
                lane.sink.items.clear()
            await crossing.reset(*sides, cycles=cycles)
            if crossing.random.random() < 0.5:  # a second reset, during the handshake
                await crossing.cycle(sides[0], crossing.random.randrange(1, 9))
                await crossing.reset(sides[-1], cycles=cycles)
            await settled(crossing)
            for lane in lanes:
                # A reset of the sender clears its queue. After a reset of the receiver the sender still has its beats.
                lane.send(20)
            await crossing.until(lambda: all(lane.through() for lane in lanes))  # noqa: B023
            for lane in lanes:
                what = (lane.name, clocks, names, cycles)
                assert lane.before == list(range(first, first + len(lane.before))), what
                after = lane.sink.items
                # Beats that arrived before the receiver stopped, a gap for each reset, and all beats that were sent
                # afterwards.
                steps = [n for n in range(1, len(after)) if after[n] != after[n - 1] + 1]
                assert len(steps) <= 3, what
                assert after == sorted(set(after)), what
                assert after[-20:] == list(range(lane.count - 20, lane.count)), what


@cocotb.test()
async def a_side_that_is_reset_makes_the_other_stop(dut: Any) -> None:
    """During a reset, no beat is accepted and none is offered."""
    for clocks, side in product(CLOCKS, (0, 1)):
        crossing, lanes = await begin(dut, clocks)
        for lane in lanes:
            lane.pace(0.0, 1.0)
            lane.send(50)
        await settled(crossing)
        crossing.sides[side].hold(True)
        await settled(crossing)
        await settled(crossing)
        for lane in lanes:
            assert not lane.source.ready.get(), lane.name
            assert not lane.sink.valid.get(), lane.name
        crossing.sides[side].hold(False)
        await settled(crossing)
        for lane in lanes:
            lane.send(5)
            lane.pace(0.0, 0.0)
        await crossing.until(lambda: all(lane.through() for lane in lanes))  # noqa: B023


@cocotb.test()
async def a_level_takes_its_stages(dut: Any) -> None:
    crossing = Crossing(dut, (8, 8, 3))
    pins: dict[str, tuple[Pin, Pin]] = {}
    for name in SYNCS:
        scope = getattr(dut, name)
        pins[name] = crossing.m.pin(scope, "value_i"), crossing.m.pin(scope, "value_o")
    model = {name: [0] * 5 for name in SYNCS}
    for cycle in range(300):
        for name, (pin, _) in pins.items():
            model[name].insert(0, crossing.random.getrandbits(pin.width))
            pin.set(model[name][0])
        await crossing.cycle(crossing.m)
        for name, (_, pin) in pins.items():
            if cycle > 5:
                assert pin.get() == model[name][SYNCS[name][1]["Stages"] - 1], name


@cocotb.test()
async def a_reset_comes_without_a_clock_and_leaves_with_it(dut: Any) -> None:
    crossing = Crossing(dut, (8, 8, 3))
    for name, (_, parameters) in RESETS.items():
        scope = getattr(dut, name)
        scope.rst_i.value = 0
        await crossing.cycle(crossing.m, 10)
        for _ in range(20):
            assert not int(scope.rst_o.value)
            scope.rst_i.value = 1
            await Timer(1, "ns")
            assert int(scope.rst_o.value), "waits for an edge"
            if crossing.random.random() < 0.5:
                await crossing.cycle(crossing.m, crossing.random.randrange(1, 4))
                assert int(scope.rst_o.value)
            scope.rst_i.value = 0
            for _ in range(parameters["Stages"]):
                await Timer(1, "ns")
                assert int(scope.rst_o.value), "too early"
                await crossing.cycle(crossing.m)
            assert not int(scope.rst_o.value), "too late"


def test_cdc() -> None:
    simulate(__file__, text=top())
    elaborate(STREAMS | SYNCS | RESETS)
