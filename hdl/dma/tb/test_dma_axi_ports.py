# SPDX-License-Identifier: Apache-2.0
"""dma_axi_reads and dma_axi_writes with an AXI memory; dma_axi_bar with an AXI manager. Each check also meets modules
with a fault, and must fail."""

from __future__ import annotations

from typing import Any

import cocotb
import pytest
from axi_agents import DECERR, OKAY, SLVERR, Manager
from axi_traffic import PACES
from bench import Bench
from cocotbext.axi import AxiBus, AxiRam
from dma_axi_rig import BELL_FIELDS, READS, WRITES, HostLane, Words, bar_lane, faulty, host_lane, top_of
from dma_axi_rig import Host as Access
from dma_rig import LINE
from hdl_tools import ROOT, files
from simulate import simulate

HOSTS = {"many": 32, "few": 2}
BELLS = 0x1000
# For each fault: the cell, its right text, and the wrong one.
FAULTS = {
    "ends_early": ("dma_axi_writes", "6'(i) <= to", "6'(i) < to"),
    "begins_early": ("dma_axi_writes", "6'(i) >= from &&", "1'b1 &&"),
    "loses_a_rest": ("dma_axi_writes", "rest_q || 6'(i) >= about", "6'(i) >= about"),
    "forgets_the_line_before": ("dma_axi_writes", "before_q <= data", "before_q <= '0"),
    "stays_in_its_lanes": ("dma_axi_reads", ".s_down (flying_q.from)", ".s_down (6'd0 & flying_q.from)"),
    "counts_short": ("dma_axi_reads", "7'(flying_q.from) + 7'd1", "7'(flying_q.from) + 7'd0"),
    "swaps_errors": ("dma_axi_reads", "== axi_pkg::RespDecErr", "== axi_pkg::RespSlvErr"),
    "hides_errors": ("dma_axi_reads", "r.last ? ErrorNone : error;", "r.last ? ErrorNone : ErrorNone;"),
}
BELL_FAULTS = {
    "rings_with_a_hole": ("dma_axi_bar", "refused   = two[6][0]", "refused   = two[6][0] && 1'b0"),
    "rings_without_a_tail": ("dma_axi_bar", "strobe[TailOffset+:2] == '1", "strobe != '0"),
    "rings_another_tail": ("dma_axi_bar", "line[8*TailOffset+:32]", "line[8*TailOffset+32+:32]"),
}


def hosts_of(dut: Any, seed: int) -> tuple[Bench, list[HostLane]]:
    bench = Bench(dut, seed)
    return bench, [HostLane(bench, name) for name in HOSTS]


