# SPDX-License-Identifier: Apache-2.0
"""kv_box_250mhz at the OpenNIC shell's ports: registers, the reset handshake, kv frames, other frames, resets."""

from __future__ import annotations

import struct
from typing import Any

import cocotb
from kv_frames import ADDRESS, MAC, PORT, ip_number, mac_number, ones_sum
from kv_registers_rig import AT, FIELDS
from opennic_shell import Frame, Shell, beats, frames
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from simulate import KV_PACKAGES, simulate

# Of each box: ports and channels.
BOXES = {"one": (1, 2), "two": (2, 1)}
DRAIN = 600
TO_HOST, TO_NETWORK = 4, 1  # cycles of the core: to the host from a frame's last beat, to the network from its first
ID = 0x4B564E44
READ, WRITE, READ_DONE, WRITE_DONE = 1, 2, 17, 18
ENTERING = FIELDS["state"].fields["entering"]
# Registers that only hold the written value, without any action.
PLAIN = [AT["retry_cycles"], AT["sync_from"], *(AT[base] + i for base in ("line_base", "value_base") for i in (0, 4))]

TOP = f"""
`include "axi.svh"
module flat_box #(parameter int unsigned Ports = 1, parameter int unsigned Channels = 1, parameter bit WholeFrames = 0)
    (input wire axis_aclk, input wire axil_aclk);
  import kv_core_pkg::*;
  `AXI3_NETS(m_axi, Ports * Channels, AddressBits, 256)
  memory_req_t [Ports * Channels-1:0] req;
  memory_resp_t [Ports * Channels-1:0] resp;
  for (genvar i = 0; i < Ports * Channels; i++) begin : gen_memory
    `AXI3_TO_FLAT(m_axi, i, req[i], resp[i])
  end
  kv_box_250mhz #(.Ports(Ports), .Channels(Channels), .LineCacheBits(6), .LaneBits(9), .DrainCycles({DRAIN}),
      .WholeFrames(WholeFrames)) dut (.axis_aclk, .axil_aclk, .m_axi_req(req), .m_axi_resp(resp));
endmodule
module top (input wire clk_i, input wire rst_i, input wire axil_aclk);
  flat_box #(.Ports(1), .Channels(2)) one (.axis_aclk(clk_i), .axil_aclk(axil_aclk));
  flat_box #(.Ports(2), .Channels(1), .WholeFrames(1)) two (.axis_aclk(clk_i), .axil_aclk(axil_aclk));
endmodule
"""


def shell_of(dut: Any, box: str, seed: int = 1) -> Shell:
    """The shell around one of the two boxes."""
    return Shell(dut, box, *BOXES[box], seed)


def foreign(shell: Shell, *, long: bool = False, short: bool = False) -> bytes:
    """A frame that no block here handles."""
    length = shell.bench.random.choice([60, 64, 65, 127, 128, 129, shell.bench.random.randint(60, 1518)])
    length = shell.bench.random.randint(1400, 1518) if long else 60 if short else length
    return b"\x02\x00" + shell.bench.random.randbytes(length - 2)


def send(shell: Shell, count: int, **kind: bool) -> tuple[list[list[Frame]], list[list[Frame]]]:
    """Queues frames at all inputs. Returns the frames expected at the hosts, and those expected at the networks."""
    to_host: list[list[Frame]] = []
    to_network: list[list[Frame]] = []
    for port in shell.ports:
        to_host.append([])
        to_network.append([])
        for _ in range(count):
            frame = foreign(shell, **kind)
            shell.rx[port].items.extend(beats(frame, 1 << (6 + port)))
            to_host[port].append((frame, 1 << (6 + port), 1 << port))
            frame = foreign(shell, **kind)
            shell.h2c[port].items.extend(beats(frame, 1 << port))
            to_network[port].append((frame, 1 << port, 1 << (6 + port)))
    return to_host, to_network


def arrived(shell: Shell, to_host: list[list[Frame]], to_network: list[list[Frame]]) -> bool:
    """Whether as many last beats as frames have arrived."""
    pairs = [*zip(shell.c2h, to_host, strict=True), *zip(shell.tx, to_network, strict=True)]
    return all(sum(item[2] for item in sink.items) >= len(expected) for sink, expected in pairs)


def compare(shell: Shell, to_host: list[list[Frame]], to_network: list[list[Frame]]) -> None:
    """Compares every frame: bytes, order, and the shell's fields."""
    for port in shell.ports:
        assert frames(shell.c2h[port].items) == to_host[port]
        assert frames(shell.tx[port].items) == to_network[port]


