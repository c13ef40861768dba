# SPDX-License-Identifier: Apache-2.0
"""Tests kv_engine within one epoch against kv_model.py, a model of docs/design/kv-protocol.md, sections 4 to 6."""

from __future__ import annotations

import random
from typing import Any

import cocotb
import kv_frames as frames
import kv_model
from kv_engine_rig import CLEAR, KEEP, LEARN_LANE, LOOK, OP, OP_FREE, RESOLVE, TOP, Rig, begun
from kv_engine_traffic import Traffic
from kv_model import (
    COMMIT,
    ENTER,
    ENTERED,
    ENTRY,
    EPOCH,
    FULL,
    KV_FIELDS,
    LANE,
    LANE_RECORD,
    PEERS,
    PING,
    READ,
    REPLICATE,
    SELF,
    WRITE,
    Node,
    number_of,
    pack,
    unpack,
)
from simulate import KV_PACKAGES, simulate


async def run(
    dut: Any,
    model: Node,
    count: int,
    *,
    misses: float = 0.1,
    idle: float = 0.0,
    seed: int = 1,
    versions: tuple[int, int, int, int] | None = None,
    crowded: bool = False,
) -> Rig:
    rig = await begun(dut, model, misses=misses, idle=idle, seed=seed)
    bench = rig.bench
    traffic = Traffic(rig)
    if versions:
        traffic.preset(versions)
    if crowded:
        traffic.crowd()
    for _ in range(count):
        while len(rig.requests) > 8:
            await bench.cycle()
        request = traffic.next()
        if request is None:
            await bench.cycle()
        else:
            rig.submit(request)
    await bench.until(lambda: rig.quiet)
    await bench.cycle(80)
    rig.check()
    return rig


@cocotb.test()
async def a_cluster_of_three(dut: Any) -> None:
    for seed in range(3):
        await run(dut, Node({0, 2, 5}), 1500, seed=seed, misses=0.1 * seed, idle=0.15 * seed)


@cocotb.test()
async def alone(dut: Any) -> None:
    await run(dut, Node({SELF}), 800)


@cocotb.test()
async def eight(dut: Any) -> None:
    await run(dut, Node(set(range(8))), 1200, idle=0.1)


@cocotb.test()
async def crowded_tables_of_all_sizes(dut: Any) -> None:
    """Covers keys that are outside their first bucket or missing, and new keys that are put into other buckets."""
    usual = kv_model.BUCKET_BITS
    try:
        for seed, kv_model.BUCKET_BITS in enumerate([8, 9, 10, 11, 12, 12, 12, 13, 20, 21]):
            members = {0, 2, 5} if seed % 3 else {SELF}
            node, idle = Node(members, accept=seed % 4 != 1), 0.1 * (seed % 2)
            rig = await run(dut, node, 700, crowded=True, seed=100 + seed, idle=idle)
            assert (rig.walks > 20) == (kv_model.BUCKET_BITS > 8), rig.walks
    finally:
        kv_model.BUCKET_BITS = usual


