# SPDX-License-Identifier: Apache-2.0
"""Software of the DMA engine behind an AXI bridge: rings in the host's memory, registers and doorbells in one BAR.

Formats come from docs/design/dma.md, and registers from the generated table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from axi_agents import Subordinate
from bench import Bench
from dma_axi_rig import Host

from wherry.dma.generated.registers import REGISTERS

BELLS = 0x1000
BITS = 4
RUN, RESET = 1, 2
IN_STATE = REGISTERS["ring_state"].fields


class Memory(Subordinate):
    """The host's memory behind the bridge. It shows words to `seen`. A write to `forbidden` fails the test."""

    def __init__(self, bench: Bench, scope: Any, prefix: str, **options: Any) -> None:
        self.seen: Callable[[int, int], None] = lambda address, value: None
        self.forbidden: range = range(0)
        super().__init__(bench, scope, prefix, **options)

    def store(self, burst: Any) -> None:
        """Stores a write. Words of 4 bytes are shown to `seen`."""
        assert burst.address not in self.forbidden, hex(burst.address)
        super().store(burst)
        if burst.beats == 1 and burst.data[0][1].bit_count() == 4:
            self.seen(burst.address, int.from_bytes(self.get(burst.address, 4), "little"))

    def put(self, address: int, data: bytes) -> None:
        """Software writes its memory."""
        self.written.update((address + i, byte) for i, byte in enumerate(data))

    def get(self, address: int, size: int) -> bytes:
        """Software reads its memory."""
        return bytes(self.byte(address + i) for i in range(size))


class Rings:
    """A driver: it takes the engine from a former one, sets up its rings, and posts transfers."""

    def __init__(self, host: Host, memory: Memory, base: int, channels: int = 1) -> None:
        self.host, self.memory, self.bench, self.base = host, memory, host.bench, base
        self.rings = [ring for side in (0, 4) for ring in range(side, side + channels)]
        self.tails = dict.fromkeys(self.rings, 0)

    async def write(self, name: str, value: int, ring: int = 0) -> None:
        """Writes a register."""
        assert await self.host.write(REGISTERS[name].at(ring), value.to_bytes(4, "little")) == 0

    async def read(self, name: str, ring: int = 0) -> int:
        """Reads a register."""
        return int.from_bytes(await self.host.read(REGISTERS[name].at(ring)), "little")

    def ring_at(self, ring: int) -> int:
        """Returns the address of a ring's descriptors."""
        return self.base + 0x1000 * ring

    def status_at(self, ring: int) -> int:
        """Returns the address of a ring's status word."""
        return self.base + 0x1_0000 + 64 * ring

    async def take(self) -> None:
        """Resets all rings by their registers. Afterwards nothing of a former driver is under way."""
        for ring in self.rings:
            await self.write("ring_control", RESET, ring)
        for ring in self.rings:
            for _ in range(400):
                if not IN_STATE["resetting"].get(await self.read("ring_state", ring)):
                    break
            else:
                raise AssertionError(f"the reset of ring {ring} does not end")

    async def set_up(self) -> None:
        """Resets all rings, and starts them in this driver's memory."""
        await self.take()
        self.memory.put(self.base, bytes(0x1_0400))
        await self.write("status_low", self.base + 0x1_0000 & 0xFFFFFFFF)
        await self.write("status_high", self.base >> 32)
        for ring in self.rings:
            await self.write("ring_low", self.ring_at(ring) & 0xFFFFFFFF, ring)
            await self.write("ring_high", self.ring_at(ring) >> 32, ring)
            await self.write("ring_control", RUN | BITS << 8, ring)
            self.tails[ring] = 0

    def post(self, ring: int, host: int, card: int, size: int, *, eager: bool = False) -> None:
        """Writes a descriptor, and a doorbell: with the descriptor, or only the tail."""
        line = struct.pack("<QQIIQ", host, card, size, 0, self.tails[ring])
        self.memory.put(self.ring_at(ring) + 32 * (self.tails[ring] % (1 << BITS)), line)
        self.tails[ring] += 1
        tail = struct.pack("<I", self.tails[ring] & 0xFFFF)
        at = BELLS + 64 * ring
        if eager:
            self.host.post(at, line + tail.ljust(32, b"\0"))
        else:
            self.host.post(at + 32, tail)

    def status(self, ring: int) -> tuple[int, int]:
        """Returns count and flags of a ring's status word."""
        count, flags = struct.unpack("<II", self.memory.get(self.status_at(ring), 8))
        return count, flags

    def done(self) -> bool:
        """Returns true if all posted transfers are reported."""
        return all(self.status(ring) == (tail, 0) for ring, tail in self.tails.items())

    async def finish(self, limit: int = 30_000) -> None:
        """Waits until all posted transfers are reported."""
        await self.bench.until(self.done, limit)
