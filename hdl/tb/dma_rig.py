# SPDX-License-Identifier: Apache-2.0
"""dma_data between a host and a card in plain Python, with a wrapper module.

The host answers reads late, in any order, and cut at any multiple of 64 bytes. It uses requests and completions as in
dma_pkg.sv, but nothing else of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axi_agents import Subordinate
from bench import Bench, Source

LINE, PAGE, TURN = 64, 4096, 4096
NONE, UNSUPPORTED, ABORTED, POISONED, TIMEOUT, MALFORMED, MEMORY, RESET = range(8)
WIDTHS = {"id": 4, "addr": 64, "len": 8, "size": 3, "burst": 2, "cache": 4, "prot": 3}

# Ports that are structs: driver, type, and fields with widths. The first field is in the highest bits.
TURN_FIELDS = {"channel": 2, "stream": 1, "last": 1, "bytes": 13, "host": 64, "card": 64}
DONE_FIELDS = {"channel": 2, "error": 3, "end_of_packet": 1, "bytes": 13}
READ_FIELDS = {"tag": 8, "bytes": 13, "addr": 64}
COMPLETION_FIELDS = {"tag": 8, "first": 1, "last": 1, "final_": 1, "error": 3, "bytes": 7, "data": 512}
WRITE_FIELDS = {"first": 1, "last": 1, "bytes": 13, "addr": 64, "data": 512}
STREAM_FIELDS = {"user": 3, "last": 1, "keep": 64, "data": 512}
PORTS: dict[str, tuple[str, dict[str, int]]] = {
    "s_h2c": ("turn_t", TURN_FIELDS),
    "m_h2c_done": ("done_t", DONE_FIELDS),
    "s_c2h": ("turn_t", TURN_FIELDS),
    "m_c2h_done": ("done_t", DONE_FIELDS),
    "s_fetch": ("read_t", READ_FIELDS),
    "m_fetched": ("completion_t", COMPLETION_FIELDS),
    "s_status": ("write_t", WRITE_FIELDS),
    "m_read": ("read_t", READ_FIELDS),
    "s_completion": ("completion_t", COMPLETION_FIELDS),
    "m_write": ("write_t", WRITE_FIELDS),
    "m_axis": ("dma_axis_t", STREAM_FIELDS),
    "s_axis": ("dma_axis_t", STREAM_FIELDS),
}
LEVELS = {"stop_i": 1, "mrrs_i": 3, "mps_i": 3, "timeout_i": 7, "reserve_i": 8}
FLAGS = {
    "h2c_stream_room_o": 1,
    "c2h_stream_valid_o": 1,
    "c2h_stream_channel_o": 2,
    "unexpected_o": 1,
    "timed_out_o": 1,
    "idle_o": 1,
}


def lane(name: str, parameters: dict[str, int]) -> str:
    """Returns the module `name`: the engine, nets for all fields, and the rules of AXI as assertions."""
    nets, wires, ports = [], [], [".clk_i, .rst_i"]
    for port, (kind, fields) in PORTS.items():
        nets += [f"logic [{width - 1}:0] {port}_{field};" for field, width in fields.items()]
        nets += [f"logic {port}_valid, {port}_ready;", f"dma_pkg::{kind} {port}_bundle;"]
        listed = ", ".join(f"{port}_{field}" for field in fields)
        driven = f"assign {{{listed}}} = {port}_bundle;"
        wires.append(driven if port.startswith("m_") else f"assign {port}_bundle = {{{listed}}};")
        ports += [f".{port}_valid, .{port}_ready", f".{port}_payload({port}_bundle)"]
    nets += [f"logic [{width - 1}:0] {level};" for level, width in (LEVELS | FLAGS).items()]
    ports += [f".{level}" for level in LEVELS | FLAGS]
    for channel in ("aw", "ar"):
        nets += [f"logic [{width - 1}:0] m_axi_{channel}{field};" for field, width in WIDTHS.items()]
    for field, width in {"wdata": 512, "wstrb": 64, "bid": 4, "bresp": 2, "rid": 4, "rdata": 512, "rresp": 2}.items():
        nets.append(f"logic [{width - 1}:0] m_axi_{field};")
    nets.append("logic m_axi_wlast, m_axi_rlast;")
    nets += [f"logic m_axi_{channel}valid, m_axi_{channel}ready;" for channel in ("aw", "w", "b", "ar", "r")]
    assigned = ", ".join(f".{key}({value})" for key, value in parameters.items())
    lines = [f"module {name} (input wire clk_i, input wire rst_i);", *nets]
    lines += ["axi_pkg::axi_req_t req;", "axi_pkg::axi_resp_t resp;", "`AXI_TO_FLAT(m_axi, req, resp)", *wires]
    lines.append(f"dma_data #({assigned}) dut ({', '.join(ports)}, .m_axi_req(req), .m_axi_resp(resp));")
    lines.append("axi_monitor #(.Outstanding(256)) i_monitor (.clk_i, .rst_i, .axi_req(req), .axi_resp(resp));")
    return "\n".join([*lines, "endmodule", ""])


def top_of(instances: dict[str, dict[str, int]]) -> str:
    """Returns a module `top` with one lane per entry."""
    lines = ["// verilator lint_off UNUSEDPARAM", "// verilator lint_off MULTITOP", '`include "axi.svh"']
    lines += [lane(f"{name}_lane", parameters) for name, parameters in instances.items()]
    lines.append("module top (input wire clk_i, input wire rst_i);")
    lines += [f"  {name}_lane {name} (.clk_i, .rst_i);" for name in instances]
    return "\n".join([*lines, "endmodule", ""])


def held(seed: int) -> Callable[[int], int]:
    """Returns a function that gives a memory's initial content at each address."""
    return lambda address: (address * 2654435761 + (address >> 6) * 97 + seed * 31 >> 7) & 0xFF


