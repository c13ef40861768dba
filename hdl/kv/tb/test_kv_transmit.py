# SPDX-License-Identifier: Apache-2.0
"""Parses the frames of kv_transmit with scapy, and compares them with the records."""

from __future__ import annotations

import itertools
import struct
from collections import deque
from typing import Any

import cocotb
import kv_frames as frames
from bench import Bench, Sink, Source
from flat import PACKAGES, Bundles, Scope, nets
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from simulate import KV_PACKAGES, simulate

NONE, POOL, MEMORY, DEFERRED = range(4)
LISTS = {NONE: "now", POOL: "now", MEMORY: "later", DEFERRED: "deferred"}
NOBODY, ANSWER = 1 << 6, 1 << 7  # in a job's tag
# The fields of send_t, from the highest bits down.
FIELDS = {"nodes": 8, "to": 96, "kv": 176, "place": 6, "length": 11, "summed": 1, "sum": 16}
PEERS = [frames.endpoint(f"02:00:00:00:01:{i:02x}", f"10.1.0.{i}", 1000 + i) for i in range(8)]
BUNDLES: Bundles = {
    "almost_full_o": ("almost_full_t", {"now_almost_full": "now", "later_almost_full": "later"}),
    "job_done_i": ("job_done_t", {"done_valid_i": "done", "done_tag_i": "tag"}),
    "free_o": ("free_place_t", {"done_free_o": "valid", "done_freed_o": "place"}),
    "pool_read_o": ("pool_read_t", {"pool_read_o": "read", "pool_place_o": "place", "pool_beat_o": "beat"}),
    "filling_i": ("filling_t", {"filling_i": "filling", "filling_place_i": "place", "filled_i": "filled"}),
    "s_payload": ("axis_t", {f"s_axis_t{field}": field for field in ("data", "keep", "last", "user")}),
    "m_payload": ("axis_t", {f"m_axis_t{field}": field for field in ("data", "keep", "last", "user")}),
}
PINS = (
    "self_i", "value_begun_i", "pool_read_o", "pool_place_o", "pool_beat_o",
    "pool_data_i", "done_valid_i", "done_tag_i", "dead_i", "done_free_o", "done_freed_o", "filling_i",
    "filling_place_i", "filled_i", "sent_o", "sent_kind_o", "passed_o",
)  # fmt: skip


def pack(**values: int) -> int:
    word = 0
    for name, width in FIELDS.items():
        word = word << width | values[name]
    return word


