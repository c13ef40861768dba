# SPDX-License-Identifier: Apache-2.0
"""bypass_tx_input, bypass_post and bypass_verdicts alone: frames on their way to a descriptor."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from bench import Source
from bypass_blocks import BEATS, PACES, Block
from bypass_rig import beats_of
from packed_structs import Struct, axis

MIN_FRAME, MAX_FRAME = 17, 9728
POST = "pair skip in_place slots line bytes"
TX_RING = 2
SIZES = ("one", "four")


def beats_into(block: Block, prefix: str) -> Source:
    """A source of beats: data, keep, last, user."""
    payload = Struct(block.bench, block.wires.scope, f"{prefix}_payload", axis(512, 48))
    pins = payload.pins("data keep last user")
    return Source(block.bench, block.pin(f"{prefix}_valid"), block.pin(f"{prefix}_ready"), pins)


class Input(Block):
    """bypass_tx_input, with a model of its packed buffer, and a NIC that frees lines."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"input_{name}", seed)
        self.lines = 1 << self.config.pack_bits
        self.tx = beats_into(self, "s")
        self.posts = self.sink("m", "post_t", POST)
        self.events = self.struct("events_o", "events_t")
        self.max_frame, self.runs, self.frees = MAX_FRAME, (1 << self.config.queues) - 1, 0.5
        self.reset()

    def reset(self) -> None:
        """Empties the buffer; its memory keeps its contents."""
        self.memory: dict[int, int] = {}
        self.free = self.used = 0  # lines freed and lines posted so far
        self.seen = 0
        self.counts = {"tx_in": 0, "tx_refused": 0, "tx_size": 0}
        self.wanted: list[tuple[int, bytes]] = []
        self.dropped = {"refused": 0, "size": 0}
        self.frames: deque[tuple[int, bytes]] = deque()
        self.pin("free_i").set(0)

    def transmit(self, queue: int, size: int) -> None:
        """Sends a frame, and notes its expected result."""
        frame = self.random.randbytes(size)
        self.tx.items.extend(beats_of(frame, queue, self.random.getrandbits))
        if queue >= self.config.queues or not self.runs >> queue & 1:
            self.dropped["refused"] += 1
        elif not MIN_FRAME <= size <= min(self.max_frame, MAX_FRAME):
            self.dropped["size"] += 1
        else:
            self.wanted.append((queue, frame))

    def drive(self) -> None:
        """The NIC returns lines of posted frames, in order."""
        self.frees_now = self.used > self.free and self.chance(self.frees)
        self.pin("free_i").set(self.frees_now)
        self.pin("run_i").set(self.runs)
        self.pin("max_frame_i").set(self.max_frame)
        self.looks = self.random.randrange(self.lines)
        self.pin("reads_i").set(self.looks)

    def sample(self) -> None:
        """Only free lines are written. A posted frame is complete, and directly follows the previous one."""
        for pair, skip, in_place, _, line, count in self.posts.items[self.seen :]:  # type: ignore[misc]
            queue, frame = self.wanted[self.seen]
            self.seen += 1
            assert (pair, skip, in_place, count) == (queue, 0, 0, len(frame))
            lines = -(-len(frame) // BEATS)
            assert line == self.config.pack_line(self.used % self.lines)
            found = b"".join(self.memory[(self.used + i) % self.lines].to_bytes(64, "little") for i in range(lines))
            assert found[: len(frame)] == frame
            self.used += lines
            assert self.used - self.free <= self.lines
        assert self.pin("may_read_o").get() == ((self.looks - self.free) % self.lines < self.used - self.free)
        if self.pin("write_o").get():
            line = self.pin("write_line_o").get()
            assert (line - self.free) % self.lines >= self.used - self.free, "a line is overwritten that a frame has"
            self.memory[line] = self.pin("write_data_o").get()
        for name in self.counts:
            self.counts[name] += self.events.get(name)
        self.free += self.frees_now

    def finished(self) -> bool:
        """Whether all frames went in, and all good ones came out."""
        return not self.tx.items and self.counts["tx_in"] == len(self.wanted) + sum(self.dropped.values())

    def check(self) -> None:
        """Checks that no frame is missing."""
        assert self.seen == len(self.wanted)
        assert self.counts["tx_refused"] == self.dropped["refused"]
        assert self.counts["tx_size"] == self.dropped["size"]


@cocotb.test()
async def frames_are_packed_one_behind_the_other(dut: Any) -> None:
    """Any size, at any speed of function, ring and NIC. Bad frames are dropped and counted, and occupy no line."""
    for name in SIZES:
        for limit in (MAX_FRAME, 1514):
            tx = Input(dut, name, seed=1)
            tx.max_frame = limit
            if name == "four":
                tx.runs = 0b1011
            await tx.bench.reset()
            for idle, stall in PACES:
                tx.tx.idle, tx.posts.stall, tx.frees = idle, stall, 1.0 - stall
                for _ in range(12):
                    size = tx.random.choice([1, 16, 17, 60, 64, 65, 1514, 1515, 4096, 9728, 9729, 9800])
                    tx.transmit(tx.random.choice([0, 0, 1, 2, 3, 4, 16, 255]), size)
                await tx.bench.until(tx.finished)
            await tx.bench.cycle(2)
            tx.check()
            assert tx.dropped["size"]
            assert tx.dropped["refused"]


@cocotb.test()
async def a_buffer_that_nobody_reads_fills_up(dut: Any) -> None:
    """It fills to its last line. Dropped frames take no room. It continues when lines are free. A reset empties it."""
    tx = Input(dut, "one", seed=2)
    await tx.bench.reset()
    tx.frees = 0.0
    for _ in range(tx.lines + 5):
        tx.transmit(0, 60)
    await tx.bench.cycle(tx.lines + 100)
    assert tx.seen == tx.used == tx.lines
    tx.frees = 1.0
    await tx.bench.until(tx.finished)
    await tx.bench.cycle(2)
    tx.check()
    tx.transmit(0, 9000)
    await tx.bench.cycle(50)
    await tx.bench.reset()
    tx.transmit(0, 9000)
    await tx.bench.until(tx.finished)
    await tx.bench.cycle(2)
    tx.check()


class Post(Block):
    """bypass_post, with two senders, rings that sometimes have room, and a NIC that reads entries."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"post_{name}", seed)
        self.size = 1 << self.config.tx_bits
        self.senders = [self.source("s", "post_t", POST, index=i) for i in range(2)]
        self.posted = self.sink("m", "post_t", POST)
        self.read = self.struct("read_i", "window_read_t")
        self.entries = [self.struct("entries_o", "tx_entry_t", i) for i in range(4)]
        self.roomy = 0.8
        self.reset()

    def reset(self) -> None:
        """All rings are empty."""
        self.tails = [0] * self.config.queues
        self.ring: dict[tuple[int, int], tuple[int, int]] = {}
        self.since: dict[tuple[int, int], int] = {}
        self.order: list[tuple[int, ...]] = []
        self.shown: list[tuple[int, tuple[int, int]]] = []  # lane and entry that the previous cycle's read must return
        self.compared = 0
        self.read.set(valid=0)

    def post(self, count: int) -> None:
        """Queues frames of both kinds."""
        draw = self.random
        for source, sender in enumerate(self.senders):
            for _ in range(count):
                skip = source == 1 and draw.random() < 0.3
                item = (draw.randrange(self.config.queues), int(skip), source, draw.randint(1, 8))
                sender.items.append((*item, draw.getrandbits(17), draw.getrandbits(14)))

    def drive(self) -> None:
        """Drives the rings' room and tails, and reads a group of four."""
        draw = self.random
        self.room = sum(self.chance(self.roomy) << q for q in range(self.config.queues))
        self.pin("room_i").set(self.room)
        for queue, tail in enumerate(self.tails):
            self.pin("tail_i", queue, 12).set(tail % self.size)
        queue, group = draw.randrange(self.config.queues), draw.randrange(self.size // 4)
        self.reads = self.chance(0.5)
        region = TX_RING if self.chance(0.9) else 1
        offset = 0x20000 * queue + (0x10000 if region == TX_RING else 0) + 64 * group
        self.read.set(valid=self.reads, region=region, offset=offset)
        self.asked = (queue, group) if self.reads and region == TX_RING else None

    def sample(self) -> None:
        """At most one frame gets its ring's next descriptor; the read of the previous cycle returns its entries."""
        for lane, entry in self.shown:
            assert self.entries[lane].all("line bytes") == entry
            self.compared += 1
        post = self.pin("post_o").get()
        assert post.bit_count() <= 1
        assert post & ~self.room == 0, "a descriptor of a ring without room"
        assert post & ~self.pin("coming_o").get() == 0, "a frame is posted that was not announced"
        goes = [s.items[0] for s, ready in ((s, s.ready.get()) for s in self.senders) if s._active and ready]
        assert len(goes) <= 1
        for pair, skip, _, _, line, count in goes:  # type: ignore[misc]
            assert post == (0 if skip else 1 << pair)
            if not skip:
                at = (pair, self.tails[pair] % self.size)
                self.ring[at], self.since[at] = (line, count), self.bench.cycles
                self.tails[pair] += 1
        if not goes:
            assert post == 0
        self.order += goes  # type: ignore[arg-type]
        # This cycle's read must return the entries of descriptors that were assigned at least two cycles earlier.
        self.shown = []
        for lane in range(4) if self.asked is not None else ():
            at = (self.asked[0], 4 * self.asked[1] + lane)  # type: ignore[index]
            if at in self.ring and self.since[at] + 2 <= self.bench.cycles:
                self.shown.append((lane, self.ring[at]))

    def done(self) -> bool:
        """Whether all frames passed."""
        return not any(sender.items for sender in self.senders)


@cocotb.test()
async def frames_get_their_rings_next_descriptor(dut: Any) -> None:
    """Each sender's frames pass in order. Skipped ones get no descriptor. Entries can be read after 2 cycles."""
    for name in SIZES:
        post = Post(dut, name, seed=3)
        await post.bench.reset()
        for idle, stall in PACES:
            for sender in post.senders:
                sender.idle = idle
            post.posted.stall, post.roomy = stall, 1.0 - idle
            post.post(80)
            await post.bench.until(post.done)
        assert post.posted.items == post.order
        for source, sender in enumerate(post.senders):
            assert [item for item in post.order if item[2] == source] == sender.sent
        assert post.compared > 100
        # Neither sender starves: without stalls they alternate.
        post.roomy, post.posted.stall = 1.0, 0.0
        for sender in post.senders:
            sender.idle = 0.0
        begun = len(post.order)
        post.post(20)
        await post.bench.until(post.done)
        sources = [item[2] for item in post.order[begun : begun + 40]]
        assert all(sources[i] != sources[i + 1] for i in range(38)), sources
        await post.bench.reset()
        post.post(5)
        await post.bench.until(post.done)
        assert post.posted.items == post.order


@cocotb.test()
async def a_frame_without_room_waits_and_holds_nobody_else_back(dut: Any) -> None:
    """Frames of the other sender pass, and so do skipped frames."""
    post = Post(dut, "four", seed=4)
    await post.bench.reset()
    post.roomy = 0.0
    post.senders[0].items.append((1, 0, 0, 1, 7, 60))
    post.senders[1].items.extend([(1, 1, 1, 1, 9, 60)] * 5 + [(1, 0, 1, 1, 9, 60)])
    await post.bench.cycle(100)
    assert [item[1] for item in post.posted.items] == [1] * 5  # type: ignore[index]
    post.roomy = 1.0
    await post.bench.until(post.done)
    assert sorted(post.tails) == [0, 0, 0, 2]


class Verdicts(Block):
    """bypass_verdicts, with frames in place, a function that decides, and a memory that is sometimes busy."""

    def __init__(self, dut: Any, name: str, seed: int) -> None:
        super().__init__(dut, f"verdicts_{name}", seed)
        self.places = self.source("s_place", "frame_t", "pair index bytes slots verdict")
        self.verdicts = beats_into(self, "s_verdict")
        self.posts = self.sink("m", "post_t", POST)
        self.events = self.struct("events_o", "events_t")
        self.runs, self.busy, self.thinks = (1 << self.config.queues) - 1, 0.0, 0.3
        self.reset()

    def reset(self) -> None:
        """No frame waits."""
        self.undecided: deque[tuple[int, int, int]] = deque()
        self.wanted: list[tuple[int, ...]] = []
        self.lines: list[tuple[int, int]] = []
        self.wanted_lines: list[tuple[int, int]] = []
        self.counts = {"tx_in": 0, "tx_late": 0, "verdict_drop": 0}
        self.expected = dict(self.counts)
        self.told = 0

    def arrive(self) -> None:
        """Adds a frame that stays in its slots."""
        draw = self.random
        pair, index = draw.randrange(self.config.queues), draw.randrange(1 << self.config.rx_bits)
        size, verdict = draw.randint(17, 9000), draw.choice([0, 0, 0, 1, 2, 3])
        slots = -(-size // 2048)
        self.places.items.append((pair, index, size, slots, verdict))
        line = self.config.slot_line(pair, index)
        if verdict:
            self.wanted.append((pair, 1, 1, slots, line, -1))
            return
        action = draw.getrandbits(2)
        data = draw.getrandbits(512)
        self.undecided.append((action, data, len(self.wanted)))
        runs = self.runs >> pair & 1
        forward = bool(action & 1 and runs)
        self.wanted.append((pair, int(not forward), 1, slots, line, size if forward else -1))
        if forward and action & 2:
            lines = 1 << (self.config.rx_bits + 5)
            self.wanted_lines.append((pair * lines + 32 * index, data))
        self.expected["tx_in"] += action & 1
        self.expected["tx_late"] += int(action & 1 and not runs)
        self.expected["verdict_drop"] += int(not action & 1)

    def drive(self) -> None:
        """A verdict may come once its frame was taken, because the function has then seen the head."""
        heads = sum(1 for item in self.places.sent if item[4] == 0)  # type: ignore[index]
        ready = self.undecided and self.told < heads and self.taken_before
        if ready and not self.verdicts.items and self.chance(self.thinks):
            action, data, _ = self.undecided.popleft()
            self.verdicts.items.append(
                (data, self.random.getrandbits(64), 1, action | self.random.getrandbits(46) << 2)
            )
            self.told += 1
        self.taken_before = True
        self.pin("run_i").set(self.runs)
        self.pin("m_line_ready").set(not self.chance(self.busy))

    taken_before = False

    def sample(self) -> None:
        """A line is replaced in the cycle in which its frame is posted."""
        for name in self.counts:
            self.counts[name] += self.events.get(name)
        if self.pin("m_line_valid").get() and self.pin("m_line_ready").get():
            self.lines.append((self.pin("m_line").get(), self.pin("m_line_data").get()))

    def done(self) -> bool:
        """Whether all frames were posted."""
        return len(self.posts.items) == len(self.wanted)

    def check(self) -> None:
        """Frames come in order, with their slots, and with the lines that the function replaced."""
        for found, wanted in zip(self.posts.items, self.wanted, strict=True):
            assert found[:5] == wanted[:5]  # type: ignore[index]
            if wanted[5] >= 0:
                assert found[5] == wanted[5]  # type: ignore[index]
        assert self.lines == self.wanted_lines
        assert self.counts == self.expected


@cocotb.test()
async def verdicts_meet_their_frames_in_order(dut: Any) -> None:
    """Covers forward, drop and replace, bad frames, and stopped queues, at any speed."""
    for name in SIZES:
        for runs in (0b1111, 0b1010):
            verdicts = Verdicts(dut, name, seed=5)
            verdicts.runs = runs & ((1 << verdicts.config.queues) - 1)
            await verdicts.bench.reset()
            for idle, stall in PACES:
                verdicts.places.idle, verdicts.busy, verdicts.posts.stall = idle, stall, stall
                verdicts.thinks = 1.0 - idle
                for _ in range(40):
                    verdicts.arrive()
                await verdicts.bench.until(verdicts.done)
            verdicts.check()


@cocotb.test()
async def frames_wait_for_ever_for_a_verdict(dut: Any) -> None:
    """Frames wait up to the queue's capacity, with bad ones among them; a reset discards them."""
    verdicts = Verdicts(dut, "one", seed=6)
    await verdicts.bench.reset()
    verdicts.thinks = 0.0
    while not verdicts.undecided:
        verdicts.arrive()
    before = len(verdicts.wanted) - 1
    for _ in range(50):
        verdicts.arrive()
    await verdicts.bench.cycle(300)
    assert len(verdicts.posts.items) == before
    assert len(verdicts.places.sent) == before + 32
    await verdicts.bench.reset()
    verdicts.places.sent.clear()
    verdicts.thinks = 1.0
    for _ in range(20):
        verdicts.arrive()
    await verdicts.bench.until(verdicts.done)
    verdicts.check()