@cocotb.test()
async def configured(dut: Any) -> None:
    """Tests the reset after configuration, without a handshake. Memory becomes ready late, and the host does not wait
    for it."""
    shells = [shell_of(dut, box) for box in BOXES]
    two = shells[1]
    bench = two.bench  # whose clocks these are
    bench.agents += list(shells[0].bench.agents)
    for net in shells[0].bench.dirty:
        net.flush()
    two.memory_ready.set(0)
    await bench.cycle()
    assert not two.done.get()
    to_host, to_network = send(two, 3)
    await bench.until(two.ready, 200)
    assert bench.cycles < 16 + 20
    assert await two.registers.read(0) == (0, 0)  # still in reset
    assert await two.registers.write(AT["retry_cycles"], 1) == 0
    await bench.cycle(50)
    assert not any(sink.items for sink in (*two.tx, *two.c2h))
    assert not any(source.sent for source in (*two.rx, *two.h2c))
    two.memory_ready.set(1)
    await bench.until(lambda: arrived(two, to_host, to_network))
    compare(two, to_host, to_network)
    assert await two.registers.read(0) == (ID, 0)


@cocotb.test()
async def registers(dut: Any) -> None:
    """Each core has its own 4 KiB; other addresses read as zeros without an error. At several clock ratios."""
    for box, ratio, idle in (("one", 2, 0.0), ("two", 2, 0.5), ("two", 1, 0.3), ("one", 3, 0.0), ("two", 5, 0.2)):
        shell = shell_of(dut, box, ratio)
        await shell.start()
        bench, bus = shell.bench, shell.registers
        bench.ratio, bench.offset = ratio, bench.random.randrange(ratio)
        bus.pace(idle)
        for port in shell.ports:
            assert await bus.read(4096 * port) == (ID, 0)
        held: dict[int, int] = {}
        for _ in range(60):
            port = bench.random.choice(shell.ports)
            address = 4096 * port + bench.random.choice(PLAIN)
            if bench.random.random() < 0.5 or address not in held:
                held[address] = bench.random.randrange(4) << 12 if address % 8 == 0 else bench.random.randrange(4)
                assert await bus.write(address, held[address]) == 0
            else:
                assert await bus.read(address) == (held[address], 0)
        beside = [bench.random.randrange(4096 * len(shell.ports), 1 << 20) & ~3 for _ in range(15)]
        for address in (4096 * len(shell.ports), (1 << 20) - 4, *beside):
            assert await bus.write(address, bench.random.getrandbits(32)) == 0
            assert await bus.read(address) == (0, 0)
            assert await bus.read(address | 0x100000 * bench.random.randrange(16)) == (0, 0)
        for address, data in held.items():
            assert await bus.read(address) == (data, 0)
        # Several accesses at once: reads and writes wait for each other, and none is lost.
        addresses = [4096 * bench.random.choice(shell.ports) + AT["retry_cycles"] for _ in range(10)]
        for i, address in enumerate(addresses):
            bus.aw.items.append(address)
            bus.w.items.append(i)
            bus.ar.items.append(4096 * (i % len(shell.ports)))
        done = len(bus.b.items), len(bus.r.items)
        await bench.until(lambda: (len(bus.b.items), len(bus.r.items)) == (done[0] + 10, done[1] + 10), 4000)  # noqa: B023
        assert [item[0] for item in bus.r.items[-10:]] == [ID] * 10
        for address in set(addresses):
            assert await bus.read(address) == (max(i for i, a in enumerate(addresses) if a == address), 0)


