# SPDX-License-Identifier: Apache-2.0
"""dma_data at the limits of its parameters, with a host and a card in Python: alignment, faults, streams, resets.

Rates and long random runs: sim/dma.
"""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import SLVERR
from bench import Bench
from dma_rig import ABORTED, LINE, MEMORY, NONE, POISONED, RESET, TIMEOUT, TURN, UNSUPPORTED, Lane, beats, top_of, turn
from hdl_tools import ROOT, files
from simulate import simulate

INSTANCES: dict[str, dict[str, int]] = {
    "few": {"Tags": 8, "H2cLines": 256, "C2hLines": 128, "CompletionLines": 128, "TickBits": 6, "StatusBytes": 4},
    "usual": {"Tags": 128, "H2cLines": 512, "C2hLines": 512, "CompletionLines": 1024, "TickBits": 6, "StatusBytes": 64},
    "plain": {
        "Tags": 32,
        "H2cLines": 1024,
        "C2hLines": 256,
        "FetchTags": 8,
        # Room for twice the longest request: with 65 lines, only one request would be in flight at a time.
        "CompletionLines": 130,
        "TickBits": 6,
        "Stream": 0,
    },
}
HOST, CARD = 0x12_3456_7000, 0x4_0000_0000


def lanes_of(dut: Any, seed: int) -> tuple[Bench, list[Lane]]:
    """A bench with its lanes, at random settings."""
    bench = Bench(dut, seed)
    lanes = [Lane(bench, name) for name in INSTANCES]
    for lane in lanes:
        mrrs, mps = bench.random.randrange(6), bench.random.randrange(3)
        lane.configure(mrrs, mps, timeout=0, reserve=bench.random.choice((0, 100, 255)))
    return bench, lanes


class Both:
    """Random turns in both directions, and their expected results."""

    def __init__(self, bench: Bench, lane: Lane) -> None:
        self.bench, self.lane = bench, lane
        self.turns: dict[str, list[tuple[int, ...]]] = {"h2c": [], "c2h": []}
        self.at = 0

    def ask(self, count: int) -> None:
        """Adds turns at separate addresses."""
        draw = self.bench.random
        for way in ("h2c", "c2h") * count:
            size = draw.choice([draw.randint(1, 130), draw.randint(1, TURN), TURN, LINE])
            aligned = draw.random() < 0.3
            host, card = (0, 0) if aligned else (draw.randrange(300), draw.choice([draw.randrange(64), 4000]))
            asked = turn(HOST + self.at + host, CARD + self.at + card, size, channel=draw.randrange(4))
            self.at += 2 * TURN + 4096
            self.turns[way].append(asked)
            (self.lane.h2c if way == "h2c" else self.lane.c2h).items.append(asked)

    def over(self) -> bool:
        """Whether all turns were answered."""
        lane = self.lane
        return len(lane.h2c_done.items) == len(self.turns["h2c"]) and len(lane.c2h_done.items) == len(self.turns["c2h"])

    def settled(self) -> bool:
        """Also waits until no write to the host is in progress."""
        return self.over() and self.lane.host.writing is None

    def check(self, allowed: dict[str, set[int]]) -> dict[int, int]:
        """Compares bytes and answers; returns the number of each error."""
        lane = self.lane
        found: dict[int, int] = {}
        expected: dict[str, int] = {"h2c": 0, "c2h": 0}
        for way, done in (("h2c", lane.h2c_done.items), ("c2h", lane.c2h_done.items)):
            written = lane.card.written if way == "h2c" else lane.host.written
            holds = lane.host.holds if way == "h2c" else lane.card.initial
            for (channel, _, _, size, host, card), answer in zip(self.turns[way], done, strict=True):
                assert answer[0] == channel, lane.name
                error, moved = answer[1], answer[3]
                found[error] = found.get(error, 0) + 1
                assert error in allowed[way], (lane.name, way, error)
                to, source = (card, host) if way == "h2c" else (host, card)
                there = [i for i in range(size) if to + i in written]
                assert all(written[to + i] == holds(source + i) for i in there), (
                    lane.name,
                    way,
                    hex(host),
                    hex(card),
                    size,
                )
                if error == NONE:
                    assert len(there) == size == moved, (lane.name, way, size, len(there), moved)
                elif error != MEMORY or way == "c2h":
                    assert len(there) == moved < size or error == RESET, (lane.name, way, size, len(there), moved)
                expected[way] += len(there)
        # No byte was written that no turn asked for.
        assert len(lane.card.written) == expected["h2c"], lane.name
        assert len(lane.host.written) == expected["c2h"], lane.name
        return found


