# SPDX-License-Identifier: Apache-2.0
"""bypass_node with a model of the PCIe bridge at its pins. Host and NIC make requests at one port, and tails leave at
the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axi_agents import INCR, OKAY, Burst
from axi_memory import Bytes, memory_ports
from axi_memory import Memory as Hbm
from bench import Agent, Bench, Sink, Source
from bundles import Axi
from bypass_formats import FORMATS
from bypass_nic import TAG, TAIL_BASE, Nic
from bypass_rig import BASE, STREAM, Frames, Rig
from dma_axi_software import Memory
from dma_rig import held
from echo_model import Host
from flat import Scope
from functions_rig import FunctionRegisters
from opennic_shell import Slow, TwoClocks

from wherry.bypass.generated.registers import REGISTERS

BAR0, BAR0_SIZE, BAR2_SIZE = 0x100_0000, 0x1_0000, 0x80_0000
CHANNELS = 2
SETTLES = 40  # cycles of the slower clock until a reset is over
IN_RESET = 12
SMALL = {"QueueBits": 1, "RxRingBits": 5, "TxRingBits": 5}
NODES: dict[str, dict[str, int]] = {
    "plain": {},
    "crossing": {"Crossing": 1, **SMALL, "QueueBits": 2},
    "functions": {"Functions": 1, **SMALL},
    "dma": {"Functions": 1, "Dma": 1, **SMALL},
    "node": {"Kv": 1, **SMALL, "LineCacheBits": 4, "HostBeats": 256},
}
"""The optional parts of a top, with their parameters."""


def top(*names: str) -> str:
    """Returns nodes with flat ports. In `crossing` the core has its own clock."""
    sides = (Axi("s_axi"), Axi("m_pcie"))
    ports = ",\n".join(
        ["input wire clk_i", "input wire core_clk_i", "input wire rst_i", *sides[0].ports(), *sides[1].ports()]
    )
    body = "\n".join(line for side in sides for line in side.body())
    defaults = {"Functions": 0, "Kv": 0, "Dma": 0, "Crossing": 0, "QueueBits": 0, "RxRingBits": 8, "TxRingBits": 9}
    defaults |= {"LineCacheBits": 12, "HostBeats": 4096}
    parameters = ", ".join(f"parameter int unsigned {name} = {value}" for name, value in defaults.items())
    bits = ("Functions", "Kv", "Dma", "Crossing")
    passed = ", ".join(f".{name}({name}{' != 0' if name in bits else ''})" for name in defaults)
    text = f'`include "axi.svh"\nmodule card_flat import kv_core_pkg::*; #({parameters}) ({ports});\n{body}\n'
    text += memory_ports(CHANNELS)
    text += "  axi_pkg::axi_resp_t in_resp; axi_pkg::axi_req_t out_req;\n"
    text += "  assign s_axi_resp = in_resp; assign m_pcie_req = out_req;\n"
    text += f"  bypass_node #({passed}) dut (.clk_i(core_clk_i), .axi_clk_i(clk_i), .axi_rst_ni(!rst_i),\n"
    text += "    .s_pcie_req(axi_pkg::axi_req_t'(s_axi_req)), .s_pcie_resp(in_resp), .m_pcie_req(out_req),\n"
    text += (
        "    .m_pcie_resp(axi_pkg::axi_resp_t'(m_pcie_resp)), .m_memory_req(m_axi_req), .m_memory_resp(m_axi_resp),\n"
    )
    text += "    .memory_ready_i(1'b1));\nendmodule\n"
    text += "module top (input wire clk_i, input wire rst_i, input wire axil_aclk);\n"
    for name in names:
        assigned = ", ".join(f".{key}({value})" for key, value in NODES[name].items())
        clock = "axil_aclk" if name == "crossing" else "clk_i"
        text += f"  card_flat #({assigned}) {name} (.clk_i, .rst_i, .core_clk_i({clock}));\n"
    return text + "endmodule\n"


class CardBench(TwoClocks):
    """A bench whose reset is the link's reset. Agents in `lasting` continue during it."""

    ratio = 1

    def __init__(self, dut: Any, seed: int, scope: Any) -> None:
        super().__init__(dut, seed)
        self.lasting: list[Agent] = []
        self._in_reset = self.pin(scope, "rst_o")
        kv = getattr(scope.dut, "gen_kv", None)
        self._deaf = self._in_reset if kv is None else self.pin(kv, "deaf")

    async def reset(self, cycles: int = IN_RESET) -> None:
        """Resets, and returns when the function's reset is over."""
        for agent in self.agents:
            if agent not in self.lasting:
                agent.reset()
        self._reset.set(1)
        agents, self.agents = self.agents, list(self.lasting)
        await self.cycle(cycles * self.ratio)
        self._reset.set(0)
        await self.cycle(SETTLES * self.ratio)
        await self.until(lambda: not self._deaf.get() and not self._in_reset.get())
        self.agents = agents


