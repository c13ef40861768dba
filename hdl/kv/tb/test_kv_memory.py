# SPDX-License-Identifier: Apache-2.0
"""Tests kv_pool against a list of places, and kv_axi_port against a memory that checks the rules of AXI3."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from flat import PACKAGES, Bundles, Scope, nets
from kv_port_rig import Port, port_text
from simulate import KV_PACKAGES, simulate

CHANNELS = {"shallow": 8, "deep": 128}


class Places:
    """Takes, writes, reads and frees places, and records the content of each."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        self.bench = bench
        self.pin = lambda name, *where: bench.pin(scope, name, *where)
        self.busy = 0.5
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        self.held: dict[int, dict[int, int]] = {}
        self.giving: list[int] = []
        self.reading: list[int | None] = [None, None]
        self.taken = 0

    def drive(self) -> None:
        draw = self.bench.random
        self.take = self.pin("place_valid_o").get() and draw.random() < self.busy
        self.pin("take_i").set(self.take)
        self.giving = (
            draw.sample(sorted(self.held), min(len(self.held), draw.randrange(4))) if draw.random() < 0.4 else []
        )
        self.pin("free_i").set((1 << len(self.giving)) - 1)
        for i, place in enumerate(self.giving):
            self.pin("freed_i", i, 6).set(place)
        mine = [place for place in self.held if place not in self.giving]
        self.write = (
            (draw.choice(mine), draw.randrange(16), draw.getrandbits(512)) if mine and draw.random() < 0.8 else None
        )
        self.pin("write_i").set(self.write is not None)
        for name, value in zip(("write_place_i", "write_beat_i", "write_data_i"), self.write or (), strict=False):
            self.pin(name).set(value)
        for i in range(2):
            written = [(place, beat) for place in mine for beat in self.held[place]]
            self.asked = getattr(self, "asked", [None, None])
            self.asked[i] = draw.choice(written) if written and draw.random() < 0.7 else None
            self.pin("read_i", i, 1).set(self.asked[i] is not None)
            if self.asked[i]:
                self.pin("read_place_i", i, 6).set(self.asked[i][0])
                self.pin("read_beat_i", i, 4).set(self.asked[i][1])

    def sample(self) -> None:
        for i in range(2):
            if self.reading[i] is not None:
                assert self.pin("read_data_o", i, 512).get() == self.reading[i]
            if self.asked[i]:
                place, beat = self.asked[i]
                self.reading[i] = self.held[place][beat]
        if self.write:
            place, beat, data = self.write
            self.held[place][beat] = data
        free = 64 - len(self.held)
        assert self.pin("place_plenty_o").get() == (free > 16)
        if self.take:
            place = self.pin("place_o").get()
            assert place not in self.held
            self.held[place] = {}
            self.taken += 1
        for place in self.giving:
            del self.held[place]


@cocotb.test()
async def places_are_taken_written_read_and_given_back(dut: Any) -> None:
    bench = Bench(dut)
    places = Places(bench, Scope(dut.pool))
    for busy in (0.1, 0.5, 1.0):
        await bench.reset()
        places.busy = busy
        await bench.cycle(1500)
        assert places.taken > 80


@cocotb.test()
async def all_places_can_be_taken_one_a_cycle(dut: Any) -> None:
    bench = Bench(dut)
    pool = Scope(dut.pool)
    take, valid, place = (bench.pin(pool, name) for name in ("take_i", "place_valid_o", "place_o"))
    for name in ("take_i", "free_i", "write_i", "read_i"):  # the state that the previous test left
        bench.pin(pool, name).set(1)
        bench.pin(pool, name).set(0)
    await bench.reset()
    await bench.cycle(2)
    seen = set()
    for _ in range(64):
        assert valid.get()
        seen.add(place.get())
        take.set(1)
        await bench.cycle()
    take.set(0)
    await bench.cycle()
    assert (seen, valid.get()) == (set(range(64)), 0)


