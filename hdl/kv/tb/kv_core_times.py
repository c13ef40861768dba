# SPDX-License-Identifier: Apache-2.0
"""Checks the latencies of the joined core in cycles, as in docs/design/kv-core.md. Run by test_kv_core.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cocotb
from kv_core_rig import (
    CLIENT,
    COMMIT,
    ENTER,
    ENTERED,
    ME,
    PEERS,
    READ,
    REPLICATE,
    REPLICATED,
    RETRY_CYCLES,
    WRITE,
    Kv,
    begun,
    in_turn,
    keys_with,
)


@cocotb.test()
async def what_it_takes(dut: Any) -> None:
    """Checks the latencies of docs/design/kv-core.md in cycles, without memory."""
    rig = await begun(dut)
    members = [0, ME]
    await rig.enter(1, members, in_turn(members))
    rig.from_node(0, Kv(ENTERED, epoch=1))
    await rig.to_node(0, ENTER)
    # Operations of kv_recovery go before requests and would add a cycle. With this period none is due any more.
    await rig.write("retry_cycles", 1_000_000)
    await rig.bench.cycle(2 * RETRY_CYCLES)
    mine, other = keys_with(ME, members, 1)[0], keys_with(0, members, 1)[0]

    async def delay(kv: Kv, source: int, *, checksum: bool) -> int:
        rig.begun.clear()
        rig.net_in.cycles_of.clear()
        rig.give(kv, source, checksum=checksum)
        await rig.bench.until(lambda: bool(rig.begun))
        await rig.bench.cycle(60)
        return rig.begun[0] - rig.net_in.cycles_of[0]

    write = Kv(REPLICATE, node=0, epoch=1, client=7, request=41, version=1, key=other, value=b"x" * 1024)
    for key in (mine, other):
        await rig.reply(Kv(READ, key=key))  # the line is in the cache from now on
    for checksum, wanted in ((False, 12), (True, 28)):
        write = replace(write, version=write.version + 1, detail=write.version, request=write.request + 1)
        assert await delay(write, PEERS[0], checksum=checksum) == wanted
        rig.from_node(0, replace(write, kind=COMMIT, value=b""))
        await rig.bench.cycle(60)
    ask = Kv(READ, key=other, request=1)
    await delay(ask, CLIENT, checksum=False)
    for memory in rig.memories:
        memory.delay = (30, 30)
        memory.read_bursts.clear()
    assert await delay(replace(ask, key=mine), CLIENT, checksum=False) == 12  # the key does not exist
    lead = Kv(WRITE, epoch=1, client=1, request=1, key=mine, value=b"y" * 1024)
    assert await delay(lead, CLIENT, checksum=False) == 12
    replicate = await rig.to_node(0, REPLICATE)
    assert await delay(replace(replicate, kind=REPLICATED, value=b"", node=0), PEERS[0], checksum=True) == 12


@cocotb.test()
async def what_storing_takes(dut: Any) -> None:
    """Checks `store` with 1 KiB at a follower against the table in docs/design/kv-core.md."""
    rig = await begun(dut, accept=False)
    members = [0, ME]
    await rig.enter(1, members, in_turn(members))
    # As in what_it_takes. With this period no commit is requested either.
    await rig.write("retry_cycles", 1_000_000)
    await rig.bench.cycle(2 * RETRY_CYCLES)
    keys = keys_with(0, members, 4)
    for memory in rig.memories:
        memory.delay = (40, 40)
    for way, key in enumerate(keys):
        await rig.reply(Kv(READ, key=key))  # the line is in the cache from now on
        for memory in rig.memories:
            for agent in (memory.w, memory.b):
                agent.cycles_of.clear()
        rig.begun.clear()
        rig.net_in.cycles_of.clear()
        write = Kv(REPLICATE, epoch=1, detail=way << 6 | way, client=7, request=way + 1, version=1, key=key)
        rig.from_node(0, replace(write, value=b"x" * 1024), checksum=False)
        await rig.bench.until(lambda: bool(rig.begun))
        start = rig.net_in.cycles_of[0]
        beats = sorted(cycle for memory in rig.memories for cycle in memory.w.cycles_of)
        answered = max(cycle for memory in rig.memories for cycle in memory.b.cycles_of)
        found = (len(beats), beats[0] - start, beats[-1] - start, rig.begun[0] - answered)
        # 32 beats of the value and one of the way, on two channels. One channel may begin a cycle after the other.
        assert found in ((33, 12, 28, 4), (33, 12, 29, 4)), found
        await rig.bench.cycle(60)
