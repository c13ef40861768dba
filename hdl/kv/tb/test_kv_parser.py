# SPDX-License-Identifier: Apache-2.0
"""Compares kv_parser's verdicts on frames from scapy with those of kv_frames.py, which follows the protocol's text."""

from __future__ import annotations

from typing import Any

import cocotb
import kv_frames as frames
from bench import Bench, Sink, Source
from flat import Scope, config, wrapper
from scapy.packet import Raw
from simulate import KV_PACKAGES, simulate

NAMES = {"checks": 0, "whole": 1}
# The fields of request_t, from the highest bits down.
FIELDS = {
    "from": 96, "kv": 176, "hash": 32, "length": 11, "too_long": 1, "summed": 1, "sum": 16, "has_place": 1, "place": 6,
}  # fmt: skip
PINS = (
    "enable_i", "self_i", "place_valid_i", "place_plenty_i", "place_i", "place_take_o", "place_free_o", "place_freed_o",
    "pool_write_o", "pool_place_o", "pool_beat_o", "pool_data_o", "filling_o", "filling_place_o", "filled_o", "room_i",
    "request_valid_o", "request_o", "passed_o", "received_o", "dropped_checksum_o", "dropped_length_o",
    "dropped_busy_o", "dropped_source_o",
)  # fmt: skip
FATES = ("checksum", "length", "busy", "source")
STREAM = ("data", "keep", "last", "user")
BUNDLES = {
    "s_payload": ("axis_t", {f"s_{field}": field for field in STREAM}),
    "m_payload": ("axis_t", {f"m_{field}": field for field in STREAM}),
    "place_i": ("offered_place_t", {"place_valid_i": "valid", "place_plenty_i": "plenty", "place_i": "place"}),
    "arrival_o": ("arrival_t", {"request_valid_o": "valid", "request_o": "what"}),
    "free_o": ("free_place_t", {"place_free_o": "valid", "place_freed_o": "place"}),
    "pool_o": ("pool_write_t", {f"pool_{field}_o": field for field in ("write", "place", "beat", "data")}),
    "filling_o": ("filling_t", {"filling_o": "filling", "filling_place_o": "place", "filled_o": "filled"}),
    "events_o": (
        "rx_events_t",
        {f"{name}_o": name for name in ("passed", "received", *(f"dropped_{fate}" for fate in FATES))},
    ),
}


def allowed(frame: bytes) -> bool:
    """Returns whether the top allows the source of a frame."""
    return frame[26:30] != b"\0\0\0\0" and int.from_bytes(frame[26:30], "big").bit_count() % 4 != 3


def welcome(draw: Any, **what: Any) -> Any:
    """Returns a valid frame from an allowed address."""
    while True:
        frame = frames.good(draw, **what)
        if allowed(bytes(frame)):
            return frame


def unpack(word: int) -> dict[str, int]:
    found = {}
    for name, width in reversed(FIELDS.items()):
        found[name] = word & ((1 << width) - 1)
        word >>= width
    return found


