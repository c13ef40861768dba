# SPDX-License-Identifier: Apache-2.0
"""dma_axi: a driver at its BAR, the host's memory and the card's memory at its other two ports."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import DECERR, OKAY, SLVERR, Manager, Subordinate
from bench import Bench
from bundles import Axi
from dma_axi_rig import Host, module
from dma_axi_software import BELLS, Memory, Rings
from dma_rig import ABORTED, MEMORY, TIMEOUT, UNSUPPORTED, held
from hdl_tools import ROOT, files
from simulate import simulate

from wherry.dma.generated.registers import REGISTERS

INSTANCES: dict[str, dict[str, int]] = {
    "plain": {},
    "narrow": {"Channels": 4, "MaxRead": 128, "MaxWrite": 128, "Outstanding": 2, "Timeout": 40, "TickBits": 8},
}
DATA, CARD, FIRST, SECOND = 0x10_0000_0000, 0x2_0000_0000, 0x7_0000_0000, 0x8_0000_0000
FAILED = 8


def lane(name: str, parameters: dict[str, int]) -> str:
    """Returns a module with dma_axi and its three buses."""
    buses = [Axi("m_host", id=3, outstanding=64), Axi("m_card", outstanding=256)]
    lines = [f"logic unexpected_o, timed_out_o, refused_o; {port}" for port in ("",)]
    assigned = "".join(f", .{key}({value})" for key, value in parameters.items())
    lines.append(f"dma_axi #(.host_req_t(m_host_req_t), .host_resp_t(m_host_resp_t){assigned}) dut (.clk_i, .rst_i,")
    lines.append("  .s_axi_req(axi_pkg::axi_req_t'(s_axi_req)), .s_axi_resp(bar_resp), .m_host_req, .m_host_resp,")
    lines.append(
        "  .m_card_req(card_req), .m_card_resp(axi_pkg::axi_resp_t'(m_card_resp)), .unexpected_o, .timed_out_o,"
    )
    lines.append("  .refused_o);")
    lines.insert(0, "axi_pkg::axi_resp_t bar_resp; axi_pkg::axi_req_t card_req;")
    lines.insert(1, "assign s_axi_resp = bar_resp; assign m_card_req = card_req;")
    text = module(name, Axi("s_axi"), [line for bus in buses for line in bus.body()] + lines)
    return text.replace(
        "input wire rst_i", ", ".join(["input wire rst_i", *(p for bus in buses for p in bus.ports())]), 1
    )


class Lane:
    """dma_axi with its driver, its host and its card."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench = bench
        self.channels = INSTANCES[name].get("Channels", 1)
        self.host = Host(bench, Manager(bench, scope))
        self.memory = Memory(bench, scope, "m_host", delay=(5, 60), initial=held(1))
        self.card = Subordinate(bench, scope, "m_card", delay=(1, 30), initial=held(2))
        self.rings = Rings(self.host, self.memory, FIRST, self.channels)
        self.at = 0
        self.asked: list[tuple[bool, int, int, int]] = []

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of all buses."""
        for port in (self.host.manager, self.memory, self.card):
            port.pace(idle, stall)

    def ask(self, count: int) -> None:
        """Posts random transfers to separate addresses."""
        draw = self.bench.random
        for _ in range(count):
            ring = draw.choice(self.rings.rings)
            size = draw.choice([draw.randint(1, 130), draw.randint(1, 9000), 4096, 64])
            host, card = DATA + self.at + draw.randrange(5000), CARD + self.at + draw.randrange(5000)
            self.at += 0x8000
            self.rings.post(ring, host, card, size, eager=draw.random() < 0.4)
            self.asked.append((ring >= 4, host, card, size))

    def check(self) -> None:
        """Checks every byte that was moved, and that no other data byte changed."""
        for to_host, host, card, size in self.asked:
            to, source = (host, card) if to_host else (card, host)
            written, initial = (self.memory.written, held(2)) if to_host else (self.card.written, held(1))
            assert all(written.pop(to + i, None) == initial(source + i) for i in range(size)), (to_host, hex(to), size)
        assert not self.card.written
        assert all(address < DATA for address in self.memory.written)
        self.asked.clear()


async def lanes_of(dut: Any, seed: int) -> tuple[Bench, list[Lane]]:
    """Returns engines whose rings run."""
    bench = Bench(dut, seed)
    lanes = [Lane(bench, name) for name in INSTANCES]
    await bench.reset(4)
    for one in lanes:
        await one.rings.set_up()
    return bench, lanes


@cocotb.test()
async def descriptors_move_bytes_in_both_directions(dut: Any) -> None:
    """Any alignment, doorbells of both kinds, several paces, and wraps of the rings."""
    bench, lanes = await lanes_of(dut, 1)
    for step in range(6):
        for one in lanes:
            one.pace(0.3 * (step % 2), 0.3 * (step % 3 == 0))
            one.ask(8)
        await bench.until(lambda: all(one.rings.done() for one in lanes), 40_000)
        for one in lanes:
            one.check()


@cocotb.test()
async def registers_say_what_is_there(dut: Any) -> None:
    _, lanes = await lanes_of(dut, 2)
    for one, (channels, most) in zip(lanes, ((1, 2), (4, 0)), strict=True):
        assert await one.rings.read("id") == REGISTERS["id"].reset
        assert await one.rings.read("capability") & 15 == channels
        assert await one.rings.read("function_state") == 1 | most << 4  # bus mastering, no MSI-X
        assert (await one.host.answer(BELLS, 4))[1] == SLVERR
        assert await one.host.write(BELLS + 32, bytes(8), 0b10001111) == SLVERR  # a hole


@cocotb.test()
async def a_status_word_comes_behind_its_data(dut: Any) -> None:
    """All bytes are in the host's memory when the status word is, at a slow bus, too."""
    bench, lanes = await lanes_of(dut, 3)
    for one in lanes:
        one.pace(0.2, 0.5)
        one.rings.post(4, DATA + 3, CARD + 61, 9000)
    waiting = list(lanes)
    for _ in range(20_000):
        await bench.cycle()
        for one in [one for one in waiting if one.rings.status(4)[0] == 1]:
            assert all(DATA + 3 + i in one.memory.written for i in range(9000))
            waiting.remove(one)
        if not waiting:
            return
    raise AssertionError("not told")


