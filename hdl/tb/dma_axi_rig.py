# SPDX-License-Identifier: Apache-2.0
"""The parts of dma_axi, each between the engine's side and an AXI memory or manager in plain Python."""

from __future__ import annotations

from typing import Any

from axi_agents import DECERR, SLVERR, Burst, Manager, Subordinate
from bench import Bench, Sink, Source
from bundles import Axi
from dma_rig import ABORTED, COMPLETION_FIELDS, LINE, NONE, PAGE, READ_FIELDS, UNSUPPORTED, WRITE_FIELDS, held
from hdl_tools import ROOT

AXI = ROOT / "hdl" / "dma" / "axi"
BELL_FIELDS = {"offset": 9, "bytes": 7, "data": 512}
LITE = {"awaddr": 32, "wdata": 32, "wstrb": 4, "bresp": 2, "araddr": 32, "rdata": 32, "rresp": 2}
READS, WRITES = 0x40_0000_0000, 0x50_0000_0000
FAILS = {DECERR: UNSUPPORTED, SLVERR: ABORTED}


def nets(port: str, kind: str, fields: dict[str, int]) -> list[str]:
    """Returns nets for the fields of a stream's struct, and the struct."""
    lines = [f"logic [{width - 1}:0] {port}_{field};" for field, width in fields.items()]
    lines += [f"logic {port}_valid, {port}_ready;", f"{kind} {port}_payload;"]
    listed = ", ".join(f"{port}_{field}" for field in fields)
    sends = port.startswith("m_")
    return [*lines, f"assign {{{listed}}} = {port}_payload;" if sends else f"assign {port}_payload = {{{listed}}};"]


def module(name: str, axi: Axi, lines: list[str]) -> str:
    """Returns a module with the flat ports of an AXI bus, its bundle and its monitor."""
    ports = ", ".join(["input wire clk_i", "input wire rst_i", *axi.ports()])
    return "\n".join([f"module {name}_lane ({ports});", *axi.body(), *lines, "endmodule", ""])


def host_lane(name: str, *, outstanding: int = 32, id_: int = 4, **cells: str) -> str:
    """Returns a module with dma_axi_reads and dma_axi_writes at one AXI port. `cells` replaces a cell by another."""
    axi = Axi("m_axi", id=id_, outstanding=64)
    types = f".axi_req_t(m_axi_req_t), .axi_resp_t(m_axi_resp_t), .Outstanding({outstanding})"
    lines = nets("s_read", "dma_pkg::read_t", READ_FIELDS) + nets("s_write", "dma_pkg::write_t", WRITE_FIELDS)
    lines += nets("m_completion", "dma_pkg::completion_t", COMPLETION_FIELDS)
    lines += ["m_axi_req_t read_req, write_req;"]
    for cell, request in (("dma_axi_reads", "read_req"), ("dma_axi_writes", "write_req")):
        lines.append(f"{cells.get(cell, cell)} #({types}) i_{cell} (.*, .m_axi_req({request}));")
    lines += ["always_comb begin m_axi_req = write_req; m_axi_req.ar = read_req.ar;"]
    lines += ["m_axi_req.ar_valid = read_req.ar_valid; m_axi_req.r_ready = read_req.r_ready; end"]
    return module(name, axi, lines)


def bar_lane(name: str, *, cell: str = "dma_axi_bar") -> str:
    """Returns a module with dma_axi_bar, flat nets of its AXI4-Lite bus, and nets of its doorbells."""
    lines = nets("m_bell", "dma_control_pkg::bell_t", BELL_FIELDS)
    lines += [f"logic [{width - 1}:0] m_axil_{field};" for field, width in LITE.items()]
    lines += [f"logic m_axil_{channel}valid, m_axil_{channel}ready;" for channel in ("aw", "w", "b", "ar", "r")]
    lines += ["axi_pkg::axi_lite_req_t m_axil_req; axi_pkg::axi_lite_resp_t m_axil_resp;"]
    lines += ["`AXI_LITE_TO_FLAT(m_axil, m_axil_req, m_axil_resp)", "logic refused_o;"]
    lines += [f"{cell} #(.axi_req_t(s_axi_req_t), .axi_resp_t(s_axi_resp_t)) i_bar (.*);"]
    return module(name, Axi("s_axi"), lines)


