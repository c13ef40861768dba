# SPDX-License-Identifier: Apache-2.0
"""A model of the OpenNIC shell around the plugin: its packet adapter, QDMA, register bus and reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axi_memory import Bytes, Memory
from bench import Bench, Sink, Source
from cocotb.triggers import Timer
from flat import Scope

RX, H2C = "s_axis_adap_rx_250mhz", "s_axis_qdma_h2c"
TX, C2H = "m_axis_adap_tx_250mhz", "m_axis_qdma_c2h"
FIELDS = (("tdata", 512), ("tkeep", 64), ("tlast", 1), ("tuser_size", 16), ("tuser_src", 16), ("tuser_dst", 16))
Frame = tuple[bytes, int, int]  # bytes, source, destination


class TwoClocks(Bench):
    """axis_aclk ticks in every cycle, axil_aclk in one of `ratio` cycles. Their edges coincide, as in the shell."""

    ratio, offset = 2, 0

    @property
    def axil_edge(self) -> bool:
        """Returns true if this cycle ends with an edge of axil_aclk."""
        return (self.cycles + self.offset) % self.ratio == 0

    async def cycle(self, count: int = 1) -> None:
        """Runs `count` cycles of axis_aclk."""
        for _ in range(count):
            for agent in self.agents:
                agent.drive()
            edge = self.axil_edge
            self.dut.clk_i.value = 0
            if edge:
                self.dut.axil_aclk.value = 0
            await self.settle()
            for agent in self.agents:
                agent.sample()
            self.cycles += 1
            self.dut.clk_i.value = 1
            if edge:
                self.dut.axil_aclk.value = 1
            await Timer(1, "ns")
            self.phase += 1


class Slow:
    """An agent of the register bus. It reads and sets signals only at edges of axil_aclk."""

    def __init__(self, bench: TwoClocks, agent: Any) -> None:
        self.bench, self.agent = bench, agent
        self.fresh = True
        bench.agents[bench.agents.index(agent)] = self

    def drive(self) -> None:
        """Drives in the first cycle after an edge."""
        if self.fresh:
            self.agent.drive()
        self.fresh = False

    def sample(self) -> None:
        """Samples before an edge."""
        if self.bench.axil_edge:
            self.agent.sample()
            self.fresh = True

    def reset(self) -> None:
        """Forgets transfers in flight."""
        self.agent.reset()


class Registers:
    """The shell's AXI4-Lite manager. It makes accesses one after the other, or several at once."""

    def __init__(self, bench: TwoClocks, dut: Any) -> None:

        def channel(kind: Any, prefix: str, fields: list[str]) -> Any:
            pins = [bench.pin(dut, f"s_axil_{prefix}{field}") for field in ("valid", "ready", *fields)]
            agent = kind(bench, pins[0], pins[1], pins[2:])
            Slow(bench, agent)
            return agent

        self.bench = bench
        self.aw, self.w = channel(Source, "aw", ["addr"]), channel(Source, "w", ["data"])
        self.ar = channel(Source, "ar", ["addr"])
        self.b, self.r = channel(Sink, "b", ["resp"]), channel(Sink, "r", ["data", "resp"])

    def pace(self, idle: float) -> None:
        """Sets how often every channel pauses."""
        self.aw.idle = self.w.idle = self.ar.idle = self.b.stall = self.r.stall = idle

    async def write(self, address: int, data: int) -> int:
        """Writes, and returns the response."""
        before = len(self.b.items)
        self.aw.items.append(address)
        self.w.items.append(data)
        await self.bench.until(lambda: len(self.b.items) > before, 2000)
        return self.b.items[-1]

    async def read(self, address: int) -> tuple[int, int]:
        """Reads, and returns data and response."""
        before = len(self.r.items)
        self.ar.items.append(address)
        await self.bench.until(lambda: len(self.r.items) > before, 2000)
        return self.r.items[-1]


class Shell:
    """The shell around the plugin."""

    def __init__(self, top: Any, box: str, ports: int, channels: int, seed: int = 1) -> None:
        dut = Scope(getattr(top, box))
        self.bench = bench = TwoClocks(top, seed)
        self.ports = range(ports)
        self.registers = Registers(bench, dut)
        self.rstn, self.done = bench.pin(dut, "mod_rstn"), bench.pin(dut, "mod_rst_done")
        self.memory_ready = bench.pin(dut, "memory_ready_i")
        self.rstn.set(1)
        self.memory_ready.set(1)

        def stream(kind: Any, prefix: str, port: int) -> Any:
            pins = [bench.pin(dut, f"{prefix}_{field}", port, width) for field, width in FIELDS]
            return kind(bench, bench.pin(dut, f"{prefix}_tvalid", port), bench.pin(dut, f"{prefix}_tready", port), pins)

        self.rx = [stream(Source, RX, i) for i in self.ports]
        self.h2c = [stream(Source, H2C, i) for i in self.ports]
        self.tx = [stream(Sink, TX, i) for i in self.ports]
        self.c2h = [stream(Sink, C2H, i) for i in self.ports]
        self.content = [Bytes() for _ in self.ports]
        self.memories = [Memory(bench, dut, self.content[i // channels], i) for i in range(ports * channels)]

    async def start(self) -> None:
        """Sets the state after a reset, regardless of the previous test."""
        await self.bench.until(self.ready)
        await self.ask_for_reset()
        await self.bench.until(self.ready)
        await self.bench.cycle(20)
        for agent in (*self.tx, *self.c2h):
            agent.reset()

    def ready(self) -> bool:
        """Returns mod_rst_done."""
        return bool(self.done.get())

    async def ask_for_reset(self) -> None:
        """Drives mod_rstn low at one edge of axil_aclk."""
        while not self.bench.axil_edge:
            await self.bench.cycle()
        await self.bench.cycle()  # the last edge with mod_rstn high
        self.rstn.set(0)
        await self.bench.cycle(self.bench.ratio)
        self.rstn.set(1)

    async def until(self, done: Callable[[], bool], limit: int = 20_000) -> None:
        """Runs cycles until done() is true."""
        await self.bench.until(done, limit)

    def pace(self, idle: float, stall: float) -> None:
        """Sets how often senders pause and receivers are busy."""
        for source in (*self.rx, *self.h2c):
            source.idle = idle
        for sink in (*self.tx, *self.c2h):
            sink.stall = stall


def beats(frame: bytes, source: int, *, size: int | None = None) -> list[tuple[int, ...]]:
    """Returns a frame in the shell's format for the box: tuser with each beat, tkeep in agreement, no destination."""
    cuts = [frame[i : i + 64] for i in range(0, len(frame), 64)]
    user = (len(frame) if size is None else size, source, 0)
    return [
        (int.from_bytes(cut, "little"), (1 << len(cut)) - 1, int(i == len(cuts) - 1), *user)
        for i, cut in enumerate(cuts)
    ]


def frames(items: list[tuple[int, ...]]) -> list[Frame]:
    """Returns the whole frames that a sink received. Each must meet the shell's requirements."""
    found: list[Frame] = []
    data = b""
    user: tuple[int, ...] = ()
    for word, keep, last, *rest in items:
        count = keep.bit_count()
        assert keep == (1 << count) - 1
        assert count == 64 or last
        assert not data or tuple(rest) == user, "tuser changed within a frame"
        user = tuple(rest)
        data += word.to_bytes(64, "little")[:count]
        if last:
            assert user[0] == len(data), "tuser_size is not the frame's size"
            found.append((data, user[1], user[2]))
            data = b""
    return found
