# SPDX-License-Identifier: Apache-2.0
"""bypass_rx_ring and bypass_tx_ring alone: the owner of each descriptor. The model counts without wrapping."""

from __future__ import annotations

from typing import Any

import cocotb
from bypass_blocks import Block

MAX_SLOTS = 8


class RxRing(Block):
    """A receive ring, with a NIC that writes back in order, and sometimes descriptors that it does not own."""

    def __init__(self, dut: Any, name: str, bits: int, queue: int, seed: int) -> None:
        super().__init__(dut, name, seed)
        self.size, self.queue = 1 << bits, queue
        self.news, gave = self.struct("news_i", "news_t"), self.struct("gave_i", "gave_t")
        self.inputs = [self.pin("run_i"), self.pin("begin_i"), self.pin("limit_i"), *gave.pins("valid count")]
        self.inputs += [self.pin("take_i"), *self.news.pins("released.valid released.slots writes reads")]
        self.state = self.struct("state_o", "rx_ring_t")
        self.pin("begin_i").set(0)
        self.news.set(released__pair=self.queue)
        self.runs, self.honest, self.gives, self.takes, self.writes = True, 1.0, 0.3, 0.5, 0.6
        self.limit, self.most = 0xFFF, 0  # slots that may be in use, and the most that were
        self.reset()

    def reset(self) -> None:
        """The model's counts restart: released <= taken <= whole <= head <= told."""
        self.released = self.taken = self.whole = self.head = self.told = self.open = 0
        self.ended_before = self.lost_before = 0
        self.ended = self.lost = 0
        self.news.set(rx_written__done=0, rx_written__sized=0)

    def drive(self) -> None:
        """Each party may act."""
        draw = self.random
        self.writing = self.chance(self.writes)
        mine = not self.writing or self.chance(0.9)
        group, done = draw.getrandbits(10), draw.getrandbits(4)
        if self.chance(self.honest):
            group = self.head % self.size // 4
            count = min(4 - self.head % 4, self.told - self.head, draw.randint(0, 4))
            done = ((1 << count) - 1) << self.head % 4 | (draw.getrandbits(self.head % 4) if self.honest < 1.0 else 0)
        self.group, self.done, self.eop, self.mine = group, done if self.writing else 0, draw.getrandbits(4), mine
        pair = self.queue if mine else (self.queue + draw.randint(1, 15)) % 16
        self.news.set(rx_written__pair=pair, rx_written__group=group, rx_written__done=self.done)
        self.news.set(rx_written__eop=self.eop, rx_written__sized=draw.getrandbits(4))
        room = self.released + min(self.limit, self.size - 1) - self.told
        self.give = draw.randint(1, room) if room and self.runs and self.chance(self.gives) else 0
        self.take = self.whole > self.taken and self.chance(self.takes)
        releasable = min(MAX_SLOTS, self.taken - self.released)
        self.release = draw.randint(1, releasable) if releasable and self.chance(0.3) else 0
        self.slots = (draw.randrange(self.size), draw.randrange(self.size))
        gives, releases = bool(self.give), bool(self.release)
        values = (self.runs, 0, self.limit, gives, self.give, self.take, releases, self.release, *self.slots)
        for pin, value in zip(self.inputs, values, strict=True):
            pin.set(int(value))

    def _has(self, slot: int, first: int, end: int) -> bool:
        """Whether one of the descriptors from `first` to before `end` is this slot."""
        return (slot - first) % self.size < end - first

    def sample(self) -> None:
        """Checks the owner of each descriptor."""
        out = {name: self.state.get(name) for name in self.state.layout}
        assert out["want"] == (self.released + min(self.limit, self.size - 1)) % self.size
        self.most = max(self.most, self.told - self.released)
        assert out["taken"] == self.taken % self.size
        assert out["given"] == self.told - self.head
        assert out["has"] == (self.whole > self.taken)
        assert out["idle"] == (self.whole == self.taken == self.released)
        assert out["may_write"] == (not self.runs or self._has(self.slots[0], self.head, self.told))
        assert out["may_read"] == self._has(self.slots[1], self.released, self.taken)
        assert (out["ended"], out["unexpected"]) == (self.ended_before, self.lost_before)
        accept = 0
        self.ended_before = 0
        if self.mine and self.runs and self.group % (self.size // 4) == self.head % self.size // 4:
            for lane in range(self.head % 4, 4):
                if not self.done >> lane & 1 or self.head == self.told:
                    break
                accept |= 1 << lane
                self.head += 1
                self.open += 1
                if self.eop >> lane & 1 or self.open == MAX_SLOTS:
                    self.whole, self.open = self.head, 0
                    self.ended_before += 1
        assert out["accept"] == accept, (self.done, self.group)
        self.lost_before = (self.done & ~accept).bit_count() if self.mine else 0
        self.ended += self.ended_before
        self.lost += self.lost_before
        self.told += self.give
        self.taken += self.take
        self.released += self.release


@cocotb.test()
async def a_receive_slot_has_one_owner(dut: Any) -> None:
    """The ring wraps many times, at any speed, with write-backs of descriptors that the NIC does not own."""
    for name, bits, queue in (("small", 4, 3), ("large", 8, 0)):
        for honest, gives, takes, writes in (
            (1.0, 0.5, 0.9, 1.0),
            (1.0, 0.1, 0.2, 0.5),
            (0.6, 0.5, 0.7, 0.9),
            (0.9, 0.3, 0.9, 0.9),
        ):
            ring = RxRing(dut, f"ring_{name}", bits, queue, seed=7)
            await ring.bench.reset()
            ring.honest, ring.gives, ring.takes, ring.writes = honest, gives, takes, writes
            await ring.bench.cycle(400)
            assert ring.ended > 20
            assert (ring.lost > 0) == (honest < 1.0)
            assert ring.head > ring.size or bits == 8


@cocotb.test()
async def no_more_receive_slots_are_away_than_the_limit(dut: Any) -> None:
    """The NIC's slots and the frames' slots together keep the limit at any speed; all slots are still used in turn."""
    for name, bits, queue, limits in (("small", 4, 3, (8, 9, 14)), ("large", 8, 0, (12, 64))):
        for limit in limits:
            ring = RxRing(dut, f"ring_{name}", bits, queue, seed=limit)
            ring.limit = limit
            await ring.bench.reset()
            ring.gives, ring.takes, ring.writes = 0.7, 0.9, 1.0
            await ring.bench.cycle(400)
            assert ring.most == limit
            assert ring.head > ring.size or bits == 8
            assert ring.head > 40


@cocotb.test()
async def a_receive_ring_that_nobody_reads_fills_up(dut: Any) -> None:
    """The NIC gets only released slots; a reset meanwhile empties the ring."""
    ring = RxRing(dut, "ring_small", 4, 3, seed=8)
    await ring.bench.reset()
    ring.takes = 0.0
    await ring.bench.cycle(200)
    assert ring.head == ring.told == ring.size - 1
    await ring.bench.reset()
    ring.takes = 1.0
    await ring.bench.cycle(200)
    assert ring.ended > 20


@cocotb.test()
async def a_stopped_receive_ring_takes_no_write_back(dut: Any) -> None:
    """Each write-back is counted as unexpected. Complete frames are still read. Any master may write to the slots."""
    ring = RxRing(dut, "ring_large", 8, 0, seed=9)
    await ring.bench.reset()
    ring.takes = 0.05
    await ring.bench.cycle(200)
    ring.runs, ring.takes = False, 1.0
    head, lost = ring.head, ring.lost
    await ring.bench.cycle(300)
    assert ring.head == head
    assert ring.lost > lost
    assert ring.taken == ring.whole == ring.released


class TxRing(Block):
    """A transmit ring, with a NIC that reports heads, some of them wrong."""

    def __init__(self, dut: Any, name: str, bits: int, queue: int, seed: int) -> None:
        super().__init__(dut, name, seed)
        self.size, self.queue = 1 << bits, queue
        self.news, self.state = self.struct("news_i", "news_t"), self.struct("state_o", "tx_ring_t")
        names = (self.pin("begin_i"), self.pin("limit_i"), self.pin("post_i"), self.news.pin("done.valid"))
        self.inputs = (*names, self.pin("told_i"))
        self.news.set(done__pair=self.queue)
        self.limit, self.posts, self.dones, self.reports = 0xFFF, 0.6, 0.4, 0.2
        self.reset()

    def reset(self) -> None:
        """The model's counts restart: done <= reported, told <= tail."""
        self.tail = self.done = self.reported = self.told = 0
        self.roomy = self.unexpected = self.full = 0
        self.news.set(tx_written__valid=0)

    def drive(self) -> None:
        """Each party may act."""
        draw = self.random
        self.post = bool(self.state.get("room")) and self.chance(self.posts)
        self.finish = self.tail > self.done and self.chance(self.dones)
        self.told = draw.randint(max(self.told, self.done), self.tail)
        self.says, self.mine = self.chance(self.reports), self.chance(0.8)
        self.head = draw.choice([draw.randint(self.reported, self.tail), draw.getrandbits(12)])
        pair = self.queue if self.mine else (self.queue + 1) % 16
        self.news.set(tx_written__valid=self.says, tx_written__pair=pair, tx_written__head=self.head % 4096)
        values = (0, self.limit, self.post, self.finish, self.told % self.size)
        for pin, value in zip(self.inputs, values, strict=True):
            pin.set(int(value))

    def sample(self) -> None:
        """Checks the counts, and that only possible reports count."""
        out = {name: self.state.get(name) for name in self.state.layout}
        given, limit = self.tail - self.done, min(self.limit, self.size - 1)
        assert out["tail"] == self.tail % self.size
        assert out["given"] == given
        assert out["idle"] == (given == 0)
        assert out["reported"] == (self.reported > self.done)
        assert out["told"] == (self.told > self.done)
        assert not out["room"] or given < limit
        self.full += given >= limit
        # A frame that is done makes room exactly one cycle later.
        assert out["room"] or self.roomy < 2
        said = (self.head - self.reported) % self.size
        counts = said <= self.tail - self.reported
        assert out["unexpected"] == (self.says and self.mine and not counts)
        self.unexpected += out["unexpected"]
        unreported = self.reported == self.done
        if self.says and self.mine and counts and said:
            self.reported += said
        elif self.finish and unreported:
            self.reported += 1
        self.tail += self.post
        self.done += self.finish
        self.roomy = self.roomy + 1 if given < limit and not self.post else 0


@cocotb.test()
async def a_transmit_ring_counts_what_the_nic_has(dut: Any) -> None:
    """Covers limits below and above the ring's size, slow and fast NICs, and impossible reports."""
    for name, bits, queue in (("small", 3, 2), ("large", 9, 0)):
        for limit, posts, dones in ((0xFFF, 0.9, 0.1), (3, 0.9, 0.9), (1, 1.0, 0.3), (5, 0.2, 0.9)):
            ring = TxRing(dut, f"tx_ring_{name}", bits, queue, seed=limit)
            ring.limit, ring.posts, ring.dones = limit, posts, dones
            await ring.bench.reset()
            await ring.bench.cycle(250)
            assert ring.unexpected
            assert ring.tail > 10
            assert ring.full or posts < 0.5 or (bits, limit) == (9, 0xFFF)


@cocotb.test()
async def a_transmit_ring_whose_nic_is_gone_stays_full(dut: Any) -> None:
    """It holds one less than its size; a reset empties it."""
    ring = TxRing(dut, "tx_ring_small", 3, 2, seed=1)
    ring.posts, ring.dones = 1.0, 0.0
    await ring.bench.reset()
    await ring.bench.cycle(60)
    assert ring.tail == ring.size - 1
    await ring.bench.reset()
    ring.dones = 0.5
    await ring.bench.cycle(60)
    assert ring.tail > ring.size