@cocotb.test()
async def any_alignment(dut: Any) -> None:
    """Random turns in both directions, from full speed to long pauses."""
    for seed, idle, stall in [(1, 0.0, 0.0), (2, 0.4, 0.4), (3, 0.0, 0.7)]:
        bench, lanes = lanes_of(dut, seed)
        await bench.reset(4)
        asked = [Both(bench, lane) for lane in lanes]
        for both in asked:
            both.lane.pace(idle, stall)
            both.ask(12)
        await bench.until(lambda asked=asked: all(both.settled() for both in asked), 40_000)
        await bench.cycle(20)
        for both in asked:
            assert both.check({"h2c": {NONE}, "c2h": {NONE}}) == {NONE: 24}


@cocotb.test()
async def faults_are_told(dut: Any) -> None:
    """UR, CA, poison, SLVERR: the turn's answer reports it, and no byte after it is written."""
    bench, lanes = lanes_of(dut, 4)
    await bench.reset(4)
    asked = [Both(bench, lane) for lane in lanes]
    kinds = (UNSUPPORTED, ABORTED, POISONED)
    for both in asked:
        draw = bench.random
        both.lane.host.fails = lambda address, size, draw=draw: draw.choice(kinds) if draw.random() < 0.05 else NONE
        both.lane.card.fails = lambda address: SLVERR if address >> 6 & 0x3F == 0x17 else 0
        both.ask(30)
    await bench.until(lambda: all(both.settled() for both in asked), 40_000)
    for both in asked:
        found = both.check({"h2c": {NONE, MEMORY, *kinds}, "c2h": {NONE, MEMORY}})
        assert found[NONE] > 10
        assert found[MEMORY] > 0
        assert sum(found.get(kind, 0) for kind in kinds) > 0


@cocotb.test()
async def silence_times_out(dut: Any) -> None:
    """Unanswered reads end, also those of descriptors, and their tags become free."""
    bench, lanes = lanes_of(dut, 5)
    await bench.reset(4)
    asked = [Both(bench, lane) for lane in lanes]
    for both in asked:
        both.lane.configure(2, 1, timeout=5)
        both.lane.host.mute = True
        both.lane.fetch.items.append((3, 64, HOST))
        both.lane.h2c.items.extend(turn(HOST + i * TURN, CARD + i * TURN, 1000) for i in range(3))
    await bench.until(lambda: all(len(lane.h2c_done.items) == 3 and lane.fetched.items for lane in lanes), 8_000)
    for lane in lanes:
        assert [(done[1], done[3]) for done in lane.h2c_done.items] == [(TIMEOUT, 0)] * 3
        assert lane.fetched.items[0][0] == 3
        assert lane.fetched.items[0][4] == TIMEOUT
        assert not lane.card.written
        lane.h2c_done.items.clear()
        lane.host.mute = False
    for both in asked:
        both.ask(10)
    await bench.until(lambda: all(both.settled() for both in asked), 20_000)
    for both in asked:
        both.check({"h2c": {NONE}, "c2h": {NONE}})


