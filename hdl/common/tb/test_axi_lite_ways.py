# SPDX-License-Identifier: Apache-2.0
"""Tests axi_to_lite and axi_from_lite between AXI4 and AXI4-Lite managers and memories."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from axi_agents import OKAY, SLVERR, Burst, Manager, Subordinate
from axi_traffic import PACES, Traffic
from bench import Bench, Sink, Source
from bundles import Axi, Wrapped, simulate_wrapped

LITE, FULL = "lite", "axi"
INSTANCES = {
    "to_512": Wrapped("axi_to_lite", [Axi("s_axi"), Axi("m_axil", 16, 32, 0, types=LITE)]),
    "to_64": Wrapped("axi_to_lite", [Axi("s_axi", 32, 64, 2), Axi("m_axil", 32, 32, 0, types=LITE)]),
    "from_512": Wrapped("axi_from_lite", [Axi("s_axil", 64, 32, 0, types=LITE), Axi("m_axi")]),
    "from_64": Wrapped("axi_from_lite", [Axi("s_axil", 32, 32, 0, types=LITE), Axi("m_axi", 32, 64, 2)]),
}
DOWN, UP = ("to_512", "to_64"), ("from_512", "from_64")


def initial(address: int) -> int:
    """Returns the byte at an address that was never written."""
    return (address * 37 >> 3) & 0xFF


class Words:
    """Registers at an AXI4-Lite port. They handle one access of each kind at a time, and answer after some cycles."""

    def __init__(self, bench: Bench, scope: Any, prefix: str = "m_axil") -> None:
        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, f"{prefix}_{name}") for name in names]

        self.bench = bench
        self.aw = Sink(bench, *pins("awvalid", "awready"), pins("awaddr"))
        self.w = Sink(bench, *pins("wvalid", "wready"), pins("wdata", "wstrb"))
        self.b = Source(bench, *pins("bvalid", "bready"), pins("bresp"))
        self.ar = Sink(bench, *pins("arvalid", "arready"), pins("araddr"))
        self.r = Source(bench, *pins("rvalid", "rready"), pins("rdata", "rresp"))
        self.fails = lambda address: OKAY
        self.reset()
        bench.agents.append(self)

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of the outputs and of the inputs."""
        self.b.idle = self.r.idle = idle
        self.aw.stall = self.w.stall = self.ar.stall = stall

    def reset(self) -> None:
        """Forgets requests and written data."""
        self.bytes: dict[int, int] = {}
        self.written: list[tuple[int, int]] = []  # address, strobes
        self.read: list[int] = []

    def drive(self) -> None:
        """Does nothing, because the channels drive the signals."""

    def sample(self) -> None:
        """Answers the received requests."""
        while self.aw.items and self.w.items:
            address, (data, strobes) = self.aw.items.pop(0), self.w.items.pop(0)  # type: ignore[misc]
            assert address % 4 == 0  # type: ignore[operator]
            assert strobes, "a write of nothing"
            self.written.append((address, strobes))  # type: ignore[arg-type]
            for lane in range(4):
                if strobes >> lane & 1 and self.fails(address) == OKAY:
                    self.bytes[address + lane] = data >> 8 * lane & 0xFF  # type: ignore[operator]
            self.b.items.append(self.fails(address))
        for address in self.ar.items:
            assert address % 4 == 0  # type: ignore[operator]
            self.read.append(address)  # type: ignore[arg-type]
            word = bytes(self.bytes.get(address + i, initial(address + i)) for i in range(4))  # type: ignore[operator]
            self.r.items.append((int.from_bytes(word, "little"), self.fails(address)))
        self.ar.items.clear()


def lane_of(bench: Bench, name: str) -> tuple[Traffic, Words]:
    """Creates an AXI4 manager, and registers of 64 KiB."""
    scope = getattr(bench.dut, name)
    traffic = Traffic(bench, Manager(bench, scope), slots=16)
    traffic.slot, traffic.long = 1024, 6
    return traffic, Words(bench, scope)


@cocotb.test()
async def bursts_become_words_and_words_become_beats_again(dut: Any) -> None:
    """Covers every size and alignment, at any pace. Each word is requested once, and a write only if it has a
    strobe."""
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in DOWN]
    await bench.reset()
    for idle, stall in PACES:
        for traffic, words in lanes:
            traffic.manager.pace(idle, stall), words.pace(idle, stall)
            traffic.write(8)
        await bench.until(lambda: all(traffic.written() for traffic, _ in lanes))
        for traffic, words in lanes:
            wanted = set()
            for burst in traffic.writes:
                for address, (_, strobes) in zip(burst.addresses(), burst.data, strict=True):
                    base = address & -traffic.manager.bus
                    wanted |= {(base + lane) & ~3 for lane in range(traffic.manager.bus) if strobes >> lane & 1}
            assert {address for address, _ in words.written} == wanted
            traffic.read(8)
        await bench.until(lambda: all(traffic.done() for traffic, _ in lanes))
        for traffic, words in lanes:
            asked = 0
            for burst in traffic.reads:
                for address in burst.addresses():
                    end = (address & -(1 << burst.size)) + (1 << burst.size)
                    asked += (end - 1) // 4 - address // 4 + 1
            assert len(words.read) == asked
            traffic.check(initial)
            words.read.clear(), words.written.clear()
            traffic.forget()


