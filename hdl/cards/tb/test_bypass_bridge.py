# SPDX-License-Identifier: Apache-2.0
"""bypass_bridge with a model at the pins of the PCIe bridge: host and NIC ask at one port, tails leave at the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from axi_agents import DECERR, INCR, OKAY, SLVERR, Burst
from bench import Bench, Sink, Source
from bundles import Axi
from bypass_attack import balance
from bypass_cores import PACKAGES
from bypass_formats import FORMATS
from bypass_nic import TAG, TAIL_BASE, Habits, Nic
from bypass_rig import BASE, STREAM, Frames, Rig
from flat import Scope
from opennic_shell import Slow, TwoClocks
from simulate import simulate

from wherry.bypass.generated.registers import REGISTERS

BAR0, BAR0_SIZE, BAR2_SIZE = 0x100_0000, 0x1_0000, 0x80_0000
CORES = {"plain": {}, "crossing": {"queue_bits": 2, "rx_bits": 5, "tx_bits": 5}}
SETTLES = 40  # cycles of the slower clock until a reset is over


def top() -> str:
    """Two bridges with flat ports: one in one clock, one between two."""
    sides = (Axi("s_axi"), Axi("m_axi"))
    ports = ",\n".join(
        ["input wire clk_i", "input wire core_clk_i", "input wire rst_i", *sides[0].ports(), *sides[1].ports()]
    )
    body = "\n".join(line for side in sides for line in side.body())
    parameters = (
        "parameter bit Crossing = 0, parameter int unsigned QueueBits = 0, parameter int unsigned RxRingBits = 8,"
    )
    parameters += " parameter int unsigned TxRingBits = 9"
    passed = ", ".join(f".{name}({name})" for name in ("Crossing", "QueueBits", "RxRingBits", "TxRingBits"))
    text = f'`include "axi.svh"\nmodule card_flat #({parameters}) ({ports});\n{body}\n'
    text += "  axi_pkg::axi_resp_t in_resp; axi_pkg::axi_req_t out_req;\n"
    text += "  assign s_axi_resp = in_resp; assign m_axi_req = out_req;\n"
    text += f"  bypass_bridge #({passed}) dut (.clk_i(core_clk_i), .axi_clk_i(clk_i), .axi_rst_ni(!rst_i),\n"
    text += "    .s_axi_req(axi_pkg::axi_req_t'(s_axi_req)), .s_axi_resp(in_resp), .m_axi_req(out_req),\n"
    text += "    .m_axi_resp(axi_pkg::axi_resp_t'(m_axi_resp)));\nendmodule\n"
    text += "module top (input wire clk_i, input wire rst_i, input wire axil_aclk);\n"
    text += "  card_flat plain (.clk_i, .rst_i, .core_clk_i(clk_i));\n"
    text += "  card_flat #(.Crossing(1), .QueueBits(2), .RxRingBits(5), .TxRingBits(5)) crossing (.clk_i, .rst_i,"
    return text + " .core_clk_i(axil_aclk));\nendmodule\n"


class Bar0:
    """The host's accesses of registers, at the port that the NIC uses as well, among its own."""

    def __init__(self, nic: Nic) -> None:
        self.nic = nic

    async def write(self, name: str, value: int, index: int = 0) -> int:
        """A register."""
        return await self.write_at(REGISTERS[name].at(index), value)

    async def write_at(self, offset: int, value: int, strobes: int = 15) -> int:
        """A word: as the bridge gives it, in its lanes of a beat. Returns whether it failed."""
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
        """A register."""
        return await self.read_at(REGISTERS[name].at(index))

    async def read_at(self, offset: int, size: int | None = None) -> int:
        """Of a beat of 4 or of 64 bytes, the word at its address."""
        found = await self.beat_at(offset, self.nic.bench.random.choice([2, 6]) if size is None else size)
        return int.from_bytes(found[:4], "little")

    async def beat_at(self, offset: int, size: int, base: int = BAR0) -> bytes:
        """The bytes of a beat from its address on."""
        nic, got = self.nic, []
        id_ = nic.bench.random.randrange(nic.ids)
        burst = Burst(id_, base + offset, 1, size)
        nic.waiting[id_].append((64, burst, got.append))
        nic.parts.setdefault(id_, bytearray())
        nic.manager.ask(burst)
        await nic.bench.until(lambda: bool(got))
        return got[0]

    async def field(self, name: str, part: str, index: int = 0) -> int:
        """A field of one."""
        return REGISTERS[name].fields[part].get(await self.read(name, index))


