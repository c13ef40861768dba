# SPDX-License-Identifier: Apache-2.0
"""Generator and checker: frames have the documented format and rate, and the checker counts a wire's faults."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import cocotb
from echo_model import Host
from function_set_rig import SetRig, Wire
from functions_rig import CHECKER, ECHO

HEADER = bytes(range(200, 242))


def frame_of(number: int, stamp: int, size: int, run: int, header: bytes = HEADER) -> bytes:
    """A frame in the format of docs/design/bypass-functions.md."""
    head = header + struct.pack(">HII", run, number, stamp)
    words = [struct.pack("<I", number ^ i ^ i << 16) for i in range(13, -(-size // 4))]
    return (head + b"".join(words))[:size]


async def start(rig: SetRig, size: int, interval: float, count: int, run: int = 1, shift: int = 0) -> None:
    """Starts a run."""
    write = rig.functions.write
    await write("generator", 0)
    await write("receive", CHECKER)
    for i in range(11):
        await write("generator_header", int.from_bytes(HEADER.ljust(44, b"\xee")[4 * i : 4 * i + 4], "little"), i)
    await write("generator_bytes", size)
    await write("generator_interval", round(interval * 65536))
    await write("generator_count", count)
    await write("generator_run", run)
    await write("histogram", shift)
    await rig.functions.clear()
    await write("generator", 1 | 5 << 8)


async def bins(rig: SetRig) -> dict[int, int]:
    """The histogram's bins that are not 0."""
    found = {i: await rig.functions.read("latency_bins", i) for i in range(512)}
    return {i: n for i, n in found.items() if n}


