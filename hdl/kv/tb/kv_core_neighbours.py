# SPDX-License-Identifier: Apache-2.0
"""Tests the joined core with host, network, memory or driver stalling, failing or misconfigured.

Run by test_kv_core.py."""

from __future__ import annotations

from typing import Any

import cocotb
import kv_frames as frames
import kv_model
from kv_core_rig import (
    BUCKET_BITS,
    LANE,
    ME,
    NO_SUCH_KEY,
    OK,
    PING,
    READ,
    REPLICATE,
    REPLICATED,
    RETRY_CYCLES,
    WRITE,
    Kv,
    begun,
    bucket_of,
    in_turn,
    keys_with,
    table_of,
)
from kv_registers_rig import AT

CLEAR_TABLE = 8
ANSWERED = 20
"""The core answers every register access after reset within this number of cycles."""


@cocotb.test()
async def questions_of_the_node_evict_no_line(dut: Any) -> None:
    """These frames have no key. The bits in the key's field must not bring a line into the cache."""
    rig = await begun(dut)
    await rig.enter(1, [ME], lambda slot: ME)
    key = next(k for k in range(1, 5000) if bucket_of(k) % 16 == bucket_of(0) % 16 and bucket_of(k) != bucket_of(0))
    assert (await rig.reply(Kv(WRITE, epoch=1, request=1, key=key))).status == OK
    assert (await rig.reply(Kv(READ, key=key, request=1))).status == OK
    await rig.bench.cycle(300)
    reads = [len(memory.read_bursts) for memory in rig.memories]
    for request in range(3):
        await rig.reply(Kv(PING, request=request))
        await rig.reply(Kv(LANE, client=3, request=request))
        await rig.bench.cycle(100)
    assert (await rig.reply(Kv(READ, key=key, request=2))).status == OK
    assert [len(memory.read_bursts) for memory in rig.memories] == reads


@cocotb.test()
async def memory_fails(dut: Any) -> None:
    """After a memory error the node serves nothing until its table is cleared."""
    rig = await begun(dut, accept=False)
    members = [0, ME]
    await rig.enter(1, members, in_turn(members))
    key = keys_with(0, members, 1)[0]
    for memory in rig.memories:
        memory.errors = 1.0
    rig.from_node(0, Kv(REPLICATE, epoch=1, client=1, request=1, version=1, key=key, value=b"x" * 1024))
    assert not [kv for _, kv in await rig.quiet(300) if kv.kind == REPLICATED]
    state = await rig.state()
    assert (state["fault"], state["serving"]) == (1, 0)
    rig.give(Kv(READ, key=key, request=1))
    assert not await rig.quiet(2 * RETRY_CYCLES)
    for memory in rig.memories:
        memory.errors = 0.0
    await rig.enter(0, [], lambda slot: 0)
    await rig.write("control", 1 | 8)
    while (await rig.state())["clearing"]:
        pass
    assert (await rig.state())["fault"] == 0
    await rig.enter(1, [ME], lambda slot: ME)
    assert (await rig.reply(Kv(WRITE, epoch=1, request=1, key=key, value=b"y"))).status == OK
    for place in range(70):  # no place of the pool was lost
        assert (await rig.reply(Kv(WRITE, epoch=1, request=2 + place, key=key, value=b"y"))).status == OK


@cocotb.test()
async def a_write_whose_only_burst_fails_is_not_acknowledged(dut: Any) -> None:
    """The error and the end of the write come in the same cycle, because a value of no bytes is only a header."""
    for value in (b"", b"x" * 64):
        rig = await begun(dut, accept=False)
        await rig.enter(1, [0, ME], lambda slot: 0)
        for memory in rig.memories:
            memory.errors = 1.0
        rig.from_node(0, Kv(REPLICATE, epoch=1, client=1, request=1, version=1, key=1, value=value))
        assert not [kv for _, kv in await rig.quiet(300) if kv.kind == REPLICATED]
        assert (await rig.state())["fault"] == 1


