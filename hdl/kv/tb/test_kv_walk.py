# SPDX-License-Identifier: Apache-2.0
"""Checks the number of cycles in which the joined core walks through a key's buckets against docs/design/kv-core.md,
and which other writes stop a walk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
import kv_frames as frames
import kv_model
from kv_core_rig import (
    CLIENT,
    COMMIT,
    ENTER,
    ENTERED,
    ME,
    NO_SUCH_KEY,
    OK,
    READ,
    REPLICATE,
    REPLICATE_REMOVE,
    RETRY_CYCLES,
    WRITE,
    Kv,
    begun,
    bucket_of,
    in_turn,
    keys_with,
    table_of,
)
from simulate import KV_PACKAGES, simulate


@cocotb.test()
async def what_a_walk_takes(dut: Any) -> None:
    """Reads at a follower, with the key in its second bucket, its last bucket, or nowhere. All lines are in the
    cache."""
    with table_of(11):
        rig = await begun(dut)
        members = [0, ME]
        await rig.enter(1, members, in_turn(members))
        await rig.write("retry_cycles", 10_000_000)
        await rig.bench.cycle(2 * RETRY_CYCLES)

        def hash_of(key: int) -> int:
            return frames.crc32c(key.to_bytes(8, "big"))

        key = keys_with(0, members, 1)[0]
        buckets = kv_model.candidates(hash_of(key))
        assert len(buckets) == 8
        others = [k for k in range(key + 1, key + 5000) if buckets[0] in kv_model.candidates(hash_of(k))][:2]
        written = 0

        async def put(what: int, bucket: int, way: int, kind: int = REPLICATE) -> None:
            nonlocal written
            written += 1
            named = kv_model.number_of(hash_of(what), bucket)
            numbers = {"version": written, "request": written, "key": what, "candidate": named}
            kv = Kv(kind, node=0, epoch=1, detail=way << 6 | written, client=7, **numbers)
            rig.from_node(0, kv)
            answer = await rig.to_node(0, kind | 16)
            assert (answer.candidate, answer.version) == (named, written)
            rig.from_node(0, replace(kv, kind=COMMIT))
            await rig.bench.cycle(60)

        async def read(status: int) -> int:
            answer = await rig.reply(Kv(READ, key=key))
            assert answer.status == status
            rig.begun.clear()
            rig.net_in.cycles_of.clear()
            rig.give(Kv(READ, key=key, request=2), CLIENT, checksum=False)
            await rig.bench.until(lambda: bool(rig.begun))
            await rig.bench.cycle(60)
            return rig.begun[0] - rig.net_in.cycles_of[0]

        assert await read(NO_SUCH_KEY) == 12
        await put(others[0], buckets[0], 0)
        assert await read(NO_SUCH_KEY) == 12  # only one key: no walk
        await put(others[1], buckets[0], 1)
        took = [await read(NO_SUCH_KEY)]
        for index in (1, 7):
            await put(key, buckets[index], 2)
            took.append(await read(OK))
            await put(key, buckets[index], 2, REPLICATE_REMOVE)
        assert took == [63, 27, 63], took


@cocotb.test()
async def writes_to_buckets_of_one_slot(dut: Any) -> None:
    """Such writes are in flight at the same time, even if their bucket numbers have the same bits 11 to 0."""
    with table_of(13):
        rig = await begun(dut)
        members = [0, ME]
        await rig.enter(1, members, in_turn(members))
        await rig.to_node(0, ENTER)
        rig.from_node(0, Kv(ENTERED, epoch=1))
        await rig.opened()
        first = keys_with(ME, members, 1)[0]
        keys: dict[int, int] = {}  # one key per bucket
        for key in range(first, first + 200_000):
            if bucket_of(key) % 256 == bucket_of(first) % 256:
                keys.setdefault(bucket_of(key), key)
        assert len(keys) == 32
        assert len({bucket % 4096 for bucket in keys}) == 16
        for lane, key in enumerate(keys.values()):
            rig.give(Kv(WRITE, epoch=1, client=lane, request=1, key=key))
            assert (await rig.to_node(0, REPLICATE)).key == key
        assert (await rig.state())["in_flight"] == 32


TOP = """
module top (input wire clk_i, input wire rst_i);
  kv_core #(.LineCacheBits(11), .HostBeats(256)) dut (.clk_i, .rst_i);
endmodule
"""


def test_kv_walk() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES)
