# SPDX-License-Identifier: Apache-2.0
"""bypass_kv in bypass_node, as in bypass_kv_card, with a NIC modelled after datasheets.
Requests and pings arrive by the NIC, and their answers leave by it. Host and NIC share the bridge's one port."""

from __future__ import annotations

from typing import Any

import cocotb
import kv_core_rig as kv
from bypass_cores import PACKAGES
from bypass_formats import FORMATS
from bypass_nic import Habits
from card_rig import CardRig, top
from echo_model import Fate, Host, asking, check, fate
from functions_rig import ECHO, IN_PLACE
from kv_core_rig import ME, NO_SUCH_KEY, OK, PEERS, READ, WRITE, Kv, in_turn
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from simulate import simulate

KV_REGISTERS = 0xC000
NODE_MAC = ":".join(f"{PEERS[ME] >> 48 >> 8 * i & 0xFF:02x}" for i in reversed(range(6)))
NODE_IP = ".".join(str(PEERS[ME] >> 16 >> 8 * i & 0xFF) for i in reversed(range(4)))
CLIENT_MAC, CLIENT_IP = "02:00:00:00:09:09", "10.9.0.9"
HOST = Host(mac=NODE_MAC, ip=NODE_IP)


class Node(kv.Rig):
    """The interface of kv_core_rig, through the bypass core and a NIC."""

    def __init__(self, dut: Any, seed: int = 1) -> None:
        self.card = CardRig(dut, "node", seed=seed)
        self.bench, self.node = self.card.bench, ME
        self.sent: list[tuple[int, Kv]] = []
        self.foreign: list[bytes] = []
        self.begun: list[int] = []
        self.summed: list[bool] = []
        self.pair = 0
        self.bench.agents.append(self)

    def reset(self) -> None:
        """There is no partial state to discard."""

    def sample(self) -> None:
        """Collects the frames that the NIC sent."""
        for pair, frames in enumerate(self.card.nic.sent):
            for frame in frames:
                if frame[12:14] == b"\x08\0" and frame[34:36] == (PEERS[ME] & 0xFFFF).to_bytes(2, "big"):
                    assert pair == 0
                    self._leaves(frame, len(frame))
                else:
                    self.foreign.append(frame)
            frames.clear()

    def give(self, request: Kv, source: int = kv.CLIENT, *, checksum: bool = True) -> None:
        """A kv frame arrives at the NIC, alternating between the two pairs."""
        self.card.arrive(kv.frame_of(request, source, PEERS[ME], checksum=checksum), self.pair)
        self.pair ^= 1

    async def write(self, register: str | int, value: int) -> None:
        """Writes a register of kv_core."""
        at = kv.AT[register] if isinstance(register, str) else register
        assert await self.card.registers.write_at(KV_REGISTERS + at, value) == 0

    async def read(self, register: str | int) -> int:
        """Reads a register of kv_core."""
        return await self.card.registers.read_at(
            KV_REGISTERS + (kv.AT[register] if isinstance(register, str) else register)
        )


async def begun(dut: Any, kind: str, seed: int, *, in_place: bool = False) -> Node:
    """A node that is alone in its epoch, behind a NIC of this kind."""
    node = Node(dut, seed)
    await begin(node, kind, in_place=in_place)
    return node


async def begin(node: Node, kind: str, *, in_place: bool = False) -> None:
    """Starts a node again after a reset of the link."""
    node.card.nic.format = FORMATS[kind]
    await node.begin()
    node.card.nic.restart()
    await node.card.functions.set_up(HOST, ECHO | IN_PLACE)
    await node.card.set_up(in_place=in_place)
    await node.enter(1, [ME], in_turn([ME]))


@cocotb.test()
async def three_blocks_of_registers(dut: Any) -> None:
    node = await begun(dut, "igb", 1)
    assert await node.card.registers.read("id") == 0x42595053
    assert await node.card.functions.read("id") == 0x42595046
    assert await node.card.functions.read("capability") == 0x20
    assert await node.read("id") == 0x4B564E44


@cocotb.test()
async def put_and_get_by_the_nic(dut: Any) -> None:
    node = await begun(dut, "ixgbe", 2)
    draw = node.bench.random
    table: dict[int, tuple[int, bytes]] = {}
    request = 0
    for _ in range(80):
        key = draw.choice([1, 2, 3, 2**64 - 1])
        if draw.random() < 0.5:
            request += 1
            value = draw.randbytes(draw.choice([0, 1, 22, 64, 65, 512, 1024]))
            asked = Kv(WRITE, epoch=1, client=5, request=request, key=key, value=value)
            answer = await node.reply(asked, checksum=draw.random() < 0.5)
            assert answer.status == OK
            table[key] = answer.version, value
        else:
            answer = await node.reply(Kv(READ, client=8191, request=draw.getrandbits(32), key=key))
            if key in table:
                assert (answer.status, answer.version, answer.value) == (OK, *table[key])
            else:
                assert answer.status == NO_SUCH_KEY
    assert not node.foreign
    assert not node.card.nic.errors


