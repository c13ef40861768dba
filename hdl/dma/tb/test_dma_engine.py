# SPDX-License-Identifier: Apache-2.0
"""dma_engine, both parts joined, between software's rings in a host's memory and a card's memory.

Descriptors go in, bytes and status words come out. Formats are docs/dma.md's, registers the generated table's. The
parts have benches of their own; this one shows that they understand each other.
"""

from __future__ import annotations

import struct
from typing import Any

import cocotb
from axi_agents import Subordinate
from bench import Bench
from dma_rig import (
    COMPLETION_FIELDS,
    LINE,
    MALFORMED,
    NONE,
    READ_FIELDS,
    STREAM_FIELDS,
    UNSUPPORTED,
    WIDTHS,
    WRITE_FIELDS,
    Host,
    beats,
    held,
)
from hdl_tools import ROOT, files
from packed_structs import Struct, axi_lite, layouts
from simulate import simulate

from wherry.dma.generated.registers import REGISTERS

FOLDER = ROOT / "hdl" / "dma"
INSTANCES = {"plain": {"Channels": 1, "Stream": 0}, "whole": {"Channels": 4, "Stream": 1}}
STATUS, VECTORS, PACKETS, RINGS, DATA = 0x5_0000_0000, 0xFEE0_0000, 0x6_0000_0000, 0x7_0000_0000, 0x10_0000_0000
CARD = 0x2_0000_0000
BITS = 4
BELL_FIELDS = {"offset": 9, "bytes": 7, "data": 512}
PORTS: dict[str, tuple[str, dict[str, int]]] = {
    "s_bell": ("dma_control_pkg::bell_t", BELL_FIELDS),
    "m_read": ("dma_pkg::read_t", READ_FIELDS),
    "s_completion": ("dma_pkg::completion_t", COMPLETION_FIELDS),
    "m_write": ("dma_pkg::write_t", WRITE_FIELDS),
    "m_axis": ("dma_pkg::dma_axis_t", STREAM_FIELDS),
    "s_axis": ("dma_pkg::dma_axis_t", STREAM_FIELDS),
}


def lane(name: str, parameters: dict[str, int]) -> str:
    """The module `name`: the engine, nets for all fields, and the rules of AXI as assertions."""
    nets = ["axi_pkg::axi_lite_req_t s_axil_req;", "axi_pkg::axi_lite_resp_t s_axil_resp;"]
    nets += ["dma_control_pkg::function_t function_i;", "logic flr_i, flr_done_o, unexpected_o, timed_out_o;"]
    nets += ["logic [2:0] mps_i;", "logic [6:0] timeout_i;"]
    wires, ports = [], [".*"]
    for port, (kind, fields) in PORTS.items():
        nets += [f"logic [{width - 1}:0] {port}_{field};" for field, width in fields.items()]
        nets += [f"logic {port}_valid, {port}_ready;", f"{kind} {port}_bundle;"]
        listed = ", ".join(f"{port}_{field}" for field in fields)
        driven = f"assign {{{listed}}} = {port}_bundle;"
        wires.append(driven if port.startswith("m_") else f"assign {port}_bundle = {{{listed}}};")
        ports.append(f".{port}_payload({port}_bundle)")
    for channel in ("aw", "ar"):
        nets += [f"logic [{width - 1}:0] m_axi_{channel}{field};" for field, width in WIDTHS.items()]
    for field, width in {"wdata": 512, "wstrb": 64, "bid": 4, "bresp": 2, "rid": 4, "rdata": 512, "rresp": 2}.items():
        nets.append(f"logic [{width - 1}:0] m_axi_{field};")
    nets.append("logic m_axi_wlast, m_axi_rlast;")
    nets += [f"logic m_axi_{channel}valid, m_axi_{channel}ready;" for channel in ("aw", "w", "b", "ar", "r")]
    assigned = ", ".join(f".{key}({value})" for key, value in parameters.items())
    lines = [f"module {name} (input wire clk_i, input wire rst_i);", *nets]
    lines += ["axi_pkg::axi_req_t req;", "axi_pkg::axi_resp_t resp;", "`AXI_TO_FLAT(m_axi, req, resp)", *wires]
    lines.append(f"dma_engine #({assigned}) dut ({', '.join(ports)}, .m_axi_req(req), .m_axi_resp(resp));")
    lines.append("axi_monitor #(.Outstanding(256)) i_monitor (.clk_i, .rst_i, .axi_req(req), .axi_resp(resp));")
    return "\n".join([*lines, "endmodule", ""])