class CountingNic(Nic):
    """Knows how many writes it has asked, so that the host's can be told from its own; 4 bits of id."""

    def restart(self) -> None:
        """As after its reset."""
        super().restart()
        self.ids = 16
        self.writes_asked = 0

    def write_window(self, offset: int, data: bytes) -> None:
        """Counts what goes out."""
        before = len(self.manager.aw.items)
        super().write_window(offset, data)
        self.writes_asked += len(self.manager.aw.items) - before


class SlaveBridge:
    """What goes out by PCIe: posted writes of one word, as the bridge takes them (PG194: INCR, no narrow bursts)."""

    def __init__(self, bench: Bench, scope: Any, nic: Nic) -> None:
        def pins(channel: str, names: str) -> list[Any]:
            return [bench.pin(scope, f"m_axi_{channel}{name}") for name in names.split()]

        self.bench, self.nic = bench, nic
        self.aw = Sink(bench, *pins("aw", "valid ready"), pins("aw", "addr len size burst"))
        self.w = Sink(bench, *pins("w", "valid ready"), pins("w", "data strb last"))
        self.b = Source(bench, *pins("b", "valid ready"), pins("b", "resp id"))
        self.reads = bench.pin(scope, "m_axi_arvalid")
        self.response: Callable[[], int] = lambda: OKAY
        self.log: list[tuple[int, int, int]] = []
        bench.agents.append(self)

    def drive(self) -> None:
        """Nothing: the channels do that."""

    def sample(self) -> None:
        """A tail reaches the NIC's register at its bus address."""
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
        """Forgets."""
        self.log.clear()


class CardRig(Rig):
    """All of it around a bridge; the core's clock may be the slower one."""

    def __init__(self, dut: Any, name: str, *, ratio: int = 1, seed: int = 1) -> None:
        self.bench = bench = TwoClocks(dut, seed)
        bench.ratio = ratio
        options = CORES[name]
        rx_bits, tx_bits = options.get("rx_bits", 8), options.get("tx_bits", 9)
        self.scope = scope = Scope(getattr(dut, name))
        self.queues, self.rx_ring, self.tx_ring = 1 << options.get("queue_bits", 0), 1 << rx_bits, 1 << tx_bits
        self.pack_lines = 512
        self.nic = CountingNic(bench, scope, FORMATS["e1000e"], BASE, self.queues, self.rx_ring, self.tx_ring)
        self.registers = Bar0(self.nic)  # type: ignore[assignment]
        self.tails = SlaveBridge(bench, scope, self.nic)  # type: ignore[assignment]
        self.in_reset = bench.pin(scope, "rst_o")

        def stream(kind: Any, prefix: str) -> Any:
            pins = [bench.pin(scope, f"{prefix}_{field}") for field in ("tvalid", "tready", *STREAM)]
            agent = kind(bench, pins[0], pins[1], pins[2:])
            if ratio > 1:
                Slow(bench, agent)
            return agent

        self.rx, self.head = stream(Sink, "m_rx"), stream(Sink, "m_head")
        self.tx, self.verdict = stream(Source, "s_tx"), stream(Source, "s_verdict")
        self.received = Frames(self.rx)

    async def start(self, kind: str = "e1000e", *, in_place: bool = False, **registers: int) -> None:
        """Reset, the NIC's personality, and all queues run."""
        self.bench.agents, agents = [], self.bench.agents
        for agent in agents:
            agent.reset()
        self.bench._reset.set(1)
        await self.bench.cycle(12 * self.bench.ratio)
        self.bench._reset.set(0)
        await self.bench.cycle(SETTLES * self.bench.ratio)
        assert not self.in_reset.get()
        self.bench.agents = agents
        self.received.forget()
        self.nic.format = FORMATS[kind]
        self.nic.restart()
        await self.set_up(in_place=in_place, **registers)

    async def counters(self) -> dict[str, int]:
        """All that are not 0, when nothing is under way."""
        await self.bench.cycle(48 * self.bench.ratio)
        return await super().counters()


def rigs(dut: Any, seed: int) -> Iterator[CardRig]:
    """One clock; two of the same; a core that is slower. One after the other: two of them drive the same pins."""
    yield CardRig(dut, "plain", seed=seed)
    yield CardRig(dut, "crossing", ratio=1, seed=seed)
    yield CardRig(dut, "crossing", ratio=3, seed=seed)


