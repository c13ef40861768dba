# SPDX-License-Identifier: Apache-2.0
"""Tests the joined core, situation by situation, against docs/design/kv-protocol.md. Porcupine checks the histories of
whole clusters of cores (docs/project/kv-testing.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
from kv_core_rig import (
    BAD_LANE,
    BUSY,
    CLIENT,
    COMMIT,
    ENTER,
    ENTERED,
    ENTRY,
    FETCH,
    LANE,
    LANE_RECORD,
    ME,
    MISMATCH,
    MORE,
    NO_SUCH_KEY,
    NOT_LEADER,
    NOT_SERVING,
    OK,
    PEERS,
    PENDING,
    PING,
    READ,
    REMOVE,
    REPLICATE,
    REPLICATED,
    RETRY_CYCLES,
    STALE,
    TOP,
    WRITE,
    WRITE_IF,
    Kv,
    Rig,
    begun,
    bucket_of,
    in_turn,
    keys_with,
)
from simulate import KV_PACKAGES, simulate


@cocotb.test()
async def a_node_alone(dut: Any) -> None:
    for accept in (True, False):
        rig = await begun(dut, accept=accept)
        await rig.enter(1, [ME], in_turn([ME]))
        assert (await rig.state())["opened"] == 1
        draw = rig.bench.random
        table: dict[int, tuple[int, bytes]] = {}
        request = dict.fromkeys((0, 1, 4095), 0)
        for _ in range(160):
            key = draw.choice([1, 2, 3, 4, 5, 6, 1000, 2**64 - 1])
            kind = draw.choice([READ, READ, WRITE, WRITE, WRITE_IF, REMOVE, PING])
            lane = draw.choice(list(request))
            found = table.get(key)
            if kind == PING:
                pong = await rig.reply(Kv(PING, request=draw.getrandbits(32), key=key))
                assert (pong.status, pong.key) == (OK, 0)
                continue
            if kind == READ:
                answer = await rig.reply(Kv(READ, candidate=7, client=8191, request=draw.getrandbits(32), key=key))
                if found:
                    assert (answer.status, answer.version, answer.value) == (OK, *found)
                else:
                    assert (answer.status, answer.value) == (NO_SUCH_KEY, b"")
                continue
            request[lane] += draw.choice([1, 1, 5])
            value = draw.randbytes(draw.choice([0, 1, 63, 64, 65, 512, 1023, 1024])) if kind != REMOVE else b""
            version = draw.choice([found[0] if found else 0, 9]) if kind == WRITE_IF else 0
            asked = Kv(kind, epoch=1, client=lane, request=request[lane], version=version, key=key, value=value)
            answer = await rig.reply(asked, checksum=draw.random() < 0.5)
            if kind == WRITE_IF and version != (found[0] if found else 0):
                assert (answer.status, answer.version) == (MISMATCH, found[0] if found else 0)
            elif kind == REMOVE and not found:
                assert answer.status == NO_SUCH_KEY
            else:
                assert answer.status == OK, answer
                assert not found or answer.version > found[0]
                if kind == REMOVE:
                    del table[key]
                else:
                    table[key] = (answer.version, value)
            # Repeats the request and expects the same answer, without a second effect.
            if draw.random() < 0.3:
                assert replace(await rig.reply(asked), node=0) == replace(answer, node=0)
        assert not await rig.quiet()


@cocotb.test()
async def a_leader_repeats_until_all_have_answered(dut: Any) -> None:
    rig = await begun(dut)
    members = [0, ME, 5]
    await rig.enter(0x77, members, in_turn(members))
    key = keys_with(ME, members, 1)[0]
    asked = Kv(WRITE, epoch=0x77, client=3, request=1, key=key, value=b"one" * 100)
    assert (await rig.reply(asked)).status == BUSY  # the leader is closed
    for node in (0, 5):
        assert (await rig.to_node(node, ENTER)).epoch == 0x77
        rig.from_node(node, Kv(ENTERED, epoch=0x77))
    await rig.opened()
    rig.sent.clear()
    rig.give(asked)
    first = {node: await rig.to_node(node, REPLICATE) for node in (0, 5)}
    assert first[0] == first[5]
    assert (first[0].value, first[0].version, first[0].client, first[0].request) == (asked.value, 1, 3, 1)
    rig.from_node(0, replace(first[0], kind=REPLICATED, value=b""))
    # Meanwhile a read does not see the write, and another write to the bucket waits.
    assert (await rig.reply(Kv(READ, key=key, request=9))).status == NO_SUCH_KEY
    assert (await rig.reply(replace(asked, client=4))).status == BUSY
    rig.give(asked)  # a duplicate has no effect
    started = rig.bench.cycles
    assert (await rig.state())["unanswered"] == 1 << 0 | 1 << 5, "that they have entered"
    again = await rig.to_node(5, REPLICATE)
    assert again == first[5]
    assert (await rig.state())["unanswered"] == 1 << 5
    assert RETRY_CYCLES * 0.5 < rig.bench.cycles - started < RETRY_CYCLES * 2.5
    assert not [1 for to, kv in rig.sent if to == PEERS[0] and kv.kind == REPLICATE]
    rig.from_node(5, replace(again, kind=REPLICATED, value=b""))
    _, done = await rig.next("write_done", lambda to, kv: to == CLIENT and kv.kind == WRITE | 16)
    assert (done.status, done.version, done.request) == (OK, 1, 1)
    for node in (0, 5):
        assert (await rig.to_node(node, COMMIT)).version == 1
    assert (await rig.reply(Kv(READ, key=key, request=9))).value == asked.value
    assert await rig.read("retries") > 0
    # A late `replicated` is answered by `commit` again.
    rig.from_node(0, replace(first[0], kind=REPLICATED, value=b""))
    assert (await rig.to_node(0, COMMIT)).version == 1
    assert (await rig.state())["in_flight"] == 0


@cocotb.test()
async def a_leader_without_a_free_place(dut: Any) -> None:
    rig = await begun(dut)
    members = [0, ME]
    await rig.enter(1, members, in_turn(members))
    await rig.to_node(0, ENTER)
    rig.from_node(0, Kv(ENTERED, epoch=1))
    await rig.opened()
    asked = [
        Kv(WRITE, epoch=1, client=lane, request=1, key=key, value=b"value")
        for lane, key in enumerate(keys_with(ME, members, 55))
    ]
    for write in asked:
        rig.give(write)
        await rig.bench.cycle(20)  # the queue always has room

    async def finish(write: Kv) -> None:
        _, sent = await rig.next("replicate", lambda to, kv: kv.kind == REPLICATE and kv.client == write.client)
        rig.from_node(0, replace(sent, kind=REPLICATED, value=b""))
        _, done = await rig.next("reply", lambda to, kv: kv.kind == WRITE | 16 and kv.client == write.client)
        assert done.status == OK

    for _ in range(50):  # each write waits for its line, in a cache of 16 lines
        state = await rig.state()
        if state["in_flight"] == 48:
            break
        await rig.bench.cycle(20)
    # 16 places are reserved for other leaders' writes.
    assert (state["in_flight"], await rig.read("dropped_busy"), await rig.read("frames_kv")) == (48, 7, 56)
    for write in asked[:48]:
        await finish(write)
    for write in asked[48:]:  # sends the dropped messages again
        rig.give(write)
        await finish(write)
    assert await rig.read("dropped_busy") == 7


@cocotb.test()
async def a_follower_asks_for_a_commit_that_was_lost(dut: Any) -> None:
    rig = await begun(dut, accept=False)
    members = [0, ME]
    await rig.enter(9, members, in_turn(members))
    key = keys_with(0, members, 1)[0]
    assert (await rig.reply(Kv(WRITE, epoch=9, key=key, request=1))).status == NOT_LEADER
    assert (await rig.reply(Kv(WRITE, epoch=8, key=key, request=1))).status == STALE
    write = Kv(REPLICATE, epoch=9, detail=1 << 6 | 17, client=7, request=41, version=5, key=key, value=b"x" * 700)
    rig.from_node(0, write)
    assert (await rig.to_node(0, REPLICATED)) == replace(write, kind=REPLICATED, node=ME, value=b"")
    answer = await rig.reply(Kv(READ, key=key, request=1))
    assert (answer.status, answer.node) == (PENDING, 0)
    record = await rig.reply(Kv(LANE, client=7))
    assert (record.key, record.version) == (40, 0)  # the write may still be undone
    asked = await rig.to_node(0, REPLICATED)
    assert (asked.version, asked.client, asked.request, asked.detail, asked.key) == (5, 7, 41, 1 << 6 | 17, key)
    rig.from_node(0, replace(asked, kind=COMMIT))
    await rig.bench.cycle(60)
    answer = await rig.reply(Kv(READ, key=key, request=1))
    assert (answer.status, answer.version, answer.value) == (OK, 5, write.value)
    record = await rig.reply(Kv(LANE, client=7))
    assert (record.kind, record.key, record.version) == (LANE_RECORD, 41, 5)
    # A `replicate` at the same place shows that its earlier write is committed. So that lane's record is settled.
    other = keys_with(0, members, 2)[1]
    rig.from_node(0, replace(write, request=42, version=6))
    await rig.to_node(0, REPLICATED)
    rig.from_node(0, replace(write, client=8, request=1, version=1, key=other))
    await rig.to_node(0, REPLICATED)
    record = await rig.reply(Kv(LANE, client=7))
    assert (record.key, record.version) == (42, 6)
    assert (await rig.reply(Kv(READ, key=key, request=1))).version == 6


@cocotb.test()
async def leftovers_of_a_member(dut: Any) -> None:
    """The leader's state decides, even if it is older. `entered` is sent when no leftover remains."""
    rig = await begun(dut)
    members = [0, ME, 5]
    await rig.enter(1, members, in_turn(members))
    keys = keys_with(0, members, 6)
    for i, key in enumerate(keys):
        write = Kv(REPLICATE, epoch=1, detail=i, client=i, request=10, version=1, key=key, value=b"old%d" % i)
        rig.from_node(0, write)
        rig.from_node(0, replace(await rig.to_node(0, REPLICATED), kind=COMMIT))
        await rig.bench.cycle(40)
        rig.from_node(0, replace(write, detail=20 + i, request=11, version=2, value=b"new%d" % i))
        await rig.to_node(0, REPLICATED)
    await rig.enter(2, [ME, 5], lambda slot: 5)
    assert (await rig.state())["leftovers"] == 6
    assert (await rig.reply(Kv(READ, key=keys[0], request=1))).status == PENDING
    rig.from_node(5, Kv(ENTER, epoch=2))
    asked = {kv.key: kv for kv in [await rig.to_node(5, FETCH) for _ in range(6)]}
    assert sorted(asked) == sorted(bucket_of(key) * 4 for key in keys)
    # Some questions are not answered, so they are repeated.
    for key in keys[:2]:
        entry = replace(asked[bucket_of(key) * 4], kind=ENTRY, key=key, version=1, detail=1 << 5, value=b"old!")
        rig.from_node(5, entry)
    rig.from_node(5, replace(asked[bucket_of(keys[2]) * 4], kind=ENTRY, key=keys[2], detail=BUSY))
    rig.from_node(5, replace(asked[bucket_of(keys[3]) * 4], kind=ENTRY, key=keys[3], version=2, detail=1 << 5))
    # The new leader writes one of them again, with the earlier version.
    write = Kv(REPLICATE, epoch=2, detail=3, client=4, request=77, version=1, key=keys[4], value=b"again")
    rig.from_node(5, write)
    await rig.to_node(5, REPLICATED)
    assert (await rig.state())["leftovers"] == 2
    assert not [kv for _, kv in rig.sent if kv.kind == ENTERED]
    rig.from_node(5, replace(write, kind=COMMIT, value=b""))
    # A second walk may have begun before the answers came. Its questions are not checked here.
    await rig.bench.cycle(200)
    rig.sent = [(to, kv) for to, kv in rig.sent if kv.kind != FETCH]
    assert sorted([(await rig.to_node(5, FETCH)).key for _ in range(2)]) == sorted(
        bucket_of(keys[i]) * 4 for i in (2, 5)
    )
    for key in (keys[2], keys[5]):
        gone = replace(asked[bucket_of(key) * 4], kind=ENTRY, key=key, version=3, detail=0)
        rig.from_node(5, gone)
    await rig.to_node(5, ENTERED)
    assert (await rig.state())["leftovers"] == 0
    expected = [b"old!", b"old!", None, b"", b"again", None]
    for key, value in zip(keys, expected, strict=True):
        answer = await rig.reply(Kv(READ, key=key, request=1))
        assert (answer.value if answer.status == OK else None) == value, (key, answer)
    lanes = [(await rig.reply(Kv(LANE, client=i))) for i in range(6)]
    assert [(r.key, r.version) for r in lanes] == [(10, 0), (10, 0), (11, 2), (11, 2), (77, 1), (11, 2)]
    # No more questions come, an old entry has no effect, and no place is lost.
    rig.from_node(5, replace(asked[bucket_of(keys[0]) * 4], kind=ENTRY, key=keys[0], version=9, detail=1 << 5))
    assert not await rig.quiet(2 * RETRY_CYCLES)
    assert (await rig.reply(Kv(READ, key=keys[0], request=1))).version == 1


