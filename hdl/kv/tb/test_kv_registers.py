# SPDX-License-Identifier: Apache-2.0
"""Tests kv_registers against the model in kv_registers_rig."""

from __future__ import annotations

from typing import Any

import cocotb
from bench import Bench
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from kv_registers_rig import (
    ASKERS,
    AT,
    CLEAR_COUNTERS,
    CLEAR_TABLE,
    CLEARING,
    FIELDS,
    MAP,
    MAP_COUNTERS,
    SPEC,
    Register,
    Rig,
    top,
)
from simulate import KV_PACKAGES, simulate

NEVER = (1 << 64) - 1


async def start(dut: Any, seed: int, *names: str) -> tuple[Bench, dict[str, Rig]]:
    """Returns a bench and the rigs of these instances. The other instances are idle."""
    bench = Bench(dut, seed)
    rigs = {name: Rig(bench, name) for name in names or ASKERS}
    await bench.reset()
    await bench.settle()
    return bench, rigs


@cocotb.test()
async def all_that_is_reset_reads_so(dut: Any) -> None:
    bench, rigs = await start(dut, 1)
    for rig in rigs.values():
        rig.disturb()
        for offset in range(0, SPEC["bytes"], 4):
            await rig.read(offset)
        rig.check_outputs()
        assert not rig.leased
        for offset in MAP:  # a write without bytes has no effect
            await rig.write(offset, NEVER & 0xFFFFFFFF, 0)
            await bench.cycle()
            rig.check_outputs()
            assert rig.phase == "idle"
    for rig in rigs.values():  # change every register, then reset
        await rig.stage()
        await rig.write(AT["control"], 3)
        for name in ("retry_cycles", "bucket_bits", "line_base", "value_base", "sync_from", "lease"):
            await rig.write(AT[name], 9)
            await rig.write(AT[name] + 4, 9) if name.endswith("base") or name == "lease" else None
        await rig.enter(77)
        rig.rate = 1.0
        await bench.cycle(50)
        rig.rate = 0.0
        assert rig.leased
    await bench.reset()
    for rig in rigs.values():
        assert not rig.leased
        for offset in MAP:
            await rig.read(offset)
        rig.check_outputs()


def draw_write(rig: Rig) -> tuple[int, int, int]:
    """Draws any address, and important ones more often."""
    draw = rig.bench.random
    offset = draw.choice(list(MAP)) if draw.random() < 0.8 else draw.randrange(SPEC["bytes"])
    if draw.random() < 0.25:
        offset = AT[draw.choice(("epoch", "epoch", "control", "bucket_bits", "node", "members", "lease"))]
    data = draw.getrandbits(32)
    if offset == AT["epoch"]:
        data = draw.choice((0, 0, 1, 2, 0x10000, 0x10001, data))
    if offset == AT["bucket_bits"]:
        data = draw.choice((0, 7, 8, 20, 21, 22, 23, 30, 32, 33, 64 + 9, 0x100 + 12))
    if offset in (AT["line_base"], AT["value_base"]):
        data = draw.choice((0, 0, 0x1000, 0x80000000, 0xFFFFF000, data))
    if offset - 4 in (AT["line_base"], AT["value_base"]):
        data = draw.choice((0, 0, 1, 2, 3, 4, data))
    return offset, data, 15 if draw.random() < 0.6 else draw.randrange(16)


@cocotb.test()
async def random_accesses_at_every_pace(dut: Any) -> None:
    paces = [(0, 0, 0), (0.8, 0, 0), (0, 0.8, 0), (0.3, 0.3, 0.6), (0, 0, 0.8)]
    entries = 0
    for name, rounds in (("wide", 150), ("lean", 60)):
        bench, rigs = await start(dut, 2, name)
        rig, draw = rigs[name], bench.random
        for i, pace in enumerate(paces):
            rig.pace(*pace)
            rig.rate = (0.0, 0.3, 0.9)[i % 3]
            rig.drain = rig.settle = ((0, 0), (0, 60))[i % 2]
            for _ in range(rounds):
                rig.disturb()
                write = draw_write(rig) if draw.random() < 0.7 else None
                read = None
                if write is None or draw.random() < 0.5:
                    read = draw.choice(list(MAP)) if draw.random() < 0.8 else draw.randrange(SPEC["bytes"])
                    if write and draw.random() < 0.3:
                        read = write[0]
                await rig.both(write, read)
                if write:
                    await bench.cycle(4)
                    rig.check_outputs()
            await bench.until(lambda rig=rig: rig.phase == "idle")
            rig.rate = 0.0
            await bench.cycle(CLEARING)
            rig.last_epoch = rig.words[AT["epoch"]]
            for offset in MAP:
                await rig.read(offset)
        entries += rig.entries
        rig.rate = 0.0
    assert entries > 20