@cocotb.test()
async def what_was_written_is_read(dut: Any) -> None:
    bench = Bench(dut)
    ports = [Port(bench, name) for name in CHANNELS]
    for idle, stall, delay in [(0, 0, (5, 5)), (0.3, 0.3, (1, 40)), (0, 0.8, (2, 20)), (0.7, 0, (60, 90))]:
        await bench.reset()
        for port in ports:
            memory = port.memory
            memory.delay = delay
            for agent in (port.reads, port.writes, port.data, memory.r, memory.b):
                agent.idle = idle
            for agent in (port.words, port.lines, memory.ar, memory.aw, memory.w):
                agent.stall = stall
        content = []
        for page in range(40):
            words = bench.random.randint(1, 8)
            address = page * 4096 + 64 * bench.random.randint(0, 64 - words)
            content.append([(address, port.write(address, words)) for port in ports])
        await bench.until(lambda: all(port.confirmed == 40 for port in ports))
        # Writes ways of some of their words.
        for i in range(40):
            for port, (address, words) in zip(ports, content[i], strict=True):
                word = bench.random.randrange(len(words))
                way = bench.random.choice([0, 1, 2, 3, None])
                words[word] = port.write_way(address + 64 * word, words[word], way)
        await bench.until(lambda: all(port.confirmed == 80 for port in ports))
        for i in bench.random.choices(range(40), k=80):
            for port, (address, words) in zip(ports, content[i], strict=True):
                first = bench.random.randrange(len(words))
                port.read(address + 64 * first, words[first:])
                if bench.random.random() < 0.3:
                    port.read_line(address, words[0])
        # Meanwhile there are writes to other pages.
        for page in range(40, 60):
            for port in ports:
                port.write(page * 4096, 8)
        await bench.until(lambda: all(len(port.words.items) == len(port.expected) for port in ports))
        await bench.until(lambda: all(port.confirmed == 100 for port in ports))
        await bench.until(lambda: all(len(port.lines.items) == len(port.expected_lines) for port in ports))
        for port in ports:
            assert port.words.items == port.expected, port.name
            assert port.lines.items == port.expected_lines, port.name
            assert port.begins == port.firsts, port.name
            assert not port.failures, port.name


@cocotb.test()
async def reads_and_writes_run_at_a_beat_a_cycle(dut: Any) -> None:
    bench = Bench(dut)
    port = Port(bench, "deep")
    Port(bench, "shallow")
    await bench.reset()
    port.memory.delay = (50, 50)
    for page in range(30):
        port.read(page * 4096, [0] * 8)
        port.write((page + 100) * 4096, 8)
    await bench.until(lambda: len(port.words.items) == 240 and port.confirmed == 30)
    for beats in (port.memory.r.cycles_of[:480], port.memory.w.cycles_of[:480]):
        assert beats[-1] - beats[0] == 479, "a gap between beats"
    for page in range(30):
        port.write_way(4096 * page, 0, page % 4)
    await bench.until(lambda: port.confirmed == 60)
    beats = port.memory.w.cycles_of[480:]
    assert len(beats) == 30, "a way takes more than a beat"
    assert beats[-1] - beats[0] == 29, "a gap between ways"


@cocotb.test()
async def lines_go_past_words_that_nobody_takes(dut: Any) -> None:
    bench = Bench(dut)
    ports = [Port(bench, name) for name in CHANNELS]
    await bench.reset()
    for port in ports:
        port.memory.delay = (5, 5)
        port.words.stall = 1.0
        for i in range(4):
            port.read(4096 * i, [0] * (8 if port.name == "deep" else 2))
            port.read_line(4096 * i, 0)
        port.read_line(0, 0)
    await bench.until(lambda: all(len(port.lines.items) == 5 for port in ports))
    for port in ports:
        assert not port.words.items
        # One cycle from the second half at R to line_valid.
        assert port.lines.cycles_of[-1] == port.memory.r.cycles_of[-1] + 1


@cocotb.test()
async def errors_are_told(dut: Any) -> None:
    bench = Bench(dut)
    ports = [Port(bench, name) for name in CHANNELS]
    await bench.reset()
    for port in ports:
        port.memory.errors = 1.0
        port.write(0, 3)
    await bench.until(lambda: all(port.failures == 1 for port in ports))


WRITE: Bundles = {
    "write_i": (
        "pool_write_t",
        {"write_i": "write", "write_place_i": "place", "write_beat_i": "beat", "write_data_i": "data"},
    ),
    "place_o": ("offered_place_t", {"place_valid_o": "valid", "place_plenty_o": "plenty", "place_o": "place"}),
}
POOL = f"""
module pool_flat (input wire clk_i, input wire rst_i);
  {PACKAGES}
{nets(WRITE)}
  logic [2:0] free_i;
  logic [2:0][5:0] freed_i;
  logic [1:0] read_i;
  logic [1:0][5:0] read_place_i;
  logic [1:0][3:0] read_beat_i;
  free_place_t [2:0] free;
  pool_read_t [1:0] read;
  always_comb begin
    for (int i = 0; i < 3; i++) free[i] = '{{valid: free_i[i], place: freed_i[i]}};
    for (int i = 0; i < 2; i++) read[i] = '{{read: read_i[i], place: read_place_i[i], beat: read_beat_i[i]}};
  end
  kv_pool dut (.clk_i, .rst_i, .place_o(place_o_bundle), .free_i(free), .write_i(write_i_bundle), .read_i(read));
endmodule
"""


TOP = """
module top (input wire clk_i, input wire rst_i);
  pool_flat pool (.clk_i, .rst_i);
  shallow_flat shallow (.clk_i, .rst_i);
  deep_flat deep (.clk_i, .rst_i);
endmodule
"""


def test_kv_memory() -> None:
    channels = port_text("shallow", ".ReadDepth(8), .WriteDepth(4)") + port_text("deep", ".ReadDepth(128)")
    simulate(__file__, text=f'`include "axi.svh"\n{POOL}{channels}{TOP}', sources=KV_PACKAGES)
