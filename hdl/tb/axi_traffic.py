# SPDX-License-Identifier: Apache-2.0
"""Random AXI4 traffic with a known outcome, because each burst has its own bytes."""

from __future__ import annotations

from collections import defaultdict

from axi_agents import FIXED, INCR, OKAY, WRAP, Burst, Manager
from bench import Bench


class Traffic:
    """Writes of one manager, then reads of the same addresses, in slots of `slot` bytes from `base` on.

    Each write has its own slot, so writes in flight together never meet. With `narrow`, beats may be smaller than the
    bus. `kinds` are the types of bursts, `long` is the most beats.
    """

    def __init__(self, bench: Bench, manager: Manager, ids: int = 4, base: int = 0, slots: int = 64) -> None:
        self.bench, self.manager, self.ids, self.base, self.slots = bench, manager, ids, base, slots
        self.slot = 4096
        self.narrow, self.kinds, self.long = True, (INCR,), 16
        self.memory: dict[int, int] = {}
        self.writes: list[Burst] = []
        self.reads: list[Burst] = []

    def burst(self, slot: int) -> Burst:
        """Returns a random burst inside the slot."""
        draw, bus = self.bench.random, self.manager.bus
        full = bus.bit_length() - 1
        size = draw.randint(0, full) if self.narrow else full
        kind = draw.choice(self.kinds)
        most = min(self.long, 16) if kind != INCR else self.long
        beats = draw.choice([1, 1, 2, draw.randint(1, most), draw.randint(1, most)])
        if kind == WRAP:
            beats = draw.choice([2, 4, 8, 16])
        beats = min(beats, self.slot >> size)
        room = self.slot - (beats << size)
        offset = draw.randrange(0, room + 1) & -(1 << size)
        if kind != WRAP:  # the first beat may begin inside a word
            offset += draw.choice([0, 0, draw.randrange(1 << size)])
        address = self.base + self.slot * slot + offset
        return Burst(
            draw.randrange(self.ids), address, beats, size, kind, cache=draw.randrange(16), prot=draw.randrange(8)
        )

    def write(self, count: int) -> None:
        """Queues `count` writes."""
        draw = self.bench.random
        for slot in draw.sample(range(self.slots), count):
            burst = self.burst(slot)
            for address, lanes in zip(burst.addresses(), burst.lanes(self.manager.bus), strict=True):
                data = draw.getrandbits(8 * self.manager.bus)
                strobes = sum(1 << lane for lane in lanes if draw.random() < 0.9)
                burst.data.append((data, strobes))
                base = address & -self.manager.bus
                for lane in lanes:
                    if strobes >> lane & 1:
                        self.memory[base + lane] = data >> (8 * lane) & 0xFF
            self.writes.append(burst)
            self.manager.write(burst)

    def read(self, count: int) -> None:
        """Queues `count` reads."""
        for slot in self.bench.random.choices(range(self.slots), k=count):
            burst = self.burst(slot)
            self.reads.append(burst)
            self.manager.ask(burst)

    def written(self) -> bool:
        """Returns true if all writes are answered."""
        return len(self.manager.responses) == len(self.writes)

    def done(self) -> bool:
        """Returns true if all writes and reads are answered."""
        return self.written() and self.manager.reads_done() == len(self.reads)

    def check(self, initial: object, fails: object = lambda address: OKAY) -> None:
        """Compares bytes and responses with the model, in order for each id."""
        expected = defaultdict(list)
        for burst in self.writes:
            expected[burst.id].append(max(fails(address) for address in burst.addresses()))
        got = defaultdict(list)
        for id_, response in self.manager.responses:
            got[id_].append(response)
        assert got == expected
        came = self.manager.read()
        for id_ in range(self.ids):
            asked = [burst for burst in self.reads if burst.id == id_]
            assert len(came[id_]) == len(asked)
            for burst, beats in zip(asked, came[id_], strict=True):
                assert len(beats) == burst.beats, burst
                places = zip(burst.addresses(), burst.lanes(self.manager.bus), beats, strict=True)
                for address, lanes, (data, response) in places:
                    assert response == fails(address), burst
                    if response != OKAY:
                        continue
                    base = address & -self.manager.bus
                    for lane in lanes:
                        value = self.memory.get(base + lane)
                        value = initial(base + lane) if value is None else value
                        assert data >> (8 * lane) & 0xFF == value, f"{burst}: byte {base + lane:#x}"

    def forget(self) -> None:
        """Forgets requests and answers, but keeps the written data."""
        for asked in (self.writes, self.reads, self.manager.b.items, self.manager.r.items):
            asked.clear()


KINDS = (FIXED, INCR, WRAP)
PACES = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3), (0.1, 0.9), (0.9, 0.1)]