@cocotb.test()
async def a_leftover_that_is_written_again_is_not_settled(dut: Any) -> None:
    """Until the commit, a `lane` answer must not show the write: a returning node would answer the client from that
    record."""
    for accept in (True, False):
        rig = await begun(dut, accept=accept)
        await rig.enter(1, [0, ME, 5], lambda slot: 0)
        write = Kv(REPLICATE, epoch=1, detail=1 << 6 | 7, client=7, request=41, version=5, key=1, value=b"x" * 100)

        async def told(rig: Rig = rig) -> tuple[int, int]:
            record = await rig.reply(Kv(LANE, client=7))
            assert record.status == OK
            return record.key, record.version

        rig.from_node(0, write)
        await rig.to_node(0, REPLICATED)
        assert await told() == (40, 0)
        # Node 6 returns. The pending write becomes a leftover, and the same leader repeats it.
        await rig.enter(2, [0, ME, 5, 6], lambda slot: 0, serving=[0, ME, 5])
        assert (await rig.state())["leftovers"] == 1
        # The write may have been committed in the previous epoch, without node 6.
        record = await rig.reply(Kv(LANE, client=7))
        assert (record.status, record.key, record.version) == (BUSY, 40, 0)
        rig.from_node(0, replace(write, epoch=2))
        await rig.to_node(0, REPLICATED)
        await rig.bench.cycle(60)
        assert (await rig.state())["leftovers"] == 0
        assert (await rig.reply(Kv(READ, key=1, request=1))).status == PENDING
        assert await told() == (40, 0)
        # Another epoch begins before the commit.
        await rig.enter(3, [0, ME, 5, 6], lambda slot: 0)
        rig.from_node(0, replace(write, epoch=3))
        await rig.to_node(0, REPLICATED)
        assert await told() == (40, 0)
        rig.from_node(0, replace(write, epoch=3, kind=COMMIT, value=b""))
        await rig.bench.cycle(60)
        assert await told() == (41, 5)
        assert (await rig.reply(Kv(READ, key=1, request=2))).version == 5