class Bar0:
    """The host's register accesses, at the port that the NIC also uses."""

    def __init__(self, nic: Nic) -> None:
        self.nic, self.bench = nic, nic.bench

    async def write(self, name: str, value: int, index: int = 0) -> int:
        """Writes a register."""
        return await self.write_at(REGISTERS[name].at(index), value)

    async def write_at(self, offset: int, value: int, strobes: int = 15) -> int:
        """Writes a word in the lanes of a beat, like the bridge. Returns whether the write failed."""
        nic, lane = self.nic, offset % 64
        noise = nic.bench.random.getrandbits(512) & ~(0xFFFFFFFF << 8 * lane)
        size = nic.bench.random.choice([2, 6])
        before, errors = nic.writes_asked, nic.errors
        nic.writes_asked += 1
        burst = Burst(nic.bench.random.randrange(nic.ids), BAR0 + offset, 1, size)
        burst.data = [(noise | value << 8 * lane, strobes << lane)]
        nic.manager.write(burst)
        await nic.bench.until(lambda: nic.writes_done > before)
        return nic.errors - errors

    async def read(self, name: str, index: int = 0) -> int:
        """Reads a register."""
        return await self.read_at(REGISTERS[name].at(index))

    async def read_at(self, offset: int, size: int | None = None) -> int:
        """Reads a beat of 4 or 64 bytes, and returns the word at the address."""
        found = await self.beat_at(offset, self.nic.bench.random.choice([2, 6]) if size is None else size)
        return int.from_bytes(found[:4], "little")

    async def beat_at(self, offset: int, size: int, base: int = BAR0) -> bytes:
        """Returns the bytes of a beat, from its address on."""
        nic, got = self.nic, []
        id_ = nic.bench.random.randrange(nic.ids)
        burst = Burst(id_, base + offset, 1, size)
        nic.waiting[id_].append((64, burst, got.append))
        nic.parts.setdefault(id_, bytearray())
        nic.manager.ask(burst)
        await nic.bench.until(lambda: bool(got))
        return got[0]

    async def field(self, name: str, part: str, index: int = 0) -> int:
        """Reads a field of a register."""
        return REGISTERS[name].fields[part].get(await self.read(name, index))


class CountingNic(Nic):
    """A NIC with 4-bit ids that counts its own writes, to distinguish them from the host's."""

    def restart(self) -> None:
        """Sets the state after the NIC's reset."""
        super().restart()
        self.ids = 16
        self.writes_asked = 0

    def write_window(self, offset: int, data: bytes) -> None:
        """Counts the outgoing bursts."""
        before = len(self.manager.aw.items)
        super().write_window(offset, data)
        self.writes_asked += len(self.manager.aw.items) - before