class Lane:
    """A parser with a pool of places and a scoreboard."""

    def __init__(self, bench: Bench, name: str) -> None:
        scope: Any = Scope(getattr(bench.dut, name))
        self.bench, self.name, self.whole_frames = bench, name, bool(NAMES[name])

        def pins(*names: str) -> list[Any]:
            return [bench.pin(scope, pin) for pin in names]

        sent = [f"s_{field}" for field in (*STREAM, "error", "size")]
        self.source = Source(bench, *pins("s_valid", "s_ready"), pins(*sent))
        self.sink = Sink(bench, *pins("m_valid", "m_ready"), pins(*[f"m_{field}" for field in STREAM]))
        self.pins = dict(zip(PINS, pins(*PINS), strict=True))
        self.scarce = False
        self.reset()
        bench.agents.append(self)

    def reset(self) -> None:
        self.waiting: list[tuple[bytes, frames.Opinion]] = []  # kv frames without a verdict
        self.to_host: list[Any] = []
        self.free = list(range(64))
        self.held: dict[int, dict[int, bytes]] = {}
        self.open_values: list[tuple[int, bytes]] = []  # of requests that came before their value
        self.counts = dict.fromkeys(("passed", "received", "request", *FATES), 0)
        self.request_cycles: list[int] = []

    def send(self, frame: bytes, *, error: bool = False) -> None:
        opinion = frames.judge(frame, error=error)
        user = self.bench.random.getrandbits(8)
        for at in range(0, len(frame), 64):
            beat = frame[at : at + 64]
            last = at + 64 >= len(frame)
            data = int.from_bytes(beat + self.bench.random.randbytes(64 - len(beat)), "little")
            keep = (1 << len(beat)) - 1
            self.source.items.append((data, keep, last, user, error and last, len(frame)))
            if opinion.fate == "host":
                self.to_host.append((data, keep, last, user))
        if opinion.fate != "host":
            # If the source is not allowed, no other rule matters.
            self.waiting.append((frame, opinion if allowed(frame) else frames.Opinion("source")))

    def drive(self) -> None:
        draw = self.bench.random
        self.pins["enable_i"].set(1)
        self.pins["self_i"].set(frames.SELF)
        self.pins["place_valid_i"].set(bool(self.free))
        self.pins["place_plenty_i"].set(len(self.free) > 16)
        self.pins["place_i"].set(self.free[0] if self.free else draw.getrandbits(6))
        self.pins["room_i"].set(not self.scarce or draw.random() < 0.9)

    def sample(self) -> None:
        seen = self.pins
        if seen["pool_write_o"].get():
            place, beat = seen["pool_place_o"].get(), seen["pool_beat_o"].get()
            assert (seen["filling_o"].get(), seen["filling_place_o"].get(), seen["filled_o"].get()) == (1, place, beat)
            self.held[place][beat] = seen["pool_data_o"].get().to_bytes(64, "little")
        # A verdict concerns the oldest frame received before this cycle. "busy" concerns the frame received in this
        # cycle.
        if seen["request_valid_o"].get():
            self.on_request(unpack(seen["request_o"].get()))
        for fate in FATES[:2]:
            if seen[f"dropped_{fate}_o"].get():
                self.counts[fate] += 1
                frame, opinion = self.waiting.pop(0)
                assert opinion.fate in (fate, "either"), (self.name, fate, opinion.fate, frame.hex())
        for fate in FATES[2:]:
            if seen[f"dropped_{fate}_o"].get():
                at = self.counts["received"] - sum(self.counts[fate] for fate in ("request", *FATES))
                _, opinion = self.waiting.pop(at)
                assert (opinion.fate == "source") == (fate == "source"), (self.name, fate, opinion.fate)
                assert not seen["place_take_o"].get()
                self.counts[fate] += 1
        self.counts["received"] += seen["received_o"].get()
        self.counts["passed"] += seen["passed_o"].get()
        if seen["place_free_o"].get():
            self.give_back(seen["place_freed_o"].get())
        if seen["place_take_o"].get():
            self.held[self.free.pop(0)] = {}
        for place, value in list(self.open_values):
            filling = seen["filling_o"].get() and seen["filling_place_o"].get() == place
            if len(self.held[place]) >= -(-len(value) // 64) and not filling:
                got = b"".join(self.held[place][beat] for beat in range(-(-len(value) // 64)))
                assert got[: len(value)] == value, self.name
                self.open_values.remove((place, value))
                self.give_back(place)

    def give_back(self, place: int) -> None:
        del self.held[place]
        self.free.append(place)

    def on_request(self, request: dict[str, int]) -> None:
        self.counts["request"] += 1
        self.request_cycles.append(self.bench.cycles)
        frame, opinion = self.waiting.pop(0)
        assert opinion.fate == "request", (self.name, opinion.fate, frame.hex())
        assert request["from"] == int.from_bytes(frame[6:12] + frame[26:30] + frame[34:36], "big")
        assert request["kv"].to_bytes(22, "big") == opinion.kv
        assert request["hash"] == frames.crc32c(opinion.kv[14:])
        assert (request["length"], request["too_long"]) == (opinion.length, opinion.too_long)
        assert request["summed"] == opinion.summed
        if opinion.summed and not opinion.too_long:
            assert (request["sum"] - frames.ones_sum(opinion.value)) % 0xFFFF == 0
            assert opinion.value or request["sum"] == 0
        assert request["has_place"] == (opinion.kv[0] >> 3 in frames.KINDS_WITH_PLACE)
        if request["has_place"]:
            self.open_values.append((request["place"], opinion.value))

    @property
    def idle(self) -> bool:
        return not self.source.items and not self.waiting and len(self.sink.items) == len(self.to_host)

    def finish(self) -> None:
        assert self.sink.items == self.to_host, self.name
        assert self.counts["received"] == sum(self.counts[fate] for fate in ("request", *FATES)), (
            self.name,
            self.counts,
        )
        assert self.counts["passed"] == sum(item[2] for item in self.to_host), self.name
        assert not self.open_values, self.name
        assert sorted(self.free) == list(range(64)), self.name


@cocotb.test()
async def frames_of_all_sorts(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    draw = bench.random
    for idle, stall, scarce in [(0, 0, False), (0.4, 0, False), (0, 0.5, False), (0.2, 0.3, True), (0, 0.1, True)]:
        await bench.reset()
        for lane in lanes:
            lane.source.idle, lane.sink.stall, lane.scarce = idle, stall, scarce
            for _ in range(250):
                kind = draw.randrange(10)
                frame = frames.random_bytes(draw) if kind == 9 else frames.strange(draw)
                # With WholeFrames no frame is marked as bad.
                lane.send(
                    bytes(frames.good(draw)) if kind < 4 else frame,
                    error=not lane.whole_frames and draw.random() < 0.03,
                )
        await bench.until(lambda: all(lane.idle for lane in lanes), 60_000)
        await bench.cycle(30)
        for lane in lanes:
            lane.finish()
            fates = ("request", "checksum", "length", "source", "passed")
            assert min(lane.counts[fate] for fate in fates) > 2, lane.counts
            assert bool(lane.counts["busy"]) == scarce, lane.counts


@cocotb.test()
async def latencies_are_as_stated(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    for kind, size in [(1, 0), (8, 1024), (2, 64)]:
        for checksum in (False, True):
            await bench.reset()
            for lane in lanes:
                lane.source.cycles_of.clear()
                lane.send(bytes(welcome(bench.random, kind=kind, size=size, checksum=checksum)))
            await bench.until(lambda: all(lane.idle for lane in lanes))
            for lane in lanes:
                began = lane.source.cycles_of[0 if lane.whole_frames and not checksum else -1]
                assert lane.request_cycles == [began + 3], (lane.name, kind, size, checksum)


@cocotb.test()
async def checksums_of_the_longest_frames(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    await bench.reset()
    for fill in (b"\xff", b"\0", b""):
        for size in (1023, 1024, 1025, 2047, 2048, 2049, 4000, 9000, 40_000, 65_484, 65_485):  # up to the limit of IPv4
            for lane in lanes:
                content = fill * size or bench.random.randbytes(size)
                frame = welcome(bench.random, kind=2, size=0, checksum=True)
                frame[Raw].load += content
                lane.send(bytes(frame))
                wrong = bytearray(bytes(frame))
                wrong[-1 - bench.random.randrange(size)] ^= 0x10
                lane.send(bytes(wrong))
    await bench.until(lambda: all(lane.idle for lane in lanes), 60_000)
    for lane in lanes:
        assert (lane.counts["request"], lane.counts["checksum"]) == (33, 33), lane.counts


@cocotb.test()
async def foreign_frames_pass_in_two_cycles(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    await bench.reset()
    for lane in lanes:
        lane.source.cycles_of.clear()
        for _ in range(50):
            lane.send(bench.random.randbytes(bench.random.randrange(64, 1519)))
    await bench.until(lambda: all(lane.idle for lane in lanes))
    for lane in lanes:
        assert lane.sink.cycles_of == [cycle + 2 for cycle in lane.source.cycles_of], lane.name


@cocotb.test()
async def a_host_that_takes_nothing_stops_only_what_is_behind_it(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    await bench.reset()
    for lane in lanes:
        lane.sink.stall = 1.0
        for kind in (1, 8, 2):
            lane.send(bytes(welcome(bench.random, kind=kind, size=100)))
        lane.send(bench.random.randbytes(500))
    await bench.cycle(60)
    for lane in lanes:
        assert lane.counts["request"] == 3, lane.name
        lane.sink.stall = 0
    await bench.until(lambda: all(lane.idle for lane in lanes))


@cocotb.test()
async def reset_in_mid_frame(dut: Any) -> None:
    bench = Bench(dut)
    lanes = [Lane(bench, name) for name in NAMES]
    await bench.reset()
    for cut in range(1, 40):
        for lane in lanes:
            lane.send(bytes(welcome(bench.random, kind=8, size=1024)))
            lane.send(bench.random.randbytes(300))
        await bench.cycle(cut)
        await bench.reset()
        for lane in lanes:
            for _ in range(3):
                lane.send(frames.strange(bench.random))
            lane.send(bytes(welcome(bench.random, kind=1, size=0)))
        await bench.until(lambda: all(lane.idle for lane in lanes))
        await bench.cycle(25)
        for lane in lanes:
            lane.finish()


def test_kv_parser() -> None:
    text = '`include "axi.svh"\n' + "".join(
        wrapper(
            f"parser_{name}",
            "kv_parser",
            BUNDLES,
            parameters=f".Config({config(whole_frames=whole)}), .axis_t(axis_t)",
            declared="  `AXIS_TYPE(axis, 512, 8)\n  logic [31:0] source;\n",
            connected=".source_o(source), .allowed_i(source != '0 && $countones(source) % 4 != 3)",
        )
        for name, whole in NAMES.items()
    )
    cells = "".join(f"  parser_{name} {name} (.clk_i, .rst_i);\n" for name in NAMES)
    text += f"module top (input wire clk_i, input wire rst_i);\n{cells}endmodule\n"
    simulate(__file__, text=text, sources=KV_PACKAGES)
