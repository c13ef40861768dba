# SPDX-License-Identifier: Apache-2.0
"""Tests kv_registers with the subnets that the core answers, against Python's ipaddress.

Run by test_kv_registers.py."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import Any

import cocotb
from bench import Bench
from kv_registers_rig import AT, BUILDING, SOURCES, Rig

BUILT = 1027
"""Cycles from the response to the last write until the table is valid, if no register is read."""
Nets = list[IPv4Network | None]


async def start(dut: Any, seed: int) -> tuple[Bench, Rig]:
    """Returns a bench and a rig after a reset."""
    bench = Bench(dut, seed)
    rig = Rig(bench, "wide")
    await bench.reset()
    return bench, rig


async def allows(rig: Rig, address: int) -> bool:
    """Returns whether the core allows an address. Takes no cycle."""
    rig.pin("source_i").set(address)
    await rig.bench.settle()
    return bool(rig.pin("allowed_o").get())


def contained(nets: Nets, address: int) -> bool:
    """Returns whether ipaddress has the address in one of the subnets."""
    return any(net is not None and IPv4Address(address) in net for net in nets)


def draw_net(draw: Random) -> IPv4Network:
    """Returns a random subnet. All sizes occur, and all edges."""
    bits = draw.choice((1, 8, 24, 29, 30, 31, 32, 32, draw.randint(1, 32)))
    base = draw.choice((0, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, draw.getrandbits(32), 0x0A000000 | draw.randrange(256)))
    return IPv4Network((base, bits), strict=False)


def edges(nets: Nets, draw: Random) -> set[int]:
    """Returns addresses at the edges of the subnets, and random ones."""
    found = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, *(draw.getrandbits(32) for _ in range(20))}
    for net in nets:
        if net is not None:
            first, last = int(net.network_address), int(net.broadcast_address)
            found |= {first, last, first - 1, last + 1, draw.randint(first, last), first ^ 1 << draw.randrange(32)}
    return {address & 0xFFFFFFFF for address in found}


async def put(rig: Rig, at: int, net: IPv4Network | None) -> None:
    """Writes a subnet as the driver does: it is not in use while it changes."""
    await rig.write(AT["source_mask"] + 8 * at, 0)
    if net is not None:
        # Bits below the mask have no effect.
        below = rig.bench.random.getrandbits(32) & int(net.hostmask)
        await rig.write(AT["source_ip"] + 8 * at, int(net.network_address) | below)
        await rig.write(AT["source_mask"] + 8 * at, int(net.netmask))


@cocotb.test()
async def sources_are_allowed_as_ipaddress_has_it(dut: Any) -> None:
    """Uses random lists, and changes them in part or as a whole."""
    bench, rig = await start(dut, 21)
    draw = bench.random
    nets: Nets = [None] * SOURCES
    for turn in range(60):
        for at in range(SOURCES) if turn % 3 == 0 else draw.sample(range(SOURCES), 3):
            nets[at] = draw_net(draw) if draw.random() < 0.7 else None
            await put(rig, at, nets[at])
        if turn == 30:  # allows every address
            await put(rig, 0, IPv4Network("0.0.0.0/1"))
            await put(rig, 13, IPv4Network("128.0.0.0/1"))
            nets[0], nets[13] = IPv4Network("0.0.0.0/1"), IPv4Network("128.0.0.0/1")
        await bench.cycle(BUILDING)
        for address in edges(nets, draw):
            assert await allows(rig, address) == contained(nets, address), (IPv4Address(address), nets)
        if turn == 30:
            assert contained(nets, draw.getrandbits(32))


@cocotb.test()
async def each_place_holds_a_subnet_and_no_place_is_beyond(dut: Any) -> None:
    """Tests one place at a time."""
    bench, rig = await start(dut, 22)
    for at in range(SOURCES):
        nets: Nets = [IPv4Network((0x0B000000 + 16 * at, 29))]
        await put(rig, at, nets[0])
        await bench.cycle(BUILDING)
        for address in edges(nets, bench.random):
            assert await allows(rig, address) == contained(nets, address), at
        await put(rig, at, None)
    for at in (SOURCES, 15):  # words that exist, without a place behind them
        for offset in (AT["source_ip"] + 8 * at, AT["source_mask"] + 8 * at):
            await rig.write(offset, 0xFFFFFFFF)
            assert await rig.read(offset) == 0
    await bench.cycle(BUILDING)
    for address in (0, 0xFFFFFFFF, 0x0B000000):
        assert not await allows(rig, address)


@cocotb.test()
async def nobody_is_allowed_until_the_list_is_whole(dut: Any) -> None:
    """Checks in every cycle, with random reads and writes meanwhile, and that the time is not much longer than
    documented."""
    bench, rig = await start(dut, 23)
    draw = bench.random
    assert not await allows(rig, 0)
    await bench.cycle(2 * BUILDING)
    for address in (0, 1, 0xFFFFFFFF):
        assert not await allows(rig, address)  # the state after reset
    net = IPv4Network("0.0.0.0/1")
    for turn in range(12):
        await put(rig, draw.randrange(SOURCES), net)
        begun, accesses = bench.cycles, 0
        if turn > 2:
            await rig.stage()
        if turn > 6:
            rig.drain = rig.settle = (0, 700) if turn < 10 else (0, 0)
            rig.last_epoch = rig.words[AT["epoch"]]
            await rig.write(AT["epoch"], turn)
        while not await allows(rig, 5):
            if turn and draw.random() < 0.3:
                await rig.read(AT["retries"] if draw.random() < 0.5 else AT["source_mask"])
                accesses += 1
            else:
                await bench.cycle()
            assert bench.cycles - begun < 2 * BUILDING
        taken = bench.cycles - begun
        assert BUILT - 3 <= taken <= (BUILT + 3 if turn == 0 else 1400), taken
        assert not await allows(rig, 0x80000005)
        await bench.until(lambda: rig.phase == "idle")
        for at in range(SOURCES):
            await put(rig, at, None)
            assert not await allows(rig, 5)
        await bench.cycle(BUILDING)
        assert not await allows(rig, 5)


@cocotb.test()
async def writes_without_effect_leave_the_list_alone(dut: Any) -> None:
    """Covers writes to other registers, and writes without bytes."""
    bench, rig = await start(dut, 24)
    await put(rig, 3, IPv4Network("10.0.0.0/8"))
    await bench.cycle(BUILDING)
    for offset, strobe in (("retry_cycles", 15), ("peer_ip", 15), ("source_ip", 0), ("source_mask", 0), ("sent", 15)):
        await rig.write(AT[offset], 0xFFFFFFFF, strobe)
        for _ in range(10):
            assert await allows(rig, 0x0A000001)
            await bench.cycle()


@cocotb.test()
async def a_list_is_forgotten_by_a_reset(dut: Any) -> None:
    """Resets the core at every stage of building the table."""
    bench, rig = await start(dut, 25)
    for wait in (0, 1, 2, 30, 500, 1020, 1024, 1025, 1026, 1027, 1028, BUILDING):
        await put(rig, 0, IPv4Network("0.0.0.0/1"))
        await bench.cycle(wait)
        await bench.reset()
        for _ in range(BUILDING // 10):
            assert not await allows(rig, 5)
            await bench.cycle(10)
        assert await rig.read(AT["source_mask"]) == 0
