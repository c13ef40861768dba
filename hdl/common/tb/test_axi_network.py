# SPDX-License-Identifier: Apache-2.0
"""Tests axi_mux, axi_demux, and a crossbar made of both, with several managers and memories at every pace."""

from __future__ import annotations

from typing import Any

import cocotb
from axi_agents import DECERR, OKAY, SLVERR, Burst, Manager, Subordinate
from axi_traffic import KINDS, PACES, Traffic
from bench import Bench
from bundles import PACKAGE, Axi, Wrapped, elaborate, top_of
from cocotb.clock import Clock
from cocotbext.axi import AxiBus, AxiMaster, AxiRam
from simulate import simulate

WINDOW = 0x40000  # bytes of a region: 64 slots


def mux(inputs: int, data: int, id_: int, outstanding: int) -> Wrapped:
    ports = [
        Axi("s_axi", 32, data, id_, count=inputs, types="s_axi"),
        Axi("m_axi", 32, data, id_ + (inputs - 1).bit_length(), types="m_axi", outstanding=256),
    ]
    return Wrapped("axi_mux", ports, {"Inputs": inputs, "Outstanding": outstanding})


def demux(outputs: int, data: int, id_: int, exclusive: int, outstanding: int = 32) -> Wrapped:
    """Places the last region at 0 and the others at 1, 2, ... windows. Higher addresses are unmapped."""
    bases = [WINDOW * ((i + 1) % outputs) for i in range(outputs)]
    regions = ", ".join(f"64'h{base:x}, 64'h{WINDOW:x}" for base in reversed(bases))
    ports = [Axi("s_axi", 32, data, id_, outstanding=128), Axi("m_axi", 32, data, id_, count=outputs, outstanding=128)]
    parameters: dict[str, int | str] = {"Outputs": outputs, "Regions": f"{{{regions}}}", "Exclusive": exclusive}
    return Wrapped("axi_demux", ports, parameters | {"Outstanding": outstanding})


INSTANCES = {
    "mux_2": mux(2, 32, 2, 2),
    "mux_3": mux(3, 64, 1, 32),
    "mux_4": mux(4, 512, 4, 32),
    "demux_2": demux(2, 32, 2, 0),
    "demux_3": demux(3, 512, 1, 0, 4),
    "demux_2_exclusive": demux(2, 64, 3, 1),
}
MUXES = [name for name in INSTANCES if name.startswith("mux")]
DEMUXES = [name for name in INSTANCES if name.startswith("demux")]

# Two managers and two memories, each connected through an axi_cut.
CROSSBAR = """
module crossbar_flat (input wire clk_i, input wire rst_i, PORTS);
BODY
  m_axi_req_t [1:0] joined_req;
  m_axi_resp_t [1:0] joined_resp;
  s_axi_req_t [1:0][1:0] split_req, cut_req;
  s_axi_resp_t [1:0][1:0] split_resp, cut_resp;
  for (genvar i = 0; i < 2; i++) begin : gen_manager
    axi_demux #(
        .axi_req_t(s_axi_req_t), .axi_resp_t(s_axi_resp_t), .Exclusive(1),
        .Regions({64'h40000, 64'h40000, 64'h0, 64'h40000})
    ) i_demux (.clk_i, .rst_i, .s_axi_req(s_axi_req[i]), .s_axi_resp(s_axi_resp[i]),
               .m_axi_req(split_req[i]), .m_axi_resp(split_resp[i]));
    for (genvar j = 0; j < 2; j++) begin : gen_way
      axi_cut #(.axi_req_t(s_axi_req_t), .axi_resp_t(s_axi_resp_t)) i_cut (
          .clk_i, .rst_i, .s_axi_req(split_req[i][j]), .s_axi_resp(split_resp[i][j]),
          .m_axi_req(cut_req[j][i]), .m_axi_resp(cut_resp[j][i]));
    end
  end
  for (genvar j = 0; j < 2; j++) begin : gen_subordinate
    axi_mux #(
        .s_axi_req_t(s_axi_req_t), .s_axi_resp_t(s_axi_resp_t), .m_axi_req_t(m_axi_req_t), .m_axi_resp_t(m_axi_resp_t),
        .Inputs(2)
    ) i_mux (.clk_i, .rst_i, .s_axi_req(cut_req[j]), .s_axi_resp(cut_resp[j]),
             .m_axi_req(joined_req[j]), .m_axi_resp(joined_resp[j]));
  end
  assign m_axi_req = joined_req;
  assign joined_resp = m_axi_resp;
endmodule
"""