class SlaveBridge:
    """Accepts posted writes of one word to PCIe, in the form that the bridge requires (PG194: INCR, no narrow
    bursts)."""

    def __init__(self, bench: Bench, scope: Any, nic: Nic) -> None:
        def pins(channel: str, names: str) -> list[Any]:
            return [bench.pin(scope, f"m_pcie_{channel}{name}") for name in names.split()]

        self.bench, self.nic = bench, nic
        self.aw = Sink(bench, *pins("aw", "valid ready"), pins("aw", "addr len size burst"))
        self.w = Sink(bench, *pins("w", "valid ready"), pins("w", "data strb last"))
        self.b = Source(bench, *pins("b", "valid ready"), pins("b", "resp id"))
        self.reads = bench.pin(scope, "m_pcie_arvalid")
        self.response: Callable[[], int] = lambda: OKAY
        self.log: list[tuple[int, int, int]] = []
        bench.agents.append(self)

    def drive(self) -> None:
        """Does nothing, because the channels drive the signals."""

    def sample(self) -> None:
        """Passes a tail to the NIC's register at its bus address."""
        assert not self.reads.get()
        while self.aw.items and self.w.items:
            address, length, size, burst = self.aw.items.pop(0)  # type: ignore[misc]
            data, strobes, last = self.w.items.pop(0)  # type: ignore[misc]
            assert (length, size, burst, last) == (0, 6, INCR, 1)
            lane = address % 64
            assert strobes == 15 << lane
            value = data >> 8 * lane & 0xFFFFFFFF
            self.log.append((self.bench.cycles, (address - TAIL_BASE) // TAG, value))
            self.nic.tail(address, value)
            self.b.items.append((self.response(), 0))

    def reset(self) -> None:
        """Forgets the log."""
        self.log.clear()


class HostBridge(Memory):
    """The bridge's slave port with a DMA engine: host memory, and beside it the NIC's tail registers."""

    def __init__(self, bench: Bench, scope: Any, nic: Nic) -> None:
        super().__init__(bench, scope, "m_pcie", delay=(5, 40), initial=held(1))
        self.nic = nic
        self.log: list[tuple[int, int, int]] = []
        self.tail_range = range(TAIL_BASE, TAIL_BASE + 0x1000)
        self.seen = self.tail

    def tail(self, address: int, value: int) -> None:
        """Passes a tail to the NIC's register at its bus address."""
        if address in self.tail_range:
            self.log.append((self.bench.cycles, (address - TAIL_BASE) // TAG, value))
            self.nic.tail(address, value)

    def reset(self) -> None:
        """Forgets the log, and transactions in flight."""
        super().reset()
        self.log = []


class CardRig(Rig):
    """The whole rig behind a bridge. The core's clock may be the slower one."""

    def __init__(self, dut: Any, name: str, *, ratio: int = 1, seed: int = 1) -> None:
        options = NODES[name]
        self.scope = scope = Scope(getattr(dut, name))
        self.bench = bench = CardBench(dut, seed, scope)
        bench.ratio = ratio
        rx_bits, tx_bits = options.get("RxRingBits", 8), options.get("TxRingBits", 9)
        self.queues, self.rx_ring, self.tx_ring = 1 << options.get("QueueBits", 0), 1 << rx_bits, 1 << tx_bits
        self.pack_lines = 512
        self.nic = CountingNic(bench, scope, FORMATS["e1000e"], BASE, self.queues, self.rx_ring, self.tx_ring)
        self.registers = Bar0(self.nic)  # type: ignore[assignment]
        self.functions = FunctionRegisters(self.registers)
        bridge = HostBridge if options.get("Dma") else SlaveBridge
        self.tails = bridge(bench, scope, self.nic)  # type: ignore[assignment]
        self.content = Bytes(lambda address: (0x5A << 248) | address)
        self.memories: list[Hbm] = []
        if options.get("Kv"):
            before = len(bench.agents)
            self.memories = [Hbm(bench, scope, self.content, i) for i in range(CHANNELS)]
            bench.lasting = bench.agents[before:]
            return

        def stream(kind: Any, prefix: str) -> Any:
            pins = [bench.pin(scope, f"{prefix}_{field}") for field in ("tvalid", "tready", *STREAM)]
            agent = kind(bench, pins[0], pins[1], pins[2:])
            if ratio > 1:
                Slow(bench, agent)
            return agent

        self.rx, self.tx = stream(Sink, "m_rx"), stream(Source, "s_tx")
        self.received = Frames(self.rx)
        if not options.get("Functions"):
            self.head, self.verdict = stream(Sink, "m_head"), stream(Source, "s_verdict")

    async def restart(self, kind: str) -> None:
        """Resets the link and connects another NIC."""
        await self.bench.reset()
        if not self.memories:
            self.received.forget()
        self.nic.format = FORMATS[kind]
        self.nic.restart()

    async def start(self, kind: str = "e1000e", *, in_place: bool = False, **registers: int) -> None:
        """Resets the core, sets the NIC's personality, and starts all queues."""
        await self.restart(kind)
        await self.set_up(in_place=in_place, **registers)

    async def begin(self, kind: str, host: Host, receive: int, *, in_place: bool = False) -> None:
        """Like start(), but sets up the functions first."""
        await self.restart(kind)
        await self.functions.set_up(host, receive)
        await self.set_up(in_place=in_place)

    async def counters(self) -> dict[str, int]:
        """Returns all counters that are not 0, after nothing is in flight."""
        await self.bench.cycle(48 * self.bench.ratio)
        return await super().counters()