@cocotb.test()
async def an_epoch_is_entered_under_way(dut: Any) -> None:
    bench, rigs = await start(dut, 3, "wide")
    rig = rigs["wide"]
    for i in range(6):
        rig.drain, rig.settle = ((0, 0), (300, 300))[i % 2], ((300, 300), (0, 0))[i % 2]
        await rig.stage()
        await rig.write(AT["node"], i)
        old = rig.words[AT["epoch"]]
        await rig.write(AT["epoch"], 5 + i)
        asked = bench.cycles
        reads = 0
        # Staged registers and `epoch` ignore writes, all other registers accept them, and no access waits.
        while rig.phase != "idle" or rig.entries == i:
            await rig.read(AT["epoch"] if reads % 2 else bench.random.choice(list(MAP)))
            reads += 1
            if rig.phase in ("settling", "copying"):
                assert rig.words[AT["epoch"]] == old
            begun = bench.cycles
            await rig.write(bench.random.choice((AT["retry_cycles"], AT["lease"])), i)
            names = ("members", "leader", "node", *["epoch"] * 2 * (rig.phase == "draining"))
            await rig.write(AT[bench.random.choice(names)], 0xFFFF)
            assert bench.cycles - begun <= 14
        assert reads > 15
        assert bench.cycles - asked > 390
        assert rig.entries == i + 1
        await bench.cycle(10)
        await rig.write(AT["members"], 0xFFFF)
        assert await rig.read(AT["members"]) == 0xFFFF
        assert await rig.read(AT["epoch"]) == 5 + i
        assert rig.active["members"] == rig.pin("members_o").get() | rig.pin("serving_members_o").get() << 8
    # The same epoch is not entered again. Epoch 0 leaves, and then no node is a member.
    await rig.write(AT["epoch"], 10)
    await bench.cycle(10)
    assert (rig.phase, rig.entries) == ("idle", 6)
    await rig.enter(0)
    assert rig.pin("members_o").get() == rig.pin("serving_members_o").get() == 0
    rig.drain = rig.settle = (0, 0)
    await rig.enter(11)
    assert rig.pin("members_o").get() == rig.pin("serving_members_o").get() == 0xFF
    assert rig.copied_after == 92, rig.copied_after
    # Resets in the middle of entering, at every stage.
    for cycles in (1, 5, 8, 12, 40, 95, 99, 105, 130):
        rig.drain = rig.settle = (5, 5)
        rig.start_write(AT["epoch"], 12)
        await bench.cycle(cycles)
        await bench.reset()
        assert await rig.read(AT["epoch"]) == 0
        await rig.stage()
        await rig.enter(1)
        await bench.cycle(20)


@cocotb.test()
async def copies_are_whole_with_reads_in_between(dut: Any) -> None:
    bench, rigs = await start(dut, 10, "wide")
    rig = rigs["wide"]
    rig.drain = rig.settle = (0, 7)
    await rig.stage()
    for i in range(25):
        for name in ("node", "members", "udp_port", "peer_port"):
            await rig.write(AT[name] + 16 * 7 * (name == "peer_port"), bench.random.getrandbits(32))
        await rig.write(AT["epoch"], 1 + i)
        while rig.phase != "idle":
            await rig.read(bench.random.choice(list(MAP)))
        assert 92 <= rig.copied_after <= 92 + 92 // 4 + 1
        rig.check_outputs()


