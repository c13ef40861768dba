# SPDX-License-Identifier: Apache-2.0
"""bypass_registers alone: settings, tail addresses, the state of queues, and counters of simultaneous events."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Sink, Source
from bypass_block_descriptors import tell
from bypass_blocks import Block
from bypass_formats import FORMATS
from packed_structs import Struct, axi_lite

from wherry.bypass.generated.registers import REGISTERS

# From an event to its register, if the names differ.
COUNTED = {"rx_frame": "rx_frames", "verdict_drop": "verdicts_drop", "tail": "tails", "tail_error": "tail_errors"}
COUNTED |= {"fetch": "fetches", "outside_write": "outside_writes", "outside_read": "outside_reads"}
SETTLES = 40  # cycles until an event can be read
CLEARS = 80


class Registers(Block):
    """Software on the bus, and a core that only counts events."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"registers_{name}", seed)
        bits = axi_lite(16, 32)
        req, resp = (Struct(self.bench, self.wires.scope, f"s_axil_{half}", bits[half]) for half in ("req", "resp"))

        def source(channel: str, fields: str) -> Source:
            return Source(self.bench, req.pin(f"{channel}_valid"), resp.pin(f"{channel}_ready"), req.pins(fields))

        def sink(channel: str, fields: str) -> Sink:
            return Sink(self.bench, resp.pin(f"{channel}_valid"), req.pin(f"{channel}_ready"), resp.pins(fields))

        self.aw, self.w, self.ar = source("aw", "aw.addr"), source("w", "w.data w.strb"), source("ar", "ar.addr")
        self.b, self.r = sink("b", "b.resp"), sink("r", "r.data r.resp")
        self.settings = self.struct("settings_o", "settings_t")
        self.events = self.struct("events_i", "events_t")
        self.state = [self.struct("pairs_i", "pair_state_t", q) for q in range(self.config.queues)]
        self.rate = 0.0
        self.halves: dict[tuple[int, int], int] = {}
        self.reset()

    def reset(self) -> None:
        """No event has happened."""
        self.sums = dict.fromkeys(self.events.layout, 0)
        self.events.net.set(0, self.events.bits, 0)
        self.now: dict[str, int] = {}

    def drive(self) -> None:
        """Events occur with a random rate, up to every cycle."""
        self.now = {}
        for name, (_, width) in self.events.layout.items():
            most = min((1 << width) - 1, 9728 if width == 14 else 4 if width == 3 else 3)
            self.now[name] = self.random.randint(0, most) if self.chance(self.rate) else 0
        self.events.set(**self.now)

    def sample(self) -> None:
        """Adds the events, and records writes of tail addresses."""
        for name, amount in self.now.items():
            self.sums[name] += amount
        halves = self.pin("tail_write_o").get()
        for half in range(2):
            if halves >> half & 1:
                self.halves[self.pin("tail_ring_o").get(), half] = self.pin("tail_data_o").get()

    async def write(self, offset: int, value: int, strobes: int = 15) -> int:
        """A write; returns the response."""
        count = len(self.b.items)
        self.aw.items.append(offset)
        self.w.items.append((value, strobes))
        await self.bench.until(lambda: len(self.b.items) > count, 1000)
        return self.b.items[-1]  # type: ignore[return-value]

    async def read(self, offset: int) -> int:
        """Reads a register, and checks that the read succeeds."""
        count = len(self.r.items)
        self.ar.items.append(offset)
        await self.bench.until(lambda: len(self.r.items) > count, 1000)
        value, response = self.r.items[-1]  # type: ignore[misc]
        assert response == 0
        return value

    async def set(self, name: str, value: int, index: int = 0) -> None:
        """Writes a register."""
        assert await self.write(REGISTERS[name].at(index), value) == 0

    async def counts(self) -> dict[str, int]:
        """Reads all counters."""
        await self.bench.cycle(SETTLES)
        return {name: await self.read(REGISTERS[COUNTED.get(name, name)].at(0)) for name in self.sums}