class Rig:
    """The module, with a pool, a memory, a host and a scoreboard."""

    def __init__(self, bench: Bench) -> None:
        self.bench, scope = bench, Scope(bench.dut)
        self.peers = bench.pin(bench.dut, "peers")

        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, name) for name in names]

        stream = ("tdata", "tkeep", "tlast", "tuser")
        tops = [bench.pin(bench.dut, f"send_{name}") for name in ("valid", "ready", "list", "record")]
        self.sends = Source(bench, *tops[:2], tops[2:])
        self.host = Source(bench, *pins("s_valid", "s_ready"), pins(*[f"s_axis_{field}" for field in stream]))
        self.words = Source(bench, *pins("word_valid", "word_ready"), pins("word_data"))
        self.sink = Sink(bench, *pins("m_valid", "m_ready"), pins(*[f"m_axis_{field}" for field in stream]))
        self.pins = dict(zip(PINS, pins(*PINS), strict=True))
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        self.pool: dict[tuple[int, int], bytes] = {}
        self.values: deque[bytes] = deque()  # that memory will send
        self.expected: dict[str, deque[tuple[int, bytes, bytes, bool]]] = {
            name: deque() for name in ("now", "later", "answers")
        }
        self.answers: dict[int, tuple[int, bytes, bytes, bool]] = {}  # frames to send when memory has their place
        self.taken = len(self.sends.sent)  # records that have been looked at
        self.doing: dict[int, int] = {}  # places that memory is writing: their tags
        self.free = set(range(64))  # places without a deferred record
        self.dead = False
        self.pace = 0.1  # of memory
        self.done_at: list[int] = []
        self.freed_at: list[int] = []
        self.host_frames: deque[list[Any]] = deque()
        self.data = 0
        self.filling: tuple[int, int] | None = None
        self.sent: list[int] = []
        self.passed = 0

    def send(
        self,
        source: int,
        size: int,
        *,
        nodes: int = 0,
        place: int = 0,
        summed: bool = True,
        sums: tuple[int, int] | None = None,
    ) -> None:
        draw = self.bench.random
        kv, value = frames.kv_header(draw, draw.randrange(32)), draw.randbytes(size)
        to = draw.getrandbits(96)
        if sums:  # so that the words of the IPv4 header, and those under the UDP checksum, have these sums
            to &= ~(0xFFFF << 16)
            host, here = to >> 16 & 0xFFFFFFFF, frames.SELF >> 16 & 0xFFFFFFFF
            ip = struct.pack(">BBHHHBBHII", 0x45, 0, 50 + size, 0, 0x4000, 64, 17, 0, here, host)
            to |= (sums[0] - frames.ones_sum(ip)) % 0xFFFF << 16
            host = to >> 16 & 0xFFFFFFFF
            ports = frames.SELF & 0xFFFF, to & 0xFFFF
            udp = struct.pack(">IIHHHHHH", here, host, 17, 30 + size, *ports, 30 + size, 0) + kv + value[2:]
            value = ((sums[1] - frames.ones_sum(udp)) % 0xFFFF).to_bytes(2, "big") + value[2:]
        record = pack(
            nodes=nodes, to=to, kv=int.from_bytes(kv, "big"), place=place, length=size, summed=summed,
            sum=frames.ones_sum(value) if summed else draw.getrandbits(16),
        )  # fmt: skip
        receivers = [PEERS[i] for i in range(8) if nodes >> i & 1] or [to]
        name = LISTS[source]
        if source == DEFERRED:
            self.free.remove(place)
            self.answers[place] = (to, kv, value, summed)
        else:
            self.expected[name] += [(receiver, kv, value, summed) for receiver in receivers]
        self.sends.items.append((list(dict.fromkeys(LISTS.values())).index(name), record))
        padded = value + draw.randbytes(-size % 64)
        if source == POOL:
            self.pool.update({(place, i): padded[64 * i : 64 * i + 64] for i in range(len(padded) // 64)})
        elif source == MEMORY and size:
            self.values.append(padded)

    def host_frame(self) -> None:
        draw = self.bench.random
        size, user, items = draw.randrange(60, 1519), draw.getrandbits(16), []
        for left in range(size, 0, -64):
            items.append((draw.getrandbits(512), (1 << min(left, 64)) - 1, left <= 64, user))
        self.host.items.extend(items)
        self.host_frames.append(items)

    def drive(self) -> None:
        pins, draw = self.pins, self.bench.random
        pins["self_i"].set(frames.SELF)
        self.peers.set(sum(peer << 96 * i for i, peer in enumerate(PEERS)))
        pins["pool_data_i"].set(self.data)
        pins["filling_i"].set(self.filling is not None)
        if self.filling:
            if draw.random() < 0.3 and self.filling[1] < 16:
                self.filling = (self.filling[0], self.filling[1] + 1)
            pins["filling_place_i"].set(self.filling[0])
            pins["filled_i"].set(self.filling[1])
        pins["dead_i"].set(self.dead)
        done = next((place for place in self.doing if draw.random() < self.pace), None)
        pins["done_valid_i"].set(done is not None)
        if done is not None:
            tag = self.doing.pop(done)
            pins["done_tag_i"].set(tag)
            self.done_at.append(self.bench.cycles)
            if tag & ANSWER:
                answer = self.answers.pop(done)
                if not self.dead:
                    self.expected["answers"].append(answer)
        begun = bool(self.values) and draw.random() < 0.2
        pins["value_begun_i"].set(begun)
        if begun:
            value = self.values.popleft()
            self.words.items += [int.from_bytes(value[i : i + 64], "little") for i in range(0, len(value), 64)]

    def sample(self) -> None:
        pins = self.pins
        if pins["pool_read_o"].get():
            place, beat = pins["pool_place_o"].get(), pins["pool_beat_o"].get()
            assert not self.filling or self.filling[0] != place or beat < self.filling[1], "read what was not there yet"
            self.data = int.from_bytes(self.pool[place, beat], "little")
        for which, record in itertools.islice(self.sends.sent, self.taken, None):
            if which == 2:
                place = record >> 28 & 63
                self.doing[place] = place | ANSWER
        self.taken = len(self.sends.sent)
        if pins["done_free_o"].get():
            place = pins["done_freed_o"].get()
            assert place not in self.free
            assert place not in self.doing
            self.free.add(place)
            self.freed_at.append(self.bench.cycles)
        if pins["sent_o"].get():
            self.sent.append(pins["sent_kind_o"].get())
        self.passed += pins["passed_o"].get()

    def take_frames(self) -> int:
        """Checks the complete output frames and removes them. Returns the number of the core's frames."""
        frame: list[Any] = []
        count = 0
        for item in self.sink.items:
            frame.append(item)
            if item[2]:
                count += self.check(frame)
                frame = []
        self.sink.items[:] = frame
        return count

    def check(self, beats: list[Any]) -> bool:
        if self.host_frames and beats == self.host_frames[0]:
            self.host_frames.popleft()
            return False
        data = b"".join(beat[0].to_bytes(64, "little")[: beat[1].bit_count()] for beat in beats)
        assert all(beat[1] == (1 << 64) - 1 for beat in beats[:-1])
        assert all(beat[3] == len(data) for beat in beats)
        packet = Ether(data)
        kv, value = bytes(packet[UDP].payload)[:22], bytes(packet[UDP].payload)[22:]
        to = frames.endpoint(packet.dst, packet[IP].dst, packet[UDP].dport)
        udp_checksum = packet[UDP].chksum
        assert frames.endpoint(packet.src, packet[IP].src, packet[UDP].sport) == frames.SELF
        found = (to, kv, value, udp_checksum != 0)
        queues = [queue for queue in self.expected.values() if queue and queue[0] == found]
        nexts = [str(queue[0])[:200] for queue in self.expected.values() if queue]
        assert queues, f"nobody asked for {str(found)[:200]}; next: {nexts}"
        queues[0].popleft()
        assert packet[IP].flags == "DF"
        assert packet[IP].ttl == 64
        # scapy recomputes these fields.
        del packet[IP].chksum, packet[IP].len, packet[UDP].len, packet[UDP].chksum
        again = Ether(bytes(packet))
        assert again[IP].chksum == struct.unpack(">H", data[24:26])[0]
        assert (again[IP].len, again[UDP].len) == (len(data) - 14, len(data) - 34)
        assert udp_checksum in (0, again[UDP].chksum)
        return True

    @property
    def idle(self) -> bool:
        self.take_frames()
        waiting = (self.host_frames, self.answers, self.doing, self.sends.items, *self.expected.values())
        return not any(waiting)


@cocotb.test()
async def frames_of_all_sorts(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    draw = bench.random
    for idle, stall in [(0, 0), (0.5, 0), (0, 0.5), (0.3, 0.3), (0.05, 0.9)]:
        await bench.reset()
        await bench.cycle(3)  # self_i takes 3 cycles to take effect
        for source in (rig.sends, rig.host, rig.words):
            source.idle = idle
        rig.sink.stall = stall
        for i in range(120):
            size = draw.choice([0, 1, 2, 63, 64, 65, 128, 1023, 1024, draw.randrange(1025)])
            nodes, kind = draw.choice([0, 0, draw.randrange(1, 256)]), draw.randrange(4)
            if kind == 0:
                rig.send(NONE, 0, nodes=nodes, summed=draw.random() < 0.7)
            elif kind == 1 and i < 64:  # each in its own place
                rig.send(POOL, size, nodes=nodes, place=i, summed=draw.random() < 0.7)
            elif kind == 2:
                rig.send(MEMORY, size, nodes=draw.choice([0, 1 << draw.randrange(8)]), summed=draw.random() < 0.7)
            else:
                rig.host_frame()
            if i % 2:
                rig.send(DEFERRED, 0, place=i // 2)
        await bench.until(lambda: rig.idle, 60_000)
        await bench.cycle(10)
        assert rig.idle
        assert not rig.sink.items


@cocotb.test()
async def latency_is_as_stated_and_frames_follow_closely(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    for size, beats in [(0, 1), (64, 2), (1024, 17)]:
        await bench.reset()
        rig.sends.cycles_of.clear()
        for i in range(20):
            rig.send(POOL if size else NONE, size, place=i)
        began = bench.cycles
        await bench.until(lambda: len(rig.sink.cycles_of) == 20 * beats)  # noqa: B023
        assert rig.sends.cycles_of[0] == began
        assert rig.sink.cycles_of[0] == began + 4
        assert rig.sink.cycles_of[-1] == began + 4 + 20 * beats - 1, "a gap"
        assert rig.idle


@cocotb.test()
async def sums_at_the_ends_of_their_range(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    await bench.reset()
    for i in range(60):
        rig.send(POOL, 64, place=i, sums=(bench.random.choice([*range(1, 26), 0xFFFE, 0xFFFF]), (i - 3) % 0xFFFF))
    await bench.until(lambda: rig.idle)


@cocotb.test()
async def readers_stay_behind_the_writer(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    for _ in range(20):
        await bench.reset()
        rig.filling = (7, 0)
        rig.send(POOL, 1024, place=7, nodes=5)
        await bench.until(lambda: rig.idle)


@cocotb.test()
async def acknowledgements_overtake_values_from_memory(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    await bench.reset()
    rig.send(MEMORY, 500)
    values, rig.values = rig.values, deque()
    for _ in range(10):
        rig.send(NONE, 0)
    await bench.cycle(30)
    rig.take_frames()
    assert not rig.expected["now"]
    assert not rig.sends.items
    assert rig.expected["later"]
    rig.values = values
    await bench.until(lambda: rig.idle)


@cocotb.test()
async def answers_wait_for_memory(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    draw = bench.random
    for idle, stall, pace in [(0, 0, 0.02), (0.4, 0, 0.5), (0, 0.7, 0.05), (0.05, 0.95, 1.0), (0.5, 0.5, 0.01)]:
        await bench.reset()
        await bench.cycle(3)
        rig.pace, rig.sends.idle, rig.sink.stall = pace, idle, stall
        # Few places, so that each is used again soon after it is freed.
        some = set(draw.sample(range(64), 8))
        for i in range(400):
            places = sorted(rig.free & some)
            if len(rig.sends.items) > 3 or not places:
                await bench.cycle()
            elif draw.random() < 0.3:
                rig.send(NONE, 0, nodes=draw.choice([0, 0xFF]))
            elif draw.random() < 0.8:
                rig.send(DEFERRED, 0, place=draw.choice(places))
            else:  # memory finishes a job that no request waits for
                place = draw.choice(places)
                rig.free.remove(place)
                rig.doing[place] = place
            if i == 200:
                rig.doing[64] = NOBODY
        await bench.until(lambda: rig.idle, 60_000)
        await bench.cycle(10)
        assert rig.free == set(range(64))
        assert not rig.sink.items


@cocotb.test()
async def answers_are_prompt_and_the_dead_give_none(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    await bench.reset()
    rig.pace = 1.0
    for place in range(10):
        rig.send(DEFERRED, 0, place=place)
        await bench.until(lambda: rig.idle)
    await bench.cycle(2)
    assert [at - done for done, at in zip(rig.done_at, rig.sink.cycles_of, strict=True)] == [4] * 10
    assert [at - done for done, at in zip(rig.done_at, rig.freed_at, strict=True)] == [2] * 10
    rig.dead = True
    for place in range(10):
        rig.send(DEFERRED, 0, place=place)
    await bench.until(lambda: rig.idle)
    await bench.cycle(20)
    assert not rig.sink.items
    assert rig.free == set(range(64))


@cocotb.test()
async def host_and_core_take_turns(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    await bench.reset()
    for i in range(20):
        rig.host_frame()
        rig.send(POOL, 64, place=i)
    order = []
    while not rig.idle or not order:
        await bench.cycle()
        if rig.passed + len(rig.sent) > len(order):
            order.append(rig.passed)
        if len(order) > 100:
            break
    assert rig.idle
    assert all(b - a <= 1 for a, b in itertools.pairwise(order))
    assert (rig.passed, len(rig.sent)) == (20, 20)


@cocotb.test()
async def reset_in_mid_frame(dut: Any) -> None:
    bench = Bench(dut)
    rig = Rig(bench)
    for cut in range(1, 30):
        for i in range(3):
            rig.send(POOL, 300, place=i)
            rig.send(MEMORY, 200)
            rig.host_frame()
        await bench.cycle(cut)
        await bench.reset()
        rig.send(NONE, 0)
        rig.send(MEMORY, 65)
        rig.send(POOL, 129, place=3)
        rig.host_frame()
        await bench.until(lambda: rig.idle)


TOP = f"""
`include "axi.svh"
module top (input wire clk_i, input wire rst_i);
  {PACKAGES}
  `AXIS_TYPE(axis, 512, 16)
{nets(BUNDLES)}"""
TOP += """
  logic [7:0][95:0] peers;
  logic [2:0] peer;
  logic send_valid, send_ready;
  logic [1:0] send_list;
  send_t send_record;
  sending_t sending;
  assign send_ready = send_list == 1 ? !later_almost_full : send_list != 0 || !now_almost_full;
  assign sending = '{
    now: send_valid && send_ready && send_list == 0, later: send_valid && send_ready && send_list == 1,
    deferred: send_valid && send_list >= 2, send: send_record
  };
  kv_transmit #(.axis_t(axis_t)) dut (
    .clk_i, .rst_i, .peer_o(peer), .peer_i(peers[peer]), .sending_i(sending), .almost_full_o(almost_full_o_bundle),
    .job_done_i(job_done_i_bundle), .free_o(free_o_bundle), .pool_read_o(pool_read_o_bundle),
    .filling_i(filling_i_bundle), .s_payload(s_payload_bundle), .m_payload(m_payload_bundle)
  );
endmodule
"""


def test_kv_transmit() -> None:
    simulate(__file__, text=TOP, sources=KV_PACKAGES)