@cocotb.test()
async def tables_are_cleared_in_no_epoch_only(dut: Any) -> None:
    bench, rigs = await start(dut, 4, "wide")
    rig = rigs["wide"]

    async def cleared() -> int:
        await bench.cycle(5)
        rig.check_outputs()
        count, rig.pulses["clear_table_o"], rig.expected_pulses["clear_table_o"] = rig.pulses["clear_table_o"], 0, 0
        return count

    await rig.write(AT["control"], CLEAR_TABLE)
    assert await cleared() == 1
    await rig.write(AT["control"], CLEAR_TABLE, 0b1110)
    assert await cleared() == 0
    assert await rig.read(AT["control"]) == 0
    await rig.write(AT["bucket_bits"], 12)
    await rig.write(AT["bucket_bits"], 12)
    assert await cleared() == 1
    await rig.enter(3)
    await rig.write(AT["control"], CLEAR_TABLE)
    await rig.write(AT["bucket_bits"], 13)
    assert await cleared() == 0
    assert await rig.read(AT["bucket_bits"]) == 12
    rig.drain = rig.settle = (40, 40)
    for epoch in (0, 4):  # also while an epoch is entered
        await rig.write(AT["epoch"], epoch)
        await rig.write(AT["control"], CLEAR_TABLE)
        await rig.write(AT["bucket_bits"], 13)
        assert await cleared() == 0
        await bench.until(lambda: rig.phase == "idle")
    await rig.enter(0x50000)
    await rig.write(AT["control"], CLEAR_TABLE)
    await rig.write(AT["bucket_bits"], 13)
    assert await cleared() == 2