@cocotb.test()
async def frames_pass_both_ways_through_the_bridge(dut: Any) -> None:
    """Bytes and order, of several families, at several paces; counters agree."""
    for rig in rigs(dut, 1):
        for kind, habits, idle, stall in (
            ("ixgbe", Habits(shuffle=3), 0.0, 0.0),
            ("i40e", Habits(line=4, piece=512), 0.4, 0.4),
        ):
            await rig.start(kind)
            rig.nic.habits = habits
            rig.nic.manager.pace(idle, stall)
            rig.tails.aw.stall, rig.tails.w.stall = stall, idle
            await rig.pass_all(8, 4000, 60_000)
            found = await rig.counters()
            balance(found)
            assert found["rx_frames"] == found["tx_done"] == 8 * rig.queues
            assert found["tails"] == len(rig.tails.log)
            assert not rig.nic.errors


@cocotb.test()
async def registers_are_read_and_written_in_any_width(dut: Any) -> None:
    """Words, double words and whole beats; parts of a word are refused; all while frames pass."""
    for rig in rigs(dut, 2):
        await rig.start("igb")
        there, back = rig.offer(6)
        for _ in range(4):
            value = rig.bench.random.randint(1000, 65535)
            assert await rig.registers.write("doorbell_timer", value) == 0
            for size in (2, 6):
                assert await rig.registers.read_at(REGISTERS["doorbell_timer"].at(0), size) == value
        low, timer = REGISTERS["tx_word_low"].at(0), REGISTERS["doorbell_timer"].at(0)
        beat = await rig.registers.beat_at(low & ~7, 3)
        assert beat[low % 8 :][:4] == FORMATS["igb"].registers["tx_word_low"].to_bytes(4, "little")
        beat = await rig.registers.beat_at(0, 6)
        assert int.from_bytes(beat[:4], "little") == REGISTERS["id"].reset
        assert beat[low : low + 4] == FORMATS["igb"].registers["tx_word_low"].to_bytes(4, "little")
        assert beat[timer : timer + 4] == value.to_bytes(4, "little")
        assert await rig.registers.write_at(low, 0, 3) == 1  # SLVERR
        assert await rig.registers.read("tx_word_low") == FORMATS["igb"].registers["tx_word_low"]
        await rig.bench.until(lambda: rig.came(there, back), 60_000)  # noqa: B023


@cocotb.test()
async def what_no_bar_has_is_answered_with_an_error(dut: Any) -> None:
    """Beside and between the BARs; within BAR 2 the core answers for itself."""
    for rig in rigs(dut, 3):
        await rig.start()
        manager = rig.nic.manager
        rig.nic.running = False
        await rig.bench.cycle(200 * rig.bench.ratio)
        rig.bench.agents.remove(rig.nic)
        for address, wanted in (
            (BAR2_SIZE, DECERR),
            (BAR0 - 64, DECERR),
            (BAR0 + BAR0_SIZE, DECERR),
            (1 << 63, DECERR),
            (0x3F_0000, SLVERR),
            (BAR0, OKAY),
        ):
            manager.ask(Burst(3, address, 1, 6))
            manager.write(Burst(5, address, 1, 6, data=[(0, 0)]))
            await rig.bench.until(lambda: bool(manager.r.items and manager.b.items))  # noqa: B023
            assert [(item[0], item[2]) for item in manager.r.items] == [(3, wanted)], hex(address)  # type: ignore[index]
            assert manager.b.items == [(5, wanted)], hex(address)
            manager.r.items.clear(), manager.b.items.clear()


@cocotb.test()
async def tail_errors_come_back_and_are_counted(dut: Any) -> None:
    """A bridge that answers SLVERR, as for a NIC that is gone."""
    for rig in rigs(dut, 4):
        await rig.start()
        rig.tails.response = lambda: SLVERR
        await rig.pass_all(3)
        rig.tails.response = lambda: OKAY
        await rig.pass_all(3)
        found = await rig.counters()
        assert 0 < found["tail_errors"] < found["tails"] == len(rig.tails.log)


@cocotb.test()
async def a_reset_of_the_link_begins_anew(dut: Any) -> None:
    """In mid-flight; a bridge that takes no tails holds nothing else up."""
    for rig in rigs(dut, 5):
        await rig.start("ixgbe")
        rig.offer(10)
        await rig.bench.cycle(150)
        await rig.start("ixgbe")
        assert await rig.counters() == {} or rig.tails.log
        await rig.pass_all(6, 1514, 60_000)
        rig.tails.aw.stall = 1.0
        rig.offer(3)
        await rig.bench.cycle(300 * rig.bench.ratio)
        assert await rig.registers.read("id") == REGISTERS["id"].reset
        await rig.start("ixgbe")
        rig.tails.aw.stall = 0.0
        await rig.pass_all(4, 1514, 60_000)


def test_bypass_bridge() -> None:
    simulate(__file__, text=top(), sources=PACKAGES)