@cocotb.test()
async def errors_of_both_sides_are_told_by_their_codes(dut: Any) -> None:
    """The ring stops, and works again after its reset by a register. The other direction goes on."""
    bench, lanes = await lanes_of(dut, 4)
    for answer, code in ((DECERR, UNSUPPORTED), (SLVERR, ABORTED)):
        for one in lanes:
            one.memory.fails = lambda address: answer if address & -4096 == DATA + 0x1000 else OKAY  # noqa: B023
            one.rings.post(0, DATA + 0x1F0, CARD, 100)
            one.rings.post(0, DATA + 0x1FF0, CARD, 100, eager=True)
            one.rings.post(4, DATA + 0x9000, CARD + 0x9000, 700)
        await bench.until(lambda: all(one.rings.status(0)[1] and one.rings.status(4)[0] == 1 for one in lanes), 9000)
        for one in lanes:
            assert one.rings.status(0) == (1, code | FAILED)
            one.memory.fails = lambda address: OKAY
            await one.rings.set_up()
    for one in lanes:
        one.card.fails = lambda address: SLVERR
        one.rings.post(0, DATA, CARD, 64)
        one.rings.post(4, DATA, CARD, 64)
    await bench.until(lambda: all(one.rings.status(0)[1] and one.rings.status(4)[1] for one in lanes), 9000)
    for one in lanes:
        assert one.rings.status(0) == one.rings.status(4) == (0, MEMORY | FAILED)


@cocotb.test()
async def a_read_that_is_not_answered_in_time_is_told(dut: Any) -> None:
    """Of the instance with a short time-out. The late answer is dropped, and the ring's reset ends."""
    bench, lanes = await lanes_of(dut, 5)
    one = lanes[1]
    one.memory.r.idle = 1.0
    one.rings.post(0, DATA, CARD, 100, eager=True)
    await bench.until(lambda: one.rings.status(0)[1] != 0, 20_000)
    assert one.rings.status(0) == (0, TIMEOUT | FAILED)
    one.memory.r.idle = 0.0
    await bench.cycle(200)
    await one.rings.set_up()
    one.ask(6)
    await one.rings.finish()
    one.check()