@dataclass
class Request:
    """A read that the host has not completely answered."""

    tag: int
    address: int
    left: int
    due: int
    error: int = NONE


class Host:
    """The memory behind the requester's ports."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        self.bench = bench
        self.holds = held(1)
        self.written: dict[int, int] = {}
        self.order: list[tuple[int, int]] = []  # address and bytes of each write
        self.delay = (20, 60)
        self.fails: Callable[[int, int], int] = lambda address, size: NONE
        self.mute = False
        self.most, self.reads = 256, 0
        self.read = bench.sink(scope, "m_read", READ_FIELDS)
        self.write = bench.sink(scope, "m_write", WRITE_FIELDS)
        self.completion: Source = bench.source(scope, "s_completion", COMPLETION_FIELDS)
        self.mrrs, self.mps = 512, 256
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets transfers in flight."""
        self.waiting: list[Request] = []
        self.writing: tuple[int, int] | None = None

    def drive(self) -> None:
        """Offers a completion when the last one has been accepted."""
        due = [request for request in self.waiting if request.due <= self.bench.cycles]
        if not due or self.completion.items:
            return
        draw = self.bench.random
        request = draw.choice(due)
        # Completions end at multiples of 64. An error without data ends the request.
        size = min(request.left, draw.randrange(LINE, self.most + 1, LINE) - request.address % LINE)
        if request.error in (UNSUPPORTED, ABORTED) and (draw.random() < 0.5 or size == request.left):
            self.waiting.remove(request)
            self.completion.items.append((request.tag, 1, 1, 1, request.error, 0, draw.getrandbits(512)))
            return
        final = size == request.left
        error = request.error if request.error == POISONED and (final or draw.random() < 0.5) else NONE
        if error:
            request.error = NONE
        for at in range(0, size, LINE):
            here = min(LINE, size - at)
            data = bytearray(draw.randbytes(LINE))
            if not error:
                data[:here] = bytes(self.holds(request.address + at + i) for i in range(here))
            last = at + here == size
            beat = (request.tag, int(at == 0), int(last), int(last and final), error, here)
            self.completion.items.append((*beat, int.from_bytes(data, "little")))
        request.address += size
        request.left -= size
        if final:
            self.waiting.remove(request)

    def sample(self) -> None:
        """Accepts reads and writes, and checks them against the rules of PCIe."""
        for tag, size, address in self.read.items:
            assert 0 < size <= self.mrrs
            assert address % PAGE + size <= PAGE
            assert all(request.tag != tag for request in self.waiting), f"tag {tag} is in flight"
            self.reads += 1
            if not self.mute:
                due = self.bench.cycles + self.bench.random.randint(*self.delay)
                self.waiting.append(Request(tag, address, size, due, self.fails(address, size)))
        self.read.items.clear()
        for first, last, size, address, data in self.write.items:
            assert bool(first) == (self.writing is None)
            at, left = self.writing or (address, size)
            if first:
                assert 0 < size <= max(self.mps, LINE)
                assert address % PAGE + size <= PAGE
                self.order.append((address, size))
            here = min(left, LINE)
            for i in range(here):
                assert at + i not in self.written, "written twice"
                self.written[at + i] = data >> 8 * i & 0xFF
            self.writing = (at + here, left - here) if left > here else None
            assert bool(last) == (self.writing is None)
        self.write.items.clear()


