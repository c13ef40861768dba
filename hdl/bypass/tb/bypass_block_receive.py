# SPDX-License-Identifier: Apache-2.0
"""bypass_rx_frames, bypass_rx_reader and bypass_slots alone: descriptors, bytes, slots."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
from bench import Sink
from bypass_blocks import BEATS, PACES, SLOT, Block
from packed_structs import Struct, axis

GOOD, BAD_ERROR, BAD_SIZE, BAD_STOPPED = range(4)  # verdict_e
MAX_FRAME, MAX_SLOTS = 9728, 8
SLOTS_REGION = 5
SIZES = ("one", "four")


@dataclass(frozen=True)
class Written:
    """A receive descriptor as the NIC writes it back."""

    length: int
    eop: bool
    error: bool


class Frames(Block):
    """bypass_rx_frames; this class also models the rings that it reads."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"frames_{name}", seed)
        self.size = 1 << self.config.rx_bits
        self.queues = range(self.config.queues)
        self.written = self.struct("written_i", "rx_written_t")
        self.pairs = [self.struct("pairs_i", "pair_state_t", q) for q in self.queues]
        self.take = self.pin("take_o")
        self.frames = self.sink("m", "frame_t", "pair index bytes slots verdict")
        self.max_frame = MAX_FRAME
        self.runs, self.writes = (1 << self.config.queues) - 1, 0.7
        self.reset()

    def reset(self) -> None:
        """All rings are empty."""
        self.head = [0 for _ in self.queues]
        self.whole = [0 for _ in self.queues]
        self.taken = [0 for _ in self.queues]
        self.coming: list[deque[Written]] = [deque() for _ in self.queues]
        self.expected: list[list[tuple[int, ...]]] = [[] for _ in self.queues]
        self.early: tuple[int, int, int] | None = None
        self.begins = [True for _ in self.queues]
        self.part: list[list[Written]] = [[] for _ in self.queues]
        for pair in self.pairs:
            pair.set(begins=0, rx__accept=0, rx__has=0)
        self.pin("max_frame_i").set(self.max_frame)

    def arrive(self, queue: int, *descriptors: Written) -> None:
        """Queues descriptors that the NIC will write back."""
        self.coming[queue].extend(descriptors)

    def _expect(self, queue: int, end: int) -> None:
        """A frame ended before descriptor `end`: computes its expected result."""
        parts = self.part[queue]
        total = sum(part.length for part in parts)
        whole = parts[-1].eop and self.begins[queue] and 0 < parts[-1].length <= SLOT
        sound = whole and all(part.length == SLOT for part in parts[:-1]) and total <= min(self.max_frame, MAX_FRAME)
        verdict = GOOD if sound else BAD_SIZE
        if sound and any(part.error for part in parts):
            verdict = BAD_ERROR
        if not self.runs >> queue & 1:
            verdict = BAD_STOPPED
        first = (end - len(parts)) % self.size
        self.expected[queue].append((queue, first, total if sound else -1, len(parts), verdict))
        self.begins[queue] = parts[-1].eop
        self.part[queue] = []

    def drive(self) -> None:
        """The NIC writes a group back; some of its lengths may come a cycle earlier."""
        draw = self.random
        self.written.set(pair=draw.randrange(16), group=draw.getrandbits(10), sized=0)
        self.next_whole = list(self.whole)
        for queue, pair in enumerate(self.pairs):
            pair.set(running=self.runs >> queue & 1, rx__accept=0, rx__taken=self.taken[queue] % self.size)
            pair.set(rx__has=self.whole[queue] > self.taken[queue])
        queue = draw.randrange(self.config.queues) if self.early is None else self.early[0]
        room = self.size - 1 - (self.head[queue] - self.taken[queue])
        lane = self.head[queue] % 4
        count = min(len(self.coming[queue]), 4 - lane, room, draw.randint(1, 4))
        if self.early is not None:
            count = self.early[1]
        elif count <= 0 or not self.chance(self.writes):
            return
        items = [self.coming[queue][i] for i in range(count)]
        mask = ((1 << count) - 1) << lane
        lengths = sum(item.length << 14 * (lane + i) for i, item in enumerate(items))
        self.written.set(pair=queue, group=self.head[queue] % self.size // 4, bytes=lengths, sized=mask)
        if self.early is None and self.chance(0.3):
            self.early = (queue, count, 0)  # the status follows with the next write
            return
        if self.early is not None:
            self.written.set(sized=0, bytes=draw.getrandbits(56))
        self.early = None
        self.written.set(
            eop=sum(item.eop << (lane + i) for i, item in enumerate(items)),
            error=sum(item.error << (lane + i) for i, item in enumerate(items)),
        )
        self.pairs[queue].set(rx__accept=mask)
        for item in items:
            self.coming[queue].popleft()
            self.head[queue] += 1
            self.part[queue].append(item)
            if item.eop or len(self.part[queue]) == MAX_SLOTS:
                self._expect(queue, self.head[queue])
                self.next_whole[queue] = self.head[queue]

    def sample(self) -> None:
        """Follows the taken descriptors, and moves the rings' pointers."""
        take = self.take.get()
        assert take.bit_count() <= 1
        for queue in self.queues:
            if take >> queue & 1:
                assert self.whole[queue] > self.taken[queue], "a descriptor was taken that is not there"
                self.taken[queue] += 1
        self.whole = self.next_whole

    def idle(self) -> bool:
        """Whether all descriptors were written back, and all frames left."""
        return not any(self.coming) and len(self.frames.items) == sum(map(len, self.expected))

    def check(self) -> None:
        """Compares every frame, in the order of its queue."""
        for queue in self.queues:
            got = [item for item in self.frames.items if item[0] == queue]  # type: ignore[index]
            for found, wanted in zip(got, self.expected[queue], strict=True):
                if wanted[2] < 0:
                    found = (*found[:2], -1, *found[3:])  # type: ignore[index]
                assert found == wanted

    def good(self, total: int, *, error: bool = False) -> list[Written]:
        """The descriptors of a frame."""
        sizes = [SLOT] * (total // SLOT) + ([total % SLOT] if total % SLOT else [])
        bad = self.random.randrange(len(sizes)) if error else -1
        return [Written(size, i == len(sizes) - 1, i == bad) for i, size in enumerate(sizes)]


@cocotb.test()
async def frames_are_made_of_their_descriptors(dut: Any) -> None:
    """Covers short, long, good and bad frames, at any speed, with one ring and with four, through many wraps."""
    for name in SIZES:
        frames = Frames(dut, name, seed=2)
        await frames.bench.reset()
        for idle, stall in PACES:
            frames.writes, frames.frames.stall = 1.0 - idle, stall
            for queue in frames.queues:
                for _ in range(24):
                    total = frames.random.choice(
                        [1, 60, 64, 2047, 2048, 2049, 4096, 9000, 9728, frames.random.randint(1, 9728)]
                    )
                    frames.arrive(queue, *frames.good(total, error=frames.chance(0.2)))
            await frames.bench.until(frames.idle)
            frames.check()


@cocotb.test()
async def what_cannot_be_a_frame_is_told_apart(dut: Any) -> None:
    """Covers impossible lengths, too long frames, and frames without an end, directly followed by good ones."""
    for name in SIZES:
        for limit in (MAX_FRAME, 1514):
            frames = Frames(dut, name, seed=3)
            frames.max_frame = limit
            await frames.bench.reset()
            draw = frames.random
            for queue in frames.queues:
                for _ in range(20):
                    kind = draw.randrange(5)
                    if kind == 0:
                        frames.arrive(queue, Written(draw.choice([0, SLOT + 1, 16383]), True, False))
                    elif kind == 1:
                        frames.arrive(queue, Written(draw.randrange(1, SLOT), False, False), Written(60, True, False))
                    elif kind == 2:
                        frames.arrive(
                            queue, *[Written(SLOT, False, False)] * draw.randint(4, 19), Written(9, True, False)
                        )
                    frames.arrive(queue, *frames.good(draw.choice([60, 1514, 1515])))
            await frames.bench.until(frames.idle)
            frames.check()
            verdicts = [item[4] for items in frames.expected for item in items]
            assert GOOD in verdicts
            assert BAD_SIZE in verdicts


@cocotb.test()
async def frames_of_a_stopped_queue_are_marked(dut: Any) -> None:
    """The other queues' frames pass; a reset during a frame discards it."""
    frames = Frames(dut, "four", seed=4)
    await frames.bench.reset()
    frames.runs = 0b0101
    for queue in frames.queues:
        frames.arrive(queue, *frames.good(3000), *frames.good(60), *frames.good(70, error=True))
    await frames.bench.until(frames.idle)
    frames.check()
    frames.frames.stall = 1.0
    frames.arrive(0, *frames.good(9000), *frames.good(9000))
    await frames.bench.cycle(7)
    await frames.bench.reset()
    frames.runs = 0b1111
    frames.frames.stall = 0.0
    for queue in frames.queues:
        frames.arrive(queue, *frames.good(100), *frames.good(9000))
    await frames.bench.until(frames.idle)
    frames.check()


@cocotb.test()
async def no_queue_waits_for_more_than_the_others(dut: Any) -> None:
    """If all four queues have frames, each gets every fourth turn."""
    frames = Frames(dut, "four", seed=5)
    await frames.bench.reset()
    for queue in frames.queues:
        for _ in range(30):
            frames.arrive(queue, *frames.good(60))
    frames.frames.stall = 1.0
    await frames.bench.cycle(60)
    frames.frames.stall = 0.0
    await frames.bench.until(lambda: len(frames.frames.items) >= 30)
    order = [item[0] for item in frames.frames.items[4:24]]  # type: ignore[index]
    assert all(set(order[i : i + 4]) == {0, 1, 2, 3} for i in range(16)), order


class Reader(Block):
    """bypass_rx_reader, with frames, a memory that is sometimes busy, and a function that stalls."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"reader_{name}", seed)
        self.frames = self.source("s", "frame_t", "pair index bytes slots verdict")
        beat = Struct(self.bench, self.wires.scope, "m_payload", axis(512, 48)).pins("user last keep data")
        self.rx, self.head = (
            Sink(self.bench, self.pin(f"m_{way}_valid"), self.pin(f"m_{way}_ready"), beat) for way in ("rx", "head")
        )
        self.place = self.sink("m_place", "frame_t", "pair index bytes slots verdict")
        self.freed = self.struct("release_o", "release_t")
        self.events = self.struct("events_o", "events_t")
        self.in_place, self.busy = 0, 0.0
        self.reset()

    def reset(self) -> None:
        """No line is being read."""
        self.due: int | None = None
        self.releases: list[tuple[int, int]] = []
        self.done: list[int] = []
        self.bytes = 0
        self.read_at: dict[int, list[int]] = {}
        self.expected_releases: list[tuple[int, int]] = []
        self.expected: list[list[tuple[int, int, bytes, int]]] = [
            [],
            [],
        ]  # to m_rx and to m_head: line, pair, bytes, length
        self.places: list[tuple[int, ...]] = []
        self.verdicts: list[int] = []

    def line(self, queue: int, line: int) -> bytes:
        """The contents of a line of a queue's slots."""
        return (queue << 20 | line).to_bytes(4, "little") * 16

    def drive(self) -> None:
        """The memory returns the line requested a cycle ago, otherwise noise."""
        per_queue = 1 << (self.config.rx_bits + 5)
        word = self.random.getrandbits(512)
        if self.due is not None:
            word = int.from_bytes(self.line(*divmod(self.due, per_queue)), "little")
        self.pin("data_i").set(word)
        self.pin("ready_i").set(not self.chance(self.busy))
        self.pin("time_i").set(self.bench.cycles & 0xFFFFFF)
        self.pin("in_place_i").set(self.in_place)

    def sample(self) -> None:
        """Records the lines that the reader requests, and the slots that it releases."""
        asks = self.pin("read_o").get() and self.pin("ready_i").get()
        self.due = self.pin("read_line_o").get() if asks else None
        if self.due is not None:
            self.read_at.setdefault(self.due, []).append(self.bench.cycles & 0xFFFFFF)
        if self.freed.get("valid"):
            self.releases.append((self.freed.get("pair"), self.freed.get("slots")))
        ended = self.events.all("rx_frame rx_error rx_size rx_stopped")  # in the order of verdict_e
        assert sum(ended) <= 1
        self.done += [verdict for verdict, pulse in enumerate(ended) if pulse]
        self.bytes += self.events.get("rx_bytes")

    def send(self, pair: int, index: int, size: int, verdict: int) -> None:
        """Sends a frame, and notes its expected result."""
        slots = -(-size // SLOT)
        self.frames.items.append((pair, index, size, slots, verdict))
        self.verdicts.append(verdict)
        stays = self.in_place >> pair & 1
        if stays:
            self.places.append((pair, index, size, slots, verdict))
        else:
            self.expected_releases.append((pair, slots))
        if verdict != GOOD:
            return
        lines = 1 << (self.config.rx_bits + 5)
        data = b"".join(self.line(pair, (32 * index + i) % lines) for i in range(-(-size // BEATS)))[:size]
        first = pair * lines + 32 * index
        self.expected[stays].append((first, pair, data[:BEATS] if stays else data, size))

    def finished(self) -> bool:
        """Whether all frames were read and left the reader."""
        beats = sum(-(-len(data) // BEATS) for way in self.expected for _, _, data, _ in way)
        return len(self.done) == len(self.verdicts) and len(self.rx.items) + len(self.head.items) == beats

    def check(self) -> None:
        """Compares bytes, keep, last and the user bits: size, pair, and the cycle in which the first line was read."""
        for sink, frames in zip((self.rx, self.head), self.expected, strict=True):
            items = iter(sink.items)
            for line, pair, data, size in frames:
                stamps = set()
                for at in range(0, len(data), BEATS):
                    user, last, keep, word = next(items)  # type: ignore[misc]
                    part = data[at : at + BEATS]
                    assert keep == (1 << len(part)) - 1
                    assert last == (at + BEATS >= len(data))
                    assert word.to_bytes(64, "little")[: len(part)] == part
                    assert user & 0xFFFF == size
                    assert user >> 16 & 0xFF == pair
                    stamps.add(user >> 24)
                assert len(stamps) == 1
                assert stamps.pop() in self.read_at[line]
            assert next(items, None) is None
        assert self.place.items == self.places
        assert self.releases == self.expected_releases
        assert self.done == self.verdicts
        assert self.bytes == sum(size for frames in self.expected for _, _, _, size in frames)

    def offer(self, count: int) -> None:
        """Frames of all kinds."""
        draw = self.random
        for _ in range(count):
            size = draw.choice([1, 63, 64, 65, 1514, 2048, 2049, draw.randint(1, 3000)])
            verdict = draw.choice([GOOD, GOOD, GOOD, BAD_ERROR, BAD_SIZE, BAD_STOPPED])
            self.send(draw.randrange(self.config.queues), draw.randrange(1 << self.config.rx_bits), size, verdict)


@cocotb.test()
async def frames_are_read_out_of_their_slots(dut: Any) -> None:
    """Compares every byte, also over the ring's end, at any speed. Bad frames only release slots."""
    for name in SIZES:
        for places in (0, 0b0110 if name == "four" else 1):
            reader = Reader(dut, name, seed=5)
            reader.in_place = places
            await reader.bench.reset()
            for idle, stall in PACES:
                reader.frames.idle, reader.busy = idle, idle
                reader.rx.stall = reader.head.stall = stall
                reader.place.stall = stall
                reader.offer(20)
                await reader.bench.until(reader.finished)
            await reader.bench.cycle(3)
            reader.check()


@cocotb.test()
async def a_line_a_cycle_is_read_and_none_that_has_no_room(dut: Any) -> None:
    """Without stalls there are no gaps. A blocked function stops the reader. A reset discards everything."""
    reader = Reader(dut, "one", seed=6)
    await reader.bench.reset()
    for _ in range(8):
        reader.send(0, reader.random.randrange(256), 1000, GOOD)
    await reader.bench.until(reader.finished)
    cycles = reader.rx.cycles_of
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))
    reader.rx.stall = 1.0
    for _ in range(8):
        reader.send(0, 0, 2048, GOOD)
    await reader.bench.cycle(300)
    reads = sum(map(len, reader.read_at.values()))
    await reader.bench.cycle(50)
    assert sum(map(len, reader.read_at.values())) == reads <= 8 * 16 + 34
    await reader.bench.reset()
    reader.rx.stall = 0.0
    reader.offer(10)
    await reader.bench.until(reader.finished)
    await reader.bench.cycle(3)
    reader.check()


class Slots(Block):
    """The slots' memory: its bytes, and when each was last written."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"slots_{name}", seed)
        self.write, self.read = (
            self.struct("window_write_i", "window_write_t"),
            self.struct("window_read_i", "window_read_t"),
        )
        self.pairs = [self.struct("pairs_i", "pair_state_t", q) for q in range(self.config.queues)]
        self.events = self.struct("events_o", "events_t")
        self.lines = 1 << (self.config.queue_bits + self.config.rx_bits + 5)
        self.memory: dict[int, bytearray] = {}
        self.changed: dict[int, int] = {}
        self.few = [self.random.randrange(self.lines) for _ in range(6)]
        self.compared = self.stray = self.replaced = 0
        self.reset()

    def reset(self) -> None:
        """A reset keeps the memory's contents."""
        self.pending: tuple[int, int, bytes] | None = None  # the NIC's write in the previous cycle: line, strobes, data
        self.asked: int | None = None
        self.write.set(valid=0)
        self.read.set(valid=0)
        self.pin("s_valid").set(0)

    def offset(self, line: int) -> int:
        """The line's offset in the window, in one of the two copies."""
        per_queue = 1 << (self.config.rx_bits + 5)
        queue, at = divmod(line, per_queue)
        return (self.config.slot_line(queue, 0) + at + self.random.choice([0, per_queue])) << 6

    def owned(self, line: int) -> bool:
        """Whether the NIC may write to the line: it owns two of three slots."""
        return (line >> 5) % 3 != 0

    def drive(self) -> None:
        """Both sides read and write only a few lines, so that they collide."""
        draw = self.random
        self.nic_line, self.core_line = draw.choice(self.few), draw.choice(self.few)
        self.nic_read_line, self.core_read_line = draw.choice(self.few), draw.choice(self.few)
        self.writes, self.reads = self.chance(0.5), self.chance(0.5)
        self.strobes = draw.choice([(1 << 64) - 1, draw.getrandbits(64), 0xF << 4 * draw.randrange(16)])
        self.data, self.line_data = draw.randbytes(64), draw.randbytes(64)
        region = SLOTS_REGION if self.chance(0.9) else draw.randrange(5)
        self.writes = self.writes and region == SLOTS_REGION
        self.write.set(
            valid=self.writes or region != SLOTS_REGION,
            region=region,
            offset=self.offset(self.nic_line),
            strobe=self.strobes,
            data=int.from_bytes(self.data, "little"),
        )
        self.read.set(valid=self.reads, region=SLOTS_REGION, offset=self.offset(self.nic_read_line))
        self.replace, self.core_reads = self.chance(0.3), self.chance(0.6)
        self.pin("s_valid").set(self.replace)
        self.pin("s_line").set(self.core_line)
        self.pin("s_data").set(int.from_bytes(self.line_data, "little"))
        self.pin("read_i").set(self.core_reads)
        self.pin("read_line_i").set(self.core_read_line)
        # The queue's bit says whether the NIC owns the slot of the previous cycle's write; the other bits are random.
        may = draw.getrandbits(self.config.queues)
        if self.pending is not None:
            line = self.pending[0]
            queue, slot = line >> (self.config.rx_bits + 5), (line >> 5) % (1 << self.config.rx_bits)
            assert self.pin("written_o").get() == slot
            may = may & ~(1 << queue) | self.owned(line) << queue
        for queue, pair in enumerate(self.pairs):
            pair.set(rx__may_write=may >> queue & 1)

    def _store(self, line: int, strobes: int, data: bytes) -> None:
        old = self.memory.setdefault(line, bytearray(64))
        for lane in range(64):
            if strobes >> lane & 1:
                old[lane] = data[lane]
        self.changed[line] = self.bench.cycles

    def sample(self) -> None:
        """A read returns all writes that are at least a cycle older."""
        if self.asked is not None:
            assert self.pin("data_o").get().to_bytes(64, "little") == self.wanted, hex(self.asked)
            self.compared += 1
        stray = self.pending is not None and not self.owned(self.pending[0])
        assert self.events.get("rx_stray") == stray
        self.stray += stray
        assert self.pin("s_ready").get() == (self.pending is None)
        assert self.pin("ready_o").get() == (not self.reads)
        asked = self.nic_read_line if self.reads else self.core_read_line if self.core_reads else None
        self.asked = asked if asked in self.memory else None
        if self.asked is not None:
            self.wanted = bytes(self.memory[self.asked])
        # The write that is stored at the end of this cycle.
        if self.pending is not None and not stray:
            self._store(*self.pending)
        elif self.pending is None and self.replace:
            self._store(self.core_line, (1 << 64) - 1, self.line_data)
            self.replaced += 1
        self.pending = (self.nic_line, self.strobes, self.data) if self.writes else None


@cocotb.test()
async def slots_keep_what_is_written_to_them(dut: Any) -> None:
    """The NIC writes bytes, the core whole lines, in both copies. The NIC has priority. Stray writes are not stored."""
    for name in SIZES:
        slots = Slots(dut, name, seed=7)
        await slots.bench.reset()
        await slots.bench.cycle(700)
        await slots.bench.reset()
        await slots.bench.cycle(100)
        assert slots.compared > 200
        assert slots.stray > 20
        assert slots.replaced > 20