@cocotb.test()
async def leftovers_of_the_leader(dut: Any) -> None:
    """The leader completes writes that may have been acknowledged, before it opens."""
    rig = await begun(dut)
    members = [0, ME, 5]
    await rig.enter(1, members, in_turn(members))
    keys = keys_with(0, members, 4)
    values = [b"a" * 1024, b"", b"c" * 65, b"d"]
    for i, (key, value) in enumerate(zip(keys, values, strict=True)):
        rig.from_node(0, Kv(REPLICATE, epoch=1, detail=i, client=i, request=10, version=1, key=key, value=value))
        await rig.to_node(0, REPLICATED)
    rig.from_node(0, Kv(COMMIT, epoch=1, detail=3, client=3, request=10, version=1, key=keys[3]))
    await rig.bench.cycle(50)
    await rig.enter(2, [ME, 5], lambda slot: ME)
    rig.from_node(5, Kv(ENTERED, epoch=2))
    assert (await rig.reply(Kv(READ, key=keys[0], request=1))).status == BUSY
    assert (await rig.reply(Kv(READ, key=keys[3], request=1))).value == b"d"
    seen = {}
    for round_ in range(3):
        replay = await rig.to_node(5, REPLICATE)
        if round_ == 1:
            assert replace(await rig.to_node(5, REPLICATE)) == replay  # the first one was lost
        seen[replay.key] = replay
        assert (await rig.state())["opened"] == 0
        # A `fetch` of a location that is leftover here is answered `busy`.
        rig.from_node(5, replace(Kv(FETCH, epoch=2, request=5), key=bucket_of(replay.key) * 4))
        entry = await rig.to_node(5, ENTRY)
        assert entry.status == BUSY
        rig.from_node(5, replace(replay, kind=REPLICATED, value=b""))
        commit = await rig.to_node(5, COMMIT)
        assert (commit.version, commit.client, commit.request) == (1, replay.client, 10)
    assert {key: kv.value for key, kv in seen.items()} == dict(zip(keys[:3], values[:3], strict=True))
    await rig.bench.cycle(50)
    state = await rig.state()
    assert (state["opened"], state["leftovers"], state["in_flight"]) == (1, 0, 0)
    for key, value in zip(keys, values, strict=True):
        assert (await rig.reply(Kv(READ, key=key, request=1))).value == value
    # A repeated request of the client is answered from the record.
    done = await rig.reply(Kv(WRITE, epoch=2, client=0, request=10, key=keys[0], value=values[0]))
    assert (done.status, done.version) == (OK, 1)
    assert not [1 for to, kv in rig.sent if to == CLIENT]