@cocotb.test()
async def a_fault_in_the_middle_of_a_walk_is_the_end_of_it(dut: Any) -> None:
    """A write that adds a key waits for the line of its new bucket. Meanwhile memory fails."""
    with table_of(11):
        rig = await begun(dut)
        await rig.enter(1, [ME], lambda slot: ME)
        key = next(k for k in range(1, 999) if bucket_of(k) % 256 != 1)
        buckets = kv_model.candidates(frames.crc32c(key.to_bytes(8, "big")))
        assert len({bucket % 16 for bucket in buckets}) == 1, "each line takes the cache's place of the one before"
        others = [k for k in range(key + 1, key + 20_000) if bucket_of(k) == buckets[0]][:2]
        for request, other in enumerate(others):
            assert (await rig.reply(Kv(WRITE, epoch=1, request=request, key=other))).status == OK
        elsewhere = next(k for k in range(1, 999) if bucket_of(k) % 16 != buckets[0] % 16)
        assert (await rig.reply(Kv(READ, key=elsewhere))).status == NO_SUCH_KEY  # its line is now in the cache
        await rig.bench.cycle(300)
        for memory in rig.memories:
            memory.errors, memory.read_bursts = 1.0, []
            memory.delay = (100_000, 100_000)  # delays the end of the next write
        assert (await rig.reply(Kv(WRITE, epoch=1, client=1, key=elsewhere))).status == OK
        await rig.bench.until(lambda: any(memory.writes for memory in rig.memories))
        for memory in rig.memories:
            memory.delay = (60, 60)
        assert (await rig.state())["fault"] == 0
        rig.give(Kv(WRITE, epoch=1, client=2, key=key))

        def looked_into(bucket: int) -> int:
            return len([1 for m in rig.memories for address, _ in m.read_bursts if address // 64 == bucket])

        await rig.bench.until(lambda: looked_into(buckets[4]) >= 2 * looked_into(buckets[5]) > 0)
        for memory in rig.memories:
            memory.writes = type(memory.writes)((0, beats) for _, beats in memory.writes)
        assert not await rig.quiet(400)
        assert (await rig.state())["fault"] == 1


@cocotb.test()
async def others_pass(dut: Any) -> None:
    """Frames of others pass in both directions, whole and in order, among kv frames, with any stalls."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    rig.net_in.idle, rig.net_out.stall, rig.host_out.stall = 0.2, 0.3, 0.2
    draw = rig.bench.random
    to_host, to_net = [], []
    for request in range(150):
        kind = draw.choice([READ, WRITE])
        value = draw.randbytes(draw.choice([0, 64, 1024])) if kind == WRITE else b""
        rig.give(
            Kv(kind, epoch=1, request=request + 1, key=draw.randrange(5), value=value), checksum=draw.random() < 0.5
        )
        frame = bytes(frames.random_bytes(draw)) if draw.random() < 0.5 else frames.strange(draw)
        to_host.append(frame)
        rig.net_in.items.extend(rig.beats(frame))
        frame = draw.randbytes(draw.randrange(60, 1500))
        to_net.append(frame)
        rig.host_in.items.extend(beat[:4] for beat in rig.beats(frame))
    await rig.bench.until(lambda: not rig.net_in.items and not rig.host_in.items, 60_000)
    rig.net_out.stall = 0.0
    await rig.bench.cycle(500)
    assert rig.to_host == to_host
    assert rig.foreign == to_net
    assert await rig.read("frames_passed_rx") == 150
    assert await rig.read("frames_passed_tx") == 150


@cocotb.test()
async def a_host_that_takes_nothing_stops_no_kv_frame(dut: Any) -> None:
    """Foreign frames wait for the host while there is room. Then whole frames are dropped and counted."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    draw = rig.bench.random
    given: list[bytes] = []
    rig.host_out.stall = 1.0
    broadcast = bytes.fromhex("ffffffffffff0200000009090806")
    for request in range(60):
        frame = broadcast + draw.randbytes(46 if request < 3 else draw.randrange(46, 1500))
        given.append(frame)
        rig.net_in.items.extend(rig.beats(frame))
        write = Kv(WRITE, epoch=1, request=request + 1, key=request % 5, value=draw.randbytes(64))
        assert (await rig.reply(write)).status == OK
        assert (await rig.reply(Kv(READ, key=request % 5, request=request))).value == write.value
    assert rig.to_host == []
    lost = await rig.read("dropped_host")
    assert 0 < lost < 50
    assert await rig.read("frames_passed_rx") == 60
    rig.host_out.stall = 0.3
    await rig.bench.cycle(2000)
    assert len(rig.to_host) == 60 - lost
    remaining = iter(given)  # the remaining frames are whole, and in order
    assert all(frame in remaining for frame in rig.to_host)
    assert rig.to_host[:3] == given[:3]
    # Afterwards there is room again.
    rig.net_in.items.extend(rig.beats(given[0]))
    await rig.bench.cycle(200)
    assert rig.to_host[-1] == given[0]
    assert await rig.read("dropped_host") == lost


@cocotb.test()
async def a_network_that_takes_nothing_holds_up_no_register(dut: Any) -> None:
    """Every access is answered at once. `state` shows the driver that the epoch is still being entered."""
    rig = await begun(dut)
    await rig.enter(1, [ME], lambda slot: ME)

    async def write(register: str, value: int) -> None:
        begun_at = rig.bench.cycles
        await rig.write(register, value)
        assert rig.bench.cycles - begun_at <= ANSWERED, register

    rig.net_out.stall = 1.0
    for request in range(3):
        rig.give(Kv(PING, request=request))
    await rig.bench.cycle(100)
    assert (await rig.state())["entering"] == 0
    await write("members", 0x0303)
    await write("epoch", 2)
    for _ in range(50):
        # Staged registers and `epoch` keep their values, and all other registers accept writes.
        await write("node", 5)
        await write("members", 0x7F7F)
        await write("leader", 0x55555555)
        await write("epoch", 3)
        await write("retry_cycles", RETRY_CYCLES + 1)
        assert (await rig.state())["entering"] == 1
        assert await rig.read("epoch") == 1
        assert await rig.read("node") == ME
        assert await rig.read("members") == 0x0303
        assert await rig.read("retry_cycles") == RETRY_CYCLES + 1
        await rig.bench.cycle(50)
    rig.net_out.stall = 0.0
    while (await rig.state())["entering"]:
        pass
    assert await rig.read("epoch") == 2
    assert await rig.read("leader") == ME * 0x11111111
    await write("members", 0x0707)
    assert await rig.read("members") == 0x0707
    await rig.enter(4, [ME], lambda slot: ME)
    assert (await rig.reply(Kv(READ, key=1, request=9))).kind == READ | 16


@cocotb.test()
async def a_table_that_ends_beyond_memory_is_refused(dut: Any) -> None:
    """A table that begins within a page is also refused. No address wraps, and a table that fits ends the fault."""
    rig = await begun(dut)
    lines, values, memory = 64 << BUCKET_BITS, 4096 << BUCKET_BITS, 1 << 34

    async def clear(line_base: int, value_base: int) -> int:
        for name, base in (("line_base", line_base), ("value_base", value_base)):
            await rig.write(name, base & 0xFFFFFFFF)
            await rig.write(AT[name] + 4, base >> 32)
        await rig.write("control", 1 | CLEAR_TABLE)
        for _ in range(3):
            await rig.bench.cycle(200)
            while (await rig.state())["clearing"]:
                pass
        return (await rig.state())["fault"]

    for line_base, value_base in (
        (0, memory - values + 4096),
        (0, memory),
        (0, 1 << 63),
        (0, values + 64),
        (0, values + 1),
        (memory - lines + 4096, 0),
        (memory, 0),
        (2048, values),
    ):
        written = [len(port.write_bursts) for port in rig.memories]
        assert await clear(line_base, value_base) == 1, (line_base, value_base)
        assert [len(port.write_bursts) for port in rig.memories] == written
        await rig.enter(1, [ME], lambda slot: ME)
        rig.give(Kv(READ, key=1, request=1))
        assert not await rig.quiet()
        # Bases that fit do not end the fault, because the table there was not cleared.
        await rig.write("line_base", 0)
        await rig.write("value_base", lines)
        for name in ("line_base", "value_base"):
            await rig.write(AT[name] + 4, 0)
        assert (await rig.state())["fault"] == 1
        await rig.enter(0, [], lambda slot: 0)
    for line_base, value_base in ((0, memory - values), (memory - lines, 0), (0, lines)):
        assert await clear(line_base, value_base) == 0
    await rig.enter(1, [ME], lambda slot: ME)
    assert (await rig.reply(Kv(WRITE, epoch=1, request=1, key=1, value=b"y"))).status == OK