def top() -> str:
    lines = ["// verilator lint_off UNUSEDPARAM", "// verilator lint_off MULTITOP", '`include "axi.svh"']
    lines += [lane(f"{name}_lane", parameters) for name, parameters in INSTANCES.items()]
    lines.append("module top (input wire clk_i, input wire rst_i);")
    lines += [f"  {name}_lane {name} (.clk_i, .rst_i);" for name in INSTANCES]
    return "\n".join([*lines, "endmodule", ""])


class Software(Host):
    """A host's memory with rings in it. What is told (status words, entries, messages) may be written again."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        super().__init__(bench, scope)
        self.memory: dict[int, int] = {}
        self.holds = lambda address: self.memory.get(address, held(1)(address))
        self.told: list[tuple[int, bytes]] = []
        self.mps = 256

    def put(self, address: int, data: bytes) -> None:
        """Software writes its own memory."""
        self.memory.update((address + i, byte) for i, byte in enumerate(data))

    def sample(self) -> None:
        """Words apart from data: each is one beat."""
        words = [one for one in self.write.items if one[0] and (STATUS <= one[3] < RINGS or one[3] in self._vectors())]
        for word in words:
            _, last, size, address, data = word
            assert last
            self.told.append((address, data.to_bytes(LINE, "little")[:size]))
            self.write.items.remove(word)
        super().sample()

    @staticmethod
    def _vectors() -> range:
        return range(VECTORS, VECTORS + 128)


class Lane:
    """An engine, its software and its card."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench, self.name, self.channels = bench, name, INSTANCES[name]["Channels"]
        bits = axi_lite(32, 32)
        self.request = Struct(bench, scope, "s_axil_req", bits["req"])
        self.response = Struct(bench, scope, "s_axil_resp", bits["resp"])
        kinds = layouts(FOLDER / "control" / "dma_control_pkg.sv")
        self.function = Struct(bench, scope, "function_i", kinds["function_t"])
        self.bell = bench.source(scope, "s_bell", BELL_FIELDS)
        self.to_stream = bench.sink(scope, "m_axis", STREAM_FIELDS)
        self.from_stream = bench.source(scope, "s_axis", STREAM_FIELDS)
        self.host = Software(bench, scope)
        self.card = Subordinate(bench, scope, delay=(1, 30), initial=held(2))
        self.flr, self.flr_done = bench.pin(scope, "flr_i"), bench.pin(scope, "flr_done_o")
        self.mps, self.timeout = bench.pin(scope, "mps_i"), bench.pin(scope, "timeout_i")
        self.tails: dict[int, int] = {}
        self.at = 0

    def configure(self) -> None:
        """MRRS 512, MPS 256."""
        self.flr.set(0)
        self.mps.set(1)
        self.timeout.set(0)
        self.function.set(bus_master=1, msix_enable=1, msix_mask=0, max_read=2)
        self.request.set(aw_valid=0, w_valid=0, ar_valid=0, b_ready=1, r_ready=1)

    async def write(self, name: str, value: int, index: int = 0) -> None:
        """A register."""
        register = REGISTERS[name]
        self.request.set(
            aw_valid=1, aw__addr=register.offset + register.stride * index, w_valid=1, w__data=value, w__strb=15
        )
        left = {"aw", "w"}
        for _ in range(3000):
            await self.bench.settle()
            taken = {one for one in left if self.response.get(f"{one}_ready")}
            answered = self.response.get("b_valid")
            await self.bench.cycle()
            for one in taken:
                self.request.set(**{f"{one}_valid": 0})
            left -= taken
            if answered and not left:
                return
        raise AssertionError(f"{self.name}: {name} is not answered")

    async def set_up(self) -> None:
        """All rings, with a message for each descriptor that asks for one."""
        await self.write("status_low", STATUS & 0xFFFFFFFF)
        await self.write("status_high", STATUS >> 32)
        for ring in self.rings():
            for name, value in (("ring", RINGS + ring * 4096), ("packets", PACKETS + ring * 4096)):
                await self.write(f"{name}_low", value & 0xFFFFFFFF, ring)
                await self.write(f"{name}_high", value >> 32, ring)
            await self.write("moderation", 1, ring)
            for name, value in (("address_low", VECTORS + 16 * ring), ("address_high", 0), ("data", 0x40 + ring)):
                await self.write(f"msix_{name}", value, ring)
            await self.write("msix_control", 0, ring)
            await self.write("ring_control", 1 | BITS << 8, ring)
            self.tails[ring] = 0

    def rings(self) -> list[int]:
        """Those that there are."""
        return [r for d in range(2) for r in range(4 * d, 4 * d + self.channels)]

    def post(self, ring: int, host: int, card: int, size: int, flags: int = 2, *, eager: bool = False) -> None:
        """A descriptor and its doorbell."""
        line = struct.pack("<QQIIQ", host, card, size, flags, self.tails[ring])
        self.host.put(RINGS + ring * 4096 + 32 * (self.tails[ring] % (1 << BITS)), line)
        self.tails[ring] += 1
        tail = struct.pack("<I", self.tails[ring] & 0xFFFF)
        offset, data = (64 * ring, line + tail.ljust(32, b"\0")) if eager else (64 * ring + 32, tail)
        self.bell.items.append((offset, len(data), int.from_bytes(data, "little")))

    def last_status(self, ring: int) -> tuple[int, int, int]:
        """Count, flags, bytes: as the newest word says."""
        words = [data for address, data in self.host.told if address == STATUS + 64 * ring]
        return struct.unpack("<III", words[-1][:12]) if words else (0, 0, 0)

    def done(self) -> bool:
        """All that was posted was told."""
        return all(self.last_status(ring)[0] == self.tails[ring] for ring in self.rings())

    def ask(self, count: int) -> list[tuple[bool, int, int, int]]:
        """Random transfers, each at a place of its own: to the host, host, card, bytes."""
        draw, asked = self.bench.random, []
        for _ in range(count):
            ring = draw.choice(self.rings())
            size = draw.choice([draw.randint(1, 130), draw.randint(1, 9000), 4096, LINE])
            host, card = DATA + self.at + draw.randrange(5000), CARD + self.at + draw.randrange(5000)
            self.at += 0x8000
            self.post(ring, host, card, size, draw.choice((0, 2)), eager=draw.random() < 0.3)
            asked.append((ring >= 4, host, card, size))
        return asked

    def check(self, asked: list[tuple[bool, int, int, int]]) -> None:
        """Every byte, and no other."""
        for to_host, host, card, size in asked:
            to, source = (host, card) if to_host else (card, host)
            written, initial = (self.host.written, held(2)) if to_host else (self.card.written, held(1))
            assert all(written.pop(to + i) == initial(source + i) for i in range(size)), (
                self.name,
                to_host,
                hex(to),
                size,
            )
        assert not self.host.written
        assert not self.card.written