@cocotb.test()
async def late_answers_meet_no_new_request(dut: Any) -> None:
    """Answers come after the time-out, before another time-out has passed. Until then the host sees no new request
    with their tags, and nobody gets these answers."""
    bench, lanes = lanes_of(dut, 15)
    await bench.reset(4)
    late, timeout = 4, 20 * 64
    search = 3 * 256  # cycles until all tags were looked at
    asked = [Both(bench, lane) for lane in lanes]
    for both in asked:
        both.lane.configure(2, 1, timeout=timeout // 64)
        both.lane.host.delay = (timeout + 64 + search, 2 * timeout - 64)
        both.lane.fetch.items.extend((3, 64, HOST + 64 * i) for i in range(late))
        both.lane.h2c.items.extend(turn(HOST + i * TURN, CARD + i * TURN, 1000) for i in range(12))
    await bench.until(
        lambda: all(len(lane.h2c_done.items) == 12 and len(lane.fetched.items) == late for lane in lanes), 30_000
    )
    for lane in lanes:
        assert [(done[1], done[3]) for done in lane.h2c_done.items] == [(TIMEOUT, 0)] * 12
        assert [(item[0], item[4]) for item in lane.fetched.items] == [(3, TIMEOUT)] * late
        assert not lane.card.written
        lane.h2c_done.items.clear()
        lane.fetched.items.clear()
        lane.host.delay = (20, 60)
        lane.fetch.items.append((3, 64, HOST + 4096))
    for both in asked:
        both.ask(10)
    await bench.until(lambda: all(both.settled() and both.lane.fetched.items for both in asked), 20_000)
    for both in asked:
        both.check({"h2c": {NONE}, "c2h": {NONE}})
        (answer,) = both.lane.fetched.items
        assert answer[4] == NONE
        assert answer[6].to_bytes(LINE, "little") == bytes(both.lane.host.holds(HOST + 4096 + k) for k in range(64))


@cocotb.test()
async def clients_share_the_requester(dut: Any) -> None:
    """Each client gets its own descriptors. A status word after a turn's answer arrives after the turn's bytes."""
    bench, lanes = lanes_of(dut, 6)
    await bench.reset(4)
    asked = [Both(bench, lane) for lane in lanes]
    for both in asked:
        both.lane.pace(0.2, 0.3)
        both.ask(12)
        both.lane.fetch.items.extend((i % 8, 32 * (1 + i % 3), HOST + 0x10_0000 + 128 * i) for i in range(8))
    told = dict.fromkeys(INSTANCES, 0)
    for _ in range(20_000):
        await bench.cycle()
        for lane in lanes:
            while told[lane.name] < len(lane.c2h_done.items):  # as the control part does
                lane.status.items.append((1, 1, 4, 0x7000_0000 + 4 * told[lane.name], 0xABCD))
                told[lane.name] += 1
        if all(both.settled() and told[both.lane.name] == 12 and not both.lane.status.items for both in asked):
            break
    await bench.cycle(20)
    for both in asked:
        lane = both.lane
        order = [address for address, _ in lane.host.order]
        for i, asked_turn in enumerate(both.turns["c2h"]):
            mine = [at for at, address in enumerate(order) if asked_turn[4] <= address < asked_turn[4] + asked_turn[3]]
            assert order.index(0x7000_0000 + 4 * i) > max(mine), lane.name
            assert all(lane.host.written.pop(0x7000_0000 + 4 * i + k) == (0xABCD >> 8 * k & 0xFF) for k in range(4))
        both.check({"h2c": {NONE}, "c2h": {NONE}})
        for i in range(8):
            mine = [item for item in lane.fetched.items if item[0] == i]
            data = b"".join(item[6].to_bytes(LINE, "little")[: item[5]] for item in mine)
            assert data == bytes(lane.host.holds(HOST + 0x10_0000 + 128 * i + k) for k in range(32 * (1 + i % 3)))
            assert mine[-1][3] == 1


@cocotb.test()
async def packets_go_out(dut: Any) -> None:
    """Descriptors become packets of their channel, whole and in order, beside memory turns."""
    bench, lanes = lanes_of(dut, 7)
    await bench.reset(4)
    lanes = [lane for lane in lanes if INSTANCES[lane.name].get("Stream", 1)]
    expected: dict[str, list[list[bytes]]] = {}
    count = 0
    for lane in lanes:
        lane.pace(0.1, 0.3)
        expected[lane.name] = [[] for _ in range(4)]
        for i in range(10):
            channel, size, at = (
                i % 4,
                bench.random.choice([1, 64, 65, 300, 5000, 4096, 8192]),
                HOST + i * 0x10000 + 13 * i,
            )
            expected[lane.name][channel].append(bytes(lane.host.holds(at + k) for k in range(size)))
            for off in range(0, size, TURN):
                part = min(TURN, size - off)
                lane.h2c.items.append(turn(at + off, 0, part, channel=channel, stream=True, last=off + part == size))
            lane.h2c.items.append(turn(HOST, CARD + i * TURN, 200))
        count = max(count, len(lane.h2c.items))
    wanted = {lane.name: len(lane.h2c.items) for lane in lanes}
    await bench.until(lambda: all(len(lane.h2c_done.items) == wanted[lane.name] for lane in lanes), 30_000)
    await bench.cycle(400)
    for lane in lanes:
        assert all(done[1] == NONE for done in lane.h2c_done.items)
        open_: dict[int, bytes] = {}
        for user, last, keep, data in lane.to_stream.items:
            assert user < 4
            size = keep.bit_length()
            assert keep == (1 << size) - 1
            open_[user] = open_.get(user, b"") + data.to_bytes(LINE, "little")[:size]
            if last:
                assert open_.pop(user) == expected[lane.name][user].pop(0), lane.name
        assert not open_
        assert not any(expected[lane.name]), lane.name


@cocotb.test()
async def stalled_stream_stops_only_streams(dut: Any) -> None:
    """The stream is never ready. Turns accepted before it filled, and memory turns, continue."""
    bench, lanes = lanes_of(dut, 8)
    await bench.reset(4)
    lanes = [lane for lane in lanes if INSTANCES[lane.name].get("Stream", 1)]
    for lane in lanes:
        lane.to_stream.stall = 1.0
    offered = dict.fromkeys(INSTANCES, 0)
    memory = dict.fromkeys(INSTANCES, 0)
    for _ in range(4_000):
        for lane in lanes:
            if lane.h2c.items:
                continue
            # Acts as dma_turns: offers a stream turn only while there is room.
            if lane.flags["h2c_stream_room_o"].get() and offered[lane.name] < 20:
                lane.h2c.items.append(turn(HOST, 0, TURN, stream=True))
                offered[lane.name] += 1
            elif memory[lane.name] < 40:
                lane.h2c.items.append(turn(HOST, CARD + 512 * memory[lane.name], 512, channel=1))
                memory[lane.name] += 1
        await bench.cycle()
    for lane in lanes:
        assert 7 <= offered[lane.name] <= 9  # 512 beats, of 64 a turn
        assert sum(done[0] == 1 for done in lane.h2c_done.items) == 40, lane.name
        lane.to_stream.stall = 0.0
    await bench.until(lambda: all(lane.flags["idle_o"].get() for lane in lanes), 4_000)


@cocotb.test()
async def packets_come_in(dut: Any) -> None:
    """A packet fills turns of its channel until it ends. Answers give the bytes, and the turn in which it ended."""
    bench, lanes = lanes_of(dut, 9)
    await bench.reset(4)
    lanes = [lane for lane in lanes if INSTANCES[lane.name].get("Stream", 1)]
    packets: dict[str, list[tuple[int, bytes]]] = {}
    rooms: dict[str, list[tuple[int, int, int]]] = {lane.name: [] for lane in lanes}
    for lane in lanes:
        lane.pace(0.2, 0.2)
        sizes = (1, 60, 64, 100, 4096, 5000, 9000, 333)
        packets[lane.name] = [(i % 4, bench.random.randbytes(size)) for i, size in enumerate(sizes)]
        for channel, packet in packets[lane.name]:
            lane.from_stream.items.extend(beats(packet, channel))
    # Acts as dma_turns: one turn at a time for the channel whose packet is present, sometimes beside memory turns.
    at, asked = HOST, dict.fromkeys(INSTANCES, 0)
    for _ in range(30_000):
        for lane in lanes:
            if lane.h2c.items or lane.c2h.items or asked[lane.name] > len(lane.c2h_done.items):
                continue
            if lane.flags["c2h_stream_valid_o"].get():
                room, channel = (
                    bench.random.choice([64, 100, 1000, 1501, TURN]),
                    lane.flags["c2h_stream_channel_o"].get(),
                )
                lane.c2h.items.append(turn(at, 0, room, channel=channel, stream=True))
                rooms[lane.name].append((at, room, channel))
                asked[lane.name] += 1
                at += 2 * TURN + 5
                if bench.random.random() < 0.3:
                    lane.c2h.items.append(turn(0x7700_0000 + at, CARD + at, 100, channel=3))
                    rooms[lane.name].append((-1, 100, 3))
                    asked[lane.name] += 1
        await bench.cycle()
        if all(not lane.from_stream.items and asked[lane.name] == len(lane.c2h_done.items) for lane in lanes):
            break
    await bench.cycle(30)
    for lane in lanes:
        got, expected = b"", list(packets[lane.name])
        for (address, room, channel), done in zip(rooms[lane.name], lane.c2h_done.items, strict=True):
            assert done[1] == NONE
            assert done[0] == channel
            if address < 0:
                assert done[3] == 100
                continue
            got += bytes(lane.host.written[address + i] for i in range(done[3]))
            assert address + done[3] not in lane.host.written
            if done[2]:
                assert (channel, got) == expected.pop(0), lane.name
                got = b""
            else:
                assert done[3] == room
        assert not expected
        assert not got


@cocotb.test()
async def stops_and_begins_again(dut: Any) -> None:
    """A reset of the function with work in flight: each turn is answered, and later turns work."""
    bench, lanes = lanes_of(dut, 10)
    await bench.reset(4)
    for lane in lanes:
        lane.pace(0.1, 0.2)
        lane.host.delay = (100, 1_500)
    for _ in range(4):
        asked = [Both(bench, lane) for lane in lanes]
        for both in asked:
            both.lane.host.written.clear()
            both.lane.card.written.clear()
            both.lane.h2c_done.items.clear()
            both.lane.c2h_done.items.clear()
            both.ask(8)
            if INSTANCES[both.lane.name].get("Stream", 1):
                both.lane.from_stream.items.extend(beats(bytes(300), 2))
        await bench.cycle(bench.random.randrange(20, 400))
        for lane in lanes:
            lane.levels["stop_i"].set(1)
        await bench.until(
            lambda asked=asked: all(both.over() and both.lane.flags["idle_o"].get() for both in asked), 6_000
        )
        await bench.cycle(60)
        for both in asked:
            both.lane.levels["stop_i"].set(0)
            both.check({"h2c": {NONE, RESET}, "c2h": {NONE, RESET}})
    for lane in lanes:
        lane.host.written.clear()
        lane.card.written.clear()
        lane.h2c_done.items.clear()
        lane.c2h_done.items.clear()
    again = [Both(bench, lane) for lane in lanes]
    for both in again:
        both.at = 0x100_0000
        both.ask(10)
    await bench.until(lambda: all(both.settled() for both in again), 20_000)
    for both in again:
        both.check({"h2c": {NONE}, "c2h": {NONE}})


def test_dma_data() -> None:
    simulate(__file__, text=top_of(INSTANCES), sources=tuple(ROOT / path for path in files("*_pkg.sv")))
