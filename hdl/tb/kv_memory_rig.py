# SPDX-License-Identifier: Apache-2.0
"""kv_memory with a memory, a pool, a receiver of words and an engine, and their expected results: for
test_kv_lines_values.py.

The memory ports answer reads with early or late content, and let writes take effect early or late.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from axi_memory import Bytes, Memory, memory_ports
from bench import Bench, Pin
from flat import Bundles, Scope, wrapper

# name: channels, LineCacheBits, words of a return FIFO, writes, reads
RIGS = {"one": (1, 4, 16, 4, 4), "two": (2, 4, 128, 32, 64), "four": (4, 10, 8, 16, 8)}
PARAMETERS = ("Channels", "LineCacheBits", "ReadDepth", "Writes", "Reads")
BUNDLES: Bundles = {
    "announce_i": ("want_t", {"announce_i": "want", "announce_bucket_i": "bucket"}),
    "lookup_i": ("lookup_t", {"read_i": "read", "read_changes_i": "changes", "read_bucket_i": "bucket"}),
    "found_o": ("found_t", {"read_hit_o": "hit", "read_line_o": "line"}),
    "want_i": ("want_t", {"want_i": "want", "want_bucket_i": "bucket"}),
    "line_write_i": (
        "line_write_t",
        {"write_i": "write", "write_bucket_i": "bucket", "write_way_i": "way", "write_header_i": "header"},
    ),
    "job_done_o": ("job_done_t", {"done_o": "done", "done_tag_o": "tag"}),
    "pool_read_o": ("pool_read_t", {"pool_read_o": "read", "pool_place_o": "place", "pool_beat_o": "beat"}),
    "filling_i": ("filling_t", {"filling_i": "filling", "filling_place_i": "place", "filled_i": "filled"}),
}
LINE_BASE, VALUE_BASE = 0x0_0123_4000, 0x1_8000_1000
# Few groups and few cache places: 3, 515 and 1027 share a group and a cache place. In a small cache 19 has the same
# place too.
BUCKETS = [3, 515, 1027, 19, 0, 1, 2, 0x1FFFFF - 512, 64]
# These buckets are cleared in memory. They are not in the cache, as kv_recovery ensures.
CLEARED = [5, 2000, 514]


def top() -> str:
    """Returns a top with a kv_memory for each rig, with its pins."""
    lines, instances = ['`include "axi.svh"\n'], []
    for name, values in RIGS.items():
        assigned = ", ".join(f".{key}({value})" for key, value in zip(PARAMETERS, values, strict=True))
        lines.append(
            wrapper(
                f"{name}_flat",
                "kv_memory",
                BUNDLES,
                parameters=assigned,
                declared=memory_ports(values[0]),
                connected=".m_axi_req, .m_axi_resp",
            )
        )
        instances.append(f"  {name}_flat {name} (.clk_i, .rst_i);\n")
    return "".join([*lines, "module top (input wire clk_i, input wire rst_i);\n", *instances, "endmodule\n"])


def initial(address: int) -> int:
    """Returns the initial content of 32 bytes of memory."""
    return (address + 1) * 0xD1B54A32D192ED03F58476D1CE4E5B9BF58476D1CE4E5B9994D049BB133111EB % (1 << 256)


class Job(NamedTuple):
    """A memory_job_t, and the signals that come with it."""

    write: bool
    bucket: int
    way: int
    length: int
    has_value: bool = False
    has_header: bool = False
    clears: bool = False
    place: int = 0
    tag: int = 0
    header: int = 0

    def bits(self) -> int:
        """Returns the packed struct at the port."""
        packed = 0
        for value, width in zip(self[:9], (1, 22, 2, 11, 1, 1, 1, 6, 16), strict=True):
            packed = packed << width | int(value)
        return packed

    @property
    def words(self) -> int:
        """Returns the number of words of its value that are transferred."""
        return (self.length + 63) // 64 if not self.write or self.has_value else 0


@dataclass
class Look:
    """A look-up for the engine. With `changes` the line may be written five cycles later."""

    bucket: int
    changes: bool = False
    hit: bool = False
    job: Job | None = None  # that writes it
    accepted: bool = False


class Rig:
    """An instance with its memory, pool, receiver of words and engine, and the expected state."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench, name
        scope = Scope(getattr(bench.dut, name))
        self.channels = RIGS[name][0]
        self.burst = 8 if self.channels == 1 else 4
        self.content = Bytes(initial)
        self.memories = [Memory(bench, scope, self.content, i) for i in range(self.channels)]
        self.pins: dict[str, Pin] = {}
        self.pin = lambda pin: self.pins.setdefault(pin, bench.pin(scope, pin))
        self.pin("line_base_i").set(LINE_BASE)
        self.pin("value_base_i").set(VALUE_BASE)
        self.stall = 0.0
        self.rate = 0.0  # of value jobs
        self.longest = 1024
        self.writes = 0.5  # of those
        self.speed = 1.0  # of the parser that fills a place
        self.engine_on = False
        self.looks = 0.5  # in a cycle
        self.changes = 0.7  # of the lines that are there and were looked up for that
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets everything, and starts with other data."""
        draw = self.bench.random
        self.content.written.clear()
        self.model: dict[int, int] = {}  # words by address, as of all jobs
        self.jobs: deque[Job] = deque()
        self.job: Job | None = None
        self.presented = False
        self.expected: deque[tuple[int, bool]] = deque()  # words; the first of a value
        self.got = 0
        self.word_cycles: list[int] = []
        self.values = self.begun = self.firsts = 0
        self.running: deque[tuple[Job, list[int]]] = deque()
        self.answers = [0] * self.channels
        self.done_cycles: list[int] = []
        self.places: dict[int, list[int]] = {}
        self.filling: int | None = None
        self.filled = 0
        self.pool_data = draw.getrandbits(512)
        self.ask: Look | None = None  # the look-up of the next cycle
        self.asks: Look | None = None  # of this one
        self.looked: deque[Look | None] = deque([None] * 5, 5)  # of the last five
        self.wanted: tuple[int, int] | None = None  # by the engine: a bucket, until when
        self._sent = {id(memory): len(memory.b.sent) for memory in self.memories}
        self.hits = self.misses = self.updates = 0
        self.accepted_cycles: list[int] = []
        self.full = 0
        for pin in ("job_valid", "write_i", "read_i", "want_i", "announce_i", "clear_i", "word_ready", "filling_i"):
            self.pin(pin).set(1)
            self.pin(pin).set(0)

    # ---- the expected state

    def word(self, address: int) -> int:
        """Returns a word of memory after all jobs."""
        value = self.model.get(address)
        return initial(address) | initial(address + 32) << 256 if value is None else value

    def line(self, bucket: int) -> int:
        """Returns a bucket's line after all jobs."""
        return self.word(LINE_BASE + 64 * bucket)

    def accept(self, job: Job) -> None:
        """Records the changes of an accepted job, or its expected output."""
        self.accepted_cycles.append(self.bench.cycles)
        base = VALUE_BASE + 1024 * (4 * job.bucket + job.way)
        if not job.write:
            words = [self.word(base + 64 * i) for i in range(job.words)]
            self.expected += [(word, i == 0) for i, word in enumerate(words)]
            self.values += bool(words)
            return
        for i in range(job.words):
            self.model[base + 64 * i] = self.places[job.place][i]
            if i % self.burst == 0:
                self.answers[(i // self.burst + job.way) % self.channels] += 1
        if job.has_header:
            mask = (1 << 512) - 1 if job.clears else ((1 << 128) - 1) << 128 * job.way
            line = self.line(job.bucket) & ~mask | job.header << 128 * job.way
            self.model[LINE_BASE + 64 * job.bucket] = line
            self.answers[job.bucket % self.channels] += 1
        self.running.append((job, list(self.answers)))

    def make_write(self, bucket: int, has_value: bool, has_header: bool) -> Job:
        """Returns a write of a random length and way, with a place of the pool if it has a value."""
        draw = self.bench.random
        length = min(self.longest, draw.choice([0, 1, 64, 65, 513, 1024, draw.randint(0, 1024)]))
        free = [place for place in range(64) if place not in self.places]
        place = draw.choice(free) if free and has_value else 0
        has_value = has_value and bool(free)
        if has_value:
            words = (length + 63) // 64
            self.places[place] = [draw.getrandbits(512) for _ in range(words)]
            if self.filling is None and words and draw.random() < 0.6:
                self.filling, self.filled = place, 0
        header, tag = draw.getrandbits(128), draw.getrandbits(16)
        return Job(True, bucket, draw.randrange(4), length, has_value, has_header, False, place, tag, header)

    def make_clear(self) -> Job:
        """Returns a job that clears a line."""
        draw = self.bench.random
        return Job(True, draw.choice(CLEARED), draw.randrange(4), 0, False, True, True, 0, draw.getrandbits(16))

    # ---- every cycle

    def drive(self) -> None:
        """Sets inputs."""
        draw = self.bench.random
        self.run_engine()
        if draw.random() < self.rate and len(self.jobs) < 4:
            bucket = draw.choice(BUCKETS)
            if draw.random() < self.writes:
                self.jobs.append(self.make_write(bucket, draw.random() < 0.9, False))
            elif draw.random() < 0.05:
                self.jobs.append(self.make_clear())
            else:
                length = min(self.longest, draw.choice([0, 1, 64, 65, 1024, draw.randint(0, 1024)]))
                self.jobs.append(Job(False, bucket, draw.randrange(4), length))
        if self.job is None and self.jobs:
            self.job = self.jobs.popleft()
        self.changing = next((look for look in list(self.looked)[1:3] if look and look.job), None)
        job = self.changing.job if self.changing else self.job
        if job:
            self.pin("job").set(job.bits())
            self.pin("job_header_i").set(job.header)
        # If a job's line is written in a fixed cycle, the job is offered only if it is certain to be accepted.
        offer = job is not None
        if self.changing:
            offer = self.changing is self.looked[1] and bool(self.pin("job_ready").get())
        self.pin("job_valid").set(offer)
        self.offered = job if offer else None
        due = self.looked[0]
        writes = due is not None and due.accepted
        self.pin("write_i").set(writes)
        if writes:
            assert due
            assert due.job
            assert self.ask is None or self.engine_on, "a line is looked up while one is written"
            self.ask = None
            self.pin("write_bucket_i").set(due.job.bucket)
            self.pin("write_way_i").set(due.job.way)
            self.pin("write_header_i").set(due.job.header)
            self.updates += 1
        self.asks, self.ask = self.ask, None
        self.pin("read_i").set(self.asks is not None)
        self.pin("read_changes_i").set(draw.getrandbits(1) if self.asks is None else self.asks.changes)
        self.pin("read_bucket_i").set(draw.getrandbits(22) if self.asks is None else self.asks.bucket)
        self.ready = draw.random() >= self.stall
        self.pin("word_ready").set(self.ready)
        if self.filling is not None:
            self.filled += draw.random() < self.speed
            if self.filled >= len(self.places[self.filling]) + 1:
                self.filling = None
        self.pin("filling_i").set(self.filling is not None)
        self.pin("filling_place_i").set(draw.getrandbits(6) if self.filling is None else self.filling)
        self.pin("filled_i").set(min(self.filled, 16))
        self.pin("pool_data_i").set(self.pool_data)

    def sample(self) -> None:
        """Checks outputs."""
        if self.offered:
            if self.pin("job_ready").get():
                self.accept(self.offered)
                if self.changing:
                    self.changing.accepted = True
                else:
                    self.job = None
            else:
                assert not self.changing
                self.full += 1
        self.begun += self.pin("value_begun_o").get()
        if self.pin("word_valid").get():
            word, first = self.expected[0] if self.expected else (None, False)
            if first:
                assert self.begun > self.firsts, f"{self.name}: a word before its value was announced"
            if self.ready:
                seen = self.pin("word_data").get()
                assert seen == word, f"{self.name}: word {self.got} is {seen}, not {word}"
                self.expected.popleft()
                self.firsts += first
                self.got += 1
                self.word_cycles.append(self.bench.cycles)
        assert self.begun <= self.values
        if self.pin("done_o").get():
            job, answers = self.running.popleft()
            assert self.pin("done_tag_o").get() == job.tag
            for memory, count in zip(self.memories, answers, strict=True):
                assert len(memory.b.sent) - self.sent_before(memory) >= count, f"{self.name}: done too early"
            if job.has_value:
                if self.filling == job.place:  # all of it had come
                    self.filling = None
                del self.places[job.place]
            self.done_cycles.append(self.bench.cycles)
        if self.pin("pool_read_o").get():
            place, beat = self.pin("pool_place_o").get(), self.pin("pool_beat_o").get()
            assert place != self.filling or beat < self.filled, f"{self.name}: reads what has not come yet"
            assert beat < len(self.places.get(place, [])), f"{self.name}: reads beat {beat} of place {place}"
            self.pool_data = self.places[place][beat]
        late = self.looked[0]
        if late and late.job and not late.accepted and late.job.has_value:  # it comes to nothing
            self.filling = None if self.filling == late.job.place else self.filling
            del self.places[late.job.place]
        self.looked.append(self.asks)
        hit, look = bool(self.pin("read_hit_o").get()), self.looked[-3]
        assert look or not hit
        if look:
            look.hit = hit
            self.hits, self.misses = self.hits + hit, self.misses + (not hit)
        if hit:
            assert look
            assert self.pin("read_line_o").get() == self.line(look.bucket), (
                f"{self.name}: an old line of {look.bucket:#x}"
            )

    def sent_before(self, memory: Memory) -> int:
        """Returns the number of answers that a memory gave before the last reset."""
        return self._sent[id(memory)]

    def run_engine(self) -> None:
        """A small engine: looks lines up, changes some, and announces or requests others."""
        draw, pin = self.bench.random, self.pin
        found = self.looked[-3]
        if found and found.changes and found.hit and not found.job and draw.random() < self.changes:
            found.job = self.make_write(found.bucket, draw.random() < 0.6, True)
        if not self.engine_on or pin("clearing_o").get():
            pin("announce_i").set(0)
            if self.wanted:
                pin("want_i").set(0)
                self.wanted = None
            return
        self.announce()
        if self.wanted and (pin("here_o").get() or self.wanted[1] < self.bench.cycles):
            bucket, _ = self.wanted
            self.wanted = None
            if draw.random() < 0.9:
                self.look(bucket, changes=draw.random() < 0.8)
        elif self.wanted is None and found and not found.hit and draw.random() < 0.5:
            self.wanted = found.bucket, self.bench.cycles + draw.choice([3, 6000])
        pin("want_i").set(self.wanted is not None)
        pin("want_bucket_i").set(self.wanted[0] if self.wanted else draw.choice(BUCKETS))
        if self.ask is None and draw.random() < self.looks:
            self.look(draw.choice(BUCKETS), changes=draw.random() < 0.6)

    def look(self, bucket: int, *, changes: bool) -> None:
        """Looks up in the next cycle, unless an earlier look-up may change the line or `changes` would follow a change
        directly."""
        changing = [look.bucket for look in self.looked if look and look.changes]
        last = self.looked[-1]
        if bucket in changing or (changes and last and last.changes):
            return
        self.ask = Look(bucket, changes)

    def announce(self, buckets: list[int] = BUCKETS, share: float = 0.4) -> None:
        """Announces a line, or none."""
        draw = self.bench.random
        self.pin("announce_i").set(draw.random() < share)
        self.pin("announce_bucket_i").set(draw.choice(buckets))

    def quiet(self) -> bool:
        """Returns true if nothing is in progress."""
        under_way = self.jobs or self.job or self.expected or self.running or any(self.looked)
        return not (self.engine_on or under_way)

    def check_memory(self) -> None:
        """Checks that memory has the data of all jobs."""
        for address, word in self.model.items():
            assert self.content.word(address) == word, f"{self.name}: {address:#x} in memory"
        assert self.begun == self.values


async def begin(bench: Bench, rigs: list[Rig]) -> None:
    """Resets the rigs, and waits until the caches are empty."""
    await bench.reset()
    await bench.until(lambda: not any(rig.pin("clearing_o").get() for rig in rigs))


def settle_down(rigs: list[Rig], delay: int) -> None:
    """Keeps only data random. The test makes all requests itself."""
    for rig in rigs:
        rig.stall, rig.speed, rig.rate, rig.engine_on, rig.longest = 0.0, 1.0, 0.0, False, 1024
        for memory in rig.memories:
            memory.delay = (delay, delay)
            for agent in (memory.ar, memory.aw, memory.w):
                agent.stall = 0.0
            for agent in (memory.r, memory.b):
                agent.idle = 0.0