def top_of(lanes: dict[str, str], cells: str = "") -> str:
    """Returns a module `top` with the modules of `lanes`, and further modules before them."""
    lines = ["// verilator lint_off UNUSEDPARAM", "// verilator lint_off MULTITOP", '`include "axi.svh"', cells]
    lines += [*lanes.values(), "module top (input wire clk_i, input wire rst_i);"]
    lines += [f"  {name}_lane {name} (.clk_i, .rst_i);" for name in lanes]
    return "\n".join([*lines, "endmodule", ""])


def faulty(cell: str, name: str, before: str, after: str) -> str:
    """Returns the text of a cell with one fault, as a module of another name."""
    text = (AXI / f"{cell}.sv").read_text()
    assert text.count(before) == 1, f"{cell} has {before!r} {text.count(before)} times"
    return text.replace(before, after).replace(f"module {cell}", f"module {name}")


class HostLane:
    """The engine's requests at one side, the host's memory at the other."""

    def __init__(self, bench: Bench, name: str, memory: bool = True) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench, self.name = bench, name
        self.reads: Source = bench.source(scope, "s_read", READ_FIELDS)
        self.writes: Source = bench.source(scope, "s_write", WRITE_FIELDS)
        self.completions: Sink = bench.sink(scope, "m_completion", COMPLETION_FIELDS)
        if memory:
            self.memory = Subordinate(bench, scope, delay=(1, 30), initial=held(1))
        self.asked: list[tuple[int, int, int]] = []  # tag, address, bytes
        self.wrote: dict[int, int] = {}
        self.tag, self.at, self.count = 0, 0, 0

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of all agents."""
        for source in (self.reads, self.writes):
            source.idle = idle
        self.completions.stall = stall
        self.memory.pace(idle, stall)

    def read(self, address: int, size: int) -> None:
        """Queues a read with the next tag."""
        self.asked.append((self.tag, address, size))
        self.reads.items.append((self.tag, size, address))
        self.tag = (self.tag + 1) % 136

    def write(self, address: int, data: bytes) -> None:
        """Queues a write. Lanes without a byte are random, and so are address and length beside the first beat."""
        draw = self.bench.random
        self.wrote.update((address + i, byte) for i, byte in enumerate(data))
        self.count += 1
        for at in range(0, len(data), LINE):
            part = data[at : at + LINE] + draw.randbytes(LINE - len(data[at : at + LINE]))
            first, last = at == 0, at + LINE >= len(data)
            head = (len(data), address) if first else (draw.getrandbits(13), draw.getrandbits(64))
            self.writes.items.append((int(first), int(last), *head, int.from_bytes(part, "little")))

    def place(self, most: int) -> tuple[int, int]:
        """Returns a new place within a page and a size, often at their limits."""
        draw = self.bench.random
        size = draw.choice([1, 4, 63, 64, 65, draw.randint(1, 130), draw.randint(1, most), most])
        offset = draw.choice([0, LINE - 1, draw.randrange(PAGE), PAGE - size])
        self.at += PAGE
        return self.at + min(offset, PAGE - size), size

    def ask(self, count: int, most: int = 512) -> None:
        """Queues random reads and writes, each in a page of its own."""
        for _ in range(count):
            at, size = self.place(most)
            self.read(READS + at, size)
            at, size = self.place(most)
            self.write(WRITES + at, self.bench.random.randbytes(size))

    def done(self) -> bool:
        """Returns true if all reads are complete and all writes have left."""
        final = sum(item[3] for item in self.completions.items)
        return final == len(self.asked) and len(self.memory.written_bursts) == self.count

    def check(self) -> None:
        """Checks all completions against the memory's content, and every written byte. Then forgets them."""
        items = iter(self.completions.items)
        for tag, address, size in self.asked:
            found, opens = self.data_of(items, tag, address)
            error = self.error_of(address, size)
            assert opens == error, (self.name, hex(address), size, opens)
            expected = bytes(self.memory.byte(address + i) for i in range(size))
            assert (found == expected) if not error else expected.startswith(found), (self.name, hex(address), size)
        assert next(items, None) is None
        assert self.memory.written == self.wrote, self.name
        self.forget()

    def forget(self) -> None:
        """Forgets what was asked and what came."""
        self.completions.items.clear()
        self.asked.clear()
        self.memory.written.clear()
        self.memory.written_bursts.clear()
        self.wrote.clear()
        self.count = 0

    def error_of(self, address: int, size: int) -> int:
        """Returns the error of the first line that fails."""
        for line in range(address & -LINE, address + size, LINE):
            if answer := self.memory.fails(line):
                return FAILS[answer]
        return NONE

    @staticmethod
    def data_of(items: Any, tag: int, address: int) -> tuple[bytes, int]:
        """Takes a read's completions, and checks them against the rules of completion_t. Returns data and error."""
        found, begins = bytearray(), True
        for tag_, first, last, final, error, size, data in items:
            assert tag_ == tag
            assert bool(first) == begins
            begins = bool(last)
            assert not final or last
            assert error == NONE or (final and size == 0)
            if first and not error:
                assert not found or (address + len(found)) % LINE == 0
            assert last or size == LINE
            found += data.to_bytes(LINE, "little")[:size]
            if final:
                return bytes(found), error
        raise AssertionError("a read is not complete")


