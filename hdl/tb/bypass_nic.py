# SPDX-License-Identifier: Apache-2.0
"""A NIC for the benches of the bypass core. Over AXI4 it fetches descriptors, writes and reads packets, and writes
back.

It behaves as its datasheet says, and knows nothing of the core except the addresses in descriptors. Its wire is
`arriving` and `sent`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axi_agents import OKAY, Burst, Manager
from bench import Bench
from bypass_formats import Format, TxDescriptor

RINGS, TX_RING, QUEUE = 0x000000, 0x10000, 0x20000
HEADS = 0x200000
BUFFER = 2048
TAG = 16  # of the addresses of tails: ring r's is TAIL_BASE + TAG r
TAIL_BASE = 0x0000_70F0_0000_0000
WINDOW = 23


@dataclass
class Habits:
    """How the NIC makes its accesses."""

    words: bool = False  # accesses of 4 bytes, as QEMU's models
    fetch: int = 8  # descriptors at once
    cache: int = 32
    piece: int = 256  # bytes of a write (MPS) and a read (MRRS)
    line: int = 1  # receive descriptors per write-back
    shuffle: int = 1  # reads of payload are in any order among this many
    report: bool = True  # writes back where RS is set
    heads: bool = False  # writes back the head instead
    eager: float = 1.0  # share of the cycles in which it is active
    burst_writes: int = 40  # beats that may wait for W


@dataclass
class Ring:
    """A ring of descriptors, from the NIC's point of view."""

    base: int
    size: int
    bytes: int
    tail: int = 0
    fetched: int = 0  # the next descriptor to be fetched
    head: int = 0  # the next descriptor to be done
    cache: deque[tuple[int, bytes]] = field(default_factory=deque)
    fetching: int = 0

    def known(self) -> int:
        """Returns the number of descriptors that may be fetched."""
        return (self.tail - self.fetched) % self.size


@dataclass
class Reading:
    """A frame that is being read in pieces, which arrive in any order."""

    queue: int
    index: int
    raw: bytes
    descriptor: TxDescriptor
    data: bytearray
    missing: int