@cocotb.test()
async def frames_are_made_at_their_rate(dut: Any) -> None:
    """Compares each byte of the frames."""
    rig = SetRig(dut, seed=30)
    await rig.begin()
    for size, interval, count in ((60, 16.8, 60), (64, 1.0, 200), (1514, 30.25, 12), (9728, 152.0, 4), (61, 3.5, 50)):
        rig.sent.forget()
        rig.out.items.clear()
        rig.out.cycles_of.clear()
        await start(rig, size, interval, count)
        await rig.bench.until(lambda: len(rig.sent.update()) == count)  # noqa: B023
        await rig.bench.cycle(300)
        assert len(rig.sent.update()) == count
        begins = [rig.out.cycles_of[i * -(-size // 64)] for i in range(count)]
        stamps = [int.from_bytes(frame[48:52], "big") for _, frame in rig.sent.frames]
        for number, (pair, frame) in enumerate(rig.sent.frames):
            assert pair == 5
            assert frame == frame_of(number, stamps[number], size, 1), number
            # A frame is due at number x interval; a register lies between its time stamp and the output.
            assert begins[number] - begins[0] in (int(number * interval), int(number * interval) + 1)
            assert stamps[number] - stamps[0] == begins[number] - begins[0]
        counters = await rig.functions.counters()
        assert counters == {"generated": count}


@cocotb.test()
async def what_is_held_up_is_caught_up(dut: Any) -> None:
    """Late frames are also counted."""
    rig = SetRig(dut, seed=31)
    await rig.begin()
    await start(rig, 64, 10.0, 0)
    await rig.bench.cycle(100)
    rig.out.stall = 1.0
    await rig.bench.cycle(1000)
    rig.out.stall = 0.0
    await rig.bench.cycle(2000)
    sent = len(rig.sent.update())
    await rig.functions.write("generator", 0)
    await rig.bench.cycle(50)
    assert 305 <= sent <= 312
    counters = await rig.functions.counters()
    assert counters["generated"] == len(rig.sent.update())
    assert 90 <= counters["generator_behind"] <= 125
    ended = len(rig.sent.frames)
    await rig.bench.cycle(100)
    assert len(rig.sent.update()) == ended


@cocotb.test()
async def a_good_wire_loses_nothing(dut: Any) -> None:
    """The wire reorders frames."""
    rig = SetRig(dut, seed=32)
    await rig.begin()
    wire = Wire(rig)
    for size, interval, count, shift in ((60, 4.0, 150, 0), (1514, 25.0, 40, 2), (200, 8.0, 80, 5)):
        rig.out.items.clear()
        rig.sent.forget()
        wire.reset()
        delays: list[int] = []

        def later(frame: bytes) -> list[tuple[int, bytes]]:
            delays.append(3 * (len(delays) % 11))  # noqa: B023
            return [(delays[-1], frame)]  # noqa: B023

        wire.fate = later  # type: ignore[method-assign]
        rig.rx.cycles_of.clear()
        await start(rig, size, interval, count, shift=shift)
        await rig.bench.until(lambda: len(delays) == count and not rig.rx.items and not wire.flying)  # noqa: B023
        counters = await rig.functions.counters()
        late = counters.pop("check_late", 0)
        skipped = counters.pop("check_skipped", 0)
        assert skipped == late  # none is lost
        assert counters == {"generated": count, "checked": count, "filter_missed": count}
        # The checker sees a beat 2 cycles after the input. The generator's clock starts at the reset.
        least, most = await rig.functions.read("latency_least"), await rig.functions.read("latency_most")
        total = await rig.functions.read("latency_sum") | await rig.functions.read("latency_sum", 1) << 32
        found = await bins(rig)
        assert sum(found.values()) == count
        assert min(found) == min(511, least >> shift)
        assert max(found) == min(511, most >> shift)
        assert least * count <= total <= most * count


@cocotb.test()
async def the_histogram_is_of_the_latencies(dut: Any) -> None:
    """The model is the time from a frame's first beat out to its first beat in, plus the pipeline's cycles."""
    rig = SetRig(dut, seed=33)
    await rig.begin()
    wire = Wire(rig)
    count, size = 120, 64
    delays = [rig.bench.random.choice([0, 5, 40, 700]) for _ in range(count)]
    wire.fate = lambda frame: [(delays[int.from_bytes(frame[44:48], "big")], frame)]  # type: ignore[method-assign]
    await start(rig, size, 6.0, count)
    begins: dict[int, int] = {}
    arrivals: dict[int, int] = {}
    await rig.bench.until(lambda: len(wire.frames) == count and not wire.flying and not rig.rx.items)
    for (data, *_), cycle in zip(rig.out.items, rig.out.cycles_of, strict=True):  # type: ignore[misc]
        begins[int.from_bytes(data.to_bytes(64, "little")[44:48], "big")] = cycle
    for (data, *_), cycle in zip(rig.rx.sent, rig.rx.cycles_of, strict=True):  # type: ignore[misc]
        arrivals[int.from_bytes(data.to_bytes(64, "little")[44:48], "big")] = cycle
    # The pipeline has one register on the way out and two on the way in.
    expected = Counter(min(511, arrivals[n] - begins[n] + 3) for n in range(count))
    await rig.functions.counters()
    assert await bins(rig) == expected
    total = await rig.functions.read("latency_sum") | await rig.functions.read("latency_sum", 1) << 32
    assert total == sum(arrivals[n] - begins[n] + 3 for n in range(count))


@cocotb.test()
async def what_a_bad_wire_does_is_counted(dut: Any) -> None:
    """Losses, reordering, duplicates, wrong bytes, wrong lengths and foreign frames, against a model of arrivals."""
    rig = SetRig(dut, seed=34)
    await rig.begin()
    wire = Wire(rig)
    draw = rig.bench.random
    for size, run in ((60, 7), (130, 8), (700, 9)):
        arrived: list[bytes] = []

        def fate(frame: bytes) -> list[tuple[int, bytes]]:
            kind = draw.random()
            if kind < 0.1:
                return []
            if kind < 0.2:
                return [(draw.choice([0, 30, 100]), frame), (draw.choice([0, 40, 300]), frame)]
            if kind < 0.3:
                at = draw.randrange(52, len(frame))
                return [(0, frame[:at] + bytes([frame[at] ^ 1 << draw.randrange(8)]) + frame[at + 1 :])]
            if kind < 0.35:
                return [(0, frame[: max(60, len(frame) - 5)] if draw.random() < 0.5 else frame + b"1234")]
            if kind < 0.4:
                return [(0, frame), (0, frame[:42] + b"\xab\xcd" + frame[44:])]
            if kind < 0.45:
                return [(0, frame), (0, draw.randbytes(40))]
            if kind < 0.5:  # the header may change on the way
                return [(0, draw.randbytes(42) + frame[42:])]
            return [(draw.choice([0, 0, 0, 60]), frame)]

        give = rig.give

        def note(frame: bytes, pair: int = 0) -> None:
            arrived.append(frame)  # noqa: B023
            give(frame, pair)  # noqa: B023

        rig.give = note  # type: ignore[method-assign]
        wire.fate = fate  # type: ignore[method-assign]
        await start(rig, size, 15.0, 250, run)
        await rig.bench.until(lambda: len(wire.frames) >= 250 and not wire.flying and not rig.rx.items, 30_000)
        expected: Counter[str] = Counter(generated=250, filter_missed=len(arrived))
        seen: set[int] = set()
        next_ = 0
        for frame in arrived:
            number = int.from_bytes(frame[44:48], "big")
            if len(frame) < 60 or frame[42:44] != run.to_bytes(2, "big"):
                expected["check_foreign"] += 1
            elif number in seen:
                expected["check_duplicates"] += 1
            else:
                seen.add(number)
                expected["checked"] += 1
                expected["check_wrong"] += frame[52:] != frame_of(number, 0, size, run)[52:]
                if number < next_:
                    expected["check_late"] += 1
                else:
                    expected["check_skipped"] += number - next_
                    next_ = number + 1
        assert await rig.functions.counters() == +expected
        assert all(expected[name] for name in ("check_late", "check_skipped", "check_duplicates", "check_wrong"))
        rig.give = give  # type: ignore[method-assign]
        wire.frames.clear()


@cocotb.test()
async def echo_brings_them_back(dut: Any) -> None:
    """One function set generates and checks, and the echo of the other reflects."""
    here = SetRig(dut, "all", 35)
    bench = here.bench
    there = SetRig(dut, "lean", bench=bench)
    await here.begin()
    await there.functions.set_up(Host(reflect=True), ECHO)
    taken = {"here": 0, "there": 0}

    class Cable:
        """Connects the two sets in both directions."""

        def drive(self) -> None:
            """Nothing."""

        def sample(self) -> None:
            """Carries whole frames."""
            for name, source, sink in (("here", here, there), ("there", there, here)):
                frames = source.sent.update()
                for pair, frame in frames[taken[name] :]:
                    sink.give(frame, pair)
                taken[name] = len(frames)

        def reset(self) -> None:
            """Nothing."""

    bench.agents.append(Cable())
    await start(here, 300, 7.0, 200)
    await bench.until(lambda: taken["there"] == 200)
    assert await here.functions.counters() == {"generated": 200, "checked": 200, "filter_missed": 200}
