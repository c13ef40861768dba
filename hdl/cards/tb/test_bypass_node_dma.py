# SPDX-License-Identifier: Apache-2.0
"""bypass_node with the DMA engine: software, the NIC and the host share the port of the bridge.

Copies go to slots of a stopped queue pair, which are plain memory then.
"""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import DECERR, OKAY, SLVERR
from bypass_cores import PACKAGES
from bypass_nic import TAIL_BASE
from card_rig import BAR0, CardRig, HostBridge, top
from dma_axi_rig import Host
from dma_axi_software import BELLS, Rings
from dma_rig import LINE, MEMORY, UNSUPPORTED
from echo_model import Host as Echo
from echo_model import asking, check, fate
from functions_rig import ECHO, IN_PLACE
from simulate import simulate

from wherry.bypass.generated.registers import REGISTERS as CORE
from wherry.dma.generated.registers import REGISTERS

BAR4, BAR4_SIZE = 0x200_0000, 0x2000
SLOTS, SLOT_BYTES = 0x40_0000, 32 * 2048  # of queue 0
FIRST, SECOND, DATA = 0x7_0000_0000, 0x8_0000_0000, 0x10_0000_0000
FAILED = 8


class Card:
    """The node with its host: a driver of the engine at BAR 4, and accesses to the window, all at one port."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.rig = CardRig(dut, "dma", seed=seed)
        self.bench = self.rig.bench
        self.memory: HostBridge = self.rig.tails  # type: ignore[assignment]
        self.window = Host(self.bench, self.rig.nic.manager)
        self.rings = Rings(Host(self.bench, self.rig.nic.manager, BAR4), self.memory, FIRST)

    def restart(self) -> None:
        """Forgets all accesses, after a reset."""
        self.window.restart()
        self.rings.host.restart()

    async def start(self, base: int = FIRST) -> None:
        """Resets the link, with no NIC, and starts the rings. One Host at a time uses the port."""
        await self.rig.restart("ixgbe")
        if self.rig.nic in self.bench.agents:
            self.bench.agents.remove(self.rig.nic)
        self.restart()
        self.rings = Rings(Host(self.bench, self.rig.nic.manager, BAR4), self.memory, base)
        self.window = self.rings.host
        await self.rings.set_up()

    def at(self, offset: int) -> int:
        """Returns an offset in the window as the address for `window`, which is at BAR 4."""
        return offset - BAR4

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of both ports."""
        self.rig.nic.manager.pace(idle, stall)
        self.memory.pace(idle, stall)


@cocotb.test()
async def registers_are_behind_bar_4(dut: Any) -> None:
    """The engine's registers, beside the core's. Addresses behind BAR 4 get DECERR, and reads of doorbells SLVERR."""
    card = Card(dut, 1)
    await card.start()
    assert await card.rings.read("id") == REGISTERS["id"].reset
    assert await card.rings.read("capability") == 0x71
    assert await card.rings.read("function_state") == 0x21
    for size in (4, 64):
        found = await card.window.read(REGISTERS["id"].offset, size)
        assert int.from_bytes(found[:4], "little") == REGISTERS["id"].reset
        found = await card.window.read(card.at(BAR0 + CORE["id"].at(0)), size)
        assert int.from_bytes(found[:4], "little") == CORE["id"].reset
    for at, answer in ((BELLS, SLVERR), (BAR4_SIZE, DECERR), (BAR4_SIZE - LINE, SLVERR), (-LINE, DECERR)):
        assert (await card.window.answer(at, 4))[1] == answer, hex(at)
    assert await card.window.write(BELLS + 32, bytes(6), 0b101111) == SLVERR
    assert await card.window.write(BAR4_SIZE, bytes(4)) == DECERR


@cocotb.test()
async def bytes_are_copied_between_window_and_host_memory(dut: Any) -> None:
    """To the window and back, any alignment, doorbells of both kinds. The host accesses other slots meanwhile."""
    card = Card(dut, 2)
    await card.start()
    draw = card.bench.random
    for step in range(8):
        card.pace(0.3 * (step % 2), 0.3 * (step % 3 == 0))
        jobs = []
        for i in range(6):  # each has 8 KiB of the slots
            size = draw.choice([1, 64, 1514, draw.randint(1, 4000)])
            offset = SLOTS + 8192 * i + draw.randrange(100)
            data = draw.randbytes(size)
            source, to = DATA + 0x4000 * i + draw.randrange(5000), DATA + 0x10_0000 + 0x4000 * i + draw.randrange(5000)
            card.memory.put(source, data)
            card.rings.post(0, source, offset, size, eager=draw.random() < 0.5)
            jobs.append((to, offset, data))
        other, beside = SLOTS + 8192 * 6, draw.randbytes(4096)
        for at in range(0, 4096, 512):
            card.window.post(card.at(other + at), beside[at : at + 512])
        await card.bench.until(card.window.settled)
        for at in range(0, 4096, 512):
            assert await card.window.read(card.at(other + at), 512) == beside[at : at + 512]
        await card.rings.finish()
        for to, offset, data in jobs:
            card.rings.post(4, to, offset, len(data), eager=draw.random() < 0.5)
        for _, offset, data in jobs:
            short = min(len(data), 256)
            assert await card.window.read(card.at(offset), short) == data[:short]
        await card.rings.finish()
        for to, _, data in jobs:
            assert card.memory.get(to, len(data)) == data
    assert all(response == OKAY for _, response in card.window.manager.responses)