def top() -> str:
    """Returns a top with the instances and the crossbar."""
    ports = [Axi("s_axi", 32, 64, 2, count=2), Axi("m_axi", 32, 64, 3, count=2, outstanding=128)]
    declared = ",\n".join(f"  {line}" for port in ports for line in port.ports())
    body = "\n".join(line for port in ports for line in port.body())
    crossbar = CROSSBAR.replace("PORTS", declared).replace("BODY", body)
    instance = "  crossbar_flat crossbar (.clk_i, .rst_i);\nendmodule\n"
    return top_of(INSTANCES).removesuffix("endmodule\n") + instance + crossbar


class Net:
    """Managers and the memories that they reach. Each manager has its own slots in every memory."""

    def __init__(self, bench: Bench, name: str, managers: int, memories: int, **options: Any) -> None:
        self.bench, self.name = bench, name
        scope = getattr(bench.dut, name)

        def prefix(role: str, i: int, count: int) -> str:
            many = count > 1 or name == "crossbar"
            return f"{role}{i}_axi" if many else f"{role}_axi"

        self.memories = [Subordinate(bench, scope, prefix("m", i, memories), **options) for i in range(memories)]
        self.managers = [Manager(bench, scope, prefix("s", i, managers)) for i in range(managers)]
        # With one manager, one traffic covers all regions and beyond. With several, each manager has a part of the
        # slots.
        self.traffic = []
        for i, manager in enumerate(self.managers):
            slots = 64 * memories if managers == 1 else 64
            ids = 1 << manager.aw.fields[0].width
            traffic = Traffic(bench, manager, ids, base=4096 * slots * i, slots=slots)
            traffic.kinds = KINDS
            self.traffic.append(traffic)

    def pace(self, idle: float, stall: float) -> None:
        for port in (*self.managers, *self.memories):
            port.pace(idle, stall)

    def write(self, count: int) -> None:
        for traffic in self.traffic:
            traffic.write(count)

    def read(self, count: int) -> None:
        for traffic in self.traffic:
            traffic.read(count)

    def written(self) -> bool:
        return all(traffic.written() for traffic in self.traffic)

    def done(self) -> bool:
        return all(traffic.done() for traffic in self.traffic)

    def check(self) -> None:
        for traffic in self.traffic:
            traffic.check(self.memories[0].initial)
            traffic.forget()
        for memory in self.memories:
            memory.written_bursts.clear(), memory.read_bursts.clear()

    def forget(self) -> None:
        """Forgets the expected contents, because an interrupted memory has unknown contents after a reset."""
        for traffic in self.traffic:
            traffic.forget()
            traffic.memory.clear()
        for memory in self.memories:
            memory.written.clear()


def nets_of(bench: Bench) -> list[Net]:
    """Creates the nets of all instances. Memories behind a mux answer in any order."""
    nets = [Net(bench, name, INSTANCES[name].bundles[0].count, 1, reorder=True, mix=True) for name in MUXES]
    nets += [Net(bench, name, 1, INSTANCES[name].bundles[1].count) for name in DEMUXES]
    return [*nets, Net(bench, "crossbar", 2, 2, reorder=True, mix=True)]


@cocotb.test()
async def every_transaction_finds_its_way_and_its_way_back(dut: Any) -> None:
    bench = Bench(dut)
    nets = nets_of(bench)
    await bench.reset()
    for idle, stall in PACES:
        for net in nets:
            net.pace(idle, stall)
            net.write(12)
        await bench.until(lambda: all(net.written() for net in nets))
        for net in nets:
            net.read(12)
        await bench.until(lambda: all(net.done() for net in nets))
        for net in nets:
            net.check()