class Nic:
    """An agent of the bench at the flat ports s_axi_*. Writes of tails come through tail()."""

    def __init__(self, bench: Bench, scope: Any, kind: Format, base: int, queues: int, rx: int, tx: int) -> None:
        self.bench, self.format, self.base = bench, kind, base
        self.habits = Habits()
        self.manager = Manager(bench, scope, "s_axi")
        self.sizes = rx, tx
        self.queues = queues
        self.ids = 64  # of its transactions
        self.restart()
        bench.agents.append(self)

    def restart(self) -> None:
        """Sets the state after the NIC's reset."""
        rx, tx = self.sizes
        self.rx = [Ring(QUEUE * q, rx, self.format.rx_bytes) for q in range(self.queues)]
        self.tx = [Ring(QUEUE * q + TX_RING, tx, 16) for q in range(self.queues)]
        self.arriving: list[deque[tuple[bytes, bool]]] = [deque() for _ in range(self.queues)]
        self.sent: list[list[bytes]] = [[] for _ in range(self.queues)]
        self.readings: list[deque[Reading]] = [deque() for _ in range(self.queues)]
        self.pieces: list[tuple[int, int, Callable[[bytes], None]]] = []
        self.waiting: list[deque[tuple[int, Burst, Callable[[bytes], None]]]] = [deque() for _ in range(64)]
        self.unwritten: list[list[tuple[int, bytes]]] = [[] for _ in range(self.queues)]
        self.parts: dict[int, bytearray] = {}
        self.seen = 0
        self.writes_done = 0
        self.tails: list[tuple[int, int]] = []
        self.running, self.honest = True, True
        self.errors = 0

    def reset(self) -> None:
        """Handles a reset of the design."""
        self.restart()

    def drive(self) -> None:
        """Does nothing, because its manager drives the signals."""

    # ---- the bus

    def write(self, address: int, data: bytes) -> None:
        """Makes a posted write to a bus address."""
        assert self.base <= address <= self.base + (1 << WINDOW) - len(data), hex(address)
        self.write_window(address - self.base, data)

    def write_window(self, offset: int, data: bytes) -> None:
        """Makes a posted write to an offset of the window."""
        at = offset
        draw = self.bench.random
        step = 4 if self.habits.words else self.habits.piece
        while at < offset + len(data):
            end = min(offset + len(data), at + step - at % step)
            beats = []
            for start in range(at - at % 64, end, 64):
                lanes = range(max(start, at), min(start + 64, end))
                noise = draw.getrandbits(512)
                for i in lanes:
                    noise = noise & ~(0xFF << 8 * (i - start)) | data[i - offset] << 8 * (i - start)
                beats.append((noise, sum(1 << (i - start) for i in lanes)))
            size = 2 if self.habits.words else 6
            self.manager.write(Burst(draw.randrange(self.ids), at, len(beats), size, data=beats))
            at = end

    def read(self, offset: int, count: int, done: Callable[[bytes], None]) -> None:
        """Reads `count` bytes from `offset`, within 4 KiB, in one burst or in words."""
        if not self.habits.words:
            self._ask(offset, count, done)
            return
        pieces: dict[int, bytes] = {}

        def part(at: int, data: bytes) -> None:
            pieces[at] = data
            if sum(len(p) for p in pieces.values()) >= count:
                done(b"".join(pieces[at] for at in sorted(pieces))[:count])

        for at in range(offset, offset + count, 4):
            self._ask(at, 4, lambda data, at=at: part(at, data))  # type: ignore[misc]

    def _ask(self, offset: int, count: int, done: Callable[[bytes], None]) -> None:
        size = 2 if self.habits.words else 6
        step = 1 << size
        beats = (offset + count - 1) // step - offset // step + 1
        id_ = self.bench.random.randrange(self.ids)
        burst = Burst(id_, offset, beats, size)
        self.waiting[id_].append((count, burst, done))
        self.parts.setdefault(id_, bytearray())
        self.manager.ask(burst)

    def _completions(self) -> None:
        for id_, data, response, last in self.manager.r.items:
            self.errors += response != OKAY
            count, burst, done = self.waiting[id_][0]
            self.parts[id_] += data.to_bytes(64, "little")  # whole beats; cut below
            if last:
                self.waiting[id_].popleft()
                lanes = [a % 64 for a in burst.addresses()]
                raw, self.parts[id_] = bytes(self.parts[id_]), bytearray()
                step = 1 << burst.size
                found = b"".join(raw[64 * i + lane : 64 * i + (lane & -step) + step] for i, lane in enumerate(lanes))
                done(found[:count])
        self.manager.r.items.clear()
        self.manager.r.cycles_of.clear()
        for _, response in self.manager.b.items:
            self.errors += response != OKAY
            self.writes_done += 1
        self.manager.b.items.clear()

    # ---- the NIC's actions

    def tail(self, address: int, value: int) -> None:
        """Handles a write of a tail register."""
        ring, rest = divmod(address - TAIL_BASE, TAG)
        assert not rest, hex(address)
        assert 0 <= ring < 2 * self.queues, hex(address)
        self.tails.append((ring, value))
        rings = self.tx if ring % 2 else self.rx
        at = rings[ring // 2]
        assert value < at.size
        # A tail never moves beyond the head, because that would reduce the number of posted descriptors.
        if self.honest:
            assert (value - at.head) % at.size >= (at.tail - at.head) % at.size, (ring, value, at.tail, at.head)
        at.tail = value

    def sample(self) -> None:
        """Runs one cycle."""
        self._completions()
        if not self.running or self.bench.random.random() >= self.habits.eager:
            return
        for queue in range(self.queues):
            self._fetch(self.rx[queue])
            self._fetch(self.tx[queue])
            if len(self.manager.w.items) < self.habits.burst_writes:
                self._receive(queue)
            self._begin(queue)
            self._finish(queue)
        self._ask_pieces()

    def _fetch(self, ring: Ring) -> None:
        room = self.habits.cache - len(ring.cache) - ring.fetching
        count = min(ring.known(), self.habits.fetch, ring.size - ring.fetched, room)
        if count <= 0 or ring.fetching:
            return
        # The unit that turns a fetch into AXI cuts it at 4 KiB.
        first, offset = ring.fetched, ring.base + ring.bytes * ring.fetched
        count = min(count, (4096 - offset % 4096) // ring.bytes)
        ring.fetched = (first + count) % ring.size
        ring.fetching = count

        def done(data: bytes) -> None:
            for i in range(count):
                ring.cache.append((first + i, data[ring.bytes * i : ring.bytes * (i + 1)]))
            ring.fetching = 0

        self.read(offset, ring.bytes * count, done)

    def _receive(self, queue: int) -> None:
        if not self.arriving[queue]:
            return
        frame, error = self.arriving[queue][0]
        ring = self.rx[queue]
        needed = max(1, -(-len(frame) // BUFFER))
        if len(ring.cache) < needed:
            self._write_back(queue, flush=True)
            return
        self.arriving[queue].popleft()
        for i in range(needed):
            index, raw = ring.cache.popleft()
            part = frame[BUFFER * i : BUFFER * (i + 1)]
            self.write(self.format.rx_address(raw), part)
            last = i == needed - 1
            noise = self.bench.random.getrandbits(128)
            done = self.format.rx_done(len(part), eop=last, error=error and last, noise=noise)
            self.unwritten[queue].append((index, done))
            ring.head = (index + 1) % ring.size
        self._write_back(queue, flush=not self.arriving[queue])

    def _write_back(self, queue: int, *, flush: bool) -> None:
        """Writes finished descriptors back, in full lines or all of them."""
        ring, waiting = self.rx[queue], self.unwritten[queue]
        while waiting:
            group = waiting[0][0] // self.habits.line
            run = [item for item in waiting if item[0] // self.habits.line == group][: self.habits.line]
            if not flush and (run[-1][0] + 1) % self.habits.line:
                return
            del waiting[: len(run)]
            offset = ring.base + ring.bytes * run[0][0]
            if not self.habits.words:
                self.write_window(offset, b"".join(raw for _, raw in run))
                continue
            for i, (_, raw) in enumerate(run):  # without DD, then the status by itself
                early = bytearray(raw)
                early[8] &= 0xFE
                self.write_window(offset + ring.bytes * i, bytes(early))
                self.write_window(offset + ring.bytes * i + 8, raw[8:12])

    def _begin(self, queue: int) -> None:
        """Requests the frames of the fetched descriptors."""
        ring = self.tx[queue]
        while ring.cache and len(self.readings[queue]) < 16:
            index, raw = ring.cache.popleft()
            descriptor = self.format.tx_descriptor(raw)
            assert descriptor.data, (self.format.name, raw.hex())
            assert descriptor.eop, (self.format.name, raw.hex())
            assert descriptor.total in (None, descriptor.bytes)
            assert descriptor.bytes > 0
            assert descriptor.address % 64 == 0
            reading = Reading(queue, index, raw, descriptor, bytearray(descriptor.bytes), descriptor.bytes)
            self.readings[queue].append(reading)
            at = descriptor.address - self.base
            end = at + descriptor.bytes
            while at < end:
                stop = min(end, at + self.habits.piece - at % self.habits.piece)
                self._piece(reading, at, stop - at)
                at = stop

    def _piece(self, reading: Reading, at: int, count: int) -> None:
        def done(data: bytes) -> None:
            start = at - (reading.descriptor.address - self.base)
            reading.data[start : start + count] = data
            reading.missing -= count

        self.pieces.append((at, count, done))

    def _ask_pieces(self) -> None:
        if self.habits.shuffle > 1:
            while len(self.pieces) >= self.habits.shuffle or (self.pieces and not self.manager.ar.items):
                at = self.bench.random.randrange(min(self.habits.shuffle, len(self.pieces)))
                self.read(*self.pieces.pop(at))
            return
        for piece in self.pieces:
            self.read(*piece)
        self.pieces.clear()

    def _finish(self, queue: int) -> None:
        ring = self.tx[queue]
        while self.readings[queue] and not self.readings[queue][0].missing:
            reading = self.readings[queue].popleft()
            self.sent[queue].append(bytes(reading.data))
            ring.head = (reading.index + 1) % ring.size
            if reading.descriptor.report and self.habits.report:
                if self.habits.heads:
                    self.write_window(HEADS + 64 * queue, ring.head.to_bytes(4, "little"))
                else:
                    self.write_window(ring.base + 16 * reading.index, self.format.tx_done(reading.raw))