class Lane:
    """An engine with its host, its card, and the requests to it."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = getattr(bench.dut, name)
        self.bench, self.name = bench, name
        self.h2c, self.c2h = bench.source(scope, "s_h2c", TURN_FIELDS), bench.source(scope, "s_c2h", TURN_FIELDS)
        self.h2c_done = bench.sink(scope, "m_h2c_done", DONE_FIELDS)
        self.c2h_done = bench.sink(scope, "m_c2h_done", DONE_FIELDS)
        self.fetch = bench.source(scope, "s_fetch", READ_FIELDS)
        self.fetched = bench.sink(scope, "m_fetched", COMPLETION_FIELDS)
        self.status = bench.source(scope, "s_status", WRITE_FIELDS)
        self.to_stream = bench.sink(scope, "m_axis", STREAM_FIELDS)
        self.from_stream = bench.source(scope, "s_axis", STREAM_FIELDS)
        self.host = Host(bench, scope)
        self.card = Subordinate(bench, scope, delay=(1, 30), initial=held(2))
        self.levels = {level: bench.pin(scope, level) for level in LEVELS}
        self.flags = {flag: bench.pin(scope, flag) for flag in FLAGS}

    def configure(self, mrrs: int, mps: int, timeout: int = 0, reserve: int = 0) -> None:
        """Sets MRRS and MPS to 128 << x bytes. `reserve` is in units of 1/512 of the ring."""
        self.levels["stop_i"].set(0)
        self.levels["mrrs_i"].set(mrrs)
        self.levels["mps_i"].set(mps)
        self.levels["timeout_i"].set(timeout)
        self.levels["reserve_i"].set(reserve)
        self.host.mrrs, self.host.mps = 128 << mrrs, 128 << mps

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of all agents."""
        for source in (self.h2c, self.c2h, self.fetch, self.status, self.from_stream, self.host.completion):
            source.idle = idle
        for sink in (self.h2c_done, self.c2h_done, self.fetched, self.to_stream, self.host.read, self.host.write):
            sink.stall = stall
        self.card.pace(idle, stall)


def turn(
    host: int, card: int, size: int, *, channel: int = 0, stream: bool = False, last: bool = True
) -> tuple[int, ...]:
    """Returns a turn_t as a tuple."""
    return (channel, int(stream), int(last), size, host, card)


def beats(packet: bytes, user: int) -> list[tuple[int, ...]]:
    """Returns a packet as beats of the stream."""
    found = []
    for at in range(0, len(packet), LINE):
        part = packet[at : at + LINE]
        last = at + LINE >= len(packet)
        found.append((user, int(last), (1 << len(part)) - 1, int.from_bytes(part, "little")))
    return found
