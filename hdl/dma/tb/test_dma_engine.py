# SPDX-License-Identifier: Apache-2.0
"""The complete dma_engine, between software's rings in host memory and a card's memory.

Descriptors go in; bytes and status words come out. The parts have their own benches; this one tests them together.
"""

from __future__ import annotations

import struct
from typing import Any

import cocotb
from bench import Bench
from dma_engine_rig import CARD, DATA, PACKETS, VECTORS, Lane, start, top_of
from dma_rig import LINE, MALFORMED, NONE, UNSUPPORTED, beats, held
from hdl_tools import ROOT, files
from simulate import simulate

INSTANCES = {"plain": {"Channels": 1, "Stream": 0}, "whole": {"Channels": 4, "Stream": 1}}


async def lanes_of(dut: Any, seed: int) -> tuple[Bench, list[Lane]]:
    """Engines with running rings."""
    bench = Bench(dut, seed)
    lanes = [Lane(bench, name, parameters["Channels"]) for name, parameters in INSTANCES.items()]
    await start(bench, lanes)
    return bench, lanes


@cocotb.test()
async def descriptors_move_bytes_and_are_told(dut: Any) -> None:
    """Both directions, all channels, any alignment, several wraps of the rings, and doorbells of both kinds."""
    bench, lanes = await lanes_of(dut, 1)
    for turns in range(6):
        asked = [one.ask(8) for one in lanes]
        for one in lanes:
            one.card.pace(0.3 * (turns % 2), 0.3 * (turns % 3 == 0))
            one.bell.idle, one.host.write.stall = 0.5, 0.2 * (turns % 2)
        await bench.until(lambda: all(one.done() for one in lanes), 30_000)
        for one, of_it in zip(lanes, asked, strict=True):
            one.check(of_it)
    for one in lanes:
        assert any(VECTORS <= address < VECTORS + 128 for address, _ in one.host.told)
        assert sum(one.tails.values()) == 48


@cocotb.test()
async def a_status_word_comes_behind_the_data(dut: Any) -> None:
    """To the host: when the status word has arrived, all bytes have arrived."""
    bench, lanes = await lanes_of(dut, 2)
    for one in lanes:
        one.post(4, DATA + 3, CARD + 61, 9000)
    seen = set[str]()
    for _ in range(8000):
        await bench.cycle()
        for one in lanes:
            if one.name not in seen and one.last_status(4)[0] == 1:
                assert len(one.host.written) == 9000
                seen.add(one.name)
        if len(seen) == len(lanes):
            return
    raise AssertionError("not told")


@cocotb.test()
async def a_failed_read_is_told_and_other_rings_go_on(dut: Any) -> None:
    """Checks the error's code, and its ring and descriptor."""
    bench, lanes = await lanes_of(dut, 3)
    whole = lanes[1]
    bad = DATA + 0x100_0000
    whole.host.fails = lambda address, size: UNSUPPORTED if bad <= address < bad + 4096 else NONE
    whole.post(0, DATA, CARD, 100)
    whole.post(0, bad, CARD + 8192, 100)
    for i in range(5):
        whole.post(1, DATA + 0x8000 + i * 4096, CARD + 0x8000 + i * 4096, 4096)
    await bench.until(lambda: whole.last_status(1)[0] == 5 and whole.last_status(0)[1] != 0, 10_000)
    assert whole.last_status(0) == (1, UNSUPPORTED | 8, 0)
    assert whole.last_status(1) == (5, 0, 0)


@cocotb.test()
async def packets_go_out_and_come_in(dut: Any) -> None:
    """To the card, descriptors become packets of the stream. To the host, packets fill buffers, each with its entry."""
    bench, lanes = await lanes_of(dut, 4)
    whole = lanes[1]
    whole.post(2, DATA + 5, 0, 320, 1)  # two descriptors form a packet, with whole lines except the last
    whole.post(2, DATA + 5000, 0, 9001, 1 | 4)
    packets = [bytes(bench.random.randbytes(size)) for size in (64, 1000, 1)]
    for i in range(3):
        whole.post(5, DATA + 0x10_0000 + i * 4096, 0, 2048, 1)
    for packet in packets:
        whole.from_stream.items.extend(beats(packet, 1))
    await bench.until(lambda: whole.last_status(2)[0] == 2 and whole.last_status(5)[0] == 3, 20_000)
    await bench.cycle(100)
    out = b"".join(data.to_bytes(LINE, "little")[: keep.bit_count()] for _, _, keep, data in whole.to_stream.items)
    expected = bytes(held(1)(DATA + 5 + i) for i in range(320))
    assert out == expected + bytes(held(1)(DATA + 5000 + i) for i in range(9001))
    assert [last for _, last, _, _ in whole.to_stream.items].count(1) == 1
    for i, packet in enumerate(packets):
        assert bytes(whole.host.written[DATA + 0x10_0000 + i * 4096 + j] for j in range(len(packet))) == packet
    found = [struct.unpack("<III", data[:12]) for address, data in whole.host.told if address >= PACKETS]
    entries = [(count, size, flags >> 4) for count, flags, size in found]
    assert entries == [(i + 1, len(packet), 1) for i, packet in enumerate(packets)]


@cocotb.test()
async def a_packet_whose_parts_would_leave_gaps_is_refused(dut: Any) -> None:
    """A descriptor that does not end its packet, and does not have whole lines."""
    _, lanes = await lanes_of(dut, 6)
    whole = lanes[1]
    whole.post(2, DATA, 0, 300, 1)
    await whole.bench.until(lambda: whole.last_status(2)[1] != 0, 5_000)
    assert whole.last_status(2) == (0, MALFORMED | 8, 0)
    assert not whole.to_stream.items


@cocotb.test()
async def a_reset_of_the_function_in_flight(dut: Any) -> None:
    """No work from before the reset is reported after it. The engine then works again."""
    bench, lanes = await lanes_of(dut, 5)
    for one in lanes:
        one.ask(8)
    await bench.cycle(150)
    for one in lanes:
        one.flr.set(1)
    await bench.until(lambda: all(one.flr_done.get() for one in lanes), 20_000)
    for one in lanes:
        one.flr.set(0)
        one.host.told.clear()
    await bench.cycle(400)
    for one in lanes:
        assert not one.host.told
        one.host.written.clear()
        one.card.written.clear()
        one.at = 0x100_0000
        await one.set_up()
    asked = [one.ask(8) for one in lanes]
    await bench.until(lambda: all(one.done() for one in lanes), 30_000)
    for one, of_it in zip(lanes, asked, strict=True):
        one.check(of_it)


def test_dma_engine() -> None:
    simulate(
        __file__,
        text=top_of("dma_engine", INSTANCES),
        sources=tuple(ROOT / path for path in files("*_pkg.sv")),
        deeper=(),
    )