@cocotb.test()
async def blocks_are_told_what_was_written(dut: Any) -> None:
    """Writes descriptors of every family, doorbells, limits, and queue enables, at any bus speed."""
    for name, idle in (("one", 0.0), ("four", 0.5)):
        rig = Registers(dut, name, seed=1)
        await rig.bench.reset()
        for channel in (rig.aw, rig.w, rig.ar):
            channel.idle = idle
        rig.b.stall = rig.r.stall = idle
        await rig.bench.cycle()
        assert rig.settings.all("tx_limit rx_limit max_frame enable written_back") == (0xFFF, 0xFFF, 0x2600, 0, 0)
        assert rig.settings.all("tx_bell.credits tx_bell.batch tx_bell.timer") == (1, 1, 2500)
        assert rig.settings.all("rx_bell.credits rx_bell.align rx_bell.batch rx_bell.timer") == (1, 3, 8, 2500)
        for kind in FORMATS.values():
            for register, value in kind.registers.items():
                await rig.set(register, value)
            seen = rig.settings.get("personality")
            tell(_Fields(rig, seen), kind)  # type: ignore[arg-type]
        await rig.set("base_low", 0xFFFFFFFF)
        await rig.set("base_high", 0x12345678)
        assert rig.settings.get("base") == (0x12345678FFFFFFFF >> 23)
        await rig.set("doorbells", 5 | 7 << 4 | 2 << 8 | 99 << 16)
        await rig.set("doorbell_timer", 0xABCD)
        assert rig.settings.all("rx_bell.credits tx_bell.credits rx_bell.align rx_bell.batch") == (5, 7, 2, 99)
        assert rig.settings.all("rx_bell.timer tx_bell.timer tx_bell.batch tx_bell.align") == (0xABCD, 0xABCD, 1, 0)
        await rig.set("tx_limit", 77)
        await rig.set("rx_limit", 64)
        await rig.set("max_frame", 1514)
        for report in range(8):
            await rig.set("completion", 1 | 2 | report << 4)
            assert rig.settings.all("written_back report report_mask") == (1, 1, (1 << report) - 1)
        assert rig.settings.all("tx_limit rx_limit max_frame") == (77, 64, 1514)
        for queue in range(rig.config.queues):
            await rig.set("queue_control", 3 if queue % 2 else 1, queue)
        running = (1 << rig.config.queues) - 1
        assert rig.settings.all("enable in_place") == (running, running & 0b1010)
        for queue in range(rig.config.queues):
            for ring, register in enumerate(("rx_tail", "tx_tail")):
                for half, part in enumerate(("low", "high")):
                    value = rig.random.getrandbits(32)
                    await rig.set(f"{register}_{part}", value, queue)
                    assert rig.halves[2 * queue + ring, half] == value
        # A write of a partial word, or for a queue that does not exist, has no effect.
        before = rig.settings.net.get()
        assert await rig.write(REGISTERS["tx_limit"].at(0), 1, strobes=7) == 2
        told = dict(rig.halves)
        for register in ("queue_control", "tx_tail_low"):
            await rig.set(register, 0, rig.config.queues)
        assert rig.settings.net.get() == before
        assert rig.halves == told
        await rig.bench.reset()
        assert rig.settings.all("enable tx_limit rx_limit max_frame") == (0, 0xFFF, 0xFFF, 0x2600)


class _Fields:
    """Compares the fields instead of setting them; it replaces the struct that `tell` sets."""

    def __init__(self, rig: Registers, seen: int) -> None:
        self.layout, self.seen, self.name = rig.wires.kinds["personality_t"][1], seen, ""

    def pin(self, name: str) -> _Fields:
        """Selects the next field."""
        self.name = name
        return self

    def set(self, value: int) -> None:
        """The field must have this value."""
        low, width = self.layout[self.name]
        assert self.seen >> low & ((1 << width) - 1) == value, self.name


@cocotb.test()
async def the_state_of_queues_can_be_read(dut: Any) -> None:
    """Checks each existing queue; the others read as 0."""
    rig = Registers(dut, "four", seed=2)
    await rig.bench.reset()
    for _ in range(5):
        for queue, state in enumerate(rig.state):
            state.set(**{name: rig.random.getrandbits(width) for name, (_, width) in state.layout.items()})
            shown = {"running": "running", "idle": "idle", "rx_given": "rx.given", "tx_given": "tx.given"}
            values: dict[str, int] = {}
            for name, field in shown.items():
                values[name] = rig.random.getrandbits(state.layout[field][1])
                state.pin(field).set(values[name])
            word = await rig.read(REGISTERS["queue_state"].at(queue))
            fields = REGISTERS["queue_state"].fields
            assert {name: fields[name].get(word) for name in values} == values
    assert await rig.read(REGISTERS["queue_state"].at(4)) == 0


@cocotb.test()
async def everything_is_counted_once_though_all_happens_at_once(dut: Any) -> None:
    """Checks every event of every cycle, while software reads and clears counters."""
    for name in ("one", "four"):
        rig = Registers(dut, name, seed=3)
        await rig.bench.reset()
        await rig.read(0)
        await rig.bench.cycle(CLEARS)
        for rate in (1.0, 0.3):
            rig.rate = rate
            await rig.bench.cycle(400)
            for _ in range(10):
                await rig.read(REGISTERS["rx_bytes"].at(0))
            rig.rate = 0.0
            assert await rig.counts() == rig.sums
        assert all(rig.sums.values())
        await rig.set("control", 1)
        await rig.bench.cycle(CLEARS)
        rig.reset()
        assert not any((await rig.counts()).values())
        rig.rate = 1.0
        await rig.bench.cycle(100)
        await rig.bench.reset()
        rig.rate = 0.0
        await rig.read(0)
        rig.reset()
        assert not any((await rig.counts()).values())


@cocotb.test()
async def cycles_are_read_as_one_number(dut: Any) -> None:
    """A read of the low word saves the high word; time_o has the same count."""
    rig = Registers(dut, "one", seed=4)
    await rig.bench.reset()
    first = await rig.read(REGISTERS["cycles"].at(0))
    begun = rig.bench.cycles
    await rig.bench.cycle(100)
    second = await rig.read(REGISTERS["cycles"].at(0))
    assert abs((second - first) - (rig.bench.cycles - begun)) <= 1
    assert await rig.read(REGISTERS["cycles"].at(1)) == 0
    assert rig.pin("time_o").get() - second < 40
