# SPDX-License-Identifier: Apache-2.0
"""Tests axi_ram and the axi_port in it with bursts of every kind, errors, and a slow user."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

import cocotb
from axi_agents import FIXED, INCR, OKAY, SLVERR, WRAP, Burst, Manager
from axi_traffic import PACES, Traffic
from bench import Bench
from bundles import Axi, Wrapped, simulate_wrapped
from cocotb.clock import Clock
from cocotbext.axi import AxiBus, AxiMaster


def ram(data: int, id_: int, slots: int, **parameters: int) -> Wrapped:
    """Returns a RAM of `slots` times 4 KiB."""
    depth = 4096 * slots * 8 // data
    return Wrapped("axi_ram", [Axi("s_axi", 20, data, id_, outstanding=128)], {"Depth": depth, **parameters})


def port(data: int, latency: int, beats: int) -> Wrapped:
    parameters = {"AddressWidth": 32, "DataWidth": data, "ReadLatency": latency, "ReadBeats": beats}
    return Wrapped("axi_port", [Axi("s_axi", 32, data, 2, outstanding=128)], parameters)


INSTANCES = {
    "ram_32": ram(32, 2, 4),
    "ram_64": ram(64, 1, 16, OutputRegister=1),
    "ram_512": ram(512, 4, 16),
    "ram_512_ultra": ram(512, 3, 32, Ultra=1, OutputRegister=1, ReadBeats=8),
    "port_64": port(64, 4, 8),
    "port_512": port(512, 1, 4),
}
RAMS = [name for name in INSTANCES if name.startswith("ram")]
PORTS = [name for name in INSTANCES if name.startswith("port")]


# Contents of each memory. They survive a test, just as they survive a reset.
HELD: dict[str, dict[int, int]] = {name: {} for name in RAMS}


def traffic_of(bench: Bench, name: str) -> Traffic:
    bundle = INSTANCES[name].bundles[0]
    slots = INSTANCES[name].parameters["Depth"] * bundle.data // 8 // 4096 if name in RAMS else 16
    traffic = Traffic(bench, Manager(bench, getattr(bench.dut, name)), 1 << bundle.id, slots=slots)
    traffic.kinds = (INCR, INCR, INCR, FIXED)
    traffic.long = 64
    return traffic


def rams_of(bench: Bench) -> list[Traffic]:
    rams = [traffic_of(bench, name) for name in RAMS]
    for name, traffic in zip(RAMS, rams, strict=True):
        traffic.memory = HELD[name]
    return rams


@cocotb.test()
async def holds_what_was_written(dut: Any) -> None:
    bench = Bench(dut)
    rams = rams_of(bench)
    await bench.reset()
    for idle, stall in PACES:
        for traffic in rams:
            traffic.manager.pace(idle, stall)
            traffic.write(min(traffic.slots, 12))
        await bench.until(lambda: all(traffic.written() for traffic in rams))
        for traffic in rams:
            traffic.read(20)
        await bench.until(lambda: all(traffic.done() for traffic in rams))
        for traffic in rams:
            # A FIXED burst writes all beats to one address, so each lane holds its last value.
            traffic.check(lambda address: 0)
            traffic.forget()


@cocotb.test()
async def a_wrapping_burst_is_refused_and_changes_nothing(dut: Any) -> None:
    bench = Bench(dut)
    rams = rams_of(bench)
    await bench.reset()
    for traffic in rams:
        traffic.write(4)
    await bench.until(lambda: all(traffic.written() for traffic in rams))
    for traffic in rams:
        traffic.forget()
        size = traffic.manager.bus.bit_length() - 1
        place = Burst(1, 1 << size, 4, size, WRAP)
        traffic.manager.ask(place)
        place.data = [(0, (1 << traffic.manager.bus) - 1)] * 4
        traffic.manager.write(place)
    await bench.until(lambda: all(t.manager.reads_done() and t.manager.responses for t in rams))
    for traffic in rams:
        assert traffic.manager.responses == [(1, SLVERR)]
        assert [response for _, response in traffic.manager.read()[1][0]] == [SLVERR] * 4
        traffic.forget()
        traffic.read(20)
    await bench.until(lambda: all(traffic.done() for traffic in rams))
    for traffic in rams:
        traffic.check(lambda address: 0)


@cocotb.test()
async def a_beat_a_cycle_and_the_promised_latency(dut: Any) -> None:
    bench = Bench(dut)
    rams = rams_of(bench)
    await bench.reset()
    for traffic in rams:
        size = traffic.manager.bus.bit_length() - 1
        for beats in [1] * 20 + [4096 >> size, 4096 >> size] + [2, 3] * 10:
            beats = min(beats, 256)
            traffic.manager.ask(Burst(0, 0, beats, size))
            traffic.manager.write(Burst(0, 4096, beats, size, data=[(0, 0)] * beats))
    await bench.until(lambda: all(t.manager.reads_done() == 42 == len(t.manager.responses) for t in rams))
    for name, traffic in zip(RAMS, rams, strict=True):
        manager = traffic.manager
        beats = len(manager.r.items)
        assert manager.r.cycles_of == list(range(manager.r.cycles_of[0], manager.r.cycles_of[0] + beats)), name
        assert manager.w.cycles_of == list(range(manager.w.cycles_of[0], manager.w.cycles_of[0] + beats)), name
        register = INSTANCES[name].parameters.get("OutputRegister", 0)
        assert manager.r.cycles_of[0] - manager.ar.cycles_of[0] == 3 + register, name
        assert manager.b.cycles_of[0] - manager.w.cycles_of[0] == 1, name


@cocotb.test()
async def a_manager_that_takes_nothing_loses_nothing(dut: Any) -> None:
    bench = Bench(dut)
    rams = rams_of(bench)
    await bench.reset()
    for traffic in rams:
        traffic.write(4)
    await bench.until(lambda: all(traffic.written() for traffic in rams))
    for traffic in rams:
        traffic.forget()
        traffic.manager.pace(0.0, 1.0)
        traffic.read(60)
    await bench.cycle(300)
    for traffic in rams:
        assert not traffic.manager.r.items
        traffic.manager.pace(0.0, 0.0)
    await bench.until(lambda: all(traffic.done() for traffic in rams))
    for traffic in rams:
        traffic.check(lambda address: 0)


@cocotb.test()
async def reset_in_mid_flight_leaves_the_contents_alone(dut: Any) -> None:
    bench = Bench(dut)
    rams = rams_of(bench)
    await bench.reset()
    for busy in (5, 30, 100):
        for traffic in rams:
            traffic.manager.pace(0.1, 0.3)
            traffic.write(min(traffic.slots, 10))
        await bench.until(lambda: all(traffic.written() for traffic in rams))
        for traffic in rams:
            traffic.read(20)
        await bench.cycle(busy)
        await bench.reset(1)
        for traffic in rams:
            traffic.forget()
            traffic.read(10)
        await bench.until(lambda: all(traffic.done() for traffic in rams))
        for traffic in rams:
            traffic.check(lambda address: 0)
            traffic.forget()


class User:
    """A user behind an axi_port. The value of a byte follows from its address. Every other 4 KiB cannot be read, and
    writes fail at random."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope = getattr(bench.dut, name)
        self.bench, self.name = bench, name
        self.traffic = traffic_of(bench, name)
        self.bus = self.traffic.manager.bus
        pins = "write_o write_address_o write_data_o write_strobe_o write_error_i read_o read_address_o read_data_i"
        self.pin = {pin: bench.pin(scope, pin) for pin in [*pins.split(), "read_error_i"]}
        self.latency = INSTANCES[name].parameters["ReadLatency"]
        self.reads: deque[int | None] = deque([None] * self.latency)
        self.written: dict[int, int] = {}
        self.error = False
        bench.agents.append(self)

    @staticmethod
    def byte(address: int) -> int:
        return (address * 37 >> 3) & 0xFF

    @staticmethod
    def fails(address: int) -> int:
        return SLVERR if address // 4096 % 2 else OKAY

    def drive(self) -> None:
        self.error = self.bench.random.random() < 0.5
        self.pin["write_error_i"].set(self.error)
        address = self.reads.popleft()
        if address is None:
            self.pin["read_data_i"].set(self.bench.random.getrandbits(8 * self.bus))
            self.pin["read_error_i"].set(self.bench.random.getrandbits(1))
            return
        base = address & -self.bus
        word = bytes(self.written.get(base + i, self.byte(base + i)) for i in range(self.bus))
        self.pin["read_data_i"].set(int.from_bytes(word, "little"))
        self.pin["read_error_i"].set(self.fails(address) != OKAY)

    def sample(self) -> None:
        self.reads.append(self.pin["read_address_o"].get() if self.pin["read_o"].get() else None)
        if self.pin["write_o"].get():
            address, data = self.pin["write_address_o"].get(), self.pin["write_data_o"].get()
            base = address & -self.bus
            for i in range(self.bus):
                if self.pin["write_strobe_o"].get() >> i & 1:
                    self.written[base + i] = data >> (8 * i) & 0xFF
            self.errors.append((address, self.error))

    def reset(self) -> None:
        self.reads = deque([None] * self.latency)

    errors: list[tuple[int, bool]]