@cocotb.test()
async def a_check_of_copies_finds_a_byte_that_differs(dut: Any) -> None:
    """The host changes one byte of the window between the two copies."""
    card = Card(dut, 3)
    await card.start()
    data = card.bench.random.randbytes(300)
    card.memory.put(DATA, data)
    card.rings.post(0, DATA, SLOTS, 300)
    await card.rings.finish()
    assert await card.window.write(card.at(SLOTS + 77), bytes([data[77] ^ 1])) == OKAY
    card.rings.post(4, DATA + 4096, SLOTS, 300)
    await card.rings.finish()
    found = card.memory.get(DATA + 4096, 300)
    assert [i for i in range(300) if found[i] != data[i]] == [77]


@cocotb.test()
async def what_fails_is_told_and_the_ring_works_again_after_its_reset(dut: Any) -> None:
    """A place outside the window, a region of the window that is not there, and a host that refuses a read."""
    card = Card(dut, 4)
    await card.start()
    for ring in (0, 4):
        for place in (0x80_0000, 1 << 40, 0x3F_0000):
            card.rings.post(ring, DATA, place, 64)
            await card.bench.until(lambda: card.rings.status(ring)[1] != 0)  # noqa: B023
            assert card.rings.status(ring) == (0, MEMORY | FAILED)
            await card.rings.set_up()
    card.memory.fails = lambda address: DECERR if address & -LINE == DATA else OKAY
    card.rings.post(0, DATA, SLOTS, 64)
    await card.bench.until(lambda: card.rings.status(0)[1] != 0)
    assert card.rings.status(0) == (0, UNSUPPORTED | FAILED)
    card.memory.fails = lambda address: OKAY
    await card.rings.set_up()
    card.rings.post(0, DATA, SLOTS, 64)
    await card.rings.finish()


@cocotb.test()
async def frames_pass_while_the_engine_copies(dut: Any) -> None:
    """A NIC has its rings in the window, and echo answers. The engine reads slots, and writes host memory, between the
    tails."""
    card = Card(dut, 5)
    rig = card.rig
    echo = Echo()
    await rig.begin("ixgbe", echo, ECHO | IN_PLACE)
    rig.nic.manager.pace(0.1, 0.1)
    card.memory.pace(0.2, 0.2)
    # The NIC owns the port, so the registers of BAR 4 are accessed in its way.
    registers, nic, post_at_port = rig.registers, rig.nic, card.rings.host.post

    def post(address: int, data: bytes) -> None:
        post_at_port(address, data)
        nic.writes_asked += 1

    async def write(name: str, value: int, ring: int = 0) -> None:
        assert await registers.write_at(BAR4 - BAR0 + REGISTERS[name].at(ring), value) == 0  # type: ignore[attr-defined]

    async def read(name: str, ring: int = 0) -> int:
        return int(await registers.read_at(BAR4 - BAR0 + REGISTERS[name].at(ring)))  # type: ignore[attr-defined]

    card.rings.write, card.rings.read = write, read  # type: ignore[method-assign]
    await card.rings.set_up()
    assert await card.rings.read("id") == REGISTERS["id"].reset
    frames = [[asking(rig.bench.random, 1200) for _ in range(20)] for _ in range(rig.queues)]
    replies = [[(frame, fate(frame, echo)) for frame in of_queue] for of_queue in frames]
    for queue, of_queue in enumerate(frames):
        for frame in of_queue:
            rig.arrive(frame, queue)
    card.rings.host.post = post  # type: ignore[method-assign]
    for i in range(4):
        for j in range(12):
            card.rings.post(4, DATA + 0x4000 * (12 * i + j), SLOTS + 2048 * j, 1500, eager=j % 2 == 0)
        await card.rings.finish()
    for i in range(48):
        assert all(DATA + 0x4000 * i + at in card.memory.written for at in (0, 1499))
        assert DATA + 0x4000 * i + 1500 not in card.memory.written
    answered = [[(frame, opinion) for frame, opinion in one if opinion.reply is not None] for one in replies]
    await rig.bench.until(lambda: list(map(len, nic.sent)) == list(map(len, answered)), 60_000)
    for sent, expected in zip(nic.sent, answered, strict=True):
        for found, (frame, opinion) in zip(sent, expected, strict=True):
            check(frame, found, opinion)
    assert not nic.errors
    counters = await rig.counters()
    assert counters["tails"] == len(rig.tails.log)