async def lanes_of(dut: Any, seed: int) -> tuple[Bench, list[Lane]]:
    """Engines whose rings run."""
    bench = Bench(dut, seed)
    lanes = [Lane(bench, name) for name in INSTANCES]
    for one in lanes:
        one.configure()
    await bench.reset(4)
    await bench.cycle(540)
    for one in lanes:
        await one.set_up()
    return bench, lanes


@cocotb.test()
async def descriptors_move_bytes_and_are_told(dut: Any) -> None:
    """Both ways, on all channels, at any alignment, round the rings several times, with doorbells of both kinds."""
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
    """To the host: when the word is there, every byte is."""
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
    """The error's code, on the ring that it belongs to, at the descriptor that it belongs to."""
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
    """To the card descriptors become packets of the stream; to the host packets fill buffers, each has its entry."""
    bench, lanes = await lanes_of(dut, 4)
    whole = lanes[1]
    whole.post(2, DATA + 5, 0, 320, 1)  # two descriptors, of whole lines but for the last, are a packet
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
    """A descriptor that does not end its packet, of other than whole lines."""
    _, lanes = await lanes_of(dut, 6)
    whole = lanes[1]
    whole.post(2, DATA, 0, 300, 1)
    await whole.bench.until(lambda: whole.last_status(2)[1] != 0, 5_000)
    assert whole.last_status(2) == (0, MALFORMED | 8, 0)
    assert not whole.to_stream.items


@cocotb.test()
async def a_reset_of_the_function_in_flight(dut: Any) -> None:
    """Nothing of the old life is told after it; then all works anew."""
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
    simulate(__file__, text=top(), sources=tuple(ROOT / path for path in files("*_pkg.sv")))
