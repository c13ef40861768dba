# SPDX-License-Identifier: Apache-2.0
"""axi_split: long bursts, and bursts across 4 KiB, in front of a memory that takes only short ones; range_split with
it."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import OKAY, SLVERR, Burst, Manager, Subordinate
from axi_traffic import PACES, Traffic
from bench import Bench
from bundles import Axi, Wrapped, simulate_wrapped
from cocotb.clock import Clock
from cocotbext.axi import AxiBus, AxiMaster, AxiRam


def instance(data: int, beats: int, outstanding: int = 32, id_: int = 3) -> Wrapped:
    ports = [Axi("s_axi", 32, data, id_, boundary=0, outstanding=128), Axi("m_axi", 32, data, id_, outstanding=128)]
    return Wrapped("axi_split", ports, {"MaxBeats": beats, "Outstanding": outstanding})


INSTANCES = {
    "split_32_1": instance(32, 1),
    "split_32_4": instance(32, 4, 2),
    "split_64_256": instance(64, 256),
    "split_512_16": instance(512, 16),
    "split_512_64": instance(512, 64, id_=1),
    "range": Wrapped("range_split", [], {"AddressWidth": 20, "LengthWidth": 14, "MaxLimit": 12, "UserWidth": 5}),
    "range_small": Wrapped("range_split", [], {"AddressWidth": 9, "LengthWidth": 3, "MaxLimit": 4, "UserWidth": 1}),
}
SPLITS = [name for name in INSTANCES if name.startswith("split")]


class Lane:
    """An instance between a manager of long bursts and a memory."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope = getattr(bench.dut, name)
        wrapped = INSTANCES[name]
        self.bench, self.name = bench, name
        self.most = wrapped.parameters["MaxBeats"]
        self.traffic = Traffic(bench, Manager(bench, scope), 1 << wrapped.bundles[0].id, slots=16)
        self.traffic.slot, self.traffic.long = 16384, 256 if self.most > 1 else 20
        self.memory = Subordinate(bench, scope)

    def check_parts(self) -> None:
        """What the memory was asked is what the manager asked, in parts that are as long as they may be."""
        for asked, parts in [
            (self.traffic.writes, self.memory.written_bursts),
            (self.traffic.reads, self.memory.read_bursts),
        ]:
            left = list(parts)
            for burst in asked:
                addresses = burst.addresses()
                limit = min(4096, self.most << burst.size)
                while addresses:
                    part = left.pop(0)
                    assert part.address == addresses[0], self.name
                    assert (part.size, part.cache, part.prot, part.id) == (burst.size, burst.cache, burst.prot, 0)
                    assert part.addresses() == addresses[: part.beats], self.name
                    del addresses[: part.beats]
                    end = (part.addresses()[-1] & -(1 << part.size)) + (1 << part.size)
                    assert part.address // limit == (end - 1) // limit, f"{self.name}: {part} crosses {limit}"
                    assert not addresses or end % limit == 0, f"{self.name}: {part} is too short"
            assert not left, self.name


def lanes_of(bench: Bench) -> list[Lane]:
    return [Lane(bench, name) for name in SPLITS]


