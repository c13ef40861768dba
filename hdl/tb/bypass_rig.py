# SPDX-License-Identifier: Apache-2.0
"""The bypass core between a scripted NIC, set-up program and function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench import Bench, Sink, Source
from bypass_formats import FORMATS
from bypass_nic import TAG, TAIL_BASE, Nic

from wherry.bypass.generated.registers import REGISTERS

BASE = 0x0000_38C0_0080_0000  # above 4 GiB
STREAM = ("tdata", "tkeep", "tlast", "tuser")
FORWARD, REPLACE = 1, 2


class Registers:
    """Makes AXI4-Lite accesses, one at a time."""

    def __init__(self, bench: Bench, scope: Any) -> None:
        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, f"s_axil_{name}") for name in names]

        self.bench = bench
        self.aw = Source(bench, *pins("awvalid", "awready"), pins("awaddr"))
        self.w = Source(bench, *pins("wvalid", "wready"), pins("wdata", "wstrb"))
        self.b = Sink(bench, *pins("bvalid", "bready"), pins("bresp"))
        self.ar = Source(bench, *pins("arvalid", "arready"), pins("araddr"))
        self.r = Sink(bench, *pins("rvalid", "rready"), pins("rdata", "rresp"))

    async def write(self, name: str, value: int, index: int = 0, strobes: int = 15) -> int:
        """Writes a register and returns the response."""
        return await self.write_at(REGISTERS[name].at(index), value, strobes)

    async def write_at(self, offset: int, value: int, strobes: int = 15) -> int:
        """Writes any offset and returns the response."""
        self.aw.items.append(offset)
        self.w.items.append((value, strobes))
        await self.bench.until(lambda: bool(self.b.items))
        return self.b.items.pop()  # type: ignore[return-value]

    async def read(self, name: str, index: int = 0) -> int:
        """Reads a register."""
        return await self.read_at(REGISTERS[name].at(index))

    async def read_at(self, offset: int) -> int:
        """Reads any offset."""
        self.ar.items.append(offset)
        await self.bench.until(lambda: bool(self.r.items))
        value, response = self.r.items.pop()  # type: ignore[misc]
        assert response == 0
        return value

    async def field(self, name: str, part: str, index: int = 0) -> int:
        """Reads a field of a register."""
        return REGISTERS[name].fields[part].get(await self.read(name, index))


class Tails:
    """The NIC's tail registers, at m_axil. A written value reaches the NIC some cycles later."""

    def __init__(self, bench: Bench, scope: Any, nic: Nic) -> None:
        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, f"m_axil_{name}") for name in names]

        self.bench, self.nic = bench, nic
        self.aw = Sink(bench, *pins("awvalid", "awready"), pins("awaddr"))
        self.w = Sink(bench, *pins("wvalid", "wready"), pins("wdata", "wstrb"))
        self.b = Source(bench, *pins("bvalid", "bready"), pins("bresp"))
        self.delay = 1
        self.response: Callable[[], int] = lambda: 0
        self.log: list[tuple[int, int, int]] = []  # cycle, ring, value
        self.due: list[tuple[int, int, int]] = []
        bench.agents.append(self)

    def drive(self) -> None:
        """Does nothing."""

    def sample(self) -> None:
        """Accepts a write and answers it. The NIC gets the value when its delay has passed."""
        while self.aw.items and self.w.items:
            address, (value, strobes) = self.aw.items.pop(0), self.w.items.pop(0)  # type: ignore[misc]
            assert strobes == 15
            self.log.append((self.bench.cycles, (address - TAIL_BASE) // TAG, value))  # type: ignore[operator]
            self.due.append((self.bench.cycles + self.delay, address, value))  # type: ignore[arg-type]
            self.b.items.append(self.response())
        while self.due and self.due[0][0] <= self.bench.cycles:
            _, address, value = self.due.pop(0)
            self.nic.tail(address, value)

    def reset(self) -> None:
        """Forgets pending writes."""
        self.due.clear()
        self.log.clear()


class Frames:
    """Collects the frames of a stream of whole frames."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.taken = 0
        self.frames: list[tuple[int, bytes]] = []  # queue, bytes
        self._now = bytearray()

    def update(self) -> list[tuple[int, bytes]]:
        """Returns the frames so far."""
        for data, keep, last, user in self.sink.items[self.taken :]:  # type: ignore[misc]
            self.taken += 1
            count = keep.bit_count()
            assert keep == (1 << count) - 1
            assert count > 0
            assert last or count == 64
            self._now += data.to_bytes(64, "little")[:count]
            if last:
                assert user & 0xFFFF == len(self._now), (user & 0xFFFF, len(self._now))
                self.frames.append((user >> 16 & 0xFF, bytes(self._now)))
                self._now.clear()
        return self.frames

    def forget(self) -> None:
        """Forgets the frames after a reset."""
        self.taken = 0
        self.frames.clear()
        self._now.clear()


def beats_of(frame: bytes, queue: int, noise: Callable[[int], int]) -> list[tuple[int, int, int, int]]:
    """Returns a frame as beats of a stream. Lanes without a byte have random values."""
    found = []
    for at in range(0, len(frame), 64):
        part = frame[at : at + 64]
        data = int.from_bytes(part, "little") | noise(512) >> 8 * len(part) << 8 * len(part)
        found.append((data, (1 << len(part)) - 1, int(at + 64 >= len(frame)), len(frame) | queue << 16))
    return found


class Rig:
    """The bench with all its agents around the core at `scope`."""

    def __init__(
        self,
        dut: Any,
        name: str,
        *,
        queue_bits: int = 0,
        rx_bits: int = 8,
        tx_bits: int = 9,
        pack_bits: int = 9,
        seed: int = 1,
    ) -> None:
        self.bench = Bench(dut, seed)
        self.scope = getattr(dut, name)
        self.queues, self.rx_ring, self.tx_ring = 1 << queue_bits, 1 << rx_bits, 1 << tx_bits
        self.pack_lines = 1 << pack_bits
        self.registers = Registers(self.bench, self.scope)
        self.nic = Nic(self.bench, self.scope, FORMATS["e1000e"], BASE, self.queues, self.rx_ring, self.tx_ring)
        self.tails = Tails(self.bench, self.scope, self.nic)

        self._streams()

    def pins(self, prefix: str, names: tuple[str, ...]) -> list[Any]:
        """Returns pins of the core."""
        return [self.bench.pin(self.scope, f"{prefix}_{name}") for name in names]

    def sink(self, prefix: str) -> Sink:
        """Returns a receiver for a stream that the core sends."""
        return Sink(self.bench, *self.pins(prefix, ("tvalid", "tready")), self.pins(prefix, STREAM))

    def source(self, prefix: str) -> Source:
        """Returns a sender for a stream that the core receives."""
        return Source(self.bench, *self.pins(prefix, ("tvalid", "tready")), self.pins(prefix, STREAM))

    def _streams(self) -> None:
        """Creates the streams to and from the function."""
        self.rx, self.head = self.sink("m_rx"), self.sink("m_head")
        self.tx, self.verdict = self.source("s_tx"), self.source("s_verdict")
        self.received = Frames(self.rx)

    async def start(self, kind: str = "e1000e", *, in_place: bool = False, **registers: int) -> None:
        """Resets the core, sets the NIC's personality, and starts all queues."""
        await self.bench.reset()
        await self._swept()
        self.received.forget()
        self.nic.format = FORMATS[kind]
        self.nic.restart()
        await self.set_up(in_place=in_place, **registers)

    async def _swept(self) -> None:
        """Waits for the sweep: after a reset during frames the core clears its marks before it posts one
        (bypass_watch)."""
        sweeps = self.scope.i_watch.sweeps_q
        await self.bench.until(lambda: not int(sweeps.value), 1 << 17)

    async def set_up(self, *, in_place: bool = False, **registers: int) -> None:
        """Makes the register writes of the set-up program."""
        write = self.registers.write
        await write("base_low", BASE & 0xFFFFFFFF)
        await write("base_high", BASE >> 32)
        for name, value in (self.nic.format.registers | registers).items():
            await write(name, value)
        for queue in range(self.queues):
            for ring, side in enumerate(("rx", "tx")):
                address = TAIL_BASE + TAG * (2 * queue + ring)
                await write(f"{side}_tail_low", address & 0xFFFFFFFF, queue)
                await write(f"{side}_tail_high", address >> 32, queue)
            await write("queue_control", 1 | int(in_place) << 1, queue)

    def random_frame(self, size: int) -> bytes:
        """Returns a random frame of `size` bytes."""
        return self.bench.random.randbytes(size)

    def arrive(self, frame: bytes, queue: int = 0, *, error: bool = False) -> None:
        """A frame arrives at the NIC's wire."""
        self.nic.arriving[queue].append((frame, error))

    def transmit(self, frame: bytes, queue: int = 0) -> None:
        """The function sends a frame."""
        self.tx.items.extend(beats_of(frame, queue, self.bench.random.getrandbits))

    def of_queue(self, queue: int) -> list[bytes]:
        """Returns the frames of a queue that the function received."""
        return [data for at, data in self.received.update() if at == queue]

    async def counters(self) -> dict[str, int]:
        """Returns all counters that are not 0, after nothing is in flight."""
        await self.bench.cycle(48)
        found = {}
        for name, register in REGISTERS.items():
            if 0x200 <= register.offset < 0x400 and (value := await self.registers.read(name)):
                found[name] = value
        return found

    def lengths(self, count: int, most: int = 1514) -> list[int]:
        """Returns random frame lengths, often near a multiple of 64 or of 2048."""
        draw = self.bench.random
        found = []
        for _ in range(count):
            near = draw.choice([64, 64, 2048]) * draw.randint(1, 5) + draw.randint(-2, 2)
            found.append(min(most, max(17, draw.choice([near, 60, 64, draw.randint(17, most)]))))
        return found

    def offer(self, count: int, most: int = 1514) -> tuple[list[list[bytes]], list[list[bytes]]]:
        """Queues `count` frames in each direction on each queue. Returns the expected output."""
        there: list[list[bytes]] = [[] for _ in range(self.queues)]
        back: list[list[bytes]] = [[] for _ in range(self.queues)]
        for _ in range(count):
            for queue in range(self.queues):
                size, other = self.lengths(2, most)
                there[queue].append(self.random_frame(size))
                self.arrive(there[queue][-1], queue)
                back[queue].append(self.random_frame(other))
                self.transmit(back[queue][-1], queue)
        return there, back

    def came(self, there: list[list[bytes]], back: list[list[bytes]]) -> bool:
        """Returns true if that many frames came out."""
        received = self.received.update()
        return len(received) == sum(map(len, there)) and sum(map(len, self.nic.sent)) == sum(map(len, back))

    async def pass_all(self, count: int, most: int = 1514, limit: int = 20_000) -> None:
        """Sends frames, and waits until all came out unchanged, in order within each queue."""
        there, back = self.offer(count, most)
        await self.bench.until(lambda: self.came(there, back), limit)
        for queue in range(self.queues):
            assert self.of_queue(queue) == there[queue]
            assert self.nic.sent[queue] == back[queue]
        self.received.frames.clear()
        for sent in self.nic.sent:
            sent.clear()


class Function:
    """Gives verdicts on frames in place. `decide` gets the queue, the size and the first beat, and returns user bits
    and data."""

    def __init__(self, rig: Rig, decide: Callable[[int, int, bytes], tuple[int, bytes]]) -> None:
        self.rig, self.decide = rig, decide
        self.heads: list[tuple[int, int, bytes]] = []
        self.taken = 0
        rig.bench.agents.append(self)

    def drive(self) -> None:
        """Does nothing."""

    def sample(self) -> None:
        """Answers in the next cycle."""
        for data, keep, last, user in self.rig.head.items[self.taken :]:  # type: ignore[misc]
            self.taken += 1
            size, queue = user & 0xFFFF, user >> 16 & 0xFF
            assert last
            assert keep.bit_count() == min(size, 64)
            first = data.to_bytes(64, "little")[: min(size, 64)]
            self.heads.append((queue, size, first))
            verdict, replaced = self.decide(queue, size, first)
            word = int.from_bytes(replaced.ljust(64, b"\0"), "little")
            self.rig.verdict.items.append((word, (1 << 64) - 1, 1, verdict))

    def reset(self) -> None:
        """Forgets the verdicts."""
        self.taken = 0
        self.heads.clear()