@cocotb.test()
async def reads_and_writes_together(dut: Any) -> None:
    """Reads some slots while it writes others."""
    bench = Bench(dut)
    nets = nets_of(bench)
    await bench.reset()
    for idle, stall in PACES[:4]:
        for net in nets:
            net.pace(idle, stall)
            for traffic in net.traffic:
                half = traffic.slots // 2
                base, slots = traffic.base, traffic.slots
                traffic.slots = half
                traffic.write(10)
                traffic.base = base + 4096 * half
                traffic.read(20)
                traffic.base, traffic.slots = base, slots
        await bench.until(lambda: all(net.done() for net in nets))
        for net in nets:
            net.check()


@cocotb.test()
async def the_subordinate_sees_whose_it_is(dut: Any) -> None:
    bench = Bench(dut)
    nets = [net for net in nets_of(bench) if net.name in MUXES]
    await bench.reset()
    for net in nets:
        net.write(8), net.read(8)
    await bench.until(lambda: all(net.done() for net in nets))
    for net in nets:
        width = INSTANCES[net.name].bundles[0].id
        for i, traffic in enumerate(net.traffic):
            got = [burst for burst in net.memories[0].written_bursts if burst.id >> width == i]
            assert [burst.data for burst in got] == [burst.data for burst in traffic.writes], net.name
            assert [burst.id & ((1 << width) - 1) for burst in got] == [burst.id for burst in traffic.writes]


@cocotb.test()
async def managers_take_turns(dut: Any) -> None:
    bench = Bench(dut)
    nets = [net for net in nets_of(bench) if net.name in MUXES]
    await bench.reset()
    for net in nets:
        net.memories[0].delay = (1, 1)
        for i, manager in enumerate(net.managers):
            for j in range(20):
                manager.ask(Burst(0, 4096 * j + 64 * i, 1, 2))
                manager.write(Burst(0, 4096 * j + 64 * i, 1, 2, data=[(j, 15)]))
    await bench.until(lambda: all(m.reads_done() == 20 == len(m.responses) for net in nets for m in net.managers))
    for net in nets:
        count = len(net.managers)
        width = INSTANCES[net.name].bundles[0].id
        for bursts in (net.memories[0].read_bursts, net.memories[0].written_bursts):
            assert [burst.id >> width for burst in bursts] == [i % count for i in range(20 * count)], net.name
        reads = net.memories[0].ar.cycles_of
        assert reads[-1] - reads[0] == 20 * count - 1, net.name


@cocotb.test()
async def what_is_nowhere_is_answered_with_an_error(dut: Any) -> None:
    bench = Bench(dut)
    nets = [net for net in nets_of(bench) if net.name in DEMUXES]
    await bench.reset()
    for idle, stall in PACES[:4]:
        for net in nets:
            net.pace(idle, stall)
            net.traffic[0].slots = 64 * (len(net.memories) + 2)  # two windows beyond the last region
            net.write(30), net.read(0)
        await bench.until(lambda: all(net.written() for net in nets))
        for net in nets:
            net.read(30)
        await bench.until(lambda: all(net.done() for net in nets))
        for net in nets:
            end = WINDOW * len(net.memories)
            net.traffic[0].check(net.memories[0].initial, lambda a, end=end: OKAY if a < end else DECERR)
            assert any(response == DECERR for _, response in net.managers[0].responses)
            net.traffic[0].forget()
            for memory in net.memories:
                assert all(burst.id == 0 for burst in memory.written_bursts + memory.read_bursts), net.name
                memory.written_bursts.clear(), memory.read_bursts.clear()


@cocotb.test()
async def errors_of_subordinates_come_through(dut: Any) -> None:
    bench = Bench(dut)
    nets = nets_of(bench)
    await bench.reset()

    def fails(address: int) -> int:
        return SLVERR if address // 4096 % 3 == 1 else OKAY

    for net in nets:
        for memory in net.memories:
            memory.fails = fails
        net.read(20)
        for traffic in net.traffic:
            for burst in [traffic.burst(slot) for slot in bench.random.sample(range(traffic.slots), 20)]:
                burst.data = [(0, 0)] * burst.beats
                traffic.writes.append(burst)
                traffic.manager.write(burst)
    await bench.until(lambda: all(net.done() for net in nets))
    for net in nets:
        for traffic in net.traffic:
            traffic.check(net.memories[0].initial, fails)