@cocotb.test()
async def a_port_shows_beats_and_takes_errors(dut: Any) -> None:
    bench = Bench(dut)
    rams_of(bench)  # no traffic
    users = [User(bench, name) for name in PORTS]
    for user in users:
        user.errors = []
    await bench.reset()
    for idle, stall in PACES:
        for user in users:
            user.traffic.manager.pace(idle, stall)
            user.traffic.write(12)
        await bench.until(lambda: all(user.traffic.written() for user in users))
        for user in users:
            traffic = user.traffic
            # The beats came in the order of their addresses. A burst failed if one of its beats did.
            assert [a for a, _ in user.errors] == [a for burst in traffic.writes for a in burst.addresses()], user.name
            shown = iter(user.errors)
            for burst, (id_, response) in zip(traffic.writes, traffic.manager.responses, strict=True):
                failed = SLVERR if True in [error for _, error in islice(shown, burst.beats)] else OKAY
                assert (id_, response) == (burst.id, failed), user.name
            user.errors.clear()
            traffic.forget()
            traffic.read(20)
        await bench.until(lambda: all(user.traffic.done() for user in users))
        for user in users:
            user.traffic.check(user.byte, user.fails)
            user.traffic.forget()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stock_manager_agrees(dut: Any) -> None:
    bench = Bench(dut)
    rams_of(bench)  # no traffic
    await bench.reset()
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    for name in ("ram_32", "ram_512_ultra"):
        manager = AxiMaster(AxiBus.from_prefix(getattr(dut, name), "s_axi"), dut.clk_i, dut.rst_i)
        for address, length in [(0, 1), (3, 700), (4000, 4096), (5, 8192)]:
            data = bench.random.randbytes(length)
            await manager.write(address, data)
            assert (await manager.read(address, length)).data == data


def test_axi_ram() -> None:
    simulate_wrapped(__file__, INSTANCES)