@cocotb.test()
async def errors_come_back_with_their_burst_or_beat(dut: Any) -> None:
    """A write returns the worst response of its words. A read returns one for each beat."""
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in DOWN]
    for traffic, words in lanes:
        bus = traffic.manager.bus
        words.fails = lambda address, bus=bus: SLVERR if address // bus % 3 == 1 else OKAY  # type: ignore[misc]
    await bench.reset()
    for traffic, _ in lanes:
        traffic.narrow = False
        for slot in range(8):
            burst = traffic.burst(slot)
            burst.data = [(bench.random.getrandbits(8 * traffic.manager.bus), 0)] * burst.beats
            lanes_ = burst.lanes(traffic.manager.bus)
            burst.data = [
                (data, sum(1 << lane for lane in used)) for (data, _), used in zip(burst.data, lanes_, strict=True)
            ]
            traffic.writes.append(burst)
            traffic.manager.write(burst)
    await bench.until(lambda: all(traffic.written() for traffic, _ in lanes))
    for traffic, words in lanes:
        for burst in traffic.writes:
            for (data, _), address, used in zip(
                burst.data, burst.addresses(), burst.lanes(traffic.manager.bus), strict=True
            ):
                for lane in used:
                    if words.fails(address) == OKAY:
                        traffic.memory[(address & -traffic.manager.bus) + lane] = data >> 8 * lane & 0xFF
        traffic.read(12)
    await bench.until(lambda: all(traffic.done() for traffic, _ in lanes))
    for traffic, words in lanes:
        traffic.check(initial, words.fails)


@cocotb.test()
async def reads_and_writes_take_turns_and_a_reset_forgets_them(dut: Any) -> None:
    """Neither direction starves if both always have requests waiting."""
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in DOWN]
    traffic, words = lanes[0]
    await bench.reset()
    for i in range(40):
        burst = Burst(0, 4 * i, 1, 2, data=[(0, 15 << 4 * (i % 16))])
        traffic.manager.write(burst)
        traffic.manager.ask(Burst(1, 4 * i, 1, 2))
    await bench.cycle(120)
    assert abs(len(words.written) - len(words.read)) <= 1
    assert len(words.read) > 8
    words.pace(0.0, 1.0)
    await bench.cycle(50)
    await bench.reset()
    words.pace(0.0, 0.0)
    traffic.memory.clear()
    traffic.write(6)
    await bench.until(traffic.written)
    traffic.read(6)
    await bench.until(traffic.done)
    traffic.check(initial)


class Writer:
    """A manager that writes words."""

    def __init__(self, bench: Bench, scope: Any, prefix: str = "s_axil") -> None:
        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, f"{prefix}_{name}") for name in names]

        self.aw = Source(bench, *pins("awvalid", "awready"), pins("awaddr"))
        self.w = Source(bench, *pins("wvalid", "wready"), pins("wdata", "wstrb"))
        self.b = Sink(bench, *pins("bvalid", "bready"), pins("bresp"))
        self.words: deque[tuple[int, int, int]] = deque()

    def write(self, address: int, data: int, strobes: int = 15) -> None:
        """Queues a word."""
        self.aw.items.append(address)
        self.w.items.append((data, strobes))
        self.words.append((address, data, strobes))


@cocotb.test()
async def words_become_writes_of_one_beat(dut: Any) -> None:
    """Each write has one beat of the whole width. Order and address are unchanged, only the word's own lane has data,
    and responses come back."""
    bench = Bench(dut)
    lanes = []
    for name in UP:
        scope = getattr(dut, name)
        fails = lambda address: SLVERR if address // 4 % 5 == 0 else OKAY  # noqa: E731
        lanes.append((Writer(bench, scope), Subordinate(bench, scope, fails=fails)))
    await bench.reset()
    for idle, stall in PACES:
        for writer, memory in lanes:
            writer.aw.idle, writer.w.idle, writer.b.stall = idle, stall, stall
            memory.pace(idle, stall)
            for _ in range(20):
                address = bench.random.getrandbits(writer.aw.fields[0].width) & ~3
                writer.write(address, bench.random.getrandbits(32), bench.random.choice([15, 15, 1, 6]))
        await bench.until(lambda: all(len(writer.b.items) == 20 for writer, _ in lanes))
        for writer, memory in lanes:
            assert len(memory.written_bursts) == 20
            for burst, (address, data, strobes) in zip(memory.written_bursts, writer.words, strict=True):
                assert (burst.id, burst.address, burst.beats) == (0, address, 1)
                assert 1 << burst.size == memory.bus
                word, lanes_ = burst.data[0]
                at = address % memory.bus
                assert lanes_ == strobes << at
                assert word >> 8 * at & 0xFFFFFFFF == data
            assert writer.b.items == [memory.fails(address) for address, _, _ in writer.words]
            writer.words.clear(), writer.b.items.clear(), memory.written_bursts.clear()


@cocotb.test()
async def a_bus_that_takes_nothing_is_waited_for(dut: Any) -> None:
    """The cell holds one word meanwhile, and a reset discards it."""
    bench = Bench(dut)
    lanes = [(Writer(bench, getattr(dut, name)), Subordinate(bench, getattr(dut, name))) for name in UP]
    writer, memory = lanes[0]
    await bench.reset()
    memory.aw.stall = 1.0
    for i in range(5):
        writer.write(4 * i, i)
    await bench.cycle(50)
    assert len(writer.aw.sent) == len(writer.w.sent) == 1
    await bench.reset()
    memory.aw.stall = 0.0
    writer.write(64, 7)
    await bench.until(lambda: bool(writer.b.items))
    await bench.cycle(10)
    assert [burst.address for burst in memory.written_bursts] == [64]


def test_axi_lite_ways() -> None:
    simulate_wrapped(__file__, INSTANCES)
