# SPDX-License-Identifier: Apache-2.0
"""Tests kv_host_path, by which a host shares a core's memory port. While the host is idle, it is compared cycle by
cycle with a port of its own. Then both work, and each is compared with the other's writes."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import INCR, SLVERR, Burst, Manager
from axi_traffic import Traffic
from bench import Bench, Sink, Source
from kv_port_rig import Port, port_text
from simulate import KV_PACKAGES, simulate

HOST_BASE = 1 << 24
WORD = 6
"""AxSIZE for 64 bytes."""


def begin(dut: Any) -> tuple[Bench, Port, Port, Traffic]:
    bench = Bench(dut)
    alone, shared = Port(bench, "alone"), Port(bench, "shared")
    host = Traffic(bench, Manager(bench, dut.shared), 16, base=HOST_BASE, slots=64)
    host.narrow, host.long = False, 64
    return bench, alone, shared, host


def pace(port: Port, idle: float, stall: float, delay: tuple[int, int]) -> None:
    port.memory.delay = delay
    for source in (port.reads, port.writes, port.data, port.memory.r, port.memory.b):
        source.idle = idle
    for sink in (port.words, port.lines, port.memory.ar, port.memory.aw, port.memory.w):
        sink.stall = stall


def some_work(bench: Bench, port: Port, pages: range) -> None:
    """Starts reads of words and lines, and writes of words and ways."""
    for page in pages:
        words = bench.random.randint(1, 8)
        address = 4096 * page + 64 * bench.random.randint(0, 64 - words)
        match bench.random.randrange(4):
            case 0:
                port.read(address, [0] * words)
            case 1:
                port.read_line(address, 0)
            case 2:
                port.write(address, words)
            case _:
                port.write_way(address, 0, bench.random.choice([0, 1, 2, 3, None]))


@cocotb.test()
async def with_an_idle_host_the_core_sees_no_difference(dut: Any) -> None:
    bench, alone, shared, _ = begin(dut)
    for delay in (0, 1, 7, 60):
        await bench.reset()
        for port in (alone, shared):
            pace(port, 0, 0, (delay, delay))
        some_work(bench, alone, range(150))
        for mine, same in ((alone.reads, shared.reads), (alone.writes, shared.writes), (alone.data, shared.data)):
            same.items.extend(mine.items)
        shared.written = alone.written
        expected = len(alone.expected), len(alone.expected_lines), alone.written

        def done(port: Port, expected: tuple[int, int, int] = expected) -> bool:
            return (len(port.words.items), len(port.lines.items), port.confirmed) == expected

        since: dict[str, int] = {}

        def ended(since: dict[str, int] = since) -> bool:
            for port in (alone, shared):
                if done(port):
                    since.setdefault(port.name, bench.cycles)
            return len(since) == 2

        await bench.until(ended)
        assert since["alone"] == since["shared"]
        channels: list[tuple[Sink | Source, Sink | Source]] = [(alone.words, shared.words), (alone.lines, shared.lines)]
        for name in ("ar", "aw", "w", "r", "b"):
            channels.append((getattr(alone.memory, name), getattr(shared.memory, name)))
        for mine, same in channels:
            assert mine.cycles_of == same.cycles_of
            assert len(mine.cycles_of) > 20


@cocotb.test()
async def each_gets_what_was_written(dut: Any) -> None:
    bench, alone, port, host = begin(dut)
    paces = [(0, 0, (0, 0)), (0, 0, (5, 5)), (0.3, 0.3, (1, 40)), (0, 0.8, (2, 20)), (0.7, 0, (60, 90))]
    for idle, stall, delay in paces:
        await bench.reset()
        host.forget()
        host.memory.clear()
        pace(alone, 0, 0, (5, 5))
        pace(port, idle, stall, delay)
        host.manager.pace(idle, stall)
        content = []
        for page in range(40):
            words = bench.random.randint(1, 8)
            address = page * 4096 + 64 * bench.random.randint(0, 64 - words)
            content.append((address, port.write(address, words)))
        host.write(20)
        await bench.until(lambda: port.confirmed == 40 and host.written())
        for address, words in content:  # writes ways while the host reads
            words[0] = port.write_way(address, words[0], bench.random.choice([0, 1, 2, 3, None]))
        host.read(20)
        await bench.until(lambda: port.confirmed == 80)
        for address, words in bench.random.choices(content, k=60):
            first = bench.random.randrange(len(words))
            port.read(address + 64 * first, words[first:])
            if bench.random.random() < 0.3:
                port.read_line(address, words[0])
        for page in range(40, 60):
            port.write(page * 4096, 8)
        await bench.until(lambda: len(port.words.items) == len(port.expected) and port.confirmed == 100)
        await bench.until(lambda: len(port.lines.items) == len(port.expected_lines) and host.done())
        assert port.words.items == port.expected
        assert port.lines.items == port.expected_lines
        assert port.begins == port.firsts
        host.check(lambda address: 0)
        # Each then reads the other's writes.
        host.forget()
        for address, words in content[:10]:
            host.manager.ask(Burst(3, address, len(words), WORD, INCR))
        await bench.until(lambda: host.manager.reads_done() == 10)
        assert [[data for data, _ in beats] for beats in host.manager.read()[3]] == [words for _, words in content[:10]]
        address = HOST_BASE + 4096 * 64
        data = [bench.random.getrandbits(512) for _ in range(64)]
        host.manager.write(Burst(1, address, 64, WORD, INCR, [(word, (1 << 64) - 1) for word in data]))
        await bench.until(lambda: len(host.manager.responses) == 1)
        for first in range(0, 64, 8):
            port.read(address + 64 * first, data[first : first + 8])
        await bench.until(lambda: len(port.words.items) == len(port.expected))
        assert port.words.items == port.expected


@cocotb.test()
async def the_core_goes_on_beside_a_host_that_reads_without_end(dut: Any) -> None:
    """The core also continues beside a host that takes no answers."""
    bench, alone, port, host = begin(dut)
    for stall in (0.0, 1.0):
        await bench.reset()
        host.forget()
        for each in (alone, port):
            pace(each, 0, 0, (50, 50))
        host.manager.pace(0, stall)
        for i in range(40):
            host.manager.ask(Burst(0, HOST_BASE + 4096 * (i % 4), 64, WORD, INCR))
        await bench.cycle(400)
        for page in range(30):
            port.read(page * 4096, [0] * 8)
            port.write((page + 100) * 4096, 8)
        start = bench.cycles
        await bench.until(lambda: len(port.words.items) == 240 and port.confirmed == 30)
        # The host gets at most half of the port: 480 beats take 960 cycles, plus memory's latency.
        assert bench.cycles - start < 1100
        if stall:
            assert host.manager.reads_done() == 0
            host.manager.pace(0, 0)
        await bench.until(lambda: host.manager.reads_done() == 40)


@cocotb.test()
async def the_hosts_errors_are_the_hosts(dut: Any) -> None:
    bench, alone, port, host = begin(dut)
    await bench.reset()
    host.forget()
    for each in (alone, port):
        pace(each, 0, 0, (5, 5))
    port.memory.errors = 1.0
    host.manager.write(Burst(2, HOST_BASE, 3, WORD, INCR, [(7, (1 << 64) - 1)] * 3))
    await bench.until(lambda: len(host.manager.responses) == 1)
    assert host.manager.responses == [(2, SLVERR)]
    assert port.failures == 0
    port.write(0, 1)
    await bench.until(lambda: port.failures == 1)
    port.memory.errors = 0.0
    host.manager.write(Burst(2, HOST_BASE, 1, WORD, INCR, [(7, (1 << 64) - 1)]))
    await bench.until(lambda: len(host.manager.responses) == 2)
    assert host.manager.responses[1] == (2, 0)


TOP = """
module top (input wire clk_i, input wire rst_i);
  alone_flat alone (.clk_i, .rst_i);
  shared_flat shared (.clk_i, .rst_i);
endmodule
"""


def test_kv_host_path() -> None:
    parameters = ".ReadDepth(128), .WriteDepth(32)"
    text = port_text("alone", parameters) + port_text("shared", parameters, host=True) + TOP
    simulate(__file__, text=f'`include "axi.svh"\n{text}', sources=KV_PACKAGES)