@cocotb.test()
async def a_version_that_lags_is_refreshed(dut: Any) -> None:
    """Before versions of the bucket become incomparable, the key is written again unchanged, and completed like a
    leftover."""
    newest = 0x7FFFFFFE
    for accept, value in ((True, b"cold" * 20), (False, b"cold"), (True, b"")):
        rig = await begun(dut, accept=accept)
        members = [0, ME, 5]
        await rig.enter(1, members, lambda slot: 0)
        cold = keys_with(0, [0], 1)[0]
        hot = next(key for key in range(cold + 1, cold + 5000) if bucket_of(key) == bucket_of(cold))
        for way, (key, version, content) in enumerate(((cold, 1, value), (hot, newest, b"hot"))):
            write = Kv(REPLICATE, epoch=1, detail=way << 6 | way, client=9, request=way, version=version, key=key)
            rig.from_node(0, replace(write, value=content))
            await rig.to_node(0, REPLICATED)
            rig.from_node(0, replace(write, kind=COMMIT))
        await rig.bench.cycle(60)

        async def open_in(epoch: int, rig: Rig = rig) -> None:
            await rig.enter(epoch, [0, ME, 5], lambda slot: ME)
            for node in (0, 5):
                rig.from_node(node, Kv(ENTERED, epoch=epoch))
            await rig.opened()
            rig.sent.clear()

        await open_in(2)
        asked = Kv(WRITE, epoch=2, client=3, request=70, key=hot, value=b"new")
        assert (await rig.reply(asked)).status == BUSY
        first = {node: await rig.to_node(node, REPLICATE) for node in (0, 5)}
        assert first[0] == first[5]
        refresh = first[0]
        assert (refresh.key, refresh.version, refresh.value, refresh.detail >> 6) == (cold, newest + 1, value, 0)
        assert (refresh.client, refresh.request) == (3, 69)
        # Reads and writes of the bucket wait, and no second refresh begins.
        for again in range(2):
            assert (await rig.reply(replace(asked, client=4, request=again))).status == BUSY
        assert (await rig.reply(Kv(READ, key=cold, request=1))).status == BUSY
        rig.from_node(0, Kv(FETCH, epoch=2, request=5, key=bucket_of(cold) * 4))
        assert (await rig.to_node(0, ENTRY)).status == BUSY
        assert (await rig.state())["leftovers"] == 1
        # Writes to other buckets continue, in every place except the one in use.
        other = next(key for key in range(1, 99) if bucket_of(key) != bucket_of(cold))
        taken = 0
        for number in range(66 if not accept else 3):  # of 64 places
            rig.give(Kv(WRITE, epoch=2, client=11, request=number, key=other, value=b"other"))

            def heard(to: int, kv: Kv, number: int = number) -> bool:
                return kv.kind in (REPLICATE, WRITE | 16) and (kv.client, kv.request) == (11, number)

            _, sent = await rig.next("answer", heard)
            if sent.kind != REPLICATE:
                assert sent.status == BUSY
                continue
            assert sent.detail & 63 != refresh.detail & 63
            taken += 1
            for node in (0, 5):
                rig.from_node(node, replace(sent, kind=REPLICATED, value=b""))
            await rig.next("write_done", lambda to, kv: kv.kind == WRITE | 16 and kv.client == 11)
        assert taken > (60 if not accept else 1)
        # A new epoch begins meanwhile: the write becomes a leftover, and is sent again.
        await rig.enter(3, [0, ME, 5], lambda slot: ME)
        rig.sent = [(to, kv) for to, kv in rig.sent if kv.epoch == 3]
        replay = await rig.to_node(5, REPLICATE)
        assert (replay.key, replay.version, replay.value) == (cold, newest + 1, value)
        for node in (0, 5):
            rig.from_node(node, replace(replay, kind=REPLICATED, value=b""))
            rig.from_node(node, Kv(ENTERED, epoch=3))
        assert (await rig.to_node(5, COMMIT)).version == newest + 1
        await rig.opened()
        rig.sent.clear()
        assert (await rig.state())["leftovers"] == 0
        assert (await rig.reply(Kv(READ, key=cold, request=1))).value == value
        rig.give(replace(asked, epoch=3))
        sent = await rig.to_node(5, REPLICATE)
        assert (sent.key, sent.version, sent.request) == (hot, newest + 2, 70)
        for node in (0, 5):
            rig.from_node(node, replace(sent, kind=REPLICATED, value=b""))
        _, done = await rig.next("write_done", lambda to, kv: to == CLIENT and kv.kind == WRITE | 16)
        assert (done.status, done.version) == (OK, newest + 2)


