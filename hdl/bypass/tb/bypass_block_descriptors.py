# SPDX-License-Identifier: Apache-2.0
"""bypass_expand and bypass_decode alone: each family's descriptors, read and written back as in its datasheet."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_blocks import ONE, Block, Config
from bypass_formats import FORMATS, Format
from packed_structs import Struct

RX_RING, TX_RING, HEADS, SLOTS = 1, 2, 3, 5  # region_e
QUEUE, TX, WINDOW = 0x20000, 0x10000, 23


def tell(settings: Struct, kind: Format, prefix: str = "") -> None:
    """Sets the fields of a family's personality, as docs/reference/bypass-registers.md defines them."""
    word = kind.registers["descriptors"]
    mask = kind.registers["rx_error_mask"]
    values = {
        "rx_32_bytes": word & 1,
        "rx_length": word >> 1 & 3,
        "tx_length_34": word >> 3 & 1,
        "tx_total_46": word >> 4 & 1,
        "tx_done_type": word >> 5 & 1,
        "tx_report_5": word >> 6 & 1,
        "rx_errors": mask >> 19 << 1 | mask >> 10 & 1,
        "tx_word": kind.registers["tx_word_low"] | kind.registers["tx_word_high"] << 32,
    }
    for name, value in values.items():
        settings.pin(prefix + name).set(value)


class Expand(Block):
    """Descriptors in beats, read as a NIC reads them."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, name, seed)
        self.settings, self.read = self.struct("settings_i", "settings_t"), self.struct("read_i", "window_read_t")
        self.entries = [self.struct("entries_i", "tx_entry_t", i) for i in range(4)]
        self.base = self.random.getrandbits(64 - WINDOW) << WINDOW
        self.settings.set(base=self.base >> WINDOW)

    async def beat(self, region: int, offset: int, entries: list[tuple[int, int]]) -> bytes:
        """Reads a beat; its entries follow a cycle later."""
        self.read.set(valid=1, region=region, offset=offset, last_byte=63)
        await self.bench.cycle()
        self.read.set(valid=0, region=self.random.randrange(6), offset=self.random.getrandbits(WINDOW))
        for struct, (line, count) in zip(self.entries, entries, strict=True):
            struct.set(line=line, bytes=count)
        await self.bench.settle()
        found = self.pin("beat_o").get().to_bytes(64, "little")
        await self.bench.cycle()
        return found


def noise(block: Block) -> list[tuple[int, int]]:
    """Random entries that must have no effect."""
    return [(block.random.getrandbits(17), block.random.getrandbits(14)) for _ in range(4)]


@cocotb.test()
async def every_family_reads_its_receive_descriptors(dut: Any) -> None:
    """Descriptor i holds the address of slot i of its pair; all other bits are 0."""
    for name, config in (("one", ONE), ("four", Config(2, 4, 3, 9))):
        expand = Expand(dut, f"expand_{name}", seed=1)
        await expand.bench.reset()
        for kind in FORMATS.values():
            tell(expand.settings, kind, "personality.")
            for _ in range(12):
                queue = expand.random.randrange(config.queues)
                ring = (1 << config.rx_bits) * kind.rx_bytes
                offset = expand.random.randrange(ring // 64) * 64
                beat = await expand.beat(RX_RING, QUEUE * queue + offset, noise(expand))
                for at in range(0, 64, kind.rx_bytes):
                    index = (offset + at) // kind.rx_bytes
                    address = kind.rx_address(beat[at : at + kind.rx_bytes])
                    assert address == expand.base + 64 * config.slot_line(queue, index), (kind.name, index)


@cocotb.test()
async def every_family_reads_its_transmit_descriptors(dut: Any) -> None:
    """Checks address, length, end of packet, the frame's length if the family has one, and the report bit if due."""
    expand = Expand(dut, "expand_four", seed=2)
    await expand.bench.reset()
    for kind in FORMATS.values():
        tell(expand.settings, kind, "personality.")
        for report, bits in ((0, 0), (1, 0), (1, 2), (1, 5)):
            expand.settings.set(report=report, report_mask=(1 << bits) - 1)  # index bits that must be ones
            for _ in range(8):
                entries = [(expand.random.getrandbits(17), expand.random.randint(17, 9728)) for _ in range(4)]
                group = expand.random.randrange(1024)
                offset = QUEUE * expand.random.randrange(4) + TX + 64 * group
                beat = await expand.beat(TX_RING, offset, entries)
                for i, (line, count) in enumerate(entries):
                    found = kind.tx_descriptor(beat[16 * i : 16 * i + 16])
                    assert found.data, (kind.name, beat.hex())
                    assert found.eop
                    assert found.address == expand.base + 64 * line
                    assert found.bytes == count
                    assert found.total in (None, count)
                    assert found.report == bool(report and (4 * group + i + 1) % (1 << bits) == 0), (kind.name, bits)


