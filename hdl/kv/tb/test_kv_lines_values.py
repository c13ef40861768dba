# SPDX-License-Identifier: Apache-2.0
"""Tests kv_memory and its parts: memory's contents, and the results of reads in the order of the jobs."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from kv_memory_rig import BUCKETS, RIGS, Job, Look, Rig, begin, settle_down, top
from simulate import KV_PACKAGES, simulate

# stalls of words and of AXI commands, idle time of answers, delays of the channels in turn, speed of the parser
SETTINGS = [
    (0.0, 0.0, 0.0, [(5, 5)], 1.0),
    (0.3, 0.2, 0.2, [(1, 60), (30, 90), (1, 4)], 0.3),
    (0.8, 0.0, 0.0, [(2, 10), (100, 140)], 1.0),
    (0.0, 0.7, 0.5, [(100, 140), (2, 10), (2, 200)], 0.05),
    (0.0, 0.0, 0.0, [(1, 2), (60, 70)], 0.5),
]


@cocotb.test()
async def reads_show_what_the_jobs_before_them_wrote(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    seen = {name: [0] * 5 for name in RIGS}  # hits, misses, updates, words, refused jobs
    for stall, commands, idle, delays, speed in SETTINGS:
        for rig in rigs:
            rig.rate, rig.engine_on = 0.0, False
        await begin(bench, rigs)
        for rig in rigs:
            rig.stall, rig.speed, rig.engine_on = stall, speed, True
            rig.rate, rig.writes = bench.random.choice([0.1, 0.5, 1.0]), bench.random.choice([0.2, 0.5, 0.8])
            rig.longest = bench.random.choice([64, 256, 1024, 1024])
            rig.looks = bench.random.choice([0.1, 0.5, 1.0])
            for i, memory in enumerate(rig.memories):
                memory.delay = delays[i % len(delays)]
                for agent in (memory.ar, memory.aw, memory.w):
                    agent.stall = commands
                for agent in (memory.r, memory.b):
                    agent.idle = idle
        await bench.cycle(1500)
        for rig in rigs:
            rig.rate = 0.0
        await bench.cycle(300)  # only the engine works
        for rig in rigs:
            rig.engine_on = False
        await bench.until(lambda: all(rig.quiet() for rig in rigs))
        await bench.cycle(5)
        for rig in rigs:
            rig.check_memory()
            for i, count in enumerate((rig.hits, rig.misses, rig.updates, rig.got, rig.full)):
                seen[rig.name][i] += count
        # Every reset except the last interrupts work.
        for rig in rigs:
            rig.rate, rig.engine_on = 1.0, True
        await bench.cycle(100)
    for name, (hits, misses, updates, words, full) in seen.items():
        bench.dut._log.warning("%s: %s", name, (hits, misses, updates, words, full))
        assert min(hits, misses, words) > 30, name
        assert updates > 8, name
        assert full, name


@cocotb.test()
async def memory_is_kept_busy(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    two = rigs[1]
    settle_down(rigs, 60)
    await begin(bench, rigs)
    two.jobs += [Job(False, i, i % 4, 1024) for i in range(60)]
    await bench.until(two.quiet)
    whole = 960 / (two.word_cycles[-1] - two.word_cycles[0] + 1)
    await begin(bench, rigs)
    two.jobs += [Job(False, i, bench.random.randrange(4), 64) for i in range(300)]
    await bench.until(two.quiet)
    short = (two.word_cycles[-1] - two.word_cycles[0] + 1) / 300
    await begin(bench, rigs)
    for i in range(40):
        place = i
        two.places[place] = [bench.random.getrandbits(512) for _ in range(16)]
        two.jobs.append(Job(True, i, i % 4, 1024, True, False, False, place, i))
    await bench.until(two.quiet)
    written = 16 * 39 / (two.done_cycles[-1] - two.done_cycles[0])
    two.check_memory()
    bench.dut._log.warning("words a cycle: read %.2f, written %.2f; %.2f cycles a short read", whole, written, short)
    assert whole >= 0.8
    assert short <= 3
    assert written >= 0.8


@cocotb.test()
async def latencies_are_as_stated(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    settle_down(rigs, 20)
    for way in range(4):
        await begin(bench, rigs)
        for rig in rigs:
            rig.jobs.append(Job(False, 5, way, 64))
        asked: dict[str, int] = {}

        def watch(asked: dict[str, int] = asked) -> bool:
            for rig in rigs:
                if rig.pin("m_axi_arvalid").get():
                    asked.setdefault(rig.name, bench.cycles)
            return all(rig.quiet() for rig in rigs)

        await bench.until(watch)
        for rig in rigs:
            answered = max(memory.r.cycles_of[-1] for memory in rig.memories if memory.r.cycles_of)
            found = asked[rig.name] - rig.accepted_cycles[0], rig.word_cycles[0] - answered
            assert found == (2, 2 if rig.name == "two" else 1), f"{rig.name}: {found}"
        for rig in rigs:
            rig.jobs.append(rig.make_write(5, True, True))
        await bench.until(lambda: all(rig.quiet() for rig in rigs))
        for rig in rigs:
            answered = max(memory.b.cycles_of[-1] for memory in rig.memories if memory.b.cycles_of)
            found = rig.done_cycles[0] - answered
            assert found == 0, f"{rig.name}: {found}"
    # A line that is absent, and is then fetched.
    await begin(bench, rigs)
    for rig in rigs:
        want = rig.pin("want_i")
        rig.pin("want_bucket_i").set(9)
        start = bench.cycles
        rig.ask = Look(9)
        await bench.cycle(3)
        assert rig.misses == 1, rig.name
        want.set(1)
        await bench.until(lambda rig=rig: rig.pin("m_axi_arvalid").get())  # type: ignore[misc]
        assert bench.cycles - start == 4, f"{rig.name}: {bench.cycles - start}"
        await bench.until(lambda rig=rig: rig.pin("here_o").get())  # type: ignore[misc]
        answered = max(memory.r.cycles_of[-1] for memory in rig.memories if memory.r.cycles_of)
        assert bench.cycles - answered == 2, f"{rig.name}: {bench.cycles - answered}"
        want.set(0)
        rig.ask = Look(9)
        hits = rig.hits
        await bench.cycle(3)
        assert rig.hits == hits + 1, rig.name


async def look(bench: Bench, rig: Rig, bucket: int) -> bool:
    """Returns whether a line is in the cache. If it is, sample() checks its content."""
    hits = rig.hits
    rig.ask = Look(bucket)
    await bench.cycle(3)
    return rig.hits > hits


async def change(bench: Bench, rig: Rig, bucket: int) -> bool:
    """Changes a line if the look-up finds it in the cache. The way is written in the sixth cycle from now."""
    updates = rig.updates
    rig.ask = Look(bucket, changes=True)
    await bench.cycle(6)
    return rig.updates > updates


async def want(bench: Bench, rig: Rig, bucket: int, until: str) -> None:
    """Requests a line until a signal is high."""
    rig.pin("want_i").set(1)
    rig.pin("want_bucket_i").set(bucket)
    await bench.until(lambda: rig.pin(until).get())
    rig.pin("want_i").set(0)
    await bench.cycle()


@cocotb.test()
async def a_way_that_is_written_while_a_line_of_its_group_comes_makes_that_worthless(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    settle_down(rigs, 20)
    await begin(bench, rigs)
    # By the number of cycles from a line's first half to the way's write: whether the way is written, and whether the
    # way's line and the other line are in the cache afterwards. In "four" they have different places. In the others,
    # the other line replaces the way's line.
    lost = (True, False, False)
    expected = {
        -1: (True, True, False),
        0: (True, True, False),
        1: lost,
        2: lost,
        3: lost,
        4: lost,
        5: (False, False, True),
    }
    both = (True, True, True)
    expected_apart = dict.fromkeys((-1, 0, 1), (True, True, False)) | dict.fromkeys(range(2, 7), both)
    for rig in rigs:
        rig.changes = 1.0
        # Measures the cycles from the request to the first half of the line.
        await want(bench, rig, 4, "m_axi_arvalid")
        asked, memory = bench.cycles, rig.memories[4 % rig.channels]
        beats = len(memory.r.cycles_of) + 2
        await bench.until(lambda memory=memory, beats=beats: len(memory.r.cycles_of) == beats)  # type: ignore[misc]
        comes = bench.cycles - asked
        for later, outcome in (expected_apart if rig.name == "four" else expected).items():
            bucket, other = 8 + later, 8 + later + 512
            await want(bench, rig, bucket, "here_o")
            assert await look(bench, rig, bucket), rig.name
            await want(bench, rig, other, "m_axi_arvalid")
            await bench.cycle(comes + later - 5)
            found = (await change(bench, rig, bucket),)
            await bench.until(rig.quiet)
            await bench.cycle(5)
            found += await look(bench, rig, bucket), await look(bench, rig, other)
            assert found == outcome, f"{rig.name}, {later} cycles after the first half: {found}"


@cocotb.test()
async def lines_are_changed_every_other_cycle_while_others_take_their_places(dut: Any) -> None:
    """This is the highest rate of the engine. Each fill replaces a line that was looked up before."""
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    settle_down(rigs, 20)
    for rig in rigs:
        for memory in rig.memories:
            memory.delay = (3, 30)
    for changes in (1.0, 0.5):
        await begin(bench, rigs)
        for rig in rigs:
            rig.changes, rig.longest = changes, 64
        buckets = [3, 4, 5, 3 + 1024, 4 + 1024, 5 + 1024]
        for step in range(1500):
            for rig in rigs:
                rig.announce(buckets, 0.2)
                bucket = buckets[step // 2 % 6 if bench.random.random() < 0.9 else bench.random.randrange(6)]
                if not rig.pin("write_i").get() and step % 2:
                    rig.look(bucket, changes=True)
            await bench.cycle()
        for rig in rigs:
            rig.pin("announce_i").set(0)
        await bench.until(lambda: all(rig.quiet() for rig in rigs))
        await bench.cycle(5)
        for rig in rigs:
            bench.dut._log.warning("%s: %d hits, %d misses, %d updates", rig.name, rig.hits, rig.misses, rig.updates)
            assert min(rig.hits, rig.misses, rig.updates) > 50, (rig.name, rig.hits, rig.misses, rig.updates)
            rig.check_memory()
            for bucket in buckets:
                await look(bench, rig, bucket)  # lines that are present have the right content


@cocotb.test()
async def no_line_is_asked_for_in_the_cycle_of_a_write(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    settle_down(rigs, 20)
    await begin(bench, rigs)
    for rig in rigs:
        rig.changes = 1.0
        bucket, other = 5, 5 + 1024  # both share a place in every cache
        for before in range(6):
            await want(bench, rig, bucket, "here_o")
            assert await look(bench, rig, bucket), rig.name
            await want(bench, rig, other, "m_axi_arvalid")
            # The fill replaces the line at about the time of the way's write. The loop varies the number of cycles from
            # look-up to fill.
            rig.pin("want_bucket_i").set(bucket)
            memory = rig.memories[bucket % rig.channels]
            beats = len(memory.r.cycles_of) + 2
            await bench.until(lambda memory=memory, beats=beats: len(memory.r.cycles_of) == beats - 1)  # type: ignore[misc]
            rig.ask = Look(bucket, changes=True)
            updates = rig.updates
            for cycle in range(7):
                rig.pin("want_i").set(cycle == 5 - before)
                await bench.cycle()
            assert rig.updates == updates + 1
            await bench.until(rig.quiet)
            await bench.cycle(60)
            await look(bench, rig, bucket)  # must not have the content of memory before the write
            await want(bench, rig, bucket, "here_o")
            assert await look(bench, rig, bucket), rig.name


@cocotb.test()
async def the_cache_can_be_emptied_and_errors_are_kept_until_then(dut: Any) -> None:
    bench = Bench(dut)
    rigs = [Rig(bench, name) for name in RIGS]
    settle_down(rigs, 5)
    await begin(bench, rigs)
    for rig in rigs:
        rig.engine_on = True
    await bench.cycle(300)
    for rig in rigs:
        rig.engine_on = False
    await bench.until(lambda: all(rig.quiet() for rig in rigs))
    for rig in rigs:
        for memory in rig.memories:
            memory.errors = 1.0
        rig.jobs.append(rig.make_write(3, True, True))
    await bench.until(lambda: all(rig.quiet() for rig in rigs))
    await bench.cycle(20)
    for rig in rigs:
        assert rig.pin("error_o").get(), rig.name
        rig.pin("clear_i").set(1)
    await bench.cycle()
    for rig in rigs:
        rig.pin("clear_i").set(0)
    await bench.cycle(2)
    for rig in rigs:
        assert not rig.pin("error_o").get(), rig.name
        assert rig.pin("clearing_o").get(), rig.name
    await bench.until(lambda: not any(rig.pin("clearing_o").get() for rig in rigs))
    hits = [rig.hits for rig in rigs]
    for bucket in BUCKETS:
        for rig in rigs:
            rig.ask = Look(bucket)
        await bench.cycle(41)
    # 19 and 3 share a place in every cache, and memory has the later writes.
    assert [rig.hits for rig in rigs] == hits


def test_kv_lines_values() -> None:
    simulate(__file__, text=top(), sources=KV_PACKAGES)
