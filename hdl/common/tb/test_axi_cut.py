# SPDX-License-Identifier: Apache-2.0
"""Tests axi_cut and the bundles of axi.svh with a memory that answers in any order, and with cocotbext-axi's manager
and RAM."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import Manager, Subordinate
from axi_traffic import KINDS, PACES, Traffic
from bench import Bench, Sink, Source
from bundles import Axi, Wrapped, simulate_wrapped
from cocotb.clock import Clock
from cocotbext.axi import AxiBus, AxiMaster, AxiRam

INSTANCES = {
    "pass_32": Wrapped("axi_cut", [Axi("s_axi", 32, 32, 2), Axi("m_axi", 32, 32, 2)], {"CutReady": 0}),
    "cut_32": Wrapped("axi_cut", [Axi("s_axi", 32, 32, 2), Axi("m_axi", 32, 32, 2)], {"CutReady": 1}),
    "pass_512": Wrapped("axi_cut", [Axi("s_axi"), Axi("m_axi")], {"CutReady": 0}),
    "cut_512": Wrapped("axi_cut", [Axi("s_axi"), Axi("m_axi")], {"CutReady": 1}),
    "lite": Wrapped("axi_cut", [Axi("s_axi", 12, 32, 0), Axi("m_axi", 12, 32, 0)]),
}
FULL = [name for name in INSTANCES if name != "lite"]


def lane_of(bench: Bench, name: str) -> tuple[Traffic, Subordinate]:
    scope = getattr(bench.dut, name)
    traffic = Traffic(bench, Manager(bench, scope))
    traffic.kinds = KINDS
    return traffic, Subordinate(bench, scope, reorder=True, mix=True)


@cocotb.test()
async def passes_every_transaction_on_unchanged(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in FULL]
    await bench.reset()
    for idle, stall in PACES:
        for traffic, memory in lanes:
            traffic.manager.pace(idle, stall)
            memory.pace(idle, stall)
            traffic.write(12)
        await bench.until(lambda: all(traffic.written() for traffic, _ in lanes))
        for traffic, _ in lanes:
            traffic.read(12)
        await bench.until(lambda: all(traffic.done() for traffic, _ in lanes))
        for traffic, memory in lanes:
            traffic.check(memory.initial)
            assert [burst.command() for burst in memory.written_bursts] == [burst.command() for burst in traffic.writes]
            assert [burst.command() for burst in memory.read_bursts] == [burst.command() for burst in traffic.reads]
            memory.written_bursts.clear(), memory.read_bursts.clear()
            traffic.forget()


@cocotb.test()
async def a_subordinate_that_takes_nothing_stops_the_manager_and_loses_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in FULL]
    await bench.reset()
    for traffic, memory in lanes:
        memory.pace(0.0, 1.0)
        traffic.write(8), traffic.read(8)
    await bench.cycle(100)
    for name, (traffic, _) in zip(FULL, lanes, strict=True):
        assert len(traffic.manager.aw.sent) == (2 if name.startswith("cut") else 1), name
        assert len(traffic.manager.ar.sent) == (2 if name.startswith("cut") else 1), name
        assert traffic.manager.responses == []
    for _, memory in lanes:
        memory.pace(0.0, 0.0)
    await bench.until(lambda: all(traffic.done() for traffic, _ in lanes))
    for traffic, _ in lanes:
        assert sorted(burst.id for burst in traffic.writes) == sorted(id_ for id_, _ in traffic.manager.responses)


@cocotb.test()
async def reset_in_mid_flight_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [lane_of(bench, name) for name in FULL]
    await bench.reset()
    for busy in (3, 7, 20, 50):
        for traffic, memory in lanes:
            traffic.manager.pace(0.1, 0.5), memory.pace(0.1, 0.5)
            traffic.write(10), traffic.read(10)
        await bench.cycle(busy)
        await bench.reset(1)
        for traffic, memory in lanes:
            memory.written.clear(), traffic.memory.clear(), traffic.forget()
            traffic.write(10)
        await bench.until(lambda: all(traffic.written() for traffic, _ in lanes))
        for traffic, _ in lanes:
            traffic.read(10)
        await bench.until(lambda: all(traffic.done() for traffic, _ in lanes))
        for traffic, memory in lanes:
            traffic.check(memory.initial)
            traffic.forget()


def channels_of(bench: Bench, name: str) -> dict[str, tuple[Source, Sink]]:
    """Creates a sender and a receiver for each channel. They do not know AXI's rules."""
    found = {}
    for channel, signals in INSTANCES[name].bundles[0].channels.items():
        ends = []
        for end, kind in [("s", Source), ("m", Sink)] if channel in ("aw", "w", "ar") else [("m", Source), ("s", Sink)]:
            pins = [bench.pin(getattr(bench.dut, name), f"{end}_axi_{channel}{signal}") for signal, _ in signals]
            valid, ready = (
                bench.pin(getattr(bench.dut, name), f"{end}_axi_{channel}{signal}") for signal in ("valid", "ready")
            )
            ends.append(kind(bench, valid, ready, pins))
        found[channel] = (ends[0], ends[1])
    return found


@cocotb.test()
async def every_channel_passes_a_beat_a_cycle_after_one(dut: Any) -> None:
    """Uses the Lite bus, because on AXI4 the monitors object to channels that are independent of each other."""
    bench = Bench(dut)
    channels = channels_of(bench, "lite")
    await bench.reset()
    for idle, stall in [(0.0, 0.0), *PACES]:
        expected = {}
        for channel, (source, sink) in channels.items():
            source.idle, sink.stall = idle, stall
            expected[channel] = [tuple(bench.random.getrandbits(p.width) for p in source.fields) for _ in range(60)]
            source.items.extend(expected[channel])
            sink.items.clear(), sink.cycles_of.clear(), source.cycles_of.clear()
        await bench.until(lambda: all(len(sink.items) == 60 for _, sink in channels.values()))
        for channel, (source, sink) in channels.items():
            got = [item if isinstance(item, tuple) else (item,) for item in sink.items]
            assert got == expected[channel], channel
            if idle == stall == 0.0:
                assert [cycle - 1 for cycle in sink.cycles_of] == source.cycles_of, channel
                assert sink.cycles_of[-1] - sink.cycles_of[0] == 59, channel


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stock_manager_and_ram_agree(dut: Any) -> None:
    bench = Bench(dut)
    for name in FULL:
        lane_of(bench, name)  # no traffic
    await bench.reset()
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    for name in ("cut_32", "pass_512"):
        scope = getattr(dut, name)
        manager = AxiMaster(AxiBus.from_prefix(scope, "s_axi"), dut.clk_i, dut.rst_i)
        ram = AxiRam(AxiBus.from_prefix(scope, "m_axi"), dut.clk_i, dut.rst_i, size=1 << 16)
        for address, length in [(0, 1), (3, 700), (4096, 4096), (5, 64)]:
            data = bench.random.randbytes(length)
            await manager.write(address, data)
            assert ram.read(address, length) == data
            assert (await manager.read(address, length)).data == data


def test_axi_cut() -> None:
    simulate_wrapped(__file__, INSTANCES)