@cocotb.test()
async def writes_in_flight_when_an_epoch_begins(dut: Any) -> None:
    rig = await begun(dut)
    members = [0, ME]
    await rig.enter(1, members, in_turn(members))
    rig.from_node(0, Kv(ENTERED, epoch=1))
    await rig.to_node(0, ENTER)
    await rig.bench.cycle(100)
    keys = keys_with(ME, members, 4)
    slots = [bucket_of(key) % 256 for key in keys]
    for i, key in enumerate(keys):
        rig.give(Kv(WRITE, epoch=1, client=i, request=5, key=key, value=b"v%d" % i))
        await rig.to_node(0, REPLICATE)
    assert (await rig.state())["in_flight"] == 4
    # This node still leads the first two slots. Node 5 is a member, node 0 is not.
    await rig.enter(2, [ME, 5], lambda slot: ME if slot in slots[:2] else 5)
    again = [await rig.to_node(5, REPLICATE) for _ in range(2)]
    assert {kv.key for kv in again} == set(keys[:2])
    assert all(kv.epoch == 2 for kv in again)
    assert (await rig.state())["in_flight"] == 2
    for kv in again:
        rig.from_node(5, replace(kv, kind=REPLICATED, value=b""))
        _, done = await rig.next("write_done", lambda to, kv: to == CLIENT)
        assert done.status == OK
        assert done.epoch == 2
    records = [await rig.reply(Kv(LANE, client=i)) for i in range(4)]
    assert [(r.key, r.version) for r in records] == [(5, 1), (5, 1), (4, 0), (4, 0)]
    # A node that is alone commits its writes in flight by itself.
    rig.from_node(5, Kv(ENTERED, epoch=2))
    await rig.bench.cycle(100)
    rig.give(Kv(WRITE, epoch=2, client=9, request=1, key=keys[0], value=b"last"))
    await rig.to_node(5, REPLICATE)
    await rig.enter(3, [ME], lambda slot: ME)
    _, done = await rig.next("write_done", lambda to, kv: to == CLIENT and kv.client == 9)
    assert (done.status, done.version) == (OK, 2)
    assert (await rig.reply(Kv(READ, key=keys[0], request=1))).value == b"last"
    # In no epoch, the node answers no question.
    await rig.enter(0, [], lambda slot: 0)
    assert (await rig.reply(Kv(READ, key=keys[0], request=1))).status == NOT_SERVING