async def traffic(bench: Bench, lanes: list[HostLane], fails: bool, most: int = 512) -> None:
    """Random reads and writes at all paces, checked byte by byte."""
    for one in lanes:
        one.memory.fails = lambda address: (
            {0: DECERR, 1: SLVERR}.get(address // LINE % 23, OKAY) if fails and address < WRITES else OKAY
        )
    for idle, stall in PACES:
        for one in lanes:
            one.pace(idle, stall)
            one.ask(24, most)
        await bench.until(lambda: all(one.done() for one in lanes), 30_000)
        for one in lanes:
            one.check()


@cocotb.test()
async def every_byte_is_read_and_written_at_its_place(dut: Any) -> None:
    """All alignments and lengths up to a page. No strobe is set beside a write's bytes."""
    bench, lanes = hosts_of(dut, 1)
    await bench.reset()
    await traffic(bench, lanes, fails=False)
    await traffic(bench, lanes, fails=False, most=4096)
    for one in lanes:
        one.pace(0, 0)
    for lane in range(LINE):
        for one in lanes:
            for size in (1, LINE - lane, LINE, LINE + 1, 200):
                one.read(READS + (one.at << 13) + lane, size)
                one.write(WRITES + (one.at << 13) + lane, bench.random.randbytes(size))
                one.at += 1
        if lane % 16 == 15:
            await bench.until(lambda: all(one.done() for one in lanes), 9000)
            for one in lanes:
                one.check()


@cocotb.test()
async def a_failed_line_ends_its_read_with_one_error(dut: Any) -> None:
    """DECERR and SLVERR in any line. The error comes last, after the data before it."""
    bench, lanes = hosts_of(dut, 2)
    await bench.reset()
    for _ in range(3):
        await traffic(bench, lanes, fails=True)


@cocotb.test()
async def bursts_in_flight_are_limited_and_reads_are_taken_without_answers(dut: Any) -> None:
    """The memory does not answer for a long time. All 136 reads of an engine are taken, and writes wait."""
    bench, lanes = hosts_of(dut, 3)
    await bench.reset()
    for one in lanes:
        one.memory.delay = (900, 900)
        for i in range(136):
            one.read(READS + 4096 * i + 5, 300)
        for i in range(40):
            one.write(WRITES + 4096 * i + 60, bytes(range(10)))
    await bench.cycle(600)
    for one in lanes:
        assert not one.reads.items
        assert len(one.memory.read_bursts) == len(one.memory.written_bursts) == HOSTS[one.name]
        one.memory.delay = (1, 30)
    await bench.until(lambda: all(one.done() for one in lanes), 30_000)
    for one in lanes:
        one.check()


@cocotb.test()
async def reads_that_are_never_answered_stop_no_writes_and_writes_no_reads(dut: Any) -> None:
    bench, lanes = hosts_of(dut, 4)
    await bench.reset()
    for one in lanes:
        one.memory.r.idle = 1.0
        one.ask(12)
    await bench.until(lambda: all(one.memory.written == one.wrote for one in lanes), 5000)
    for one in lanes:
        assert not one.completions.items
        one.memory.r.idle = 0.0
        one.memory.aw.stall = one.memory.w.stall = 1.0
        one.ask(60)
    await bench.until(lambda: all(sum(i[3] for i in one.completions.items) == 72 for one in lanes), 9000)
    for one in lanes:
        one.memory.aw.stall = one.memory.w.stall = 0.0
    await bench.until(lambda: all(one.done() for one in lanes), 9000)
    for one in lanes:
        one.check()


@cocotb.test()
async def a_beat_a_cycle_in_both_directions(dut: Any) -> None:
    bench = Bench(dut, 5)
    one = HostLane(bench, "many")
    await bench.reset()
    one.memory.delay = (1, 1)
    for i in range(40):
        one.read(READS + 512 * i, 512)
        one.write(WRITES + 256 * i, bench.random.randbytes(256))
    await bench.until(one.done, 400)  # 320 beats of data
    cycles = one.memory.w.cycles_of
    assert cycles[159] - cycles[0] == 159
    one.check()


@cocotb.test()
async def a_reset_in_flight_leaves_nothing(dut: Any) -> None:
    bench, lanes = hosts_of(dut, 6)
    await bench.reset()
    for _ in range(6):
        for one in lanes:
            one.pace(0.2, 0.2)
            one.ask(30)
        await bench.cycle(bench.random.randint(10, 200))
        await bench.reset()
        for one in lanes:
            one.forget()
        await traffic(bench, lanes, fails=True)


@cocotb.test()
async def another_implementation_of_axi_agrees(dut: Any) -> None:
    """The memory is cocotbext-axi's."""
    bench = Bench(dut, 7)
    one = HostLane(bench, "many", memory=False)
    await bench.reset()
    ram = AxiRam(AxiBus.from_prefix(dut.many, "m_axi"), dut.clk_i, dut.rst_i, size=1 << 20)
    await bench.cycle(4)
    content = bench.random.randbytes(1 << 19)
    ram.write(0, content)
    for _ in range(60):
        at, size = one.place(512)
        one.read(at, size)
        at, size = one.place(512)
        one.write((1 << 19) + at, bench.random.randbytes(size))
    await bench.until(lambda: sum(item[3] for item in one.completions.items) == 60 and not one.writes.items, 9000)
    await bench.cycle(200)
    items = iter(one.completions.items)
    for tag, address, size in one.asked:
        assert one.data_of(items, tag, address) == (content[address : address + size], 0)
    found = ram.read(1 << 19, 1 << 19)
    assert {i + (1 << 19): byte for i, byte in enumerate(found) if i + (1 << 19) in one.wrote} == one.wrote
    assert sum(1 for byte in found if byte) == sum(1 for byte in one.wrote.values() if byte)


# ---- the BAR


class Bar:
    """dma_axi_bar between a manager, registers, and a reader of doorbells."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench = bench
        self.host = Access(bench, Manager(bench, scope))
        self.words = Words(bench, scope)
        self.bells = bench.sink(scope, "m_bell", BELL_FIELDS)


async def ring(bar: Bar) -> None:
    """Writes to the doorbells: whole lines, tails, parts without a tail, several lines, and strobes with a hole."""
    draw, expected, answers = bar.bench.random, [], []
    for _ in range(100):
        line = draw.randbytes(LINE)
        at = BELLS + LINE * draw.randrange(64)
        kind = draw.choice(["whole", "tail", "part", "hole", "none", "lines"])
        first, last = (0, LINE - 1)
        strobes = (1 << LINE) - 1
        if kind == "tail":
            strobes = 15 << 32
        elif kind in ("part", "hole"):
            first, last = sorted(draw.sample(range(LINE), 2))
            strobes = (1 << last + 1) - (1 << first)
            if kind == "hole" and last - first >= 2:
                strobes &= ~(1 << draw.randrange(first + 1, last))
        elif kind == "none":
            strobes = 0
        hole = "01" in f"{strobes:064b}".strip("0") and "0" in f"{strobes:064b}".strip("0")
        data = line if kind != "lines" else line + draw.randbytes(2 * LINE)
        at = min(at, 0x2000 - len(data))
        bar.host.post(at, data, strobes if kind != "lines" else None)
        answers.append(SLVERR if hole else OKAY)
        for i in range(0, len(data), LINE):
            offset = (at + i - BELLS) % 512
            tail = int.from_bytes(data[i + 32 : i + 36], "little")
            if strobes == (1 << LINE) - 1:
                expected.append((offset, LINE, int.from_bytes(data[i : i + LINE], "little")))
            elif strobes >> 32 & 3 == 3 and not hole:
                expected.append((offset + 32, 4, tail))
    await bar.bench.until(bar.host.settled, 9000)
    await bar.bench.cycle(20)
    found = [(offset, size, data & (1 << 8 * size) - 1) for offset, size, data in bar.bells.items]
    # Of a lone tail, only 16 bits have a meaning.
    short = [(o, s, d & 0xFFFF if s == 4 else d) for o, s, d in found]
    assert short == [(o, s, d & 0xFFFF if s == 4 else d) for o, s, d in expected]
    assert [response for _, response in bar.host.manager.responses] == answers
    bar.bells.items.clear()
    bar.host.restart()


@cocotb.test()
async def writes_to_the_doorbells_ring_as_they_must(dut: Any) -> None:
    bench = Bench(dut, 8)
    bar = Bar(bench, "bar")
    await bench.reset()
    for idle, stall in PACES:
        bar.host.manager.pace(idle, stall)
        bar.bells.stall = stall
        await ring(bar)
    for at in (BELLS, BELLS + 32, 0x1FC0):
        assert (await bar.host.answer(at, 4))[1] == SLVERR
    assert not bar.bells.items


@cocotb.test()
async def registers_are_accessed_in_any_width_and_in_order_with_doorbells(dut: Any) -> None:
    bench = Bench(dut, 9)
    bar = Bar(bench, "bar")
    await bench.reset()
    for step in range(40):
        at = 4 * bench.random.randrange(1024)
        value = bench.random.randbytes(4)
        size = bench.random.choice([4, 64])
        if size == 64:
            at, value = at & -64, bench.random.randbytes(64)
        assert await bar.host.write(at, value) == OKAY
        assert await bar.host.read(at, size) == value
        bar.host.post(BELLS + 32, step.to_bytes(4, "little"))
        assert await bar.host.write(at, b"\1\2", 3) == SLVERR  # part of a word
        assert bar.bells.items[-1][2] & 0xFFFF == step
        assert await bar.host.read(at, size) == value


@cocotb.test()
async def a_doorbell_that_is_not_taken_stops_no_read(dut: Any) -> None:
    bench = Bench(dut, 10)
    bar = Bar(bench, "bar")
    await bench.reset()
    bar.bells.stall = 1.0
    for i in range(8):
        bar.host.post(BELLS + 32, i.to_bytes(4, "little"))
    await bench.cycle(50)
    bar.words.words[0x40] = 77
    assert await bar.host.read(0x40) == (77).to_bytes(4, "little")
    bar.bells.stall = 0.0
    await bench.until(lambda: len(bar.bells.items) == 8)


# ---- faults


@cocotb.test()
async def each_fault_is_found(dut: Any) -> None:
    for name in FAULTS:
        bench = Bench(dut, 11)
        lane = HostLane(bench, name)
        await bench.reset()
        with pytest.raises(AssertionError):
            await traffic(bench, [lane], fails="errors" in name)
    for name in BELL_FAULTS:
        bench = Bench(dut, 12)
        bar = Bar(bench, name)
        await bench.reset()
        with pytest.raises(AssertionError):
            await ring(bar)


def test_dma_axi_ports() -> None:
    lanes = {"many": host_lane("many"), "few": host_lane("few", outstanding=2, id_=3), "bar": bar_lane("bar")}
    cells = [faulty(cell, name, before, after) for name, (cell, before, after) in (FAULTS | BELL_FAULTS).items()]
    lanes |= {name: host_lane(name, **{cell: name}) for name, (cell, _, _) in FAULTS.items()}
    lanes |= {name: bar_lane(name, cell=name) for name in BELL_FAULTS}
    simulate(
        __file__,
        text=top_of(lanes, "\n".join(cells)),
        sources=tuple(ROOT / path for path in files("*_pkg.sv")),
        deeper=(),
    )
