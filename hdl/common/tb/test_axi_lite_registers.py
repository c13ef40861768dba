# SPDX-License-Identifier: Apache-2.0
"""Tests axi_lite_registers with the bench's own channels at every pace, and with cocotbext-axi's manager."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench, Sink, Source
from bundles import Axi, Wrapped, simulate_wrapped
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

INSTANCES = {
    name: Wrapped("axi_lite_registers", [Axi("s_axil", width, 32, 0)], {"AddressWidth": width})
    for name, width in {"narrow": 5, "wide": 12}.items()
}
SLVERR = 2


class Bus:
    """The five channels, and a register file of 2^(address width - 1) bytes. Higher addresses return errors."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope = getattr(bench.dut, name)

        def pin(signal: str) -> Any:
            return bench.pin(scope, signal)

        def channel(kind: Any, prefix: str, fields: list[str]) -> Any:
            pins = [pin(f"s_axil_{prefix}{field}") for field in fields]
            return kind(bench, pin(f"s_axil_{prefix}valid"), pin(f"s_axil_{prefix}ready"), pins)

        self.bench, self.name, self.slow = bench, name, 0.0
        self.aw, self.w = channel(Source, "aw", ["addr"]), channel(Source, "w", ["data", "strb"])
        self.ar = channel(Source, "ar", ["addr"])
        self.b, self.r = channel(Sink, "b", ["resp"]), channel(Sink, "r", ["data", "resp"])
        self.write, self.read, self.address = pin("write_o"), pin("read_o"), pin("address_o")
        self.data, self.strobe = pin("write_data_o"), pin("write_strobe_o")
        self.done, self.read_data, self.error = pin("done_i"), pin("read_data_i"), pin("error_i")
        self.size = 1 << (self.address.width - 1)
        self.words: dict[int, int] = {}
        self.log: list[str] = []
        bench.agents.append(self)

    def drive(self) -> None:
        # A user of the register bus may answer combinationally. This one uses the address of the cycle before.
        self.done.set(0)

    async def cycle(self) -> None:
        """Runs one cycle, in which the register file may answer."""
        random = self.bench.random
        for agent in self.bench.agents:
            agent.drive()
        self.bench.dut.clk_i.value = 0
        await self.bench.settle()
        address = self.address.get()
        bad = address >= self.size
        done = random.random() >= self.slow
        self.done.set(done)
        self.error.set(bad if done else random.getrandbits(1))
        self.read_data.set(self.words.get(address, 0) if done and not bad else random.getrandbits(32))
        await self.bench.settle()
        for agent in self.bench.agents:
            agent.sample()
        assert address % 4 == 0
        if done and self.write.get():
            self.log.append("w")
            if not bad:
                mask = sum(0xFF << (8 * i) for i in range(4) if self.strobe.get() >> i & 1)
                self.words[address] = (self.words.get(address, 0) & ~mask) | (self.data.get() & mask)
        if done and self.read.get():
            self.log.append("r")
        self.bench.cycles += 1
        self.bench.dut.clk_i.value = 1
        await self.bench.settle()

    def sample(self) -> None:
        pass

    def reset(self) -> None:
        self.done.set(0)