@cocotb.test()
async def random_keys_until_the_first_is_refused(dut: Any) -> None:
    """The model and the engine refuse the same write first, at about the load that docs/guide/kv.md gives."""
    usual = kv_model.BUCKET_BITS
    try:
        for kv_model.BUCKET_BITS, least, most in ((8, 0.15, 0.45), (10, 0.36, 0.62)):
            model = Node({SELF})
            rig = await begun(dut, model, misses=0.0, seed=kv_model.BUCKET_BITS)
            traffic, stored, refused = Traffic(rig), 0, 0
            keys = random.Random(kv_model.BUCKET_BITS)
            while refused < 3:
                key, client = keys.getrandbits(64), stored % 4096
                kv = {"kind": WRITE, "node": 0, "detail": 0, "epoch": EPOCH, "candidate": 0}
                kv |= {"client": client, "request": 1 + stored // 4096, "version": 0, "key": key}
                while len(rig.requests) > 8 or (request := traffic.request(7, kv, 8)) is None:
                    await rig.bench.cycle()
                before = len(model.sends)
                rig.submit(request)
                statuses = [unpack(KV_FIELDS, int(send["kv"]))["detail"] for send in model.sends[before:]]
                assert len(statuses) == 1, "a node alone answers at once"
                refused += statuses == [FULL]
                stored += not refused
            assert least < stored / (4 << kv_model.BUCKET_BITS) < most
            await rig.bench.until(lambda rig=rig: rig.quiet)
            await rig.bench.cycle(80)
            rig.check()
    finally:
        kv_model.BUCKET_BITS = usual


@cocotb.test()
async def stored_before_it_is_acknowledged(dut: Any) -> None:
    await run(dut, Node({0, 2}, accept=False), 1200)


@cocotb.test()
async def versions_that_wrap(dut: Any) -> None:
    for top in (2**30 - 5, 2**31 - 5, 2**32 - 5):
        for second in (top, (top - 2**31 + 6) % 2**32):
            versions = (second, top, (top - 100) % 2**32, 0)
            for members in ({0, 2, 5}, {SELF}):
                model = Node(members, accept=top != 2**31 - 5)
                await run(dut, model, 400, versions=versions, seed=top % 1000)
                assert model.refreshed == (second != top and members != {SELF})


@cocotb.test()
async def more_notes_of_a_bucket_than_a_byte_counts(dut: Any) -> None:
    """The notes come from five leaders, one after another, as if after as many epochs. When all are committed, none is
    pending."""
    model = Node(set(range(8)))
    rig = await begun(dut, model)
    traffic = Traffic(rig)
    key = traffic.keys[0]
    bucket = frames.crc32c(key.to_bytes(8, "big")) % 2**kv_model.BUCKET_BITS
    named = number_of(frames.crc32c(key.to_bytes(8, "big")), bucket)
    written: list[dict[str, int]] = []

    async def submit(source: int, kv: dict[str, int]) -> None:
        while (request := traffic.request(source, kv, 0)) is None or len(rig.requests) > 8:
            await rig.bench.cycle()
        rig.submit(request)

    async def settled() -> None:
        await rig.bench.until(lambda: rig.quiet)
        await rig.bench.cycle(80)
        rig.check()

    def header(kind: int, **fields: int) -> dict[str, int]:
        kv = {"kind": kind, "node": 0, "detail": 0, "epoch": 0, "client": 0, "request": 0, "version": 0, "key": key}
        return kv | {"candidate": 0} | fields

    async def read() -> None:
        await submit(1 << 90, header(READ, client=7, request=len(written)))
        await settled()

    leaders = [node for node in range(8) if node != SELF][:5]
    for leader in leaders:
        model.dealt = [leader]
        for place in range(64):
            fields = {
                "node": leader,
                "epoch": EPOCH,
                "candidate": named,
                "version": len(written) + 1,
                "request": len(written) + 1,
            }
            written.append(header(REPLICATE, detail=place, client=place, **fields))
            await submit(PEERS[leader], written[-1])
        await read()
    assert len(model.notes) == 320
    for leader in leaders:
        model.dealt = [leader]
        for kv in written:
            if kv["node"] == leader:
                await submit(PEERS[leader], kv | {"kind": COMMIT})
        await read()
    assert not model.notes
    assert model.line(bucket)[0].version == 320


@cocotb.test()
async def what_needs_no_line_asks_for_none(dut: Any) -> None:
    """Otherwise the request would evict another one's line from the cache."""
    rig = await begun(dut, Node({0, 2, 5}), misses=1.0)
    traffic = Traffic(rig)
    empty = dict.fromkeys(KV_FIELDS, 0) | {"epoch": EPOCH, "key": traffic.keys[0]}

    async def lines_asked_by_frame(kind: int) -> int:
        before = rig.lines_asked
        client = kind in (READ, PING, LANE)
        header = empty | {"kind": kind, "epoch": 0 if client else EPOCH}
        request = traffic.request(1 << 90 if client else PEERS[0], header, 0)
        assert request
        rig.submit(request)
        await rig.bench.until(lambda: rig.quiet and not rig.ending)
        await rig.bench.cycle(20)
        return rig.lines_asked - before

    async def lines_asked_by_operation(op: int, *, flag: bool = False) -> int:
        before = rig.lines_asked
        bucket = frames.crc32c(traffic.keys[0].to_bytes(8, "big")) % 2**kv_model.BUCKET_BITS
        fields = {"op": op, "flag": flag, "nodes": 0, "kv": pack(KV_FIELDS, empty), "bucket": bucket}
        rig.operation, rig.ending = pack(OP, fields), True
        await rig.bench.until(lambda: not rig.ending)
        await rig.bench.cycle(20)
        rig.operation = OP_FREE
        return rig.lines_asked - before

    assert await lines_asked_by_frame(READ)
    for kind in (PING, LANE, COMMIT, ENTER, ENTERED, ENTRY, LANE_RECORD):  # frames of nodes end with OpFree
        assert not await lines_asked_by_frame(kind), kind
    assert len(rig.seen["slow"]) == 4
    rig.check()
    assert await lines_asked_by_operation(LOOK, flag=True)
    for op in (LOOK, KEEP, RESOLVE, LEARN_LANE, CLEAR):
        assert not await lines_asked_by_operation(op), op


@cocotb.test()
async def not_serving_or_closed(dut: Any) -> None:
    await run(dut, Node({0, 2}, serving=False), 300)
    await run(dut, Node({0, 2}, opened=False), 300)


def test_kv_engine() -> None:
    simulate(
        __file__,
        text=TOP,
        sources=KV_PACKAGES,
    )
