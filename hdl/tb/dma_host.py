# SPDX-License-Identifier: Apache-2.0
"""Tests dma_control with a host's memory, and with a data part that only accepts and answers turns.

The turns are compared with the descriptors, and the reports with the answers. Nothing here is derived from the RTL:
formats come from docs/design/dma.md, and registers from the generated table.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bench import Bench
from hdl_tools import ROOT
from packed_structs import Struct, axi_lite, layouts

from wherry.dma.generated.registers import REGISTERS

PACKAGE = ROOT / "hdl" / "dma" / "dma_pkg.sv"
CONTROL_PACKAGE = ROOT / "hdl" / "dma" / "control" / "dma_control_pkg.sv"
PAGE = 4096
STATUS = 0x12_3400_0000  # bus addresses
VECTORS = 0xFEE0_0000
UNSUPPORTED, ABORTED, POISONED, TIMEOUT, MALFORMED, MEMORY, RESET = range(1, 8)  # dma_pkg::error_e


@dataclass
class Descriptor:
    """A descriptor in the form that software writes."""

    host: int
    card: int
    bytes: int
    stream: bool = False
    notify: bool = False
    end_of_packet: bool = False
    cookie: int = 0

    def pack(self) -> bytes:
        """Returns its 32 bytes."""
        flags = self.stream | self.notify << 1 | self.end_of_packet << 2
        return struct.pack("<QQIIQ", self.host, self.card, self.bytes, flags, self.cookie)

    def pieces(self, to_host: bool) -> list[tuple[int, int, int, int, int]]:
        """Returns its turns: stream, last, bytes, host, card."""
        found = []
        at = 0
        while at < self.bytes:
            first = 0 if self.stream and not to_host else self.host  # packets to the card are in whole lines
            size = min(self.bytes - at, PAGE - (first + at) % PAGE)
            ends = at + size == self.bytes
            last = ends and (not self.stream or to_host or self.end_of_packet)
            found.append((int(self.stream), int(last), size, self.host + at, self.card + at))
            at += size
        return found


@dataclass
class State:
    """A possible content of a ring's status word."""

    count: int = 0
    bytes: int = 0
    error: int = 0


@dataclass
class Ring:
    """A ring from the software's point of view, with the state that the test expects."""

    number: int
    bits: int = 4
    base: int = 0
    packets: int = 0
    descriptors: list[Descriptor] = field(default_factory=list)  # all posted since the reset
    cut: int = 0  # descriptors whose turns have been seen
    pieces: deque[tuple[int, int, int, int, int]] = field(default_factory=deque)
    flying: deque[tuple[bool, Descriptor, int]] = field(default_factory=deque)  # ends, of, bytes
    history: list[State] = field(default_factory=lambda: [State()])
    told: int = 0  # place in the history of the last status word
    statuses: int = 0
    entries: list[tuple[int, int, int]] = field(default_factory=list)  # count, bytes, end of packet: to be posted
    entries_seen: int = 0
    notified: int = 0  # descriptors with an interrupt that status words have told of
    messages: int = 0
    message_at: list[int] = field(default_factory=list)  # notified, at each
    bytes_cut: int = 0
    dead: bool = False  # nothing may be posted

    @property
    def to_host(self) -> bool:
        """Returns true if the ring transfers to the host."""
        return self.number >= 4

    @property
    def size(self) -> int:
        """Returns the number of descriptors in the ring."""
        return 1 << self.bits


@dataclass
class Read:
    """A read of descriptors in progress."""

    tag: int
    addr: int
    left: int
    due: int
    error: int
    spoiled: dict[int, int] = field(default_factory=dict)  # address: error of the completion that brings it


