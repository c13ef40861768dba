# SPDX-License-Identifier: Apache-2.0
"""Tests what the joined core's registers report to its driver about members that do not answer, and about repetitions.

Run by test_kv_core.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
from kv_core_rig import (
    BUSY,
    COMMIT,
    ENTER,
    ENTERED,
    FETCH,
    ME,
    PEERS,
    REPLICATE,
    REPLICATED,
    RETRY_CYCLES,
    WRITE,
    Kv,
    Rig,
    begun,
    bucket_of,
    in_turn,
    keys_with,
)

MEMBERS = [0, ME, 5]


async def with_leftovers(dut: Any, values: list[bytes]) -> Rig:
    """Returns a core in epoch 1 that has these leftovers of node 0. It does not know whether they were committed."""
    rig = await begun(dut)
    await rig.enter(1, MEMBERS, in_turn(MEMBERS))
    keys = keys_with(0, MEMBERS, len(values))
    for i, (key, value) in enumerate(zip(keys, values, strict=True)):
        rig.from_node(0, Kv(REPLICATE, epoch=1, detail=i, client=i, request=10, version=1, key=key, value=value))
        await rig.to_node(0, REPLICATED)
    return rig


async def reported(rig: Rig, cycles: int) -> set[int]:
    """Returns all nodes that `state.unanswered` shows within this number of cycles."""
    said, end = set(), rig.bench.cycles + cycles
    while rig.bench.cycles < end:
        said.add((await rig.state())["unanswered"])
        await rig.bench.cycle(3)
    return said


@cocotb.test()
async def who_does_not_answer_a_leftover_is_known(dut: Any) -> None:
    """Only the member to which the leftover is repeated, with or without a value, is reported. A member that waits for
    the leftover is not."""
    for value in (b"x" * 100, b""):
        for silent, answers in ((0, 5), (5, 0)):
            rig = await with_leftovers(dut, [value, value])
            await rig.enter(2, MEMBERS, lambda slot: ME)
            first = {node: await rig.to_node(node, REPLICATE) for node in (0, 5)}
            # This member has a leftover itself, so it cannot send `entered` yet.
            rig.from_node(answers, replace(first[answers], kind=REPLICATED, value=b""))
            for _ in range(2):
                again = await rig.to_node(silent, REPLICATE)
                assert again == first[silent]
                assert await reported(rig, RETRY_CYCLES // 2) == {1 << silent}
            assert await reported(rig, 3 * RETRY_CYCLES) == {1 << silent}
            assert [1 for to, kv in rig.sent if to == PEERS[answers] and kv.kind == ENTER]
            # All leftovers are written, and one member has not entered.
            rig.from_node(silent, replace(first[silent], kind=REPLICATED, value=b""))
            await rig.to_node(silent, COMMIT)
            rig.sent = [(to, kv) for to, kv in rig.sent if kv.kind != REPLICATE]
            second = {node: await rig.to_node(node, REPLICATE) for node in (0, 5)}
            for node, kv in second.items():
                rig.from_node(node, replace(kv, kind=REPLICATED, value=b""))
            rig.from_node(answers, Kv(ENTERED, epoch=2))
            rig.sent.clear()
            await rig.to_node(silent, ENTER)
            assert await reported(rig, 2 * RETRY_CYCLES) == {1 << silent}
            assert (await rig.state())["in_flight"] == 0


@cocotb.test()
async def who_does_not_answer_a_refresh_is_known(dut: Any) -> None:
    """The leader is open and repeats nothing else."""
    for value in (b"cold" * 20, b""):
        rig = await begun(dut)
        await rig.enter(1, MEMBERS, lambda slot: 0)
        cold = keys_with(0, [0], 1)[0]
        hot = next(key for key in range(cold + 1, cold + 5000) if bucket_of(key) == bucket_of(cold))
        for way, (key, version) in enumerate(((cold, 1), (hot, 0x7FFFFFFE))):
            write = Kv(REPLICATE, epoch=1, detail=way << 6 | way, client=9, request=way, version=version, key=key)
            rig.from_node(0, replace(write, value=value))
            await rig.to_node(0, REPLICATED)
            rig.from_node(0, replace(write, kind=COMMIT))
        await rig.bench.cycle(60)
        await rig.enter(2, MEMBERS, lambda slot: ME)
        for node in (0, 5):
            rig.from_node(node, Kv(ENTERED, epoch=2))
        await rig.opened()
        rig.sent.clear()
        asked = Kv(WRITE, epoch=2, client=3, request=70, key=hot, value=b"new")
        assert (await rig.reply(asked)).status == BUSY
        refresh = {node: await rig.to_node(node, REPLICATE) for node in (0, 5)}
        assert refresh[0].key == cold
        rig.from_node(5, replace(refresh[5], kind=REPLICATED, value=b""))
        assert await rig.to_node(0, REPLICATE) == refresh[0]
        assert await reported(rig, 2 * RETRY_CYCLES) == {1 << 0}
        assert (await rig.state())["opened"] == 1


@cocotb.test()
async def repetitions_of_leftovers_are_counted(dut: Any) -> None:
    """A repetition counts once, for any number of receivers: of this node's own leftovers, and of questions to another
    leader."""
    rig = await with_leftovers(dut, [b"x" * 100, b"y"])
    await rig.enter(2, MEMBERS, lambda slot: 5)
    before = await rig.read("retries")

    def sent(kind: int, node: int) -> int:
        return len([1 for to, kv in rig.sent if to == PEERS[node] and kv.kind == kind])

    await rig.bench.until(lambda: sent(FETCH, 5) >= 2)
    assert await rig.read("retries") == before
    for rounds in (2, 3, 4):
        await rig.bench.until(lambda: sent(FETCH, 5) >= 2 * rounds)  # noqa: B023
        await rig.bench.cycle(50)
        assert await rig.read("retries") - before == 2 * (rounds - 1)
    # Its own leftovers go to two nodes at a time.
    await rig.enter(3, MEMBERS, lambda slot: ME)
    for node in (0, 5):
        rig.from_node(node, Kv(ENTERED, epoch=3))
    await rig.bench.until(lambda: sent(REPLICATE, 5) >= 1)
    before = await rig.read("retries")
    for rounds in (2, 3, 4):
        await rig.bench.until(lambda: sent(REPLICATE, 5) >= rounds)  # noqa: B023
        await rig.bench.cycle(50)
        assert sent(REPLICATE, 0) == rounds
        assert await rig.read("retries") - before == rounds - 1
