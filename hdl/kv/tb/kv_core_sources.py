# SPDX-License-Identifier: Apache-2.0
"""Tests the joined core with addresses that it does not answer.

Run by test_kv_core.py."""

from __future__ import annotations

from typing import Any

import cocotb
import kv_frames as frames
from kv_core_rig import (
    CLIENT,
    LANE,
    ME,
    OK,
    PEERS,
    PING,
    READ,
    REPLICATE,
    REPLICATED,
    WRITE,
    Kv,
    Rig,
    begun,
    frame_of,
    in_turn,
    keys_with,
)
from kv_registers_rig import AT, BUILDING

STRANGER = frames.endpoint("02:00:00:00:66:06", "10.66.0.6", 7777)
CLIENTS, MEMBERS = "10.9.0.0/24", "10.1.0.0/29"


async def dropped(rig: Rig) -> dict[str, int]:
    """Returns the counters of frames that the core drops."""
    names = ("source", "checksum", "length", "epoch", "duplicate", "busy")
    return {name: await rig.read(f"dropped_{name}") for name in names}


@cocotb.test()
async def strangers_get_no_answer_and_are_counted(dut: Any) -> None:
    """No frame of a stranger has an effect, whatever it asks and however wrong it is."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    await rig.allow(CLIENTS, MEMBERS)
    key = keys_with(ME, [ME], 1)[0]
    assert (await rig.reply(Kv(WRITE, epoch=1, request=1, key=key, value=b"mine"))).status == OK
    before, received = await dropped(rig), await rig.read("frames_kv")
    asked = [Kv(kind, epoch=1, client=2, request=1, key=key, value=b"x" * size * (kind == WRITE))
             for kind in (READ, WRITE, PING, LANE, REPLICATE, 13, 31) for size in (3, 1024)]  # fmt: skip
    for kv in asked:
        rig.give(kv, STRANGER, checksum=rig.bench.random.random() < 0.5)
    spoilt = [bytearray(frame_of(kv, STRANGER, PEERS[ME])) for kv in asked]
    for frame in spoilt:
        frame[rig.bench.random.choice((24, 16, 39, 40))] ^= 0x10  # corrupts a checksum or a length
        rig.net_in.items.extend(rig.beats(bytes(frame)))
    assert not await rig.quiet(1200)
    assert await dropped(rig) == {**before, "source": before["source"] + 2 * len(asked)}
    assert await rig.read("frames_kv") == received + 2 * len(asked)
    answer = await rig.reply(Kv(READ, key=key, request=7))
    assert (answer.status, answer.value) == (OK, b"mine")
    assert (await rig.reply(Kv(WRITE, epoch=1, client=2, request=1, key=key, value=b"a client's"))).status == OK


@cocotb.test()
async def strangers_take_no_place_from_clients(dut: Any) -> None:
    """The strangers send more writes than the pool has places, back to back, with a client's write in the middle."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    await rig.allow(CLIENTS)
    keys = keys_with(ME, [ME], 4)
    for i in range(200):
        rig.give(
            Kv(WRITE, epoch=1, client=5, request=i + 1, key=keys[i % 4], value=b"s" * 1024), STRANGER, checksum=False
        )
        if i % 20 == 0:
            rig.give(Kv(WRITE, epoch=1, client=1 + i // 20, request=1, key=keys[i % 4], value=b"c" * 1024))
    for lane in range(1, 11):
        await rig.next(f"answer of lane {lane}", lambda to, kv, lane=lane: to == CLIENT and kv.client == lane)
    assert not [kv for to, kv in await rig.quiet(4000) if to != CLIENT]
    counts = await dropped(rig)
    assert (counts["source"], counts["busy"]) == (200, 0), counts


@cocotb.test()
async def frames_for_the_host_pass_whoever_sends_them(dut: Any) -> None:
    """The core passes strangers' frames to the host as well."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    await rig.allow(CLIENTS)
    elsewhere = [
        frames.endpoint("02:00:00:00:01:02", "10.1.0.2", 80),
        frames.endpoint("02:00:00:00:01:02", "10.1.0.3", 19286),
    ]
    sent = [
        frame_of(Kv(READ, key=5, value=b"x" * 100), source, to) for source in (STRANGER, CLIENT) for to in elsewhere
    ]
    sent.append(b"\xff" * 12 + b"\x08\x06" + bytes(60))
    for frame in sent:
        rig.net_in.items.extend(rig.beats(frame))
    await rig.bench.until(lambda: len(rig.to_host) == len(sent))
    assert rig.to_host == sent
    assert (await dropped(rig))["source"] == 0


@cocotb.test()
async def members_are_answered_where_clients_are_elsewhere(dut: Any) -> None:
    """A member that the list does not name is a stranger, even if its frames are correct. The driver names all
    members."""
    rig = await begun(dut)
    members = [0, ME, 5]
    await rig.enter(1, members, in_turn(members))
    first, second = keys_with(0, members, 2)
    await rig.allow(CLIENTS, "10.1.0.0/32")
    rig.from_node(0, Kv(REPLICATE, epoch=1, client=1, request=1, version=1, key=first, value=b"x"))
    await rig.to_node(0, REPLICATED)
    rig.give(Kv(LANE, client=1, request=0), PEERS[0])
    assert [to for to, kv in await rig.quiet() if kv.kind & 15 == LANE] == [PEERS[0]]
    key = keys_with(5, members, 1)[0]
    rig.from_node(5, Kv(REPLICATE, epoch=1, client=2, request=1, version=1, key=key, value=b"x"))
    rig.give(Kv(READ, key=second, request=1), PEERS[5])
    assert not [kv for to, kv in await rig.quiet(800) if to == PEERS[5] and kv.kind in (REPLICATED, READ | 16)]
    assert (await dropped(rig))["source"] == 2
    await rig.allow(CLIENTS, "10.1.0.0/32", "10.1.0.5/32")
    rig.from_node(5, Kv(REPLICATE, epoch=1, client=2, request=1, version=1, key=key, value=b"x"))
    await rig.to_node(5, REPLICATED)


@cocotb.test()
async def without_a_list_nobody_is_answered(dut: Any) -> None:
    """Without a source list the core answers no address, even if a reset came while a list was being built."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    for wait in (BUILDING, 3, 300, 900):
        await rig.allow(CLIENTS) if wait == BUILDING else await rig.write("source_mask", 0xFFFFFF00)
        await rig.bench.cycle(wait % BUILDING)
        await rig.bench.reset()
        await rig.write("node", ME)
        await rig.write("control", 1)
        for name, value in (("mac_low", PEERS[ME] >> 48 & 0xFFFFFFFF), ("mac_high", PEERS[ME] >> 80),
                            ("ip", PEERS[ME] >> 16 & 0xFFFFFFFF)):  # fmt: skip
            await rig.write(AT[f"peer_{name}"] + 16 * ME, value)
        await rig.write("epoch", 2)
        while (await rig.state())["entering"]:
            pass
        for later in (0, BUILDING):
            await rig.bench.cycle(later)
            rig.give(Kv(PING, request=5))
            rig.give(Kv(PING, request=6), PEERS[0])
            assert not await rig.quiet(100)
        assert (await dropped(rig))["source"] == 4
    await rig.allow(CLIENTS)
    await rig.reply(Kv(PING, request=6))


@cocotb.test()
async def the_list_changes_while_frames_arrive(dut: Any) -> None:
    """A frame may be answered if the old or the new list allows its source, and never if neither does."""
    rig = await begun(dut)
    await rig.enter(1, [ME], in_turn([ME]))
    draw = rig.bench.random
    await rig.allow("10.20.0.0/16", "10.9.0.0/24")
    sources = [frames.endpoint("02:00:00:00:09:09", f"{a}.{b}.{c}.{d}", 7777)
               for a in (10, 172) for b in (9, 20, 30, 16) for c in (0, 1) for d in (9, 200)]  # fmt: skip

    def allowed(source: int, *subnets: tuple[int, int]) -> bool:
        return any(mask and source >> 16 & mask == ip & mask for ip, mask in subnets)

    old = ((0x0A140000, 0xFFFF0000), (0x0A090000, 0xFFFFFF00))
    for new in (((0xAC100000, 0xFFF00000), (0x0A1E0100, 0xFFFFFF00)), ((0x0A090000, 0xFFFE0000), (0, 0)), old):
        rig.sent.clear()
        asked: list[int] = []
        for request in range(900):
            asked.append(draw.choice(sources))
            rig.give(Kv(PING, request=request), asked[-1], checksum=False)
        rig.net_in.idle = 0.8
        for i, (ip, mask) in enumerate(new):
            await rig.write(AT["source_mask"] + 8 * i, 0)
            await rig.bench.cycle(draw.choice((0, 100, 1200)))
            await rig.write(AT["source_ip"] + 8 * i, ip)
            await rig.write(AT["source_mask"] + 8 * i, mask)
        await rig.bench.until(lambda: not rig.net_in.items)
        rig.net_in.idle = 0.0
        await rig.bench.cycle(BUILDING)
        answers = [kv.request for _, kv in rig.sent]
        assert len(answers) > 20
        for request in answers:
            assert allowed(asked[request], *old, *new), hex(asked[request])
        rig.sent.clear()
        for request, source in enumerate(sources):
            rig.give(Kv(PING, request=request), source, checksum=False)
        await rig.bench.cycle(400)
        expected = [request for request, source in enumerate(sources) if allowed(source, *new)]
        assert [kv.request for _, kv in rig.sent] == expected
        old = new