@cocotb.test()
async def the_driver_of_a_killed_process_is_replaced_without_a_function_level_reset(dut: Any) -> None:
    """The former driver dies with transfers in flight. The next one resets the rings by their registers. From then on
    nothing is written to the former one's memory, and no old descriptor is executed."""
    bench, lanes = await lanes_of(dut, 6)
    for step in range(8):
        for one in lanes:
            one.pace(0.2 * (step % 2), 0.2 * (step % 2))
            one.memory.delay = (5, 400 if one is lanes[0] else 60)  # two reads at a time are slow enough
            one.ask(7)
        await bench.cycle(bench.random.randint(1, 900))
        for one in lanes:
            await bench.until(one.host.settled)
            old = one.rings
            one.rings = Rings(one.host, one.memory, SECOND if old.base == FIRST else FIRST, one.channels)
            await one.rings.take()
            await bench.until(lambda: not one.memory.aw.items and not one.memory.wanted)  # noqa: B023
            one.memory.forbidden = range(old.base, old.base + 0x2_0000)
            await one.rings.set_up()
            one.asked.clear()
            one.card.written.clear()
            one.memory.written = {at: value for at, value in one.memory.written.items() if at < DATA}
            one.ask(7)
        await bench.until(lambda: all(one.rings.done() for one in lanes), 60_000)
        for one in lanes:
            one.check()


@cocotb.test()
async def no_access_waits_for_reads_of_the_host(dut: Any) -> None:
    """The host's memory answers no read. More doorbells than any queue holds are taken, and registers answer. When
    the reads are answered, all transfers end."""
    bench, lanes = await lanes_of(dut, 7)
    to_card = {one: [ring for ring in one.rings.rings if ring < 4] for one in lanes}
    for one in lanes:
        for ring in to_card[one]:
            for i in range(8):
                one.rings.post(ring, DATA + 0x4000 * i, CARD + 0x4000 * i, 9000)
    await bench.until(lambda: all(len(one.memory.read_bursts) > 8 for one in lanes))
    for one in lanes:
        one.memory.r.idle = 1.0
    await bench.cycle(800)  # now the engines have all reads in flight that they can have
    for one in lanes:
        for ring in to_card[one]:
            for i in range(6):
                one.rings.post(ring, DATA + 0x4000 * i, CARD + 0x4000 * i, 900, eager=i % 2 == 1)
        for _ in range(150):
            for ring in one.rings.rings:
                line = one.memory.get(one.rings.ring_at(ring) + 32 * 13, 32)
                one.host.post(BELLS + 64 * ring, line + (one.rings.tails[ring]).to_bytes(4, "little").ljust(32, b"\0"))
    for one in lanes:
        await bench.until(one.host.settled, 20_000)
        assert await one.rings.read("id") == REGISTERS["id"].reset
        assert len(one.memory.read_bursts) > 0
    for one in lanes:
        one.memory.r.idle = 0.0
    await lanes[0].rings.finish(60_000)  # in the other one, reads have timed out


@cocotb.test()
async def writes_that_the_host_does_not_take_stop_neither_reads_nor_accesses(dut: Any) -> None:
    bench, lanes = await lanes_of(dut, 8)
    for one in lanes:
        one.memory.aw.stall = one.memory.w.stall = 1.0
        one.rings.post(4, DATA, CARD, 9000)
        one.rings.post(0, DATA + 0x10_0000, CARD + 0x10_0000, 9000)
    await bench.until(lambda: all(len(one.card.written) == 9000 for one in lanes), 9000)
    for one in lanes:
        assert await one.rings.read("id") == REGISTERS["id"].reset
        assert not one.rings.done()
        one.memory.aw.stall = one.memory.w.stall = 0.0
        await one.rings.finish()


@cocotb.test()
async def a_reset_in_flight_leaves_nothing(dut: Any) -> None:
    bench, lanes = await lanes_of(dut, 9)
    for _ in range(4):
        for one in lanes:
            one.ask(8)
        await bench.cycle(bench.random.randint(20, 900))
        await bench.reset(4)
        for one in lanes:
            one.host.restart()
            one.asked.clear()
            one.card.written.clear()
            one.memory.written.clear()
            await one.rings.set_up()
            one.ask(8)
        await bench.until(lambda: all(one.rings.done() for one in lanes), 40_000)
        for one in lanes:
            one.check()


def test_dma_axi() -> None:
    text = '// verilator lint_off UNUSEDPARAM\n// verilator lint_off MULTITOP\n`include "axi.svh"\n'
    text += "".join(lane(name, parameters) for name, parameters in INSTANCES.items())
    text += "module top (input wire clk_i, input wire rst_i);\n"
    text += "".join(f"  {name}_lane {name} (.clk_i, .rst_i);\n" for name in INSTANCES) + "endmodule\n"
    simulate(__file__, text=text, sources=tuple(ROOT / path for path in files("*_pkg.sv")), deeper=())