class Words:
    """Registers behind an AXI4-Lite bus. Words without all strobes are refused, and words from 0x800 on are 0."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, f"m_axil_{name}") for name in names]

        self.bench = bench
        self.aw = Sink(bench, *pins("awvalid", "awready"), pins("awaddr"))
        self.w = Sink(bench, *pins("wvalid", "wready"), pins("wdata", "wstrb"))
        self.b = Source(bench, *pins("bvalid", "bready"), pins("bresp"))
        self.ar = Sink(bench, *pins("arvalid", "arready"), pins("araddr"))
        self.r = Source(bench, *pins("rvalid", "rready"), pins("rdata", "rresp"))
        self.words: dict[int, int] = {}
        bench.agents.append(self)

    def drive(self) -> None:
        """Does nothing."""

    def sample(self) -> None:
        """Answers an access."""
        if self.aw.items and self.w.items:
            address, (value, strobes) = self.aw.items.pop(0), self.w.items.pop(0)  # type: ignore[misc]
            assert address < 0x1000  # type: ignore[operator]
            if strobes == 15:
                self.words[address] = value  # type: ignore[index]
            self.b.items.append(0 if strobes == 15 else SLVERR)
        if self.ar.items:
            self.r.items.append((self.words.get(self.ar.items.pop(0), 0), 0))  # type: ignore[arg-type]

    def reset(self) -> None:
        """Keeps the words."""


class Host:
    """Accesses to the card at an AXI manager, in order: all have one id."""

    def __init__(self, bench: Bench, manager: Manager, base: int = 0) -> None:
        self.bench, self.manager, self.base = bench, manager, base
        self.restart()

    def restart(self) -> None:
        """Forgets all accesses, after a reset."""
        self.posted = 0
        self.read_beats: list[tuple[int, int]] = []  # lane and bytes of each beat that was asked for
        self.manager.b.items.clear()
        self.manager.r.items.clear()

    def post(self, address: int, data: bytes, strobes: int | None = None) -> None:
        """Writes without waiting. `strobes` are those of the data's bytes; lanes beside them are random."""
        lane = address % LINE
        total = lane + len(data)
        beats = -(-total // LINE)
        width = 8 * LINE * beats
        noise = self.bench.random.getrandbits(width) & ~((1 << 8 * len(data)) - 1 << 8 * lane)
        line = noise | int.from_bytes(data, "little") << 8 * lane
        enabled = ((1 << len(data)) - 1 if strobes is None else strobes) << lane
        words = [(line >> 512 * i & (1 << 512) - 1, enabled >> LINE * i & (1 << LINE) - 1) for i in range(beats)]
        self.manager.write(Burst(0, self.base + address, beats, 6, data=words))
        self.posted += 1

    def settled(self) -> bool:
        """Returns true if all writes are answered."""
        return len(self.manager.b.items) == self.posted

    async def write(self, address: int, data: bytes, strobes: int | None = None) -> int:
        """Writes, and returns the response."""
        self.post(address, data, strobes)
        await self.bench.until(self.settled, 5000)
        return int(self.manager.responses[-1][1])

    async def answer(self, address: int, size: int) -> tuple[bytes, int]:
        """Reads, and returns the bytes and the worst response."""
        beats = -(-(address % LINE + size) // LINE)
        width = 2 if size == 4 and self.bench.random.random() < 0.5 else 6
        self.manager.r.items.clear()
        self.manager.ask(Burst(0, self.base + address, beats, width))
        await self.bench.until(lambda: len(self.manager.r.items) == beats, 5000)
        found = b"".join(item[1].to_bytes(LINE, "little") for item in self.manager.r.items)
        return found[address % LINE :][:size], max(item[2] for item in self.manager.r.items)

    async def read(self, address: int, size: int = 4) -> bytes:
        """Reads without an error."""
        found, response = await self.answer(address, size)
        assert response == 0, hex(address)
        return found