@cocotb.test()
async def pass_through(dut: Any) -> None:
    """Both directions, all ports, every speed, with the shell's tuser fields."""
    for box in BOXES:
        for idle, stall in ((0.0, 0.0), (0.4, 0.0), (0.0, 0.4), (0.3, 0.5)):
            shell = shell_of(dut, box, 3)
            await shell.start()
            shell.pace(idle, stall)
            to_host, to_network = send(shell, 25)
            first = shell.bench.cycles
            await shell.until(lambda: arrived(shell, to_host, to_network))  # noqa: B023
            compare(shell, to_host, to_network)
            if (idle, stall) == (0.0, 0.0):  # without pauses: a beat in each cycle
                for source in (shell.rx[0], shell.h2c[0]):
                    assert source.cycles_of[-1] - source.cycles_of[0] == len(source.cycles_of) - 1
                    assert source.cycles_of[0] == first
                sink = shell.tx[0]
                assert sink.cycles_of[-1] - sink.cycles_of[0] == len(sink.items) - 1
                assert sink.cycles_of[0] == first + TO_NETWORK
                # A frame to the host leaves when it is complete, without a gap.
                beats_of = [(len(frame[0]) + 63) // 64 for frame in to_host[0]]
                leaves = 0
                for i, count in enumerate(beats_of):
                    leaves = max(leaves, first + sum(beats_of[: i + 1]) - 1 + TO_HOST)
                    assert shell.c2h[0].cycles_of[sum(beats_of[:i])] == leaves
                    leaves += count


@cocotb.test()
async def handshake(dut: Any) -> None:
    """mod_rst_done falls at the edge that sees mod_rstn low, and rises once. Registers then have their reset values."""
    for ratio in (2, 1, 4):
        shell = shell_of(dut, "two", ratio)
        shell.bench.ratio = ratio
        await shell.start()
        bench = shell.bench
        assert await shell.registers.write(AT["retry_cycles"], 5) == 0
        for again in (False, True):
            await shell.ask_for_reset()
            await bench.settle()
            assert not shell.ready()
            if again:  # absorbed
                await bench.cycle(10 * ratio)
                assert not shell.ready()
                await shell.ask_for_reset()
            asked = bench.cycles
            await bench.until(shell.ready, 64 + 16 + 20 * ratio)
            assert bench.cycles - asked > 16
            for _ in range(100):
                await bench.cycle()
                assert shell.ready()
        assert await shell.registers.read(AT["retry_cycles"]) == (25000, 0)
        # Accesses during a reset are answered, with the present value or with zeros.
        shell.registers.ar.items.extend([0] * 40)
        shell.registers.aw.items.extend([AT["retry_cycles"]] * 40)
        shell.registers.w.items.extend([7] * 40)
        before = len(shell.registers.b.items), len(shell.registers.r.items)
        await bench.cycle(40)
        await shell.ask_for_reset()
        bus = shell.registers
        await bench.until(lambda: len(bus.r.items) == before[1] + 40 and len(bus.b.items) == before[0] + 40, 8000)  # noqa: B023
        assert {item[0] for item in bus.r.items[before[1] :]} <= {0, ID}
        assert await shell.registers.read(AT["retry_cycles"]) == (7, 0)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Frames leave whole and in order, without duplicates or losses, at any moment of the reset."""
    for box in BOXES:
        for seed in range(6):
            shell = shell_of(dut, box, seed)
            await shell.start()
            shell.pace(*((0.0, 0.0), (0.3, 0.3), (0.0, 0.6))[seed % 3])
            to_host, to_network = send(shell, 20, short=seed > 3)
            for _ in range(2):
                await shell.bench.cycle(shell.bench.random.randint(1, 60 if seed <= 3 else 8))
                stall = shell.tx[0].stall
                if seed > 3:  # the neighbours accept no beats for a while, between frames
                    shell.pace(0.0, 1.0)
                await shell.ask_for_reset()
                if seed > 3:
                    await shell.bench.cycle(200)
                    assert not shell.ready()
                    shell.pace(0.0, stall)
                await shell.until(shell.ready)
            await shell.until(lambda: arrived(shell, to_host, to_network))  # noqa: B023
            await shell.bench.cycle(50)
            compare(shell, to_host, to_network)


class Client:
    """A client of the node behind one port; the node is a cluster of its own."""

    def __init__(self, shell: Shell, port: int) -> None:
        self.shell, self.port, self.draw = shell, port, shell.bench.random
        self.values: dict[int, bytes] = {}
        self.request = 0

    async def configure(self) -> None:
        """Makes this node the only one, number 0, in epoch 1, with an empty table of 256 buckets."""

        async def write(name: str, data: int, *, plus: int = 0) -> None:
            assert await self.shell.registers.write(4096 * self.port + AT[name] + plus, data) == 0

        async def state() -> int:
            return (await self.shell.registers.read(4096 * self.port + AT["state"]))[0]

        await write("source_ip", ip_number("10.0.0.0"))
        await write("source_mask", 0xFFFFFFF0)
        await write("bucket_bits", 8)
        await write("line_base", 0)
        await write("value_base", 1 << 20)
        await write("control", 8)
        while await state() & 4:
            pass
        await write("node", 0)
        await write("members", 0x0101)
        await write("udp_port", PORT)
        await write("peer_mac_low", mac_number(MAC) & 0xFFFFFFFF)
        await write("peer_mac_high", mac_number(MAC) >> 32)
        await write("peer_ip", ip_number(ADDRESS))
        await write("peer_port", PORT)
        for i in range(32):
            await write("leader", 0, plus=4 * i)
        await write("lease", 0xFFFFFFFF)
        await write("lease", 0xFFFFFFFF, plus=4)
        await write("retry_cycles", 500)
        await write("control", 3)
        await write("epoch", 1)
        for _ in range(500):
            if await state() & 3 == 3:
                return
        raise AssertionError(f"the node does not open: {await state():x}")

    def frame(self, kind: int, key: int, value: bytes = b"") -> bytes:
        """A request. Each uses a new lane, so that none waits for another."""
        self.request += 1
        header = struct.pack(">BBHHIIQ", kind << 3, 0, 1, self.request, 1 if kind == WRITE else self.request, 0, key)
        udp = UDP(sport=4000 + self.port, dport=PORT)
        if self.draw.random() < 0.5:
            udp.chksum = 0
        return bytes(
            Ether(dst=MAC, src="02:00:00:00:00:99") / IP(src="10.0.0.9", dst=ADDRESS) / udp / Raw(header + value)
        )

    def ask(self, frame: bytes) -> None:
        """Sends the frame to the port."""
        self.shell.rx[self.port].items.extend(beats(frame, 1 << (6 + self.port)))

    def check(self, reply: bytes) -> tuple[int, int, bytes]:
        """Checks a reply's frame; returns kind, key and value."""
        assert reply[:14] == bytes.fromhex("020000000099") + mac_number(MAC).to_bytes(6, "big") + b"\x08\x00"
        assert ones_sum(reply[14:34]) == 0xFFFF
        length, checksum = struct.unpack(">HH", reply[38:42])
        assert len(reply) == 34 + length
        pseudo = reply[26:34] + struct.pack(">HH", 17, length)
        assert checksum == 0 or ones_sum(pseudo + reply[34:]) == 0xFFFF
        assert reply[43] & 31 == 0, "not ok"
        return reply[42] >> 3, int.from_bytes(reply[56:64], "big"), reply[64:]

    def replies(self) -> list[tuple[int, int, bytes]]:
        """The replies in the port's own frames, which have no source."""
        found = [item for item in frames(self.shell.tx[self.port].items) if item[1] == 0]
        assert all(item[2] == 1 << (6 + self.port) for item in found)
        return [self.check(item[0]) for item in found]


@cocotb.test()
async def kv_frames_are_answered(dut: Any) -> None:
    """Writes and reads at each port, mixed with other frames, at several speeds. No kv frame reaches a host."""
    for box in BOXES:
        shell = shell_of(dut, box, 11)
        await shell.start()
        clients = [Client(shell, port) for port in shell.ports]
        for client in clients:
            await client.configure()
        for idle, stall in ((0.0, 0.0), (0.3, 0.4)):
            for sink in (*shell.tx, *shell.c2h):
                sink.reset()
            shell.pace(idle, stall)
            to_host, to_network = [[] for _ in shell.ports], [[] for _ in shell.ports]
            for client in clients:
                client.values = {
                    client.draw.getrandbits(64): client.draw.randbytes(client.draw.choice([0, 1, 64, 100, 1024]))
                    for _ in range(8)
                }
            for kind in (WRITE, READ):
                for client in clients:
                    for key, value in client.values.items():
                        client.ask(client.frame(kind, key, value if kind == WRITE else b""))
                        more = send(shell, 1)
                        for have, add in zip((to_host, to_network), more, strict=True):
                            for port in shell.ports:
                                have[port] += add[port]
                want = 8 if kind == WRITE else 16
                await shell.until(lambda: all(len(client.replies()) >= want for client in clients), 4000)  # noqa: B023
                await shell.until(lambda: arrived(shell, to_host, [[]] * len(to_host)))  # noqa: B023
            await shell.bench.cycle(100)
            for port, client in zip(shell.ports, clients, strict=True):
                assert frames(shell.c2h[port].items) == to_host[port]
                assert [f for f in frames(shell.tx[port].items) if f[1]] == to_network[port]
                answers = client.replies()
                assert len(answers) == 16
                assert {key for kind, key, _ in answers if kind == WRITE_DONE} == set(client.values)
                assert {key: value for kind, key, value in answers if kind == READ_DONE} == client.values


@cocotb.test()
async def a_network_that_takes_nothing_holds_up_no_register(dut: Any) -> None:
    """While the network is blocked, every access is answered. Accesses that docs/reference/kv-registers.md declares as
    ignored then are ignored."""
    for box in BOXES:
        shell = shell_of(dut, box, 17)
        await shell.start()
        bus, client = shell.registers, Client(shell, 0)
        await client.configure()
        shell.tx[0].stall = 1.0
        for key in range(4):
            client.ask(client.frame(READ, key))
        await shell.bench.cycle(200)
        assert await bus.write(AT["epoch"], 2) == 0
        for value in range(1, 30):
            assert await bus.read(0) == (ID, 0)
            assert (await bus.read(AT["state"]))[0] & ENTERING
            assert await bus.write(AT["retry_cycles"], value) == 0
            assert await bus.read(AT["retry_cycles"]) == (value, 0)
            for register, kept in (("epoch", 1), ("node", 0), ("members", 0x0101)):
                assert await bus.write(AT[register], kept + value) == 0
                assert await bus.read(AT[register]) == (kept, 0)
            for port in shell.ports[1:]:  # the core of another port is not affected
                assert await bus.read(4096 * port) == (ID, 0)
            await shell.bench.cycle(50)
        assert not shell.tx[0].items
        shell.tx[0].stall = 0.0
        while (await bus.read(AT["state"]))[0] & ENTERING:
            pass
        assert await bus.read(AT["epoch"]) == (2, 0)


@cocotb.test()
async def reset_of_a_node(dut: Any) -> None:
    """Every request is answered, or reaches the host after the reset. Memory is idle when the reset comes."""
    shell = shell_of(dut, "two", 13)
    client = Client(shell, 0)
    rst = shell.bench.pin(dut.two.dut, "rst")
    for memory in shell.memories:
        memory.delay = (60, 100)
    for _ in range(4):
        await shell.start()
        await client.configure()
        shell.tx[0].reset()
        sent = 0
        for i in range(12):
            key, value = client.draw.getrandbits(64), client.draw.randbytes(1024)
            client.ask(client.frame(WRITE if i % 2 else READ, key, value if i % 2 else b""))
            sent += 1
        await shell.bench.cycle(client.draw.randint(5, 120))
        await shell.ask_for_reset()
        await shell.until(lambda: bool(rst.get()), DRAIN)
        for memory in shell.memories:
            assert not memory.reads
            assert not memory.writes
            assert not memory.ar.items
            assert not memory.aw.items
            assert not memory.w.items
            assert not memory.r.items
            assert not memory.b.items
        await shell.until(shell.ready)
        await shell.until(lambda: not shell.rx[0].items)
        await shell.bench.cycle(200)
        answered = [frame for frame in frames(shell.tx[0].items) if frame[1] == 0]
        passed = frames(shell.c2h[0].items)
        assert len(answered) + len(passed) == sent
        assert await shell.registers.read(AT["epoch"]) == (0, 0)


@cocotb.test()
async def forced_reset(dut: Any) -> None:
    """A blocked neighbour does not block the reset. The rest of a cut frame is dropped."""
    shell = shell_of(dut, "two", 7)
    await shell.start()
    bench = shell.bench
    to_host, to_network = send(shell, 8, long=True)
    await bench.cycle(30)
    for sink in (shell.c2h[0], shell.tx[1]):
        sink.stall = 1.0
    await bench.cycle(20)
    torn = [shell.rx[0], shell.h2c[1]]
    assert all(not source.sent[-1][2] for source in torn)  # in the middle of a frame
    await shell.ask_for_reset()
    asked = bench.cycles
    await shell.until(shell.ready)
    assert DRAIN < bench.cycles - asked < DRAIN + 60
    for sink in (shell.c2h[0], shell.tx[1]):
        sink.stall = 0.0
    await shell.until(lambda: not any(source.items for source in (*shell.rx, *shell.h2c)))
    await bench.cycle(50)
    # Frames of unblocked streams were not lost. Of the others, the first ones came in part, and the last ones whole.
    assert frames(shell.c2h[1].items) == to_host[1]
    assert frames(shell.tx[0].items) == to_network[0]
    for sink, expected in ((shell.c2h[0], to_host[0]), (shell.tx[1], to_network[1])):
        whole = sum(len(frame[0]) for frame in expected)
        seen = b"".join(word.to_bytes(64, "little")[: keep.bit_count()] for word, keep, *_ in sink.items)
        assert 0 < len(seen) < whole
        tail = expected[-3:]
        assert seen.endswith(b"".join(frame[0] for frame in tail))
        # The cut frame has no end. Whole frames that waited in the core for the host are also lost.
        ends = sum(item[2] for item in sink.items)
        assert ends == len(expected) - 1 or (sink is shell.c2h[0] and 3 <= ends < len(expected) - 1)
        assert [item[3:] for item in sink.items if item[2]][-3:] == [(len(f[0]), f[1], f[2]) for f in tail]


def test_kv_box_250mhz() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES)
