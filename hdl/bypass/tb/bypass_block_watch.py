# SPDX-License-Identifier: Apache-2.0
"""bypass_watch alone: a frame is done exactly when the NIC has read all of it, in any order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from bypass_blocks import BEATS, SLOT, Block

PACK, SLOTS = 4, 5  # region_e
TELLING = 8  # least cycles from a post to the first read of it; bypass_core has 10
POST = "pair skip in_place slots line bytes"


@dataclass
class Frame:
    """A posted frame, and its unread part: the bytes of each line of the window."""

    pair: int
    skip: bool
    in_place: bool
    slots: int
    line: int
    bytes: int
    unread: dict[int, int] = field(default_factory=dict)
    told: bool = False
    last_read: int = 0
    posted_at: int = 0
    passed: int = 0  # lines that were returned

    def cut(self) -> None:
        """Cuts the frame into lines."""
        count = -(-self.bytes // BEATS)
        self.unread = {self.line + i: min(BEATS, self.bytes - BEATS * i) for i in range(count)}

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return -(-self.bytes // BEATS)


class Watch(Block):
    """bypass_watch, with posted frames, and a NIC that reads them."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"watch_{name}", seed)
        self.posts = self.source("s", "post_t", POST)
        self.read = self.struct("read_i", "window_read_t")
        self.pairs = [self.struct("pairs_i", "pair_state_t", q) for q in range(self.config.queues)]
        self.events = self.struct("events_o", "events_t")
        self.done, self.freed = self.struct("done_o", "tx_done_t"), self.struct("release_o", "release_t")
        self.written_back = False
        self.runs = (1 << self.config.queues) - 1
        self.words, self.shuffle, self.reads, self.strays = False, 1, 0.8, 0.1
        self.packed = 0  # the next line of the packed buffer; like the marks, it survives resets
        self.reset()

    def reset(self) -> None:
        """Forgets all frames."""
        self.frames: deque[Frame] = deque()  # frames that are posted or wait for it, and are not done
        self.posted = 0
        self.pieces: list[tuple[Frame, int, int, int]] = []  # frame, line, first and last byte
        self.ended: list[Frame] = []
        self.released: list[tuple[int, int]] = []
        self.wanted_releases: list[tuple[int, int]] = []
        self.taken_back = self.done_at = 0
        self.reported: set[int] = set()
        self.slot_next = [0] * self.config.queues
        self.read.set(valid=0)

    async def restart(self) -> None:
        """Resets the block, and waits until it has swept its marks."""
        await self.bench.reset()
        await self.bench.until(lambda: bool(self.posts.ready.get()))

    def post(self, kind: str, pair: int, size: int) -> None:
        """Adds a frame: from the packed buffer, in place, or to be skipped."""
        if kind == "packed":
            lines = 1 << self.config.pack_bits
            frame = Frame(pair, False, False, 0, self.config.pack_line(self.packed % lines), size)
            self.packed += frame.lines
        else:
            slots = -(-size // SLOT)
            at = self.slot_next[pair] % (1 << self.config.rx_bits)
            self.slot_next[pair] += slots
            skip = kind == "skip"
            frame = Frame(pair, skip, True, slots, self.config.slot_line(pair, at), 1 if skip else size)
        frame.cut()
        self.frames.append(frame)
        self.posts.items.append((pair, frame.skip, frame.in_place, frame.slots, frame.line, frame.bytes))

    def room(self) -> bool:
        """Whether another long frame fits, so that no two frames share a line."""
        lines = sum(frame.lines for frame in self.frames if not frame.in_place)
        slots = max((sum(f.slots for f in self.frames if f.pair == q) for q in range(self.config.queues)), default=0)
        return lines + 80 < 1 << self.config.pack_bits and slots + 5 < 1 << self.config.rx_bits

    def _mine(self, line: int) -> Frame | None:
        """The posted frame that contains a line."""
        return next((f for f in list(self.frames)[: self.posted] if f.line <= line < f.line + f.lines), None)

    def drive(self) -> None:
        """The NIC reads a part of an announced frame, or a line of no frame."""
        draw = self.random
        self.now: tuple[Frame | None, int, int] | None = None
        if self.pieces and self.chance(self.reads):
            at = draw.randrange(min(self.shuffle, len(self.pieces)))
            # Within a line, reads go upwards.
            line = self.pieces[at][1]
            at = next(i for i, piece in enumerate(self.pieces) if piece[1] == line)
            frame, line, first, last = self.pieces.pop(at)
            self._read(line, first, last)
            self.now = (frame, line, last)
        elif self.chance(self.strays):  # a line of no frame
            line = draw.choice(
                [self.config.pack_line(draw.randrange(1 << self.config.pack_bits)), self.config.slot_line(0, 3)]
            )
            if self._mine(line) is None and not any(f.line <= line < f.line + f.lines for f in self.frames):
                self._read(line, 0, 63)
                self.now = (None, line, 63)
            else:
                self.read.set(valid=0)
        else:
            self.read.set(valid=0, region=PACK)
        self._say()

    def _read(self, line: int, first: int, last: int) -> None:
        offset = line * BEATS + first
        region = SLOTS if offset >= 0x400000 else PACK
        copy = 64 << self.config.pack_bits if region == PACK else SLOT << self.config.rx_bits
        per = self.config.rx_bits + 12
        if region == PACK and line < self.config.pack_line(1 << self.config.pack_bits) and self.chance(0.3):
            offset += copy
        if region == SLOTS and not (offset - 0x400000) >> (per - 1) & 1 and self.chance(0.3):
            offset += copy
        self.read.set(valid=1, offset=offset, region=region, last_byte=last)

    def _say(self) -> None:
        """Answers, as the rings and the buffer do, whether the requested slot and line may be read."""
        posted = list(self.frames)[: self.posted]
        slot, pack = self.pin("read_slot_o").get(), self.pin("read_line_o").get()
        may = 0
        for frame in posted:
            if frame.in_place:
                first = (frame.line * BEATS - 0x400000) % (SLOT << self.config.rx_bits) // SLOT
                may |= ((slot - first) % (1 << self.config.rx_bits) < frame.slots) << frame.pair
        lines = 1 << self.config.pack_bits
        first_line = self.config.pack_line(0)
        packs = any((pack - (f.line - first_line)) % lines < f.lines for f in posted if not f.in_place)
        self.pin("may_read_pack_i").set(packs)
        told = reported = 0
        for queue in range(self.config.queues):
            oldest = next((f for f in posted if f.pair == queue and not f.skip), None)
            told |= (oldest is not None and oldest.told) << queue
            reported |= (oldest is not None and id(oldest) in self.reported) << queue
        for queue, pair in enumerate(self.pairs):
            pair.set(running=self.runs >> queue & 1, rx__may_read=may >> queue & 1)
            pair.set(tx__told=told >> queue & 1, tx__reported=reported >> queue & 1)
        self.pin("written_back_i").set(self.written_back)

    def tell(self, count: int = 1000) -> None:
        """Announces posted frames to the NIC, which then reads them in lines or in words. At least TELLING cycles pass,
        the time of a tail and a descriptor."""
        for frame in list(self.frames)[: self.posted]:
            if frame.told or frame.skip or not count or self.bench.cycles < frame.posted_at + TELLING:
                continue
            count -= 1
            frame.told = True
            for line, size in frame.unread.items():
                self.pieces += self.cut(frame, line, size)

    def cut(self, frame: Frame, line: int, size: int) -> list[tuple[Frame, int, int, int]]:
        """The reads of a line: one, or words; as with QEMU's NICs, the last word is read as two bytes and one."""
        if not self.words:
            return [(frame, line, 0, self.random.choice([size - 1, 63]))]
        ends = [*range(3, size, 4)]
        if size % 4 >= 2:
            ends.append(size // 4 * 4 + 1)
        if size % 2:
            ends.append(size - 1)
        starts = [0, *(end + 1 for end in ends)]
        return [(frame, line, start, end) for start, end in zip(starts, ends, strict=False)]

    def sample(self) -> None:
        """Checks that each frame that is done was read, or did not have to be."""
        if self.posts._active and self.posts.ready.get():
            self.frames[self.posted].posted_at = self.bench.cycles
            self.posted += 1
        if self.now is not None and self.now[0] is not None:
            frame, line, last = self.now
            assert frame is not None
            if last + 1 >= frame.unread.get(line, BEATS + 1):
                del frame.unread[line]
            frame.last_read = self.bench.cycles
        free, done, freed = self.pin("free_o").get(), self.done.get("valid"), self.freed.get("valid")
        stopped = self.events.get("tx_stopped")
        self.taken_back += stopped
        assert self.events.get("tx_done") + stopped == done
        if free or done or freed:
            frame = self.frames[0]
            if free:
                assert not frame.in_place
                frame.passed += 1
                assert frame.passed <= frame.lines, "a line is given back twice"
                # A returned line was read, unless its frame is not waited for.
                if self.runs >> frame.pair & 1 and not self.written_back:
                    assert frame.line + frame.passed - 1 not in frame.unread, "a line is free that was not read"
                    assert frame.told
            if done or freed:
                assert done == (not frame.skip)
                assert freed == frame.in_place
                if not frame.in_place:
                    assert frame.passed == frame.lines
                if done:
                    assert self.done.get("pair") == frame.pair
                    if self.runs >> frame.pair & 1:
                        assert frame.told
                        if self.written_back:
                            assert id(frame) in self.reported
                        else:
                            assert not frame.unread, "a frame is done that was not read"
                    assert stopped == (not self.runs >> frame.pair & 1)
                if freed:
                    assert self.freed.all("pair slots") == (frame.pair, frame.slots)
                self.done_at = self.bench.cycles
                self.ended.append(self.frames.popleft())
                self.posted -= 1

    def offer(self, count: int) -> None:
        """Posts frames of all kinds while there is room."""
        draw = self.random
        for _ in range(count):
            if not self.room():
                return
            kind = draw.choice(["packed", "packed", "place", "skip"])
            self.post(
                kind, draw.randrange(self.config.queues), draw.choice([1, 17, 60, 64, 65, 1514, draw.randint(17, 4096)])
            )

    async def run(self, rounds: int) -> None:
        """Posts and reads until all frames are done."""
        for _ in range(rounds):
            self.offer(6)
            await self.bench.cycle(self.random.randint(5, 25))
            self.tell(self.random.randint(1, 8))
        for _ in range(3000):
            if not self.frames:
                return
            self.tell()
            await self.bench.cycle(2)
        raise AssertionError(f"{len(self.frames)} frames are never done")


@cocotb.test()
async def a_frame_is_done_when_all_of_it_was_read(dut: Any) -> None:
    """Reads in order and shuffled, by lines and by words, mixed with reads of lines of no frame."""
    for name in ("one", "four"):
        watch = Watch(dut, name, seed=1)
        await watch.restart()
        for words, shuffle, reads, idle in (
            (False, 1, 1.0, 0.0),
            (False, 12, 0.7, 0.5),
            (True, 1, 1.0, 0.0),
            (True, 9, 0.9, 0.3),
        ):
            watch.words, watch.shuffle, watch.reads = words, shuffle, reads
            watch.posts.idle = idle
            await watch.run(6)
        assert len(watch.ended) > 40
        assert not watch.taken_back


@cocotb.test()
async def a_line_that_is_missing_holds_all_frames_back(dut: Any) -> None:
    """It holds them back without limit, though all their lines were read. Then all of them complete in sequence."""
    watch = Watch(dut, "one", seed=2)
    watch.strays = 0.0
    await watch.restart()
    for _ in range(5):
        watch.post("packed", 0, 300)
    await watch.bench.cycle(20)
    watch.tell()
    missing = watch.pieces.pop(2)
    await watch.bench.cycle(200)
    assert not watch.ended
    assert watch.frames[0].passed == 2
    watch.pieces.append(missing)
    before = watch.bench.cycles
    await watch.bench.until(lambda: not watch.frames)
    assert watch.bench.cycles - before <= 5 + 23 + 5


@cocotb.test()
async def a_short_frame_is_done_five_cycles_after_its_read(dut: Any) -> None:
    """Checks the specified latency, and that reads of a frame not announced to the NIC do not count."""
    watch = Watch(dut, "one", seed=3)
    watch.strays = 0.0
    await watch.restart()
    for told in (True, False):
        watch.post("packed", 0, 60)
        await watch.bench.cycle(20)
        if told:
            watch.tell()
        else:
            frame = watch.frames[0]
            watch.pieces.append((frame, frame.line, 0, 63))
        watch.reads = 1.0
        await watch.bench.cycle(8)
        assert (not watch.frames) == told
        if told:
            assert watch.done_at - watch.ended[-1].last_read <= 5


@cocotb.test()
async def a_reset_forgets_what_was_read_of_a_frame(dut: Any) -> None:
    """A line was read out of order before a reset. A later frame in the same line does not count as read."""
    watch = Watch(dut, "four", seed=6)
    watch.strays = 0.0
    for kind, words in (("packed", False), ("place", False), ("packed", True)):
        await watch.restart()
        for again in (False, True):
            watch.packed = 0
            watch.reads, watch.words = 0.0, words
            watch.post(kind, 1, 300)
            await watch.bench.until(lambda: watch.posted == 1)
            await watch.bench.cycle(20)
            watch.tell()
            last = watch.frames[0].line + 3
            late = [piece for piece in watch.pieces if piece[1] == last]
            rest = [piece for piece in watch.pieces if piece[1] != last]
            watch.pieces = rest if again else late
            watch.reads = 1.0
            await watch.bench.cycle(len(watch.pieces) + 20)
            assert not watch.ended, "a frame is done of which a line was not read"
            if not again:
                await watch.restart()
        watch.pieces = late
        await watch.bench.until(lambda: not watch.frames)


@cocotb.test()
async def a_stopped_queue_is_not_waited_for(dut: Any) -> None:
    """Frames of the stopped queue return at once; those of other queues are waited for."""
    watch = Watch(dut, "four", seed=4)
    watch.reads = 0.0
    await watch.restart()
    for pair, kind in ((1, "packed"), (1, "place"), (2, "packed"), (1, "packed")):
        watch.post(kind, pair, 700)
    await watch.bench.cycle(80)
    assert not watch.ended
    watch.runs = 0b1101
    await watch.bench.cycle(80)
    assert [frame.pair for frame in watch.ended] == [1, 1]
    assert watch.taken_back == 2
    watch.tell()
    watch.reads = 1.0
    await watch.bench.until(lambda: not watch.frames)
    assert watch.taken_back == 3


@cocotb.test()
async def a_report_is_enough_where_reads_are_not_relied_on(dut: Any) -> None:
    """Reads have no effect then; a reset while frames wait discards them."""
    watch = Watch(dut, "four", seed=5)
    watch.written_back = True
    await watch.restart()
    for _ in range(6):
        watch.post("packed", watch.random.randrange(4), 200)
    await watch.bench.cycle(60)
    watch.tell()
    await watch.bench.cycle(100)
    assert not watch.ended
    for frame in watch.frames:
        watch.reported.add(id(frame))
    await watch.bench.until(lambda: not watch.frames)
    watch.written_back = False
    for _ in range(4):
        watch.offer(8)
        await watch.bench.cycle(60)
        watch.tell()
        await watch.bench.cycle(30)
        watch.reads, watch.strays = 0.0, 0.0
        await watch.bench.cycle(8)
        await watch.restart()
        watch.reads, watch.strays = 1.0, 0.1
    await watch.run(6)
    assert len(watch.ended) > 10