@cocotb.test()
async def no_access_of_the_host_waits_for_reads_of_the_engine(dut: Any) -> None:
    """The host's memory answers no read. Accesses to the window, registers and doorbells end; tails leave."""
    card = Card(dut, 6)
    await card.start()
    for i in range(8):
        card.rings.post(0, DATA + 0x4000 * i, SLOTS, 9000)
    await card.bench.until(lambda: len(card.memory.read_bursts) > 8)
    card.memory.r.idle = 1.0
    await card.bench.cycle(800)  # now the engine has all reads in flight that it can have
    for i in range(6):
        card.rings.post(0, DATA + 0x4000 * i, SLOTS, 4000, eager=i % 2 == 1)
    for i in range(100):
        ring = 4 * (i % 2)
        line = card.memory.get(card.rings.ring_at(ring) + 32 * 13, 32)
        card.window.post(BELLS + 64 * ring, line + card.rings.tails[ring].to_bytes(4, "little").ljust(32, b"\0"))
        card.window.post(card.at(SLOTS + LINE * i), bytes([i] * LINE))
    await card.bench.until(card.window.settled, 9000)
    for i in range(100):
        assert await card.window.read(card.at(SLOTS + LINE * i), LINE) == bytes([i] * LINE)
    assert await card.rings.read("id") == REGISTERS["id"].reset
    for name, value in (
        ("rx_tail_low", TAIL_BASE & 0xFFFFFFFF),
        ("rx_tail_high", TAIL_BASE >> 32),
        ("queue_control", 1),
    ):
        assert await card.window.write(card.at(BAR0 + CORE[name].at(0)), value.to_bytes(4, "little")) == OKAY
    await card.bench.until(lambda: TAIL_BASE in card.memory.written, 9000)
    assert card.memory.read_bursts
    card.memory.r.idle = 0.0
    await card.rings.finish()


@cocotb.test()
async def another_driver_takes_over_from_a_killed_one(dut: Any) -> None:
    """Ring resets by registers are enough: nothing reaches the former driver's memory, and no old transfer goes on."""
    card = Card(dut, 7)
    await card.start()
    for step in range(6):
        card.memory.delay = (5, 300)
        for i in range(7):
            card.rings.post(4 * (i % 2), DATA + 0x4000 * i, SLOTS + 4096 * i, 4000, eager=i % 3 == 0)
        await card.bench.cycle(card.bench.random.randint(1, 700))
        await card.bench.until(card.window.settled)
        old = card.rings
        card.rings = Rings(card.window, card.memory, SECOND if old.base == FIRST else FIRST)
        await card.rings.take()
        await card.bench.until(lambda: not card.memory.aw.items and not card.memory.wanted)
        card.memory.forbidden = range(old.base, old.base + 0x2_0000)
        await card.rings.set_up()
        data = card.bench.random.randbytes(3000)
        card.memory.put(DATA + 0x10_0000, data)
        card.rings.post(0, DATA + 0x10_0000, SLOTS + step, 3000)
        await card.rings.finish()
        card.rings.post(4, DATA + 0x10_4000, SLOTS + step, 3000, eager=True)
        await card.rings.finish()
        assert card.memory.get(DATA + 0x10_4000, 3000) == data


@cocotb.test()
async def a_reset_of_the_link_in_mid_flight_leaves_nothing(dut: Any) -> None:
    card = Card(dut, 8)
    for step in range(4):
        await card.start(FIRST if step % 2 else SECOND)
        assert card.rings.status(0) == card.rings.status(4) == (0, 0)
        data = card.bench.random.randbytes(2000)
        card.memory.put(DATA, data)
        card.rings.post(0, DATA, SLOTS + 1, 2000)
        await card.rings.finish()
        assert await card.window.read(card.at(SLOTS + 1), 200) == data[:200]
        for i in range(7):
            card.rings.post(4 * (i % 2), DATA + 0x4000 * i, SLOTS + 4096 * i, 4000)
        await card.bench.cycle(card.bench.random.randint(10, 500))


def test_bypass_node_dma() -> None:
    simulate(__file__, text=top("dma"), sources=PACKAGES, deeper=("card_flat.rst_o",))