@cocotb.test()
async def every_event_is_counted(dut: Any) -> None:
    bench, rigs = await start(dut, 5)
    counters = [offset for offset, register in MAP.items() if register.is_counter]
    for name, rig in rigs.items():
        await bench.until(lambda rig=rig: bench.cycles > rig.blind_until)
        for rate, cycles in ((1.0, 700), (0.5, 700), (0.02, 300)):
            rig.rate = rate
            await bench.cycle(cycles)
            if name == "wide":  # the exact count up to the cycle before the look-up
                for offset in bench.random.sample(counters, 40):
                    await rig.read(offset)
            rig.rate = 0.0
            await bench.cycle()
            for offset in counters:
                assert rig.least[offset] == rig.most[offset]
                assert await rig.read(offset) == rig.most[offset]
    rig = rigs["wide"]
    # Repeated reads must not lose events of other counters.
    rig.rate = 1.0
    for _ in range(150):
        await rig.read(AT["frames_kv"])
    rig.rate = 0.0
    await bench.cycle()
    for offset in counters:
        assert await rig.read(offset) == rig.most[offset]
    # Cleared while everything counts: the result is at most the events since then, and at least those after clearing.
    for _ in range(3):
        rig.rate = 1.0
        await bench.cycle(bench.random.randrange(100))
        await rig.write(AT["control"], CLEAR_COUNTERS)
        begun = bench.cycles
        await rig.read(AT["retries"])
        assert 125 <= bench.cycles - begun <= 140
        await bench.cycle(bench.random.randrange(300))
        rig.rate = 0.0
        for offset in counters:
            await rig.read(offset)
    assert 0 < rig.least[AT["frames_kv"]] < rig.most[AT["frames_kv"]]
    await rig.write(AT["control"], CLEAR_COUNTERS)
    for offset in counters:
        assert await rig.read(offset) == 0
    # All groups start counting again in the same cycle.
    rig.rate, rig.spread = 1.0, 0.0
    await rig.write(AT["control"], CLEAR_COUNTERS)
    await bench.cycle(200)
    rig.rate, rig.spread = 0.0, 0.5
    await bench.cycle()
    values = {await rig.read(AT[name] + where) for name, where in (("frames_kv", 0), ("replies", 12), ("sent", 12))}
    assert len(values) == 1, values
    await rig.write(AT["control"], CLEAR_COUNTERS)
    for offset in counters:
        assert await rig.read(offset) == 0
    # Counters wrap.
    offset = AT["sent"] + 4 * 3
    dut.wide.dut.i_counters.i_ram.gen_block.memory[(offset - MAP_COUNTERS) // 4].value = 0xFFFFFF00
    rig.most[offset] = 0xFFFFFF00
    await bench.cycle(1)
    assert await rig.read(offset) == 0xFFFFFF00
    rig.rate = 1.0
    await bench.cycle(800)
    rig.rate = 0.0
    await bench.cycle()
    rig.most[offset] %= 1 << 32
    assert rig.most[offset] < 1000
    rig.least[offset] = 0
    assert await rig.read(offset) == rig.most[offset]


@cocotb.test()
async def cycles_are_read_whole(dut: Any) -> None:
    bench, rigs = await start(dut, 6, "wide")
    rig = rigs["wide"]
    await rig.read(AT["id"])
    for _ in range(5):
        value = await rig.read(AT["cycles"])
        assert value == rig.ar.cycles_of[0] + 3 - rig.zero
        await bench.cycle(bench.random.randrange(9))
    assert await rig.read(AT["cycles"] + 4) == 0

    def poke(value: int) -> None:
        dut.wide.dut.i_lease.cycles_q.value = value
        rig.zero = bench.cycles - value

    for wait in range(12):
        poke((7 << 32) - 6)
        await bench.cycle(wait)
        rig.start_read(AT["cycles"])
        await bench.until(lambda: bool(rig.r.items))
        low = rig.r.items[0][0]
        await bench.cycle(10)
        # Writes, and reads of other registers, do not change the latched value.
        await rig.write(AT["cycles"], 1)
        await rig.read(AT["lease"])
        high = await rig.read(AT["cycles"] + 4)
        assert (high << 32 | low) - (7 << 32) == wait - 6 + 3


@cocotb.test()
async def a_lease_ends_to_the_cycle(dut: Any) -> None:
    bench, rigs = await start(dut, 7, "wide")
    rig = rigs["wide"]
    await rig.read(AT["id"])

    async def lease(value: int) -> None:
        await rig.write(AT["lease"], value & 0xFFFFFFFF)
        await rig.write(AT["lease"] + 4, value >> 32)

    def poke(value: int) -> None:
        dut.wide.dut.i_lease.cycles_q.value = value
        rig.zero = bench.cycles - value

    async def follow(end: int, cycles: int) -> set[int]:
        seen = set()
        for _ in range(cycles):
            await bench.cycle()
            before = bench.cycles - 2 - rig.zero  # `cycles` in the cycle before the one observed last
            leased = rig.leased
            assert leased == (before < end), (before, end)
            seen.add(leased)
        return seen

    for start_at in (0, (1 << 32) - 40, (5 << 32) - 45, (1 << 63) - 20, 0x0123456789ABCDEF):
        poke(start_at)
        await bench.cycle(2)
        end = start_at + bench.random.randint(40, 60)
        await lease(end)
        await bench.cycle(2)
        assert await follow(end, 60) == {0, 1}
        # Writing only the low word has no effect. Writing the high word sets both at once.
        await rig.write(AT["lease"], (end + 10_000) & 0xFFFFFFFF)
        assert await follow(end, 10) == {0}
        await rig.write(AT["lease"] + 4, (end + 10_000) >> 32)
        await bench.cycle(1)
        assert await follow(end + 10_000, 10) == {1}
        await lease(end - 1)  # a time in the past
        await bench.cycle(2)
        assert await follow(end - 1, 10) == {0}
    # The lease holds from the high word's response on.
    await lease(0)
    await rig.write(AT["lease"], 1000)
    poke(0)
    await rig.write(AT["lease"] + 4, 0)
    assert rig.leased == 0
    await bench.cycle()
    assert rig.leased == 1
    # Only all ones means for ever. No smaller value does.
    for end, leased in ((NEVER, {1}), (NEVER - 1, {0}), (NEVER - (1 << 32), {0}), (NEVER, {1})):
        await lease(end)
        poke(NEVER)
        await bench.cycle(1)
        seen = set()
        dut.wide.dut.i_lease.cycles_q.value = NEVER
        await bench.cycle(1)
        seen.add(rig.leased)
        assert seen == leased or end == NEVER, hex(end)
        await bench.cycle(5)
        assert end != NEVER or rig.leased
    await lease(0)
    await bench.cycle(2)
    assert not rig.leased


@cocotb.test()
async def an_access_takes_the_promised_cycles(dut: Any) -> None:
    bench, rigs = await start(dut, 8)
    for rig in rigs.values():
        await rig.read(AT["id"])
        for offset in (AT["id"], AT["sent"], SPEC["bytes"] - 4, AT["peer_ip"]):
            await rig.read(offset)
            assert rig.r.cycles_of[0] - rig.ar.cycles_of[0] == 5
            begun = bench.cycles
            await rig.write(offset, 5)
            assert rig.b.cycles_of[0] - begun == 6
    rig = rigs["wide"]
    rig.ar.cycles_of.clear(), rig.aw.cycles_of.clear(), rig.b.items.clear(), rig.r.items.clear()
    rig.ar.items.extend([AT["id"]] * 5)
    await bench.until(lambda: len(rig.r.items) == 5)
    rig.aw.items.extend([AT["id"]] * 5), rig.w.items.extend([(0, 15)] * 5)
    await bench.until(lambda: len(rig.b.items) == 5)
    for channel, cycles in ((rig.ar, 5), (rig.aw, 6)):
        assert {b - a for a, b in zip(channel.cycles_of, channel.cycles_of[1:], strict=False)} == {cycles}
    await bench.reset()
    begun = bench.cycles
    await rig.read(AT["udp_port"])
    assert rig.r.cycles_of[0] - begun == 128 + 3, rig.r.cycles_of[0] - begun


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stock_manager_agrees(dut: Any) -> None:
    bench, _ = await start(dut, 9)
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    scope = dut.wide
    manager = AxiLiteMaster(AxiLiteBus.from_prefix(scope, "s_axil"), dut.clk_i, dut.rst_i)
    scope.enter_copy_i.value = 0
    scope.entered_i.value = 0

    async def read(offset: int) -> int:
        result = await manager.read(offset, 4)
        assert result.resp == AxiResp.OKAY
        return int.from_bytes(result.data, "little")

    async def write(offset: int, data: bytes) -> None:
        assert (await manager.write(offset, data)).resp == AxiResp.OKAY

    def constant(register: Register) -> bool:
        return register.name not in ("state", "cycles", "sync_count", "sync_lanes")

    for offset, register in MAP.items():
        if constant(register) and register.name != "capability":
            assert await read(offset) == register.reset
    kept = {offset: offset * 7919 for offset, r in MAP.items() if r.access == "rw" and constant(r)}
    kept[AT["bucket_bits"]] = 9
    del kept[AT["epoch"]], kept[AT["control"]]
    for offset, value in kept.items():
        await write(offset, value.to_bytes(4, "little"))
    for offset, value in kept.items():
        assert await read(offset) == value & MAP[offset].mask
    await write(AT["value_base"] + 1, b"\x55\x66")  # bytes in the middle of a word
    assert await read(AT["value_base"]) == AT["value_base"] * 7919 & ~0xFFFF00 | 0x665500
    await write(AT["epoch"], (6).to_bytes(4, "little"))

    async def recovery() -> None:
        for name in ("enter_copy_i", "entered_i"):
            await RisingEdge(dut.clk_i)
            getattr(scope, name).value = 1
            await RisingEdge(dut.clk_i)
            getattr(scope, name).value = 0
            if name == "enter_copy_i":
                while not int(scope.copied_o.value):
                    await RisingEdge(dut.clk_i)

    cocotb.start_soon(recovery())
    while await read(AT["state"]) & FIELDS["state"].fields["entering"]:
        pass
    await write(AT["members"], b"\x0f\x03\x00\x00")
    assert await read(AT["epoch"]) == 6
    assert int(scope.members_o.value) == AT["members"] * 7919 & 0xFF
    assert await read(AT["members"]) == 0x030F


DEEPER = ("kv_lease.cycles_q", "kv_register_access.idle_q", "simple_dual_port_ram.memory")


def test_kv_registers() -> None:
    simulate(__file__, text=top(), sources=KV_PACKAGES, more=("kv_registers_sources",), deeper=DEEPER)