@cocotb.test()
async def parts_are_whole_and_responses_are_one(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for idle, stall in PACES[:4]:
        for lane in lanes:
            lane.traffic.manager.pace(idle, stall), lane.memory.pace(idle, stall)
            lane.traffic.write(8)
        await bench.until(lambda: all(lane.traffic.written() for lane in lanes))
        for lane in lanes:
            lane.traffic.read(8)
        await bench.until(lambda: all(lane.traffic.done() for lane in lanes))
        for lane in lanes:
            lane.traffic.check(lane.memory.initial)
            lane.check_parts()
            assert [burst.id for burst in lane.traffic.writes] == [id_ for id_, _ in lane.traffic.manager.responses]
            lane.traffic.forget()
            lane.memory.written_bursts.clear(), lane.memory.read_bursts.clear()


@cocotb.test()
async def an_error_of_a_part_is_one_of_the_burst(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()

    def fails(address: int) -> int:
        return SLVERR if address // 512 % 3 == 1 else OKAY

    for lane in lanes:
        lane.memory.fails = fails
        lane.traffic.write(16)
    await bench.until(lambda: all(lane.traffic.written() for lane in lanes))
    for lane in lanes:
        expected = [max(fails(a) for a in burst.addresses()) for burst in lane.traffic.writes]
        assert [response for _, response in lane.traffic.manager.responses] == expected, lane.name
        assert {OKAY, SLVERR} == set(expected), lane.name


@cocotb.test()
async def a_part_a_cycle_and_a_beat_a_cycle(dut: Any) -> None:
    bench = Bench(dut)
    lanes = {lane.name: lane for lane in lanes_of(bench)}
    lane, short = lanes["split_512_16"], lanes["split_32_1"]
    await bench.reset()
    for each in (lane, short):
        each.memory.delay = (1, 1)
    for i in range(4):
        data = [(0, 0)] * 256
        lane.traffic.manager.write(Burst(0, 16384 * i, 256, 6, data=data))
        lane.traffic.manager.ask(Burst(0, 16384 * i + 64, 256, 6))
        short.traffic.manager.ask(Burst(0, 512 * i, 64, 2))
    await bench.until(lambda: lane.traffic.manager.reads_done() == 4 and short.traffic.manager.reads_done() == 4)
    writes, reads, singles = lane.traffic.manager.w.cycles_of, lane.traffic.manager.r.cycles_of, short.traffic.manager.r
    assert writes[-1] - writes[0] == 4 * 256 - 1
    assert reads[-1] - reads[0] == 4 * 256 - 1
    assert singles.cycles_of[-1] - singles.cycles_of[0] == 4 * 64 - 1


@cocotb.test()
async def a_memory_that_takes_or_answers_nothing(dut: Any) -> None:
    """No more parts than it can remember; all come through in the end."""
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for lane in lanes:
        lane.memory.b.idle = lane.memory.r.idle = 1.0
        lane.traffic.write(8), lane.traffic.read(8)
    await bench.cycle(500)
    for lane in lanes:
        limit = INSTANCES[lane.name].parameters["Outstanding"]
        assert len(lane.memory.aw.cycles_of) <= limit, lane.name
        assert len(lane.memory.ar.cycles_of) <= limit, lane.name
        assert not lane.traffic.manager.responses, lane.name
        lane.memory.b.idle = lane.memory.r.idle = 0.0
    await bench.until(lambda: all(lane.traffic.done() for lane in lanes))


@cocotb.test()
async def reset_in_mid_flight_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    lanes = lanes_of(bench)
    await bench.reset()
    for busy in (5, 30, 200):
        for lane in lanes:
            lane.traffic.manager.pace(0.1, 0.3), lane.memory.pace(0.1, 0.3)
            lane.traffic.write(8), lane.traffic.read(8)
        await bench.cycle(busy)
        await bench.reset(1)
        for lane in lanes:
            lane.memory.written.clear(), lane.traffic.memory.clear(), lane.traffic.forget()
            lane.traffic.write(4)
        await bench.until(lambda: all(lane.traffic.written() for lane in lanes))
        for lane in lanes:
            lane.traffic.read(4)
        await bench.until(lambda: all(lane.traffic.done() for lane in lanes))
        for lane in lanes:
            lane.traffic.check(lane.memory.initial)
            lane.traffic.forget()


@cocotb.test()
async def pieces_of_ranges(dut: Any) -> None:
    bench = Bench(dut)
    lanes_of(bench)  # quiet
    lanes = []
    for name in ("range", "range_small"):
        scope = getattr(dut, name)
        source = bench.source(scope, fields=("address", "length", "limit", "user"))
        lanes.append((name, source, bench.sink(scope, fields=("address", "length", "first", "last", "user"))))
    await bench.reset()
    draw = bench.random
    for idle, stall in PACES:
        expected: dict[str, list[tuple[int, ...]]] = {}
        for name, source, sink in lanes:
            source.idle, sink.stall = idle, stall
            sink.items.clear()
            expected[name] = []
            bits = source.fields[0].width
            for _ in range(100):
                limit = draw.randint(0, INSTANCES[name].parameters["MaxLimit"])
                length = draw.randint(1, min(1 << source.fields[1].width, 20 << limit) - 1 or 1)
                address = draw.randrange((1 << bits) - length + 1)
                user = draw.getrandbits(source.fields[3].width)
                source.items.append((address, length, limit, user))
                at, end = address, address + length
                while at < end:
                    after = min(end, (at | ((1 << limit) - 1)) + 1)
                    expected[name].append((at, after - at, int(at == address), int(after == end), user))
                    at = after
        await bench.until(lambda want=expected: all(len(sink.items) == len(want[name]) for name, _, sink in lanes))
        for name, _, sink in lanes:
            assert sink.items == expected[name], name
            if idle == stall == 0:
                assert sink.cycles_of == list(range(sink.cycles_of[0], sink.cycles_of[0] + len(sink.items))), name


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stock_manager_and_ram_agree(dut: Any) -> None:
    bench = Bench(dut)
    lanes_of(bench)  # quiet
    await bench.reset()
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    for name in ("split_32_4", "split_512_16"):
        scope = getattr(dut, name)
        manager = AxiMaster(AxiBus.from_prefix(scope, "s_axi"), dut.clk_i, dut.rst_i)
        ram = AxiRam(AxiBus.from_prefix(scope, "m_axi"), dut.clk_i, dut.rst_i, size=1 << 16)
        for address, length in [(0, 1), (3, 700), (4000, 4096), (5, 8192)]:
            data = bench.random.randbytes(length)
            await manager.write(address, data)
            assert ram.read(address, length) == data
            assert (await manager.read(address, length)).data == data


def test_axi_split() -> None:
    simulate_wrapped(__file__, INSTANCES)