@cocotb.test()
async def writes_and_reads_at_every_pace(dut: Any) -> None:
    for name in INSTANCES:
        bench = Bench(dut)
        bus = Bus(bench, name)
        await bench.reset()
        random = bench.random
        model: dict[int, int] = {}
        for idle_aw, idle_w, stall, slow in [(0, 0, 0, 0), (0.9, 0, 0, 0), (0, 0.9, 0, 0), (0.3, 0.3, 0.6, 0.6)]:
            bus.aw.idle, bus.w.idle, bus.ar.idle = idle_aw, idle_w, idle_aw
            bus.b.stall, bus.r.stall, bus.slow = stall, stall, slow
            # First writes, then reads of the same addresses, because only responses order reads and writes.
            bus.b.items.clear(), bus.r.items.clear()
            writes = []
            for _ in range(60):
                address, data, strobe = random.randrange(2 * bus.size), random.getrandbits(32), random.getrandbits(4)
                bus.aw.items.append(address)
                bus.w.items.append((data, strobe))
                writes.append(address)
                word = address & ~3
                if word < bus.size:
                    mask = sum(0xFF << (8 * i) for i in range(4) if strobe >> i & 1)
                    model[word] = (model.get(word, 0) & ~mask) | (data & mask)
            for _ in range(20_000):
                if len(bus.b.items) == 60:
                    break
                await bus.cycle()
            assert bus.b.items == [SLVERR if (a & ~3) >= bus.size else 0 for a in writes], name
            assert bus.words == model, name
            reads = [random.choice(writes) for _ in range(60)]
            bus.ar.items.extend(reads)
            for _ in range(20_000):
                if len(bus.r.items) == 60:
                    break
                await bus.cycle()
            for address, item in zip(reads, bus.r.items, strict=True):
                word = address & ~3
                if word >= bus.size:
                    assert item[1] == SLVERR, name
                else:
                    assert item == (model.get(word, 0), 0), name
        bus.log.clear()
        for _ in range(20):
            bus.ar.items.append(0), bus.aw.items.append(0), bus.w.items.append((0, 15))
        for _ in range(600):
            await bus.cycle()
        assert bus.log.count("w") == 20, name
        assert bus.log.count("r") == 20, name


@cocotb.test()
async def reads_and_writes_take_turns(dut: Any) -> None:
    bench = Bench(dut)
    bus = Bus(bench, "wide")
    await bench.reset()
    for _ in range(20):
        bus.ar.items.append(0), bus.aw.items.append(4), bus.w.items.append((0, 15))
    for _ in range(130):
        await bus.cycle()
    text = "".join(bus.log)
    assert len(text) == 40
    assert "ww" not in text[1:-1], text
    assert "rr" not in text[1:-1], text


@cocotb.test()
async def an_access_takes_the_promised_cycles(dut: Any) -> None:
    bench = Bench(dut)
    bus = Bus(bench, "wide")
    await bench.reset()
    bus.ar.items.extend([0] * 10)
    for _ in range(40):
        await bus.cycle()
    assert bus.r.cycles_of[0] - bus.ar.cycles_of[0] == 3
    assert {b - a for a, b in zip(bus.r.cycles_of, bus.r.cycles_of[1:], strict=False)} == {3}


@cocotb.test()
async def reset_forgets_half_an_access(dut: Any) -> None:
    bench = Bench(dut)
    bus = Bus(bench, "wide")
    await bench.reset()
    bus.aw.items.append(8)  # the data of this write never come
    for _ in range(5):
        await bus.cycle()
    await bench.reset()
    bus.aw.items.append(12)
    bus.w.items.append((77, 15))
    for _ in range(10):
        await bus.cycle()
    assert bus.words == {12: 77}
    assert bus.b.items == [0]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stock_manager_agrees(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    scope = dut.wide
    manager = AxiLiteMaster(AxiLiteBus.from_prefix(scope, "s_axil"), dut.clk_i, dut.rst_i)
    scope.done_i.value = 0

    async def answer() -> None:
        words: dict[int, int] = {}
        while True:
            await RisingEdge(dut.clk_i)
            if not (int(scope.write_o.value) or int(scope.read_o.value)):
                continue
            address = int(scope.address_o.value)
            scope.error_i.value = address >= 2048
            scope.read_data_i.value = words.get(address, 0)
            if int(scope.write_o.value):
                words[address] = int(scope.write_data_o.value)
            scope.done_i.value = 1
            await RisingEdge(dut.clk_i)
            scope.done_i.value = 0

    cocotb.start_soon(answer())
    for address in range(0, 64, 4):
        assert (await manager.write(address, (address * 3).to_bytes(4, "little"))).resp == AxiResp.OKAY
    for address in range(0, 64, 4):
        result = await manager.read(address, 4)
        assert (result.resp, int.from_bytes(result.data, "little")) == (AxiResp.OKAY, address * 3)
    assert (await manager.read(2048, 4)).resp == AxiResp.SLVERR
    assert (await manager.write(2048, b"0000")).resp == AxiResp.SLVERR


def test_axi_lite_registers() -> None:
    simulate_wrapped(__file__, INSTANCES)
