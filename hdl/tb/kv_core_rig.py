# SPDX-License-Identifier: Apache-2.0
"""The joined kv core between a scripted network, host, memory and driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

import kv_frames as frames
import kv_model
from axi_memory import Bytes, Memory
from bench import Bench, Sink, Source
from kv_registers_rig import AT, BUILDING, FIELDS, SOURCES

TOP = """
module top (input wire clk_i, input wire rst_i);
  kv_core #(.LineCacheBits(4), .HostBeats(256)) dut (.clk_i, .rst_i);
endmodule
"""
MORE = ("kv_core_times", "kv_core_neighbours", "kv_core_reported", "kv_core_sources")
"""Modules with more tests of this top, in addition to test_kv_core."""
ME = 2
"""The node number of the core."""
BUCKET_BITS = 8
RETRY_CYCLES = 1500
CLIENT = frames.endpoint("02:00:00:00:09:09", "10.9.0.9", 7777)
PEERS = [frames.endpoint(f"02:00:00:00:01:{i:02x}", f"10.1.0.{i}", 19286) for i in range(8)]
(
    READ, WRITE, WRITE_IF, REMOVE, REMOVE_IF, LANE, PING, REPLICATE, REPLICATE_REMOVE, COMMIT, FETCH, ENTER,
) = range(1, 13)  # fmt: skip
DONE = 16
LANE_RECORD, REPLICATED, REPLICATED_REMOVE, ENTRY, ENTERED = 22, 24, 25, 27, 28
OK, NO_SUCH_KEY, MISMATCH, FULL, TOO_LONG, BAD_FRAME, BAD_LANE = range(7)
NOT_LEADER, PENDING, BUSY, STALE, NOT_SERVING = range(8, 13)


@contextmanager
def table_of(bits: int) -> Iterator[None]:
    """Sets the size of the table to 2^bits buckets, in the rig and in the model of a node."""
    global BUCKET_BITS
    usual = BUCKET_BITS, kv_model.BUCKET_BITS
    BUCKET_BITS = kv_model.BUCKET_BITS = bits
    try:
        yield
    finally:
        BUCKET_BITS, kv_model.BUCKET_BITS = usual


def bucket_of(key: int) -> int:
    """Returns the first bucket of a key."""
    return frames.crc32c(key.to_bytes(8, "big")) % 2**BUCKET_BITS


def first_number(key: int) -> int:
    """Returns the candidate number by which frames name a key's first bucket."""
    return (bucket_of(key) >> 8) % 4


@dataclass(frozen=True)
class Kv:
    """The fields of a kv header, and the value."""

    kind: int
    node: int = 0
    detail: int = 0
    epoch: int = 0
    client: int = 0
    request: int = 0
    version: int = 0
    key: int = 0
    value: bytes = b""
    candidate: int = -1  # -1: of the key's first bucket, in frames that name one

    def __post_init__(self) -> None:
        if self.candidate < 0:
            named = self.kind in (REPLICATE, REPLICATE_REMOVE, COMMIT, REPLICATED, REPLICATED_REMOVE)
            object.__setattr__(self, "candidate", first_number(self.key) if named else 0)

    @property
    def status(self) -> int:
        """Returns the status in a reply."""
        return self.detail & 31

    def pack(self) -> bytes:
        """Returns the bytes on the wire."""
        head = bytes([self.kind << 3 | self.node, self.detail])
        client = self.candidate << 13 | self.client
        fields = ((self.epoch, 2), (client, 2), (self.request, 4), (self.version, 4), (self.key, 8))
        return head + b"".join(number.to_bytes(size, "big") for number, size in fields) + self.value


def unpack(data: bytes) -> Kv:
    """Parses the bytes after the UDP header."""
    numbers = [int.from_bytes(data[a:b], "big") for a, b in ((2, 4), (4, 6), (6, 10), (10, 14), (14, 22))]
    candidate, numbers[1] = numbers[1] >> 13, numbers[1] & 0x1FFF
    return Kv(data[0] >> 3, data[0] & 7, data[1], *numbers, value=data[22:], candidate=candidate)