@cocotb.test()
async def a_demux_goes_on_while_outputs_alternate(dut: Any) -> None:
    """Sends single beats to each output in turn and expects one transaction per cycle. With Exclusive, each waits for
    the previous answer."""
    bench = Bench(dut)
    nets = [net for net in nets_of(bench) if net.name in DEMUXES]
    await bench.reset()
    for net in nets:
        for memory in net.memories:
            memory.delay = (1, 1)
        for j in range(60):
            address = WINDOW * (j % len(net.memories))
            net.managers[0].ask(Burst(j % 2, address, 1, 2))
            net.managers[0].write(Burst(j % 2, address, 1, 2, data=[(0, 15)]))
    await bench.until(lambda: all(m.reads_done() == 60 == len(m.responses) for net in nets for m in net.managers))
    for net in nets:
        reads, writes = net.managers[0].r.cycles_of, net.managers[0].w.cycles_of
        if net.name == "demux_2":
            assert reads[-1] - reads[0] == 59
            assert writes[-1] - writes[0] == 59
        if net.name == "demux_2_exclusive":
            assert reads[-1] - reads[0] >= 2 * 59


@cocotb.test()
async def memories_that_answer_nothing_are_not_asked_without_end(dut: Any) -> None:
    bench = Bench(dut)
    nets = nets_of(bench)
    await bench.reset()
    for net in nets:
        for memory in net.memories:
            memory.b.idle = memory.r.idle = 1.0
        net.write(20), net.read(20)
    await bench.cycle(600)
    for net in nets:
        assert all(not traffic.manager.responses for traffic in net.traffic), net.name
        if net.name in DEMUXES:
            limit = INSTANCES[net.name].parameters["Outstanding"]
            assert sum(len(memory.ar.cycles_of) for memory in net.memories) <= limit, net.name
        for memory in net.memories:
            memory.b.idle = memory.r.idle = 0.0
    await bench.until(lambda: all(net.done() for net in nets))


@cocotb.test()
async def reset_in_mid_flight_leaves_nothing(dut: Any) -> None:
    bench = Bench(dut)
    nets = nets_of(bench)
    await bench.reset()
    for busy in (5, 30, 100):
        for net in nets:
            net.pace(0.1, 0.3)
            net.write(12), net.read(12)
        await bench.cycle(busy)
        await bench.reset(1)
        for net in nets:
            net.forget()
            net.write(8)
        await bench.until(lambda: all(net.written() for net in nets))
        for net in nets:
            net.read(8)
        await bench.until(lambda: all(net.done() for net in nets))
        for net in nets:
            net.check()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def stock_managers_and_rams_agree(dut: Any) -> None:
    bench = Bench(dut)
    nets_of(bench)  # no traffic
    await bench.reset()
    await bench.cycle()
    Clock(dut.clk_i, 2, unit="ns").start()
    scope = dut.crossbar
    managers = [AxiMaster(AxiBus.from_prefix(scope, f"s{i}_axi"), dut.clk_i, dut.rst_i) for i in range(2)]
    rams = [AxiRam(AxiBus.from_prefix(scope, f"m{i}_axi"), dut.clk_i, dut.rst_i, size=2 * WINDOW) for i in range(2)]
    for address, length in [(0, 1), (WINDOW + 3, 700), (WINDOW - 300, 600), (5, 4096)]:
        data = [bench.random.randbytes(length) for _ in managers]
        tasks = [cocotb.start_soon(manager.write(address + 8192 * i, data[i])) for i, manager in enumerate(managers)]
        for task in tasks:
            await task
        for i, manager in enumerate(managers):
            assert (await manager.read(address + 8192 * i, length)).data == data[i]
        end = min(length, max(0, WINDOW - address))
        assert rams[0].read(address % (2 * WINDOW), end) == data[0][:end]


def test_axi_network() -> None:
    simulate(__file__, text=top(), sources=(PACKAGE,))
    elaborate(__file__, INSTANCES | {"crossbar": INSTANCES["mux_2"]})