@cocotb.test()
async def ping_and_arp_beside_requests(dut: Any) -> None:
    """Both kinds arrive together in any order; each receiver gets only its own."""
    node = await begun(dut, "i40e", 3)
    node.card.nic.habits = Habits(line=4, piece=512, shuffle=4, eager=0.7)
    draw = node.bench.random
    assert (await node.reply(Kv(WRITE, epoch=1, client=1, request=1, key=9, value=b"nine" * 40))).status == OK
    asked: list[list[tuple[bytes, Fate]]] = [[], []]
    for i in range(60):
        if i % 3 == 0:
            node.give(Kv(READ, client=3, request=i, key=9))
            continue
        if i % 7 == 0:
            frame = bytes(
                Ether(src=CLIENT_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=CLIENT_MAC, psrc=CLIENT_IP, pdst=NODE_IP)
            )
        elif i % 5 == 0:
            frame = asking(draw, 1000)
        else:
            data = Raw(draw.randbytes(draw.choice([18, 56, 1472, 3000])))
            frame = bytes(Ether(src=CLIENT_MAC, dst=NODE_MAC) / IP(src=CLIENT_IP, dst=NODE_IP) / ICMP(seq=i) / data)
        queue = draw.randrange(2)
        node.card.arrive(frame, queue)
        asked[queue].append((frame, fate(frame, HOST)))
    replies = [[pair for pair in pairs if pair[1].reply is not None] for pairs in asked]
    await node.bench.until(lambda: len(node.sent) == 20 and len(node.foreign) == sum(map(len, replies)))
    assert {(reply.request, reply.value) for _, reply in node.sent} == {(i, b"nine" * 40) for i in range(0, 60, 3)}
    for pairs in replies:  # in order within a pair
        rest = iter(node.foreign)
        for frame, opinion in pairs:
            for found in rest:
                try:
                    check(frame, found, opinion)
                    break
                except AssertionError:
                    continue
            else:
                raise AssertionError(f"no answer to {frame.hex()}")
    counters = await node.card.counters()
    assert counters["rx_frames"] == 61
    assert counters["tx_done"] == counters["tx_in"] == 21 + sum(map(len, replies))


@cocotb.test()
async def in_place_the_functions_answer_alone(dut: Any) -> None:
    node = await begun(dut, "e1000e", 4, in_place=True)
    frames = [asking(node.bench.random, 600) for _ in range(30)]
    opinions = [fate(frame, Host(mac=NODE_MAC, ip=NODE_IP)) for frame in frames]
    ping = bytes(Ether(src=CLIENT_MAC, dst=NODE_MAC) / IP(src=CLIENT_IP, dst=NODE_IP) / ICMP() / Raw(bytes(300)))
    frames.append(ping)
    opinions.append(fate(ping, HOST))
    for frame in frames:
        node.card.arrive(frame)
    node.give(Kv(READ, client=3, request=1, key=9))
    replies = [(f, o) for f, o in zip(frames, opinions, strict=True) if o.reply is not None]
    await node.bench.until(lambda: len(node.foreign) == len(replies))
    for found, (frame, opinion) in zip(node.foreign, replies, strict=True):
        check(frame, found, opinion)
    await node.bench.cycle(200)
    assert not node.sent


@cocotb.test()
async def a_reset_in_mid_flight_leaves_memory_whole(dut: Any) -> None:
    """The reset comes at any moment while values of several bursts are written. Memory, which is not reset, gets whole
    bursts only (its model checks this), and has no open requests when the reset ends. The node then starts afresh."""
    node = await begun(dut, "ixgbe", 5)
    draw = node.bench.random
    cut_short = 0
    for turn in range(6):
        for i in range(16):
            node.give(Kv(WRITE, epoch=1, client=2, request=100 * turn + i, key=i, value=draw.randbytes(1024)))
            node.card.arrive(asking(draw, 900), i % 2)
        await node.bench.cycle(draw.randint(50, 500))
        cut_short += any(memory.reads or memory.writes or memory.aw.items for memory in node.card.memories)
        await node.card.restart("ixgbe")
        for memory in node.card.memories:
            assert not any((memory.reads, memory.writes, memory.aw.items, memory.w.items))
        node.sent.clear()
        node.foreign.clear()
        assert await node.read("epoch") == 0
        await node.bench.cycle(300)
        assert not node.sent
        assert not node.foreign
        await begin(node, "ixgbe")
        asked = Kv(WRITE, epoch=1, client=1, request=1, key=turn, value=b"whole" * 100)
        assert (await node.reply(asked)).status == OK
        answer = await node.reply(Kv(READ, client=3, request=turn, key=turn))
        assert (answer.status, answer.value) == (OK, b"whole" * 100)
    assert cut_short >= 2, "no reset came while memory was asked"


def test_bypass_kv() -> None:
    simulate(__file__, text=top("node"), sources=PACKAGES)