def frame_of(kv: Kv, source: int, to: int, *, checksum: bool = True) -> bytes:
    """Returns the whole frame, without scapy."""
    body = kv.pack()
    udp = (source & 0xFFFF).to_bytes(2, "big") + (to & 0xFFFF).to_bytes(2, "big") + (8 + len(body)).to_bytes(2, "big")
    addresses = (source >> 16 & 0xFFFFFFFF).to_bytes(4, "big") + (to >> 16 & 0xFFFFFFFF).to_bytes(4, "big")
    pseudo = addresses + b"\0\x11" + (8 + len(body)).to_bytes(2, "big")
    total = (frames.ones_sum(pseudo + udp + b"\0\0" + body) ^ 0xFFFF) or 0xFFFF
    udp += total.to_bytes(2, "big") if checksum else b"\0\0"
    ip = b"\x45\0" + (28 + len(body)).to_bytes(2, "big") + b"\0\0\x40\0\x40\x11"
    ip += (frames.ones_sum(ip + b"\0\0" + addresses) ^ 0xFFFF).to_bytes(2, "big") + addresses
    return (to >> 48).to_bytes(6, "big") + (source >> 48).to_bytes(6, "big") + b"\x08\0" + ip + udp + body


class Rig:
    """One core. Its frames for nodes and clients are parsed and checked as they leave."""

    def __init__(self, bench: Bench, node: int = 2) -> None:
        self.bench, self.node = bench, node
        scope: Any = bench.dut.dut

        def stream(kind: Any, name: str, fields: Iterable[str]) -> Any:
            pins = [bench.pin(scope, f"{name}_{field}") for field in ("tvalid", "tready", *fields)]
            return kind(bench, pins[0], pins[1], pins[2:])

        def channel(kind: Any, prefix: str, fields: Iterable[str]) -> Any:
            pins = [bench.pin(scope, f"s_axil_{prefix}{field}") for field in ("valid", "ready", *fields)]
            return kind(bench, pins[0], pins[1], pins[2:])

        common = ("tdata", "tkeep", "tlast", "tuser")
        self.net_in: Source = stream(Source, "s_net", common)
        self.net_in.fields += [bench.pin(scope, "s_net_error"), bench.pin(scope, "s_net_size")]
        self.host_in: Source = stream(Source, "s_host", common)
        self.net_out: Sink = stream(Sink, "m_net", common)
        self.host_out: Sink = stream(Sink, "m_host", common)
        self.aw, self.w = channel(Source, "aw", ["addr"]), channel(Source, "w", ["data", "strb"])
        self.ar = channel(Source, "ar", ["addr"])
        self.b, self.r = channel(Sink, "b", ["resp"]), channel(Sink, "r", ["data", "resp"])
        self.content = Bytes(lambda address: (0x5A << 248) | address)  # the initial content is not zero
        channels = len(bench.pin(scope, "m_axi_arvalid").net.handle)
        self.memories = [Memory(bench, scope, self.content, i) for i in range(channels)]
        for memory in self.memories:
            memory.delay = (20, 30)
        self.sent: list[tuple[int, Kv]] = []  # receiver and message
        self.foreign: list[bytes] = []  # to the network
        self.begun: list[int] = []  # cycle of each frame's first beat
        self.to_host: list[bytes] = []
        self._out, self._host = b"", b""
        self.summed: list[bool] = []
        bench.agents.append(self)

    def reset(self) -> None:
        """Forgets partial frames."""
        self._out = self._host = b""

    def drive(self) -> None:
        """Does nothing."""

    def sample(self) -> None:
        """Assembles frames from beats."""
        for beat in self.net_out.items:
            data, keep, last, user = beat  # type: ignore[misc]
            if not self._out:
                self.begun.append(self.bench.cycles)
            self._out += data.to_bytes(64, "little")[: keep.bit_count()]
            if last:
                self._leaves(self._out, user)
                self._out = b""
        self.net_out.items.clear()
        for beat in self.host_out.items:
            data, keep, last, _ = beat  # type: ignore[misc]
            self._host += data.to_bytes(64, "little")[: keep.bit_count()]
            if last:
                self.to_host.append(self._host)
                self._host = b""
        self.host_out.items.clear()

    def _leaves(self, frame: bytes, user: int) -> None:
        if frame[6:12] != (PEERS[self.node] >> 48).to_bytes(6, "big"):
            self.begun.pop()
            self.foreign.append(frame)
            return
        assert user & 0xFFFF == len(frame)
        assert frames.ones_sum(frame[14:34]) == 0xFFFF
        length = int.from_bytes(frame[38:40], "big")
        assert length + 34 == len(frame)
        self.summed.append(frame[40:42] != b"\0\0")
        if self.summed[-1]:
            pseudo = frame[26:34] + b"\0\x11" + frame[38:40]
            assert frames.ones_sum(pseudo + frame[34:]) == 0xFFFF, "a wrong UDP checksum"
        assert frame[26:30] == (PEERS[self.node] >> 16 & 0xFFFFFFFF).to_bytes(4, "big")
        to = int.from_bytes(frame[:6], "big") << 48 | int.from_bytes(frame[30:34] + frame[36:38], "big")
        self.sent.append((to, unpack(frame[42:])))

    # ---- the network side

    @staticmethod
    def beats(frame: bytes, user: int = 0, *, bad: bool = False) -> list[tuple[int, ...]]:
        """Returns a frame as beats for a Source at the network port."""
        beats = []
        for at in range(0, len(frame), 64):
            part = frame[at : at + 64]
            last = at + 64 >= len(frame)
            data, keep = int.from_bytes(part.ljust(64, b"\xaa"), "little"), (1 << len(part)) - 1
            beats.append((data, keep, last, user | len(frame), bad and last, len(frame)))
        return beats

    def give(self, kv: Kv, source: int = CLIENT, *, checksum: bool = True) -> None:
        """Sends a kv frame to the core."""
        self.net_in.items.extend(self.beats(frame_of(kv, source, PEERS[self.node], checksum=checksum)))

    def from_node(self, node: int, kv: Kv, *, checksum: bool = True) -> None:
        """Sends a kv frame from this node."""
        self.give(replace(kv, node=node), PEERS[node], checksum=checksum)

    async def next(self, what: str, accept: Callable[[int, Kv], bool], limit: int = 20_000) -> tuple[int, Kv]:
        """Returns the first sent frame that `accept` accepts, and removes only this frame."""

        def find() -> int:
            return next((i for i, (to, kv) in enumerate(self.sent) if accept(to, kv)), -1)

        try:
            await self.bench.until(lambda: find() >= 0, limit)
        except AssertionError:
            raise AssertionError(f"no {what}; sent were {self.sent}") from None
        return self.sent.pop(find())

    async def reply(self, kv: Kv, *, checksum: bool = True) -> Kv:
        """Sends a client's request and returns the reply."""
        self.give(kv, checksum=checksum)
        _, answer = await self.next(
            f"reply to {kv}",
            lambda to, reply: to == CLIENT and reply.kind == kv.kind | DONE and reply.client == kv.client
            and (reply.request == kv.request or kv.kind == LANE),
        )  # fmt: skip
        return answer

    async def to_node(self, node: int, kind: int, limit: int = 20_000) -> Kv:
        """Returns the next frame of that kind to a node."""
        _, kv = await self.next(f"frame {kind} to {node}", lambda to, kv: to == PEERS[node] and kv.kind == kind, limit)
        assert kv.node == (0 if kind == LANE else self.node)
        return kv

    async def quiet(self, cycles: int = 400) -> list[tuple[int, Kv]]:
        """Returns the frames sent within `cycles`, and forgets them."""
        self.sent.clear()
        await self.bench.cycle(cycles)
        sent, self.sent = self.sent, []
        return sent

    # ---- the driver side

    async def write(self, register: str | int, value: int) -> None:
        """Writes a register, by name or offset."""
        self.aw.items.append((AT[register] if isinstance(register, str) else register,))
        self.w.items.append((value, 15))
        await self.bench.until(lambda: bool(self.b.items))
        assert self.b.items == [0]
        self.b.items.clear()

    async def read(self, register: str | int) -> int:
        """Reads a register, by name or offset."""
        self.ar.items.append((AT[register] if isinstance(register, str) else register,))
        await self.bench.until(lambda: bool(self.r.items))
        value, response = self.r.items.pop()  # type: ignore[misc]
        assert response == 0
        return int(value)

    async def state(self) -> dict[str, int]:
        """Reads the register `state`."""
        word = await self.read("state")
        state = FIELDS["state"]
        return {name: (word & mask) >> state.low[name] for name, mask in state.fields.items()}

    async def opened(self) -> None:
        """Waits until the node has opened."""
        while not (await self.state())["opened"]:
            pass

    async def allow(self, *subnets: str) -> None:
        """Allows only frames from these sources, written as by the driver. Returns when this is in effect."""
        for i in range(SOURCES):
            await self.write(AT["source_mask"] + 8 * i, 0)
        for i, subnet in enumerate(map(ip_network, subnets)):
            await self.write(AT["source_ip"] + 8 * i, int(subnet.network_address))
            await self.write(AT["source_mask"] + 8 * i, int(subnet.netmask))
        await self.bench.cycle(BUILDING)

    async def begin(self, *, accept: bool = True) -> None:
        """Starts with an empty table, in no epoch, with every client allowed."""
        await self.bench.reset()
        await self.allow("0.0.0.0/1", "128.0.0.0/1")
        await self.write("bucket_bits", BUCKET_BITS)
        await self.write("retry_cycles", RETRY_CYCLES)
        await self.write("line_base", 0)
        await self.write("value_base", 64 << BUCKET_BITS)
        await self.write("lease", 0xFFFFFFFF)
        await self.write(AT["lease"] + 4, 0xFFFFFFFF)
        await self.write("control", 1 | 2 * accept | 8)
        while (await self.state())["clearing"]:
            pass

    async def enter(
        self,
        epoch: int,
        members: Iterable[int],
        leader: Callable[[int], int],
        serving: Iterable[int] | None = None,
    ) -> None:
        """Enters an epoch, and returns when it is entered."""
        members = set(members)
        serving = members if serving is None else set(serving)
        await self.write("node", self.node)
        await self.write("members", sum(1 << m for m in members) | sum(256 << m for m in serving))
        for word in range(32):
            await self.write(AT["leader"] + 4 * word, sum(leader(8 * word + i) << 4 * i for i in range(8)))
        for node, peer in enumerate(PEERS):
            at = 16 * node
            await self.write(AT["peer_mac_low"] + at, peer >> 48 & 0xFFFFFFFF)
            await self.write(AT["peer_mac_high"] + at, peer >> 80)
            await self.write(AT["peer_ip"] + at, peer >> 16 & 0xFFFFFFFF)
            await self.write(AT["peer_port"] + at, peer & 0xFFFF)
        await self.write("epoch", epoch)
        while await self.read("epoch") != epoch:
            pass


def keys_with(leader: int, members: list[int], count: int, start: int = 1) -> list[int]:
    """Returns keys in different buckets whose slot goes to that member, if slots are dealt in turn."""
    found: dict[int, int] = {}
    key = start
    while len(found) < count:
        if members[bucket_of(key) % len(members)] == leader:
            found.setdefault(bucket_of(key), key)
        key += 1
    return list(found.values())


def in_turn(members: list[int]) -> Any:
    """Returns a function that gives the leader of a slot."""
    return lambda slot: members[slot % len(members)]


async def begun(dut: Any, seed: int = 1, *, accept: bool = True) -> Rig:
    """Returns a core after reset, configured but in no epoch. The host sends frames now and then."""
    rig = Rig(Bench(dut, seed))
    rig.host_in.idle = 0.3
    await rig.begin(accept=accept)
    return rig
