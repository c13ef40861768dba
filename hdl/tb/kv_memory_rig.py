# SPDX-License-Identifier: Apache-2.0
"""kv_memory's memory, pool, taker of words and engine, and what they must see: for test_kv_lines_values.py.

The ports of memory answer reads with what is there early or late, and make writes effective early or late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from axi_memory import Bytes, Memory
from bench import Bench, Pin

# name: channels, bits of the cache, words of a return fifo, writes, reads
RIGS = {"one": (1, 4, 16, 4, 4), "two": (2, 4, 128, 32, 64), "four": (4, 10, 8, 16, 8)}
LINE_BASE, VALUE_BASE = 0x0_0123_4000, 0x1_8000_1000
# Few groups, few lines of the cache: 3, 515, 1027 are of one group and one line, 19 of the same line of a small cache.
BUCKETS = [3, 515, 1027, 19, 0, 1, 2, 0x1FFFFF - 512, 64]
# What is cleared in memory is not in the cache: the sequencer's business.
CLEARED = [5, 2000, 514]


def initial(address: int) -> int:
    """What 32 bytes of memory are before somebody writes them."""
    return (address + 1) * 0xD1B54A32D192ED03F58476D1CE4E5B9BF58476D1CE4E5B9994D049BB133111EB % (1 << 256)


class Job(NamedTuple):
    """A memory_job_t, and what comes with it."""

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
    cached: int | None = None  # cycles from its acceptance to write_i

    def bits(self) -> int:
        """As the port has it."""
        packed = 0
        for value, width in zip(self[:9], (1, 22, 2, 11, 1, 1, 1, 6, 16), strict=True):
            packed = packed << width | int(value)
        return packed

    @property
    def words(self) -> int:
        """Words of its value that travel."""
        return (self.length + 63) // 64 if not self.write or self.has_value else 0


class Rig:
    """An instance: its memory, the pool, the taker of words, an engine, and what must be."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench, name
        scope = getattr(bench.dut, name)
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
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets everything, and begins with other data."""
        draw = self.bench.random
        self.content.written.clear()
        self.model: dict[int, int] = {}  # words by address, as of all jobs
        self.jobs: deque[Job] = deque()
        self.job: Job | None = None
        self.presented = False
        self.expected: deque[tuple[int, int, int]] = deque()
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
        self.late_writes: list[list[Any]] = []
        self.looked: deque[int | None] = deque([None] * 3, 3)
        self.hits = self.misses = self.updates = 0
        self.accepted_cycles: list[int] = []
        self.engine_idle = True
        self.engine = self.run_engine()
        self.full = 0
        for pin in ("job_valid", "write_i", "read_i", "want_i", "announce_i", "clear_i", "word_ready", "filling_i"):
            self.pin(pin).set(1)
            self.pin(pin).set(0)

    # ---- what must be

    def word(self, address: int) -> int:
        """A word of memory, as of all jobs."""
        value = self.model.get(address)
        return initial(address) | initial(address + 32) << 256 if value is None else value

    def line(self, bucket: int) -> int:
        """Likewise a bucket's line."""
        return self.word(LINE_BASE + 64 * bucket)

    def accept(self, job: Job) -> None:
        """Takes note of what a job that was taken changes, or must show."""
        self.accepted_cycles.append(self.bench.cycles)
        base = VALUE_BASE + 1024 * (4 * job.bucket + job.way)
        if not job.write:
            words = [self.word(base + 64 * i) for i in range(job.words)]
            self.expected += [(word, i == 0, i == len(words) - 1) for i, word in enumerate(words)]
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
        if job.cached is not None:
            self.late_writes.append([job.cached, job])

    def make_write(self, bucket: int, has_value: bool, has_header: bool, cached: int | None = None) -> Job:
        """A write of a random length and way, with a place of the pool if it has a value."""
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
        return Job(True, bucket, draw.randrange(4), length, has_value, has_header, False, place, tag, header, cached)

    def make_clear(self) -> Job:
        """A job that clears a line."""
        draw = self.bench.random
        return Job(True, draw.choice(CLEARED), draw.randrange(4), 0, False, True, True, 0, draw.getrandbits(16))

    # ---- every cycle

    def drive(self) -> None:
        """Sets inputs."""
        draw = self.bench.random
        next(self.engine)
        if draw.random() < self.rate and len(self.jobs) < 4:
            bucket = draw.choice(BUCKETS)
            if draw.random() < self.writes:
                self.jobs.append(self.make_write(bucket, draw.random() < 0.9, False))
            elif draw.random() < 0.05:
                self.jobs.append(self.make_clear())
            else:
                length = min(self.longest, draw.choice([0, 1, 64, 65, 1024, draw.randint(0, 1024)]))
                self.jobs.append(Job(False, bucket, draw.randrange(4), length))
        # A job whose line goes to the cache in the same cycle waits until it is known that it is taken.
        self.pin("write_i").set(0)
        if self.job is None and self.jobs:
            self.job, self.presented = self.jobs.popleft(), False
            self.pin("job").set(self.job.bits())
            self.pin("job_header").set(self.job.header)
        elif self.job is not None:
            self.presented = True
        offer = self.job is not None and (
            self.job.cached is None or (self.presented and bool(self.pin("job_ready").get()))
        )
        self.pin("job_valid").set(offer)
        self.offered = offer
        for late in self.late_writes:
            late[0] -= 1
        if offer and self.job and self.job.cached == 0:
            self.cache(self.job)
        elif self.late_writes and self.late_writes[0][0] < 0:
            job = self.late_writes.pop(0)[1]
            if job.cached:
                self.cache(job)
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

    def cache(self, job: Job) -> None:
        """Takes a job's way to the cache, now."""
        self.pin("write_i").set(1)
        self.pin("write_bucket_i").set(job.bucket)
        self.pin("write_way_i").set(job.way)
        self.pin("write_header_i").set(job.header)
        self.updates += 1

    def sample(self) -> None:
        """Checks outputs."""
        if self.offered:
            if self.pin("job_ready").get():
                assert self.job
                self.accept(self.job)
                self.job = None
            else:
                self.full += 1
        self.begun += self.pin("value_begun_o").get()
        if self.pin("word_valid").get():
            word = self.expected[0] if self.expected else (None, None, None)
            if word[1]:
                assert self.begun > self.firsts, f"{self.name}: a word before its value was announced"
            if self.ready:
                seen = tuple(self.pin(pin).get() for pin in ("word_data", "word_first", "word_last"))
                assert seen == word, f"{self.name}: word {self.got} is {seen}, not {word}"
                self.expected.popleft()
                self.firsts += bool(word[1])
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
        self.looked.append(self.pin("read_bucket_i").get() if self.reading else None)
        hit = self.pin("read_hit_o").get()
        bucket = self.looked[0]
        assert bucket is not None or not hit
        if hit:
            assert bucket is not None
            assert self.pin("read_line_o").get() == self.line(bucket), f"{self.name}: an old line of {bucket:#x}"
            self.hits += 1
        elif bucket is not None:
            self.misses += 1

    def sent_before(self, memory: Memory) -> int:
        """Answers of a memory before the last reset."""
        return self.__dict__.setdefault("_sent", {}).get(id(memory), 0)

    def run_engine(self) -> Iterator[None]:
        """Looks lines up, changes some, announces some: an engine in miniature."""
        draw, pin = self.bench.random, self.pin
        self._sent = {id(memory): len(memory.b.sent) for memory in self.memories}
        self.reading = False
        self.engine_idle = True
        while True:
            pin("announce_i").set(0)
            self.engine_idle = not self.engine_on
            if not self.engine_on or pin("clearing_o").get():
                yield
                continue
            if draw.random() < 0.3:  # many reads, one a cycle
                for _ in range(draw.randint(1, 12)):
                    self.announce()
                    self.reading = True
                    pin("read_i").set(1)
                    pin("read_bucket_i").set(draw.choice(BUCKETS))
                    yield
                self.reading = False
                pin("read_i").set(0)
                continue
            bucket = draw.choice(BUCKETS)
            hit = False
            for _ in range(100):
                self.reading = True
                pin("read_i").set(1)
                pin("read_bucket_i").set(bucket)
                self.announce()
                yield
                self.reading = False
                pin("read_i").set(0)
                self.announce()
                yield
                hit = bool(pin("read_hit_o").get())
                if hit or draw.random() < 0.05:
                    break
                pin("want_i").set(1)
                pin("want_bucket_i").set(bucket)
                for wait in range(6000):
                    assert wait < 5999, f"{self.name}: waits for a line for ever"
                    self.announce()
                    yield
                    if pin("here_o").get():
                        break
                pin("want_i").set(0)
            if hit and draw.random() < 0.7:
                for _ in range(draw.choice([0, 0, 1, 2, 7])):
                    self.announce()
                    yield
                before = self.updates
                job = self.make_write(bucket, draw.random() < 0.6, True, draw.choice([0, 0, 0, 1, 3]))
                self.jobs.append(job)
                while self.updates == before:
                    self.announce()
                    yield
                for _ in range(draw.choice([0, 0, 1, 30])):
                    self.announce()
                    yield

    def announce(self) -> None:
        """Announces a line, or none."""
        draw = self.bench.random
        self.pin("announce_i").set(draw.random() < 0.4)
        self.pin("announce_bucket_i").set(draw.choice(BUCKETS))

    def quiet(self) -> bool:
        """Nothing is under way."""
        return self.engine_idle and not (self.jobs or self.job or self.expected or self.running or self.late_writes)

    def check_memory(self) -> None:
        """Memory has what the jobs left."""
        for address, word in self.model.items():
            assert self.content.word(address) == word, f"{self.name}: {address:#x} in memory"
        assert self.begun == self.values


async def begin(bench: Bench, rigs: list[Rig]) -> None:
    """Resets, and waits until the caches are empty."""
    await bench.reset()
    await bench.until(lambda: not any(rig.pin("clearing_o").get() for rig in rigs))


def settle_down(rigs: list[Rig], delay: int) -> None:
    """Nothing random but data: what is under way is what the test puts there."""
    for rig in rigs:
        rig.stall, rig.speed, rig.rate, rig.engine_on, rig.longest = 0.0, 1.0, 0.0, False, 1024
        for memory in rig.memories:
            memory.delay = (delay, delay)
            for agent in (memory.ar, memory.aw, memory.w):
                agent.stall = 0.0
            for agent in (memory.r, memory.b):
                agent.idle = 0.0