@cocotb.test()
async def a_node_returns(dut: Any) -> None:
    rig = await begun(dut)
    members = [0, ME, 5]
    await rig.enter(1, members, lambda slot: 0 if slot < 128 else 5, serving=[0, 5])
    assert (await rig.reply(Kv(READ, key=1, request=1))).status == NOT_SERVING
    low = list({bucket_of(key): key for key in range(1, 400) if bucket_of(key) < 8}.values())[:5]
    held = {bucket_of(key) * 4 + 2: key for key in low}
    await rig.write("sync_from", 0)
    await rig.write("sync_count", 19)
    lost, answered = 0, set()
    # A write that is newer than the fetched data stays.
    newer = low[0]
    rig.from_node(0, Kv(REPLICATE, epoch=1, detail=2 << 6, client=5, request=6, version=9, key=newer, value=b"newer"))
    await rig.to_node(0, REPLICATED)
    while len(answered) < 19 * 4:
        asked = await rig.to_node(0, FETCH)
        if rig.bench.random.random() < 0.1:
            lost += 1
            continue
        answered.add(asked.key)
        entry = replace(asked, kind=ENTRY, key=0, detail=asked.key % 4 << 6)
        if asked.key in held:
            key = held[asked.key]
            entry = replace(entry, key=key, version=8, detail=2 << 6 | 1 << 5, value=b"fetched%d" % key)
        rig.from_node(0, entry)
        if rig.bench.random.random() < 0.1:
            rig.from_node(0, entry)
    assert lost > 0
    for _ in range(20):  # entries that wait for their turn
        if (left := await rig.read("sync_count")) == 0:
            break
        await rig.bench.cycle(20)
    assert left == 0
    # Lanes come from all serving nodes, and the newest record counts.
    await rig.write("sync_lanes", 6)
    seen = set()
    while len(seen) < 12:
        for node in (0, 5):
            for _ in range(6):
                if not [1 for to, kv in rig.sent if to == PEERS[node] and kv.kind == LANE]:
                    await rig.bench.cycle(20)
                    continue
                asked = await rig.to_node(node, LANE)
                if rig.bench.random.random() < 0.2:
                    continue
                seen.add((node, asked.client))
                if asked.client == 3 and node == 5:
                    rig.from_node(node, replace(asked, kind=LANE_RECORD, key=0, version=0, detail=BAD_LANE))
                    seen.discard((node, 3))
                    if rig.bench.random.random() < 0.7:
                        continue
                    seen.add((node, 3))
                record = replace(asked, kind=LANE_RECORD, key=100 * node + asked.client, version=node + 1)
                rig.from_node(node, record)
    await rig.bench.cycle(200)
    assert await rig.read("sync_lanes") == 0
    assert (await rig.state())["leftovers"] == 0
    # The node now serves, and leads.
    rig.from_node(0, Kv(COMMIT, epoch=1, detail=2 << 6, client=5, request=6, version=9, key=newer))
    await rig.bench.cycle(50)
    await rig.enter(2, members, in_turn(members))
    for key in low:
        answer = await rig.reply(Kv(READ, key=key, request=3))
        wanted = (9, b"newer") if key == newer else (8, b"fetched%d" % key)
        assert (answer.status, answer.version, answer.value) == (OK, *wanted)
    for lane in range(6):
        record = await rig.reply(Kv(LANE, client=lane))
        assert (record.key, record.version) == (500 + lane, 6)
    assert (await rig.reply(Kv(LANE, client=6))).key == 0
    # After clearing, the node has no keys and no records.
    await rig.enter(0, [], lambda slot: 0)
    await rig.write("control", 1 | 2 | 8)
    while (await rig.state())["clearing"]:
        pass
    await rig.enter(1, [ME], lambda slot: ME)
    for key in low:
        assert (await rig.reply(Kv(READ, key=key, request=4))).status == NO_SUCH_KEY
    assert (await rig.reply(Kv(LANE, client=3))).key == 0


@cocotb.test()
async def a_faulty_node_asks_for_nothing(dut: Any) -> None:
    """It does not ask even for the commit that it was about to request when memory failed."""
    rig = await begun(dut, accept=False)
    members = [0, ME, 5]
    await rig.enter(1, members, in_turn(members))
    first, second = keys_with(5, members, 2)
    write = Kv(REPLICATE, node=5, epoch=1, detail=63, client=1, request=1, version=1, key=first, value=b"x")
    rig.from_node(5, write)
    await rig.to_node(5, REPLICATED)
    for memory in rig.memories:
        memory.errors = 1.0
    rig.from_node(5, replace(write, detail=1, client=2, key=second))
    assert (await rig.reply(Kv(READ, key=first, request=1))).status == PENDING
    assert not await rig.quiet(3 * RETRY_CYCLES)
    assert (await rig.state())["fault"] == 1


def test_kv_core() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES, more=MORE)
