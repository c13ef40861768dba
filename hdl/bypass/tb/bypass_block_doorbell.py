# SPDX-License-Identifier: Apache-2.0
"""bypass_doorbell and bypass_tails alone, checked against their headers and docs/design/bypass-core.md."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Sink
from bypass_blocks import Block
from packed_structs import Struct, axi_lite

LATE = 3  # cycles after which an expired timer has certainly taken effect


class Bell(Block):
    """A ring's doorbell, with a ring that grows, a bus that accepts tails, and a NIC that fetches."""

    def __init__(self, dut: Any, name: str, bits: int, seed: int) -> None:
        super().__init__(dut, name, seed)
        self.size = 1 << bits
        self.settings = self.struct("settings_i", "bell_settings_t")
        self.run, self.want, self.announced = self.pin("run_i"), self.pin("want_i"), self.pin("grows_i")
        self.fetched, self.group = self.pin("fetched_i"), self.pin("group_i")
        self.valid, self.payload, self.ready = self.pin("m_valid"), self.pin("m_payload"), self.pin("m_ready")
        gave = self.struct("gave_o", "gave_t")
        self.told_o, self.gave, self.count = self.pin("told_o"), gave.pin("valid"), gave.pin("count")
        self.pin("begin_i").set(0)
        self.runs, self.grows, self.stall, self.fetches = True, 0.3, 0.0, 0.1
        self.alarms = 0  # announcements without a growth
        self.reset()

    def set(self, *, credits: int, batch: int, align: int, timer: int) -> None:
        """Changes the settings; the block must be in reset."""
        self.settings.set(credits=credits, batch=batch, align=align, timer=timer)
        self.credits, self.batch, self.align, self.timer = max(credits, 1), batch, 1 << align, timer

    def reset(self) -> None:
        """The NIC has no descriptors."""
        self.wanted = self.told = self.unanswered = self.differs = self.written = self.coming = 0
        self.was_valid = self.may = self.must = False
        self.for_credit = self.for_timer = 0

    def drive(self) -> None:
        """The ring grows, up to its size less one."""
        draw = self.random
        self.wanted = (self.wanted + self.coming) % self.size
        room = self.size - 1 - (self.wanted - self.told) % self.size
        self.coming = min(room, draw.randint(1, 4)) if self.chance(self.grows) else 0
        # If each growth is worth a tail, the next one is announced; sometimes an announcement comes without growth.
        self.announces = self.coming <= 1 and self.batch <= 1 and self.align == 1
        self.announces = self.announces and self.chance(0.8 if self.coming else 0.2)
        last = (self.told - 1) % self.size // 4
        self.fetch = self.chance(self.fetches)
        self.fetch_group = draw.choice([last, draw.randrange(self.size // 4)])
        self.run.set(self.runs)
        self.want.set(self.wanted)
        self.announced.set(self.announces)
        self.fetched.set(self.fetch)
        self.group.set(self.fetch_group)
        self.ready.set(not self.chance(self.stall))

    def sample(self) -> None:
        """Checks that a tail is written when it must be and only when it may be, with the newest value."""
        aligned = self.wanted // self.align * self.align
        ahead = (aligned - self.told) % self.size
        valid = bool(self.valid.get())
        assert self.told_o.get() == self.told
        if valid and not self.was_valid:
            assert self.may, "it rings for no reason"
        assert valid or not self.must, "it does not ring"
        if valid:
            assert ahead
            assert self.payload.get() == aligned
            assert self.count.get() == ahead
        gave = valid and bool(self.ready.get())
        assert self.gave.get() == gave
        credit = ahead >= self.batch and self.unanswered < self.credits
        expired = self.timer > 0 and self.differs >= self.timer
        early = self.announces and self.unanswered < self.credits
        if early and not self.coming and (not ahead or gave):
            early = False  # the growth did not come, and there is no other tail to write
            self.alarms += 1
        self.may = self.runs and (early or (ahead > 0 and (credit or expired)))
        overdue = expired and self.differs >= self.timer + LATE
        self.must = not gave and ((self.runs and (early or (ahead > 0 and (credit or overdue)))) or valid)
        self.differs = 0 if gave or not ahead else self.differs + 1
        reaches = self.fetch_group == (self.told - 1) % self.size // 4
        if gave:
            self.told = aligned
            self.written += 1
            if self.timer == 0:
                assert self.unanswered < self.credits, "more tails than credits"
            self.unanswered = min(15, self.unanswered + (0 if self.fetch else 1))
        elif self.fetch and self.unanswered:
            self.unanswered = 0 if reaches else self.unanswered - 1
        self.was_valid = valid and not gave


CASES = ((4, "small"), (9, "large"))


@cocotb.test()
async def a_doorbell_rings_when_it_must_and_never_else(dut: Any) -> None:
    """Checks every rule in every cycle: credits, batch, alignment, timer."""
    for bits, name in CASES:
        bell = Bell(dut, f"bell_{name}", bits, seed=bits)
        for credits, batch, align, timer in ((1, 1, 0, 0), (0, 1, 0, 0), (3, 4, 0, 25), (15, 8, 3, 0), (2, 2, 3, 40)):
            for stall, fetches in ((0.0, 0.1), (0.7, 0.02), (0.3, 0.5)):
                bell.set(credits=credits, batch=batch, align=align, timer=timer)
                await bell.bench.reset()
                bell.stall, bell.fetches = stall, fetches
                await bell.bench.cycle(300)
                assert bell.written > 1, (name, credits, batch, align, timer)
        assert bell.alarms


@cocotb.test()
async def a_stopped_ring_rings_no_more(dut: Any) -> None:
    """A tail already offered is still written, and no other. The doorbell waits for a bus that accepts nothing."""
    bell = Bell(dut, "bell_large", 9, seed=3)
    bell.set(credits=15, batch=1, align=0, timer=10)
    await bell.bench.reset()
    bell.stall = 1.0
    await bell.bench.cycle(100)
    assert bell.was_valid
    bell.runs = False
    bell.stall = 0.0
    await bell.bench.cycle(60)
    assert bell.written == 1
    await bell.bench.reset()
    await bell.bench.cycle(40)
    assert bell.written == 0


class Tails(Block):
    """All doorbells, whose tails advance while they wait, and a bus whose two channels run at separate speeds."""

    def __init__(self, dut: Any, name: str, queues: int, seed: int) -> None:
        super().__init__(dut, name, seed)
        bits = axi_lite(64, 32)
        self.rings = range(2 * queues)
        request, response = (
            Struct(self.bench, self.wires.scope, f"m_axil_{half}", bits[half]) for half in ("req", "resp")
        )
        self.aw = Sink(self.bench, request.pin("aw_valid"), response.pin("aw_ready"), [request.pin("aw.addr")])
        self.w = Sink(self.bench, request.pin("w_valid"), response.pin("w_ready"), request.pins("w.data w.strb"))
        self.response = response
        self.valids = [self.pin("s_valid", i) for i in self.rings]
        self.readies = [self.pin("s_ready", i) for i in self.rings]
        self.tails = [self.pin("s_payload", i, 12) for i in self.rings]
        self.outputs = self.struct("events_o", "events_t").pins("tail tail_error")
        self.rate = 0.0
        self.addresses = [self.random.getrandbits(64) & ~3 for _ in self.rings]
        self.reset()

    def reset(self) -> None:
        """No tail waits."""
        self.waits = [-1 for _ in self.rings]
        self.now = [0 for _ in self.rings]
        self.expected: list[tuple[int, int]] = []
        self.longest = self.written = self.error_pulses = self.answered = 0
        for valid in self.valids:
            valid.set(0)
        self.response.set(b_valid=0)

    async def tell(self) -> None:
        """Writes all addresses as software does, in halves."""
        for i in self.rings:
            for half in range(2):
                self.pin("write_i").set(1 << half)
                self.pin("write_ring_i").set(i)
                self.pin("write_data_i").set(self.addresses[i] >> 32 * half & 0xFFFFFFFF)
                await self.bench.cycle()
        self.pin("write_i").set(0)

    def drive(self) -> None:
        """Random doorbells ring; waiting tails may advance."""
        for i in self.rings:
            if self.waits[i] < 0 and self.chance(self.rate):
                self.waits[i] = 0
            if self.waits[i] >= 0:
                self.now[i] = self.random.getrandbits(12)
            self.valids[i].set(self.waits[i] >= 0)
            self.tails[i].set(self.now[i])
        answers = self.answered < min(len(self.aw.items), len(self.w.items)) and self.chance(0.5)
        self.answer = self.random.choice([0, 0, 2, 3]) if answers else None
        self.response.set(b_valid=answers)
        self.response.pin("b.resp").set(self.answer or 0)

    def sample(self) -> None:
        """At most one tail leaves a cycle, with its value of that cycle."""
        goes = [i for i in self.rings if self.waits[i] >= 0 and self.readies[i].get()]
        assert len(goes) <= 1
        for i in self.rings:
            if self.waits[i] >= 0:
                self.waits[i] += len(goes)
        for i in goes:
            self.longest = max(self.longest, self.waits[i])
            self.waits[i] = -1
            self.expected.append((self.addresses[i], self.now[i]))
        self.written += self.outputs[0].get()
        assert self.outputs[0].get() == len(goes)
        self.error_pulses += self.outputs[1].get()
        if self.answer is not None:
            self.answered += 1
            assert self.outputs[1].get() == (self.answer >= 2)


@cocotb.test()
async def tails_go_to_their_addresses_in_turn(dut: Any) -> None:
    """Address and data match at any bus timing; no doorbell waits longer than one round; errors are counted."""
    for queues, name in ((1, "one"), (4, "four")):
        tails = Tails(dut, f"tails_{name}", queues, seed=queues)
        await tails.bench.reset()
        await tails.tell()
        for rate in (0.05, 1.0):
            for address_stall, data_stall in ((0.0, 0.0), (0.7, 0.0), (0.0, 0.7), (0.5, 0.5)):
                tails.rate = rate
                tails.aw.stall, tails.w.stall = address_stall, data_stall
                await tails.bench.cycle(100)
        tails.rate = 0.0
        tails.aw.stall = tails.w.stall = 0.0
        await tails.bench.until(lambda: len(tails.w.items) == len(tails.expected) == len(tails.aw.items))  # noqa: B023
        assert tails.aw.items == [address for address, _ in tails.expected]
        assert tails.w.items == [(tail, 15) for _, tail in tails.expected]
        assert tails.longest <= len(tails.rings)
        assert tails.written == len(tails.expected) > 200
        assert tails.error_pulses


@cocotb.test()
async def a_bus_that_takes_nothing_holds_all_tails(dut: Any) -> None:
    """Tails wait without limit. A reset then discards them, and the addresses stay."""
    tails = Tails(dut, "tails_four", 4, seed=9)
    await tails.bench.reset()
    await tails.tell()
    tails.aw.stall = tails.w.stall = 1.0
    tails.rate = 1.0
    await tails.bench.cycle(200)
    assert tails.written <= 1
    await tails.bench.reset()
    tails.rate = 0.0
    tails.aw.stall = tails.w.stall = 0.0
    await tails.bench.cycle(20)
    assert not tails.aw.items
    assert not tails.w.items
    tails.rate = 0.3
    await tails.bench.cycle(50)
    count = min(len(tails.aw.items), len(tails.w.items))
    assert count > 10
    assert tails.aw.items[:count] == [address for address, _ in tails.expected[:count]]