class DmaHost:
    """The agent of the bench. Each *_stall or *_idle is the share of cycles in which that side pauses."""

    def __init__(self, dut: Any, name: str, channels: int = 4, seed: int = 1) -> None:
        self.bench = Bench(dut, seed)
        self.random = self.bench.random
        self.scope = getattr(dut, name)
        self.channels = channels
        self.registers = REGISTERS
        kinds, control = layouts(PACKAGE), layouts(CONTROL_PACKAGE)
        bits = axi_lite(32, 32)
        self.request = Struct(self.bench, self.scope, "s_axil_req", bits["req"])
        self.response = Struct(self.bench, self.scope, "s_axil_resp", bits["resp"])
        self.function = Struct(self.bench, self.scope, "function_i", control["function_t"])
        self.read = Struct(self.bench, self.scope, "m_read_payload", kinds["read_t"])
        self.completion = Struct(self.bench, self.scope, "s_completion_payload", kinds["completion_t"])
        self.posted = Struct(self.bench, self.scope, "m_write_payload", kinds["write_t"])
        self.bell = self.bench.source(self.scope, "s_bell", ())
        self.bell.fields = Struct(self.bench, self.scope, "s_bell_payload", control["bell_t"]).pins("offset bytes data")
        self.turns = [Struct(self.bench, self.scope, "m_turn_payload", kinds["turn_t"], i) for i in range(2)]
        self.dones = [Struct(self.bench, self.scope, "s_done_payload", kinds["done_t"], i) for i in range(2)]
        pin = self.bench.pin
        self.turn_valid = [pin(self.scope, "m_turn_valid", i) for i in range(2)]
        self.turn_ready = [pin(self.scope, "m_turn_ready", i) for i in range(2)]
        self.done_valid = [pin(self.scope, "s_done_valid", i) for i in range(2)]
        self.done_ready = [pin(self.scope, "s_done_ready", i) for i in range(2)]
        names = "m_read_valid m_read_ready s_completion_valid m_write_valid m_write_ready flr_i flr_done_o stop_o"
        names += " stream_room_i stream_valid_i stream_channel_i"
        self.pins = {one: pin(self.scope, one) for one in names.split()}
        self.read_stall = self.write_stall = self.turn_stall = self.done_idle = self.bell_idle = 0.0
        self.latency = (5, 40)  # of reads of descriptors, in cycles
        self.answer_after = (5, 40)
        self.boundary = 64  # of completions
        self.max_read = 2
        self.bad_descriptors: dict[tuple[int, int], int] = {}  # reads of these fail: ring, index: error
        # The completion that brings one of these descriptors has an error and a wrong byte. Other completions of its
        # read are good.
        self.spoiled_descriptors: dict[tuple[int, int], int] = {}
        self.wrong_by: dict[int, int] = {}  # ring: extra bytes that a read of its descriptors brings
        self.bad_turns: dict[tuple[int, int], int] = {}  # turns of these fail
        self.packet_channel: int | None = None  # whose packet the stream has
        self.random_packets = False
        self.bench.agents.append(self)
        self.reset()

    def reset(self) -> None:
        """Forgets all transfers and empties the memory."""
        self.memory: dict[int, bytes] = {}  # 32 bytes each
        self.rings = {r: Ring(r) for d in range(2) for r in range(4 * d, 4 * d + self.channels)}
        self.reads: list[Read] = []
        self.beats: deque[dict[str, int]] = deque()
        self.answers: tuple[deque[tuple[int, int, bool, Descriptor, int]], ...] = (deque(), deque())
        self.offered: list[tuple[int, int] | None] = [None, None]
        self.turn_log: list[tuple[int, int, int]] = []  # cycle, ring, bytes
        self.read_log: list[tuple[int, int, int]] = []  # cycle, address, bytes
        self.status_log: list[tuple[int, int, int]] = []  # cycle, ring, count
        self.data_stalled = False
        self.request.set(aw_valid=0, w_valid=0, ar_valid=0, b_ready=1, r_ready=1)
        for one in ("s_completion_valid", "flr_i", "m_read_ready", "m_write_ready"):
            self.pins[one].set(0)
        self.pins["stream_room_i"].set(1)
        for one in (*self.done_valid, *self.turn_ready):
            one.set(0)
        self.set_function()

    def set_function(self, bus_master: int = 1, msix_enable: int = 1, msix_mask: int = 0) -> None:
        """Sets the function's configuration."""
        self.function.set(bus_master=bus_master, msix_enable=msix_enable, msix_mask=msix_mask, max_read=self.max_read)

    # ---- registers

    async def write(self, name: str, value: int, index: int = 0) -> None:
        """Software writes a register."""
        register = REGISTERS[name]
        address = register.offset + register.stride * index
        self.request.set(aw_valid=1, aw__addr=address, w_valid=1, w__data=value, w__strb=15)
        await self._until_taken("aw_valid", "aw_ready", "w_valid", "w_ready")
        await self.bench.until(lambda: self.response.get("b_valid") == 1)
        assert self.response.get("b.resp") == 0
        await self.bench.cycle()

    async def value(self, name: str, index: int = 0) -> int:
        """Software reads a register."""
        register = REGISTERS[name]
        self.request.set(ar_valid=1, ar__addr=register.offset + register.stride * index)
        await self._until_taken("ar_valid", "ar_ready")
        await self.bench.until(lambda: self.response.get("r_valid") == 1)
        found = self.response.get("r.data")
        assert self.response.get("r.resp") == 0
        await self.bench.cycle()
        return found

    async def bits(self, name: str, field_name: str, index: int = 0) -> int:
        """Returns a field of a register."""
        place = REGISTERS[name].fields[field_name]
        return await self.value(name, index) >> place.low & ((1 << place.bits) - 1)

    async def _until_taken(self, *pairs: str) -> None:
        waiting = list(zip(pairs[::2], pairs[1::2], strict=True))
        for _ in range(2000):
            await self.bench.settle()
            taken = [pair for pair in waiting if self.response.get(pair[1])]
            await self.bench.cycle()
            for valid, _ in taken:
                self.request.set(**{valid: 0})
            waiting = [pair for pair in waiting if pair not in taken]
            if not waiting:
                return
        raise AssertionError("the registers do not answer")

    # ---- software

    async def set_up(self, rings: list[int], bits: int = 4, threshold: int = 1, timer: int = 0) -> None:
        """Sets the addresses of the rings, and starts them."""
        await self.write("status_low", STATUS & 0xFFFFFFFF)
        await self.write("status_high", STATUS >> 32)
        for number in rings:
            ring = self.rings[number]
            ring.bits = bits
            ring.base = (0x7F_0000_0000 + (number << 28)) + self.random.randrange(1, 50) * PAGE
            ring.packets = (0x3_0000_0000 + (number << 24)) + self.random.randrange(1, 50) * PAGE
            for name, value in (("ring", ring.base), ("packets", ring.packets)):
                await self.write(f"{name}_low", value & 0xFFFFFFFF, number)
                await self.write(f"{name}_high", value >> 32, number)
            await self.write("moderation", threshold | timer << 16, number)
            for name, value in (("address_low", VECTORS + 16 * number), ("address_high", 0), ("data", 0x40 + number)):
                await self.write(f"msix_{name}", value, number)
            await self.write("msix_control", 0, number)
            await self.run(number)

    async def run(self, number: int, run: int = 1, reset: int = 0) -> None:
        """Starts, stops or resets a ring."""
        await self.write("ring_control", run | reset << 1 | self.rings[number].bits << 8, number)

    def post(self, number: int, descriptors: list[Descriptor]) -> None:
        """Writes descriptors into the ring, without a doorbell."""
        ring = self.rings[number]
        for one in descriptors:
            assert len(ring.descriptors) - self.done(ring) < ring.size, "software overfills its ring"
            self.memory[ring.base + 32 * (len(ring.descriptors) % ring.size)] = one.pack()
            ring.descriptors.append(one)

    def done(self, ring: Ring) -> int:
        """Returns the count in the ring's last status word."""
        return ring.history[ring.told].count

    def room(self, number: int) -> int:
        """Returns the number of descriptors that may still be posted."""
        ring = self.rings[number]
        return ring.size - (len(ring.descriptors) - self.done(ring))

    def ring_bell(self, number: int, carries: bool = False, broken: int = 0) -> None:
        """Writes the tail, alone or after its descriptor in 64 bytes. With `broken`, the pieces have `broken` bytes, in
        any order."""
        ring = self.rings[number]
        line = ring.descriptors[-1].pack() if carries or broken else bytes(32)
        line += struct.pack("<I", len(ring.descriptors) & 0xFFFF).ljust(32, b"\0")
        pieces = [(32, line[32:36])]
        if broken:
            pieces = [(at, line[at : at + broken]) for at in range(0, 64, broken)]
            self.random.shuffle(pieces)
        elif carries:
            pieces = [(0, line)]
        for at, data in pieces:
            self.bell.items.append((64 * number + at, len(data), int.from_bytes(data, "little")))

    async def restart(self, number: int) -> None:
        """Resets the ring. Once the reset is reported, nothing from before it may be written, and the ring starts
        again."""
        await self.run(number, 0, 1)
        for _ in range(500):
            if not await self.bits("ring_state", "resetting", number):
                break
        else:
            raise AssertionError("a reset does not end")
        old = self.rings[number]
        assert not any(one[1] == number for answers in self.answers for one in answers)
        self.rings[number] = Ring(number, old.bits, old.base, old.packets)
        for errors in (self.bad_turns, self.bad_descriptors, self.spoiled_descriptors):
            for key in [key for key in errors if key[0] == number]:
                del errors[key]

    # ---- every cycle

    def drive(self) -> None:
        """Sets inputs."""
        now = self.bench.cycles
        chance = self.random.random
        self.bell.idle = self.bell_idle
        self.pins["m_read_ready"].set(chance() >= self.read_stall)
        self.pins["m_write_ready"].set(chance() >= self.write_stall)
        if self.random_packets:
            self.pins["stream_room_i"].set(chance() < 0.5)
        self.pins["stream_valid_i"].set(self.packet_channel is not None)
        self.pins["stream_channel_i"].set(self.packet_channel or 0)
        for d in range(2):
            self.turn_ready[d].set(not self.data_stalled and chance() >= self.turn_stall)
            if (
                self.offered[d] is None
                and self.answers[d]
                and self.answers[d][0][0] <= now
                and chance() >= self.done_idle
            ):
                self._offer(d)
            self.done_valid[d].set(self.offered[d] is not None)
        if not self.beats:
            self._complete()
        self.pins["s_completion_valid"].set(bool(self.beats))
        if self.beats:
            self.completion.set(**self.beats.popleft())

    def _offer(self, d: int) -> None:
        """Offers an answer."""
        _, number, ends, of, size = self.answers[d][0]
        error = self._error_of(number, of) if ends else 0
        end_of_packet, moved = 0, size
        if of.stream and d and not error:
            end_of_packet, moved = self.random.getrandbits(1), self.random.randint(1, size)
        self.offered[d] = (error, moved)
        self.dones[d].set(channel=number & 3, error=error, end_of_packet=end_of_packet, bytes=0 if error else moved)

    def _error_of(self, number: int, of: Descriptor) -> int:
        if self.pins["stop_o"].get():
            return RESET
        index = next((i for i, one in enumerate(self.rings[number].descriptors) if one is of), -1)
        return self.bad_turns.get((number, index), 0)

    def _complete(self) -> None:
        """Makes a completion of some read, up to a boundary."""
        now = self.bench.cycles
        ready = [one for one in self.reads if one.due <= now]
        if not ready:
            return
        one = self.random.choice(ready)
        size = min(one.left, self.boundary * self.random.randint(1, 4) - one.addr % self.boundary)
        if one.error:
            self.reads.remove(one)
            self.beats.append(
                {"tag": one.tag, "first": 1, "last": 1, "final_": 1, "error": one.error, "bytes": 0, "data": 0}
            )
            return
        data = bytearray(b"".join(self.memory.get(one.addr + at, bytes(32)) for at in range(0, size, 32)))[:size]
        error = 0
        for place, code in one.spoiled.items():
            if one.addr <= place < one.addr + size:
                error = error or code
                data[place - one.addr + self.random.randrange(20)] ^= 1  # of host, card or bytes
        one.addr += size
        one.left -= size
        if not one.left:
            self.reads.remove(one)
        for at in range(0, size, 64):
            part = data[at : at + 64]
            last = at + 64 >= size
            self.beats.append(
                {
                    "tag": one.tag,
                    "first": at == 0,
                    "last": last,
                    "final_": last and not one.left,
                    "error": error,
                    "bytes": len(part),
                    "data": int.from_bytes(part, "little"),
                }
            )

    def sample(self) -> None:
        """Records and compares outputs."""
        if self.pins["stop_o"].get():
            self.reads.clear()
        if self._taken("m_read"):
            self._take_read()
        if self._taken("m_write"):
            self._take_write()
        for d in range(2):
            if self.offered[d] is not None and self.done_ready[d].get():
                self._answered(d)
            if self.turn_valid[d].get() and self.turn_ready[d].get():
                self._take_turn(d)

    def _taken(self, prefix: str) -> bool:
        return bool(self.pins[f"{prefix}_valid"].get() and self.pins[f"{prefix}_ready"].get())

    def _take_read(self) -> None:
        tag, size, addr = self.read.all("tag bytes addr")
        assert tag < 8
        assert all(one.tag != tag for one in self.reads), "a tag that is in flight"
        assert addr % 64 == 0
        assert 32 <= size <= min(512, 128 << self.max_read)
        assert addr % PAGE + size <= PAGE
        self.read_log.append((self.bench.cycles, addr, size))
        ring = next(r for r in self.rings.values() if r.base <= addr < r.base + 32 * r.size)
        assert addr + size <= ring.base + 32 * ring.size, "a read over the ring's end"
        error = 0
        for (number, index), code in self.bad_descriptors.items():
            if number == ring.number and addr <= ring.base + 32 * (index % ring.size) < addr + size:
                error = code
        spoiled = {
            ring.base + 32 * (index % ring.size): code
            for (number, index), code in self.spoiled_descriptors.items()
            if number == ring.number
        }
        if self.pins["stop_o"].get():
            return  # the requester swallows it
        due = self.bench.cycles + self.random.randint(*self.latency)
        self.reads.append(Read(tag, addr, max(1, size + self.wrong_by.get(ring.number, 0)), due, error, spoiled))

    def _take_turn(self, d: int) -> None:
        channel, stream, last, size, host, card = self.turns[d].all("channel stream last bytes host card")
        ring = self.rings[4 * d + channel]
        if not ring.pieces:
            assert ring.cut < len(ring.descriptors), "a turn of a descriptor that was not posted"
            ring.pieces.extend(ring.descriptors[ring.cut].pieces(ring.to_host))
            ring.cut += 1
        expected = ring.pieces.popleft()
        assert (stream, last, size, host & (1 << 64) - 1) == (*expected[:3], expected[3] & (1 << 64) - 1)
        assert stream or card == expected[4] & (1 << 64) - 1
        of = ring.descriptors[ring.cut - 1]
        ring.bytes_cut += size
        self.turn_log.append((self.bench.cycles, ring.number, size))
        after = self.bench.cycles + self.random.randint(*self.answer_after)
        if self.answers[d]:
            after = max(after, self.answers[d][-1][0])
        self.answers[d].append((after, ring.number, not ring.pieces, of, size))

    def _answered(self, d: int) -> None:
        """Updates the ring for an answer. The test counts it here, and the engine must report it."""
        _, number, ends, of, _ = self.answers[d].popleft()
        error, moved = self.offered[d] or (0, 0)
        self.offered[d] = None
        ring = self.rings[number]
        state = ring.history[-1]
        if ring.dead or state.error:
            return
        if error:
            ring.history.append(State(state.count, state.bytes, error))
        elif ends:
            ring.history.append(State(state.count + 1))
            if of.stream and ring.to_host:
                ring.entries.append((state.count + 1, state.bytes + moved, self.dones[d].get("end_of_packet")))
        else:
            ring.history.append(State(state.count, state.bytes + moved))

    def _take_write(self) -> None:
        first, last, size, addr, data = self.posted.all("first last bytes addr data")
        assert first
        assert last
        if VECTORS <= addr < VECTORS + 128:
            number = (addr - VECTORS) >> 4
            assert (size, data & 0xFFFFFFFF) == (4, 0x40 + number)
            self._message(self.rings[number])
            return
        count, flags, moved, spare = struct.unpack("<IIII", data.to_bytes(64, "little")[:16])
        assert (size, spare) == (16, 0)
        if STATUS <= addr < STATUS + 512:
            assert addr % 64 == 0
            self._status(self.rings[(addr - STATUS) >> 6], State(count, moved, flags & 7), flags)
            return
        ring = next(r for r in self.rings.values() if r.to_host and r.packets <= addr < r.packets + 16 * r.size)
        assert not ring.dead, "an entry from before the reset"
        assert addr == ring.packets + 16 * ((count - 1) % ring.size)
        assert (count, moved, flags >> 4 & 1) == ring.entries[ring.entries_seen]
        assert flags & 15 == 0
        ring.entries_seen += 1

    def _status(self, ring: Ring, state: State, flags: int) -> None:
        """Checks a status word: it reports the answers so far, and is not older than the previous one."""
        assert not ring.dead, f"ring {ring.number}: a status word from before the reset"
        place = next((i for i in range(ring.told + 1, len(ring.history)) if ring.history[i] == state), None)
        assert place is not None, (ring.number, state, ring.history[ring.told], ring.history[-1])
        assert flags >> 3 == (state.error != 0)
        before = ring.history[ring.told].count
        ring.notified += sum(one.notify for one in ring.descriptors[before : state.count])
        ring.told = place
        ring.statuses += 1
        told = sum(1 for one in ring.entries if one[0] <= state.count)
        assert ring.entries_seen >= told, "a status word before the entry of a packet"
        self.status_log.append((self.bench.cycles, ring.number, state.count))

    def _message(self, ring: Ring) -> None:
        assert not ring.dead, "a message from before the reset"
        ring.messages += 1
        ring.message_at.append(ring.notified)

    def fail(self, number: int, index: int, error: int) -> None:
        """Expects the ring to stop at that descriptor, for a reason other than an answer."""
        ring = self.rings[number]
        assert ring.history[-1].count == index
        ring.history.append(State(index, 0, error))

    def quiet(self) -> bool:
        """Returns true if all posted descriptors have been carried out and reported."""
        return all(
            r.dead
            or r.history[r.told].error
            or (self.done(r) == len(r.descriptors) and r.entries_seen == len(r.entries))
            for r in self.rings.values()
        )

    def check_done(self) -> None:
        """Checks at the end of a test that the last state was reported."""
        for ring in self.rings.values():
            if not ring.dead:
                assert ring.history[ring.told] == ring.history[-1], ring.number
