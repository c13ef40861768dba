# SPDX-License-Identifier: Apache-2.0
"""dma_engine or dma_bram between a software and a card in plain Python, with a wrapper module.

Formats come from docs/design/dma.md, registers from the generated table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from axi_agents import Manager, Subordinate
from bench import Bench
from dma_rig import COMPLETION_FIELDS, LINE, READ_FIELDS, STREAM_FIELDS, WIDTHS, WRITE_FIELDS, Host, held
from hdl_tools import ROOT
from packed_structs import Struct, axi_lite, layouts

from wherry.dma.generated.registers import REGISTERS

FOLDER = ROOT / "hdl" / "dma"
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


def lane(name: str, module: str, parameters: Mapping[str, int]) -> str:
    """Returns the module `name`: dma_engine or dma_bram, nets for all fields, and the rules of AXI as assertions."""
    axi, flat = ("s_axi", "AXI_FROM_FLAT") if module == "dma_bram" else ("m_axi", "AXI_TO_FLAT")
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
        nets += [f"logic [{width - 1}:0] {axi}_{channel}{field};" for field, width in WIDTHS.items()]
    for field, width in {"wdata": 512, "wstrb": 64, "bid": 4, "bresp": 2, "rid": 4, "rdata": 512, "rresp": 2}.items():
        nets.append(f"logic [{width - 1}:0] {axi}_{field};")
    nets.append(f"logic {axi}_wlast, {axi}_rlast;")
    nets += [f"logic {axi}_{channel}valid, {axi}_{channel}ready;" for channel in ("aw", "w", "b", "ar", "r")]
    assigned = ", ".join(f".{key}({value})" for key, value in parameters.items())
    lines = [f"module {name} (input wire clk_i, input wire rst_i);", *nets]
    lines += ["axi_pkg::axi_req_t req;", "axi_pkg::axi_resp_t resp;", f"`{flat}({axi}, req, resp)", *wires]
    lines.append(f"{module} #({assigned}) dut ({', '.join(ports)}, .{axi}_req(req), .{axi}_resp(resp));")
    lines.append("axi_monitor #(.Outstanding(256)) i_monitor (.clk_i, .rst_i, .axi_req(req), .axi_resp(resp));")
    return "\n".join([*lines, "endmodule", ""])


def top_of(module: str, instances: Mapping[str, Mapping[str, int]]) -> str:
    """Returns a module `top` with one lane per entry."""
    lines = ["// verilator lint_off UNUSEDPARAM", "// verilator lint_off MULTITOP", '`include "axi.svh"']
    lines += [lane(f"{name}_lane", module, parameters) for name, parameters in instances.items()]
    lines.append("module top (input wire clk_i, input wire rst_i);")
    lines += [f"  {name}_lane {name} (.clk_i, .rst_i);" for name in instances]
    return "\n".join([*lines, "endmodule", ""])


class Software(Host):
    """A host's memory with rings. The engine may write reported words (status words, entries, messages) repeatedly."""

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
        """Separates reported words from data. Each such word is one beat."""
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
    """An engine with its software and its card."""

    def __init__(self, bench: Bench, name: str, channels: int, bram: bool = False) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench, self.name, self.channels = bench, name, channels
        bits = axi_lite(32, 32)
        self.request = Struct(bench, scope, "s_axil_req", bits["req"])
        self.response = Struct(bench, scope, "s_axil_resp", bits["resp"])
        kinds = layouts(FOLDER / "control" / "dma_control_pkg.sv")
        self.function = Struct(bench, scope, "function_i", kinds["function_t"])
        self.bell = bench.source(scope, "s_bell", BELL_FIELDS)
        self.to_stream = bench.sink(scope, "m_axis", STREAM_FIELDS)
        self.from_stream = bench.source(scope, "s_axis", STREAM_FIELDS)
        self.host = Software(bench, scope)
        if bram:
            self.other = Manager(bench, scope)
        else:
            self.card = Subordinate(bench, scope, delay=(1, 30), initial=held(2))
        self.flr, self.flr_done = bench.pin(scope, "flr_i"), bench.pin(scope, "flr_done_o")
        self.mps, self.timeout = bench.pin(scope, "mps_i"), bench.pin(scope, "timeout_i")
        self.tails: dict[int, int] = {}
        self.at = 0

    def configure(self) -> None:
        """Sets MRRS to 512 and MPS to 256."""
        self.flr.set(0)
        self.mps.set(1)
        self.timeout.set(0)
        self.function.set(bus_master=1, msix_enable=1, msix_mask=0, max_read=2)
        self.request.set(aw_valid=0, w_valid=0, ar_valid=0, b_ready=1, r_ready=1)

    async def write(self, name: str, value: int, index: int = 0) -> None:
        """Writes a register."""
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
        """Sets up all rings, with a message for each descriptor that requests one."""
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
        """Returns the existing rings."""
        return [r for d in range(2) for r in range(4 * d, 4 * d + self.channels)]

    def post(self, ring: int, host: int, card: int, size: int, flags: int = 2, *, eager: bool = False) -> None:
        """Writes a descriptor and its doorbell."""
        line = struct.pack("<QQIIQ", host, card, size, flags, self.tails[ring])
        self.host.put(RINGS + ring * 4096 + 32 * (self.tails[ring] % (1 << BITS)), line)
        self.tails[ring] += 1
        tail = struct.pack("<I", self.tails[ring] & 0xFFFF)
        offset, data = (64 * ring, line + tail.ljust(32, b"\0")) if eager else (64 * ring + 32, tail)
        self.bell.items.append((offset, len(data), int.from_bytes(data, "little")))

    def last_status(self, ring: int) -> tuple[int, int, int]:
        """Returns count, flags and bytes of the newest status word."""
        words = [data for address, data in self.host.told if address == STATUS + 64 * ring]
        return struct.unpack("<III", words[-1][:12]) if words else (0, 0, 0)

    def done(self) -> bool:
        """Returns true if all posted descriptors have been reported."""
        return all(self.last_status(ring)[0] == self.tails[ring] for ring in self.rings())

    def ask(self, count: int) -> list[tuple[bool, int, int, int]]:
        """Posts random transfers to separate addresses. Returns direction (true: to the host), host address, card
        address and bytes of each."""
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
        """Checks that every byte was transferred, and no other byte changed."""
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


async def start(bench: Bench, lanes: list[Lane]) -> None:
    """Sets up and starts all rings."""
    for one in lanes:
        one.configure()
    await bench.reset(4)
    await bench.cycle(540)
    for one in lanes:
        await one.set_up()