class Decode(Block):
    """Write-backs, one a cycle; each result is compared a cycle later."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, name, seed)
        self.nic = self.struct("nic_i", "personality_t")
        self.write = self.struct("write_i", "window_write_t")
        self.rx, self.tx = self.struct("rx_o", "rx_written_t"), self.struct("tx_o", "tx_written_t")
        self.rx_seen: dict[str, int] = {}
        self.tx_seen: tuple[int, ...] = ()

    async def beat(self, region: int, offset: int, data: bytes, strobes: int, *, valid: bool = True) -> None:
        """Writes a beat to the window; bytes without a strobe are random."""
        for lane in range(64):
            if not strobes >> lane & 1:
                data = data[:lane] + self.random.randbytes(1) + data[lane + 1 :]
        self.write.set(valid=valid, region=region, offset=offset, strobe=strobes, data=int.from_bytes(data, "little"))
        await self.bench.cycle()
        self.write.set(valid=0, region=self.random.randrange(6), strobe=(1 << 64) - 1)
        await self.bench.settle()
        self.rx_seen = {name: self.rx.get(name) for name in self.rx.layout}
        self.tx_seen = self.tx.all("valid pair head")


@cocotb.test()
async def every_family_writes_back_what_it_received(dut: Any) -> None:
    """Any lanes, together or one by one, whole or status last: each descriptor counts once, with its fields."""
    decode = Decode(dut, "decode", seed=3)
    await decode.bench.reset()
    draw = decode.random
    for kind in FORMATS.values():
        tell(decode.nic, kind)
        for _ in range(25):
            queue, group = draw.randrange(16), draw.randrange(1024 * 16 // kind.rx_bytes)
            lanes = draw.sample(range(64 // kind.rx_bytes), draw.randint(1, 64 // kind.rx_bytes))
            beat, strobes = bytearray(draw.randbytes(64)), 0
            expected: dict[int, tuple[int, bool, bool]] = {}
            for lane in lanes:
                length, eop, error = draw.randint(1, 2048), draw.random() < 0.5, draw.random() < 0.3
                at = kind.rx_bytes * lane
                noise_ = _quiet(draw.getrandbits(128), kind)
                beat[at : at + 16] = kind.rx_done(length, eop=eop, error=error, noise=noise_)[:16]
                strobes |= 0xFFFF << at
                index = lane if kind.rx_bytes == 16 else (2 * group + lane) % 4
                expected[index] = (length, eop, error)
            offset = QUEUE * queue + 64 * group
            early = draw.random() < 0.4  # the length is written first, and then the status alone
            if early:
                without = sum(0x0F00 << kind.rx_bytes * lane for lane in lanes)
                unmarked = bytearray(beat)
                for lane in lanes:
                    unmarked[kind.rx_bytes * lane + 8] &= 0xFE
                await decode.beat(RX_RING, offset, bytes(unmarked), strobes & ~without)
                lengths = _lengths(decode)
                assert decode.rx_seen["done"] == 0
                assert all(lengths[index] == length for index, (length, _, _) in expected.items()), kind.name
                await decode.beat(RX_RING, offset, bytes(beat), without)
                assert decode.rx_seen["sized"] == 0
            else:
                await decode.beat(RX_RING, offset, bytes(beat), strobes)
                lengths = _lengths(decode)
                assert all(lengths[index] == length for index, (length, _, _) in expected.items()), kind.name
            assert decode.rx_seen["pair"] == queue
            assert decode.rx_seen["group"] == (group if kind.rx_bytes == 16 else group // 2)
            assert decode.rx_seen["done"] == sum(1 << index for index in expected)
            for index, (_, eop, error) in expected.items():
                assert decode.rx_seen["eop"] >> index & 1 == eop, kind.name
                assert decode.rx_seen["error"] >> index & 1 == error, kind.name
            assert decode.tx_seen[0] == 0


def _quiet(noise_: int, kind: Format) -> int:
    """Removes the error bits by which the core drops a frame, since a datasheet has other errors, too."""
    return noise_ & ~(kind.registers["rx_error_mask"] << 64)


def _lengths(decode: Decode) -> dict[int, int]:
    sized, found = decode.rx_seen["sized"], decode.rx_seen["bytes"]
    return {i: found >> 14 * i & 0x3FFF for i in range(4) if sized >> i & 1}


@cocotb.test()
async def what_is_no_write_back_is_none(dut: Any) -> None:
    """Covers writes elsewhere, writes without DD, cycles without a write, and a reset."""
    decode = Decode(dut, "decode", seed=4)
    await decode.bench.reset()
    kind = FORMATS["igb"]
    tell(decode.nic, kind)
    done = kind.rx_done(64, eop=True, error=False, noise=0) * 4
    for region, valid in ((0, True), (4, True), (SLOTS, True), (RX_RING, False)):
        await decode.beat(region, 0, done, (1 << 64) - 1, valid=valid)
        assert (decode.rx_seen["done"], decode.rx_seen["sized"], decode.tx_seen[0]) == (0, 0, 0)
    await decode.beat(RX_RING, 0, bytes(64), (1 << 64) - 1)
    assert (decode.rx_seen["done"], decode.tx_seen[0]) == (0, 0)


@cocotb.test()
async def every_family_reports_what_it_transmitted(dut: Any) -> None:
    """The head is the descriptor after the last done one of a beat, or a head that the NIC writes."""
    decode = Decode(dut, "decode", seed=5)
    await decode.bench.reset()
    draw = decode.random
    for kind in FORMATS.values():
        tell(decode.nic, kind)
        for _ in range(15):
            queue, group, last = draw.randrange(16), draw.randrange(1024), draw.randrange(4)
            beat = bytearray(64)
            lanes = {last, *(draw.randrange(last + 1) for _ in range(2))}
            for lane in lanes:
                raw = bytes(8) + (kind.registers["tx_word_low"]).to_bytes(8, "little")
                beat[16 * lane : 16 * lane + 16] = kind.tx_done(raw)
            offset = QUEUE * queue + TX + 64 * group
            await decode.beat(TX_RING, offset, bytes(beat), sum(0xFFFF << 16 * lane for lane in lanes))
            assert decode.tx_seen == (1, queue, (4 * group + last + 1) % 4096), kind.name
            assert decode.rx_seen["done"] == 0
            await decode.beat(TX_RING, offset, bytes(beat), 0)
            assert decode.tx_seen[0] == 0
            head = draw.randrange(4096)
            await decode.beat(HEADS, 0x200000 + 64 * queue, head.to_bytes(64, "little"), 0xF)
            assert decode.tx_seen == (1, queue, head)
