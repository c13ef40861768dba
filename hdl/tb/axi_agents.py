# SPDX-License-Identifier: Apache-2.0
"""AXI4 managers and subordinates for the bench, in plain Python that is called once per cycle.

The rules come from ARM IHI 0022E, independently of the RTL: the addresses (A3.4.1) and lanes (A3.4.3) of a burst, and
the order of transactions (A5.3). Transactions of one id are answered in order, those of different ids in any order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import Bench, Item, Pin, Sink, Source

FIXED, INCR, WRAP = range(3)
OKAY, EXOKAY, SLVERR, DECERR = range(4)


@dataclass
class Burst:
    """A transaction. A write also has the data and strobes of its beats."""

    id: int
    address: int
    beats: int
    size: int
    burst: int = INCR
    data: list[tuple[int, int]] = field(default_factory=list)
    cache: int = 0
    prot: int = 0

    def addresses(self) -> list[int]:
        """Returns the address of each beat, as A3.4.1 computes it."""
        step = 1 << self.size
        if self.burst == FIXED:
            return [self.address] * self.beats
        aligned = self.address & -step
        found = [self.address, *(aligned + i * step for i in range(1, self.beats))]
        if self.burst == WRAP:
            total = step * self.beats
            start = self.address & -total
            found = [start + (self.address + i * step - start) % total for i in range(self.beats)]
        return found

    def command(self) -> Item:
        """Returns the fields of AW or AR."""
        return (self.id, self.address, self.beats - 1, self.size, self.burst, self.cache, self.prot)

    def lanes(self, bus: int) -> list[range]:
        """Returns the byte lanes that each beat may use, on a bus of `bus` bytes."""
        step = 1 << self.size
        return [range(a % bus, (a & -step) % bus + step) for a in self.addresses()]


class _Port:
    """The five channels at the flat ports prefix_*."""

    def __init__(self, bench: Bench, scope: Any, prefix: str, manages: bool) -> None:
        def pins(channel: str, names: str) -> list[Pin]:
            return [bench.pin(scope, f"{prefix}_{channel}{name}") for name in names.split()]

        def channel(name: str, fields: str, forward: bool) -> Any:
            valid, ready = pins(name, "valid ready")
            return (Source if forward == manages else Sink)(bench, valid, ready, pins(name, fields))

        command = "id addr len size burst cache prot"
        self.bench, self.prefix = bench, prefix
        self.aw, self.ar = channel("aw", command, True), channel("ar", command, True)
        self.w = channel("w", "data strb last", True)
        self.b = channel("b", "id resp", False)
        self.r = channel("r", "id data resp last", False)
        self.bus = self.w.fields[1].width
        bench.agents.append(self)

    def pace(self, idle: float, stall: float) -> None:
        """Sets the pace of the outputs and of the inputs."""
        for channel in (self.aw, self.w, self.b, self.ar, self.r):
            if isinstance(channel, Source):
                channel.idle = idle
            else:
                channel.stall = stall

    def drive(self) -> None:
        """Does nothing, because the channels drive the signals."""

    def sample(self) -> None:
        """Does nothing. A subordinate answers here."""

    def reset(self) -> None:
        """Does nothing. A subordinate forgets its transactions here."""


class Manager(_Port):
    """Makes requests. The responses are in `responses` and, by id, in `read`."""

    def __init__(self, bench: Bench, scope: Any, prefix: str = "s_axi") -> None:
        super().__init__(bench, scope, prefix, manages=True)

    def write(self, burst: Burst) -> None:
        """Queues a write. Its data may come before or after its address."""
        self.aw.items.append(burst.command())
        self.w.items.extend((data, strobes, i == burst.beats - 1) for i, (data, strobes) in enumerate(burst.data))

    def ask(self, burst: Burst) -> None:
        """Queues a read."""
        self.ar.items.append(burst.command())

    @property
    def responses(self) -> list[tuple[int, int]]:
        """Returns the id and the response of each write."""
        return self.b.items

    def read(self) -> dict[int, list[list[tuple[int, int]]]]:
        """Returns, for each id, the received bursts: data and response of each beat. The last burst may be
        incomplete."""
        found: dict[int, list[list[tuple[int, int]]]] = defaultdict(list)
        ended: dict[int, bool] = defaultdict(lambda: True)
        for id_, data, response, last in self.r.items:
            if ended[id_]:
                found[id_].append([])
            found[id_][-1].append((data, response))
            ended[id_] = bool(last)
        return found

    def reads_done(self) -> int:
        """Returns the number of reads that are complete."""
        return sum(1 for item in self.r.items if item[3])


class Subordinate(_Port):
    """A memory that answers after `delay` cycles.

    With `reorder`, ids overtake each other. With `mix`, beats of reads interleave. `fails` returns the response for an
    address.
    """

    def __init__(self, bench: Bench, scope: Any, prefix: str = "m_axi", **options: Any) -> None:
        super().__init__(bench, scope, prefix, manages=False)
        self.delay: tuple[int, int] = options.get("delay", (1, 20))
        self.reorder: bool = options.get("reorder", False)
        self.mix: bool = options.get("mix", False)
        self.fails: Callable[[int], int] = options.get("fails", lambda address: OKAY)
        self.initial: Callable[[int], int] = options.get("initial", lambda address: (address * 37 >> 3) & 0xFF)
        self.written: dict[int, int] = {}
        self.reset()

    def reset(self) -> None:
        """Forgets transactions in flight, but keeps the stored data."""
        self.reads: list[tuple[int, Burst, deque[tuple[int, int]]]] = []
        self.answers: list[tuple[int, int, int]] = []
        self.wanted: deque[Burst] = deque()
        self.written_bursts: list[Burst] = []
        self.read_bursts: list[Burst] = []

    def byte(self, address: int) -> int:
        """Returns the stored byte."""
        value = self.written.get(address)
        return self.initial(address) if value is None else value

    def due(self) -> int:
        """Returns the cycle in which to answer a request of this cycle."""
        return self.bench.cycles + self.bench.random.randint(*self.delay)

    def check(self, burst: Burst) -> None:
        """Checks the rules of bursts."""
        assert 1 << burst.size <= self.bus, burst
        if burst.burst == INCR:
            last = burst.addresses()[-1]
            assert burst.address >> 12 == ((last & -(1 << burst.size)) + (1 << burst.size) - 1) >> 12, burst
        else:
            assert burst.beats <= 16, burst

    def sample(self) -> None:
        """Accepts commands and data, and sends the answers that are due."""
        for item in self.ar.items:
            burst = Burst(item[0], item[1], item[2] + 1, *item[3:5], cache=item[5], prot=item[6])
            self.check(burst)
            self.read_bursts.append(burst)
            self.reads.append((self.due(), burst, deque(self.beats(burst))))
        self.ar.items.clear()
        for item in self.aw.items:
            burst = Burst(item[0], item[1], item[2] + 1, *item[3:5], cache=item[5], prot=item[6])
            self.check(burst)
            self.wanted.append(burst)
        self.aw.items.clear()
        while self.wanted and len(self.w.items) >= self.wanted[0].beats:
            self.store(self.wanted.popleft())
        self.answer_reads()
        self.answer_writes()

    def beats(self, burst: Burst) -> list[tuple[int, int]]:
        """Returns data and response of each beat. Unused lanes have random values."""
        found = []
        for address, lanes in zip(burst.addresses(), burst.lanes(self.bus), strict=True):
            word = bytearray(self.bench.random.randbytes(self.bus))
            base = address & -self.bus
            for lane in lanes:
                word[lane] = self.byte(base + lane)
            found.append((int.from_bytes(word, "little"), self.fails(address)))
        return found

    def store(self, burst: Burst) -> None:
        """Stores the data of a write."""
        response = OKAY
        for i, (address, lanes) in enumerate(zip(burst.addresses(), burst.lanes(self.bus), strict=True)):
            data, strobes, last = self.w.items.pop(0)
            assert bool(last) == (i == burst.beats - 1), burst
            burst.data.append((data, strobes))
            assert strobes & ~sum(1 << lane for lane in lanes) == 0, f"{burst}: strobes beyond its lanes"
            response = max(response, self.fails(address))
            if self.fails(address):
                continue
            base = address & -self.bus
            for lane in lanes:
                if strobes >> lane & 1:
                    self.written[base + lane] = data >> (8 * lane) & 0xFF
        self.written_bursts.append(burst)
        self.answers.append((self.due(), burst.id, response))

    def ready_of(self, entries: list[Any], id_of: Callable[[Any], int]) -> list[int]:
        """Returns the indexes of the entries that may be answered now: the oldest one, or with `reorder` the oldest of
        each id."""
        found: dict[int, int] = {}
        for i, entry in enumerate(entries):
            if not self.reorder and i:
                break
            found.setdefault(id_of(entry), i)
        return [i for i in found.values() if entries[i][0] <= self.bench.cycles]

    def answer_writes(self) -> None:
        """Answers one write per cycle."""
        ready = self.ready_of(self.answers, lambda entry: entry[1])
        if ready and len(self.b.items) < 2:
            _, id_, response = self.answers.pop(self.bench.random.choice(ready))
            self.b.items.append((id_, response))

    def answer_reads(self) -> None:
        """Sends one beat per cycle, or as fast as the manager accepts them."""
        while len(self.r.items) < 2:
            ready = self.ready_of(self.reads, lambda entry: entry[1].id)
            if not ready:
                return
            chosen = self.bench.random.choice(ready)
            if not self.mix:  # continue the read that has begun
                begun = [i for i in ready if len(self.reads[i][2]) < self.reads[i][1].beats]
                chosen = begun[0] if begun else chosen
            _, burst, beats = self.reads[chosen]
            data, response = beats.popleft()
            self.r.items.append((burst.id, data, response, not beats))
            if not beats:
                self.reads.pop(chosen)
