# SPDX-License-Identifier: Apache-2.0
"""kv_engine, within one epoch, against docs/kv-protocol.md, sections 4 to 6, as kv_model.py has them."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import cocotb
import kv_frames as frames
import kv_model
from bench import Bench
from kv_model import (
    COMMIT,
    ENTRY,
    EPOCH,
    FETCH,
    JOB,
    KV_FIELDS,
    LANE,
    PEERS,
    PING,
    READ,
    REMOVE,
    REMOVE_IF,
    REPLICATE,
    REPLICATE_REMOVE,
    REPLICATED,
    REQUEST,
    SELF,
    SEND,
    WRITE,
    WRITE_IF,
    Node,
    Way,
    candidates,
    line_number,
    number_of,
    pack,
    unpack,
)
from simulate import COMMON, simulate

OP_FREE = 13 << (1 + 8 + 176 + 22)  # kv_core_pkg::op_t
KV = Path(__file__).resolve().parent.parent
PARTS = ("queue", "records", "vet", "plan", "ways", "decide", "engine", "operation", "walk")
PINS = (
    "node_i",
    "members_i",
    "serving_i",
    "opened_i",
    "accept_i",
    "epoch_i",
    "request_valid_i",
    "request_i",
    "room_o",
    "dead_i",
    "leftovers_i",
    "refresh_o",
    "refreshing_i",
    "op_done_o",
    "settle_valid_o",
    "settle_lane_o",
    "settle_request_o",
    "pending_o",
    "clear_i",
    "clear_at_i",
    "slow_valid_o",
    "head_o",
    "quiet_o",
    "line_read_o",
    "line_bucket_o",
    "line_hit_i",
    "line_i",
    "want_o",
    "want_bucket_o",
    "line_write_o",
    "line_write_bucket_o",
    "line_write_way_o",
    "line_write_header_o",
    "group_busy_i",
    "job_room_i",
    "job_valid_o",
    "job_o",
    "place_free_o",
    "place_freed_o",
    "now_almost_full_i",
    "now_valid_o",
    "later_room_i",
    "later_valid_o",
    "deferred_valid_o",
    "send_o",
    "window_o",
    "received_o",
    "replied_o",
    "replied_status_o",
    "dropped_epoch_o",
    "dropped_duplicate_o",
)


class Rig:
    """The engine among stand-ins for its neighbours, and the model that says what it should do."""

    def __init__(self, bench: Bench, model: Node) -> None:
        self.bench, self.model = bench, model
        scope: Any = bench.dut.dut
        self.pins = {name: bench.pin(scope, name) for name in PINS}
        self.leaders, self.peers = bench.pin(bench.dut, "leaders"), bench.pin(bench.dut, "peers")
        self.bits, self.end, self.end_op = (bench.pin(bench.dut, name) for name in ("bits", "ending", "end_op"))
        self.requests: deque[dict[str, int]] = deque()
        self.free = set(range(64))
        self.lines: dict[int, int] = {}
        self.present: set[int] = set()
        self.reads: deque[tuple[int, int] | None] = deque([None, None])
        self.coming: dict[int, int] = {}
        self.writing: list[tuple[int, int]] = []  # cycle, place
        self.seen: dict[str, list[dict[str, int]]] = {"sends": [], "later": [], "deferred": [], "jobs": [], "slow": []}
        self.freed: list[int] = []
        self.misses, self.idle, self.received, self.refreshed, self.walks = 0.1, 0.0, 0, 0, 0
        self.ending = False  # what the sequencer was told of
        self.quiet_for = 0  # cycles: nothing waits in the queue either
        self.sent_at: list[int] = []
        self.given_at: list[int] = []
        bench.agents.append(self)

    def reset(self) -> None:
        pass

    def submit(self, request: dict[str, int]) -> None:
        self.model.take(request)
        self.requests.append(request)

    def drive(self) -> None:
        draw, pins, model = self.bench.random, self.pins, self.model
        pins["node_i"].set(SELF)
        pins["members_i"].set(sum(1 << member for member in model.members))
        for name in ("serving", "opened", "accept"):
            pins[f"{name}_i"].set(getattr(model, name))
        pins["epoch_i"].set(EPOCH)
        self.bits.set(kv_model.BUCKET_BITS)
        self.leaders.set(sum(model.leader(slot) << 3 * slot for slot in range(256)))
        self.peers.set(sum(peer << 96 * i for i, peer in enumerate(PEERS)))
        pins["now_almost_full_i"].set(draw.random() < self.idle)
        pins["later_room_i"].set(draw.random() >= self.idle)
        pins["job_room_i"].set(draw.random() >= self.idle)
        self.giving = bool(self.requests) and bool(pins["room_o"].get()) and draw.random() >= self.idle
        pins["request_valid_i"].set(self.giving)
        pins["request_i"].set(pack(REQUEST, self.requests[0]) if self.giving else draw.getrandbits(346))
        bench_hold = self.bench.pin(self.bench.dut, "hold")
        bench_hold.set(self.ending)
        self.end.set(self.ending)
        self.end_op.set(OP_FREE)
        read = self.reads.popleft()
        pins["line_hit_i"].set(read is not None and read[0] in self.present)
        pins["line_i"].set(read[1] if read is not None and read[0] in self.present else draw.getrandbits(512))
        pins["group_busy_i"].set(0)
        pins["refreshing_i"].set(self.refreshed)
        done = next((entry for entry in self.writing if entry[0] <= self.bench.cycles), None)
        if done:
            self.writing.remove(done)
            self.free.add(done[1])

    def sample(self) -> None:
        draw, pins = self.bench.random, self.pins
        if self.giving:
            self.requests.popleft()
            self.given_at.append(self.bench.cycles)
        if pins["slow_valid_o"].get():
            request = unpack(REQUEST, pins["head_o"].get())
            if unpack(KV_FIELDS, request["kv"])["kind"] > PING:
                self.seen["slow"].append(request)
                self.ending = True
            else:
                self.walks += 1
        if pins["op_done_o"].get():
            self.ending = False
        bucket = pins["line_bucket_o"].get()
        if draw.random() < self.misses / 10:
            self.present.discard(bucket)
        self.reads.append((bucket, self.lines.get(bucket, 0)) if pins["line_read_o"].get() else None)
        if pins["want_o"].get():
            wanted = pins["want_bucket_o"].get()
            if self.coming.setdefault(wanted, self.bench.cycles + draw.randint(0, 20)) <= self.bench.cycles:
                self.present.add(wanted)
                del self.coming[wanted]
        if pins["line_write_o"].get():
            bucket, shift = pins["line_write_bucket_o"].get(), 128 * pins["line_write_way_o"].get()
            line = self.lines.get(bucket, 0) & ~(((1 << 128) - 1) << shift)
            self.lines[bucket] = line | pins["line_write_header_o"].get() << shift
        for name, layout, port, kind in (
            ("now", SEND, "send", "sends"),
            ("later", SEND, "send", "later"),
            ("deferred", SEND, "send", "deferred"),
            ("job", JOB, "job", "jobs"),
        ):
            if pins[f"{name}_valid_o"].get():
                self.seen[kind].append(unpack(layout, pins[f"{port}_o"].get()))
                if name == "now":
                    self.sent_at.append(self.bench.cycles)
                if name == "job" and self.seen["jobs"][-1]["write"]:
                    self.seen["jobs"][-1]["header"] = pins["line_write_header_o"].get()
                    assert pins["line_write_o"].get()
                    assert pins["line_write_way_o"].get() == self.seen["jobs"][-1]["way"]
                    if not self.seen["jobs"][-1]["tag"] & 64:  # else the place is nobody's
                        self.writing.append((self.bench.cycles + draw.randint(1, 60), self.seen["jobs"][-1]["place"]))
        if pins["place_free_o"].get():
            self.freed.append(pins["place_freed_o"].get())
            self.free.add(self.freed[-1])
        self.received += pins["received_o"].get()
        self.refreshed += pins["refresh_o"].get()
        self.quiet_for = self.quiet_for + 1 if pins["quiet_o"].get() and not self.giving else 0

    @property
    def quiet(self) -> bool:
        return not self.requests and self.quiet_for > 20 and not self.writing

    def check(self) -> None:
        """What came out against what should have; and forgets both."""
        model = self.model

        def plain(items: list[dict[str, int]], *, of: str) -> list[dict[str, int]]:
            kept = []
            for item in items:
                entry = {key: int(value) for key, value in item.items()}
                if of != "jobs":
                    entry["to"] = 0 if entry["nodes"] else entry["to"]
                    if not entry["length"]:
                        entry["sum"], entry["summed"] = 0, 1
                    if of == "later" or (of == "sends" and not entry["length"]):
                        entry["place"] = 0
                elif of == "jobs" and not entry["write"]:
                    entry = {key: entry[key] for key in ("write", "bucket", "way", "length")}
                kept.append(entry)
            return kept

        if model.accept:
            assert not self.seen["deferred"]
        else:
            assert plain(self.seen["deferred"], of="deferred") == plain(model.deferred, of="deferred")
        model.deferred.clear()
        found, wanted = plain(self.seen["sends"], of="sends"), plain(model.sends, of="sends")
        for number, (a, b) in enumerate(zip(found, wanted, strict=False)):
            if a != b:
                said = [f"frame {number}"]
                for entry in (a, b):
                    said.append(f"{ ({k: v for k, v in entry.items() if k != 'kv'} | unpack(KV_FIELDS, entry['kv'])) }")
                raise AssertionError("\n".join(said))
        assert len(found) == len(wanted), (len(found), len(wanted))
        assert plain(self.seen["later"], of="later") == plain(model.later, of="later")
        assert plain(self.seen["jobs"], of="jobs") == plain(model.jobs, of="jobs")
        assert self.refreshed == model.refreshed
        assert self.seen["slow"] == [{key: int(value) for key, value in item.items()} for item in model.slow]
        assert sorted(self.freed) == sorted(model.freed)
        assert self.pins["window_o"].get() == sum(1 << place for place in model.window)
        for items in (*self.seen.values(), self.freed, model.sends, model.later, model.jobs, model.freed, model.slow):
            items.clear()


class Traffic:
    """Requests that go where it is interesting."""

    def __init__(self, rig: Rig, keys: int = 24, lanes: int = 6) -> None:
        self.rig, self.draw = rig, rig.bench.random
        self.lanes = [0, 1, 4095, *range(100, 100 + lanes - 3)]
        self.next_request = dict.fromkeys(self.lanes, 2**32 - 5)
        self.past: list[dict[str, int]] = []
        # Several keys in a bucket; this node leads at least two of five.
        buckets: dict[int, list[int]] = {}
        key = 0
        while sum(len(found) for found in buckets.values()) < keys or len(buckets) < 5:
            key += 1
            bucket = frames.crc32c(key.to_bytes(8, "big")) % 2**kv_model.BUCKET_BITS
            leads = rig.model.leader(bucket) == SELF
            if bucket in buckets or len(buckets) < 3 or (len(buckets) < 5 and leads):
                buckets.setdefault(bucket, []).append(key)
        self.keys = [key for found in buckets.values() for key in found[:7]]
        self.buckets = {bucket: found[0] for bucket, found in buckets.items()}

    def preset(self, versions: tuple[int, int, int, int]) -> None:
        """As if keys had been written and deleted in all these buckets."""
        for bucket, key in self.buckets.items():
            line = self.rig.model.line(bucket)
            line[:] = [Way(key, version) for version in versions]
            self.rig.lines[bucket] = line_number(line)

    def crowd(self) -> None:
        """As if many other keys were, or had been, in the candidates of all keys: with versions of all distances."""
        draw, far = self.draw, 2**28
        near = draw.choice([1, 77, 2**31 - 9, 2**32 - 9, 2**32 - far - 3])
        steps = [0, 0, 1, 5, far - 1, far, far + 1, far // 2, 2**32 - far, 2**29 + 5]
        for key in self.keys:
            held = draw.choice([0.1, 0.5, 0.9, 1.0])
            for bucket in candidates(frames.crc32c(key.to_bytes(8, "big"))):
                if bucket in self.rig.lines:
                    continue
                line = self.rig.model.line(bucket)
                for number in range(4):
                    if draw.random() < 0.85:
                        version = (near + draw.choice(steps) + draw.randrange(3)) % 2**32
                        other = 2**63 + 4 * bucket + number
                        second = number_of(frames.crc32c(other.to_bytes(8, "big")), bucket) > 3
                        present = version != 0 and draw.random() < held
                        line[number] = Way(other, version, present, second=second)
                self.rig.lines[bucket] = line_number(line)

    def next(self) -> dict[str, int] | None:
        draw, model = self.draw, self.rig.model
        if self.past and draw.random() < 0.08:
            return self.again(draw.choice(self.past[-40:]))
        kind = draw.choices(
            [READ, WRITE, WRITE_IF, REMOVE, REMOVE_IF, LANE, PING, REPLICATE, REPLICATED, COMMIT, FETCH, ENTRY],
            [8, 8, 3, 3, 2, 1, 1, 8, 12, 5, 2, 1],
        )[0]
        key = draw.choice(self.keys)
        kv = {
            "kind": kind,
            "node": 0,
            "detail": 0,
            "epoch": EPOCH,
            "candidate": 0,
            "client": draw.choice(self.lanes),
            "request": 0,
            "version": 0,
            "key": key,
        }
        source, length = draw.getrandbits(96), draw.choice([0, 1, 64, 1024])
        hashed = frames.crc32c(key.to_bytes(8, "big"))
        bucket = draw.choice(candidates(hashed)) if draw.random() < 0.5 else hashed % 2**kv_model.BUCKET_BITS
        if kind in (WRITE, WRITE_IF, REMOVE, REMOVE_IF):
            lane = kv["client"]
            kv["request"] = self.next_request[lane]
            self.next_request[lane] = (self.next_request[lane] + draw.choice([0, 1, 1, 1, 3])) % 2**32
            if kind in (WRITE_IF, REMOVE_IF) and draw.random() < 0.7:
                ways = [way for each in candidates(hashed) for way in model.line(each)]
                kv["version"] = next((way.version for way in ways if way.present and way.key == key), 0)
        elif kind == REPLICATE:
            leader = model.leader(bucket)
            # As a leader would: where the key is, or where nothing is.
            held = [each for each in candidates(hashed) for way in model.line(each) if way.present and way.key == key]
            bucket = held[0] if held else bucket
            line = model.line(bucket)
            there = [i for i in range(4) if line[i].present and line[i].key == key]
            if not (ways := there or [i for i in range(4) if not line[i].present]):
                return None
            way = draw.choice(ways)
            stored = model.line(bucket)[way].version
            kv |= {
                "kind": draw.choice([REPLICATE, REPLICATE, REPLICATE_REMOVE]),
                "node": leader,
                "detail": way << 6 | draw.randrange(64),
                "candidate": number_of(hashed, bucket),
            }
            kv |= {
                "version": (stored + draw.choice([1, 1, 1, 2, 0, -1])) % 2**32 or 1,
                # Of the same lanes, by other leaders: older than the record, the same, newer.
                "request": (self.next_request[kv["client"]] + draw.randint(-4, 1)) % 2**32,
            }
            source = PEERS[leader]
        elif kind == REPLICATED:
            if not model.window:
                return None
            place, write = draw.choice(list(model.window.items()))
            sender = draw.choice(sorted(model.others))
            kv = write.kv | {
                "kind": REPLICATED,
                "node": sender,
                "detail": write.way << 6 | place,
                "candidate": number_of(write.request["hash"], write.bucket),
                "version": write.version,
                "epoch": EPOCH,
            }
            if draw.random() < 0.1:
                kv["version"] = write.version - 1
            if draw.random() < 0.1:
                kv["candidate"] ^= draw.randint(1, 7)
            source, length = PEERS[sender], 0
        elif kind == COMMIT:
            if not model.notes:
                return None
            (leader, place), note = draw.choice(list(model.notes.items()))
            # The key that is there, or of the refresh that is never settled here any that may be.
            key = model.line(note[0])[note[1]].key
            kv |= {
                "node": leader,
                "detail": note[1] << 6 | place,
                "client": note[3],
                "request": note[4],
                "version": note[2],
                "key": key,
                "candidate": number_of(frames.crc32c(key.to_bytes(8, "big")), note[0]),
            }
            if draw.random() < 0.1:
                kv["version"] ^= 1
            source, length = PEERS[leader], 0
        elif kind in (FETCH, ENTRY):
            sender = draw.choice(sorted(model.others)) if model.others else 0
            kv["node"], source = sender, PEERS[sender]
            if kind == FETCH:
                kv["key"] = bucket << 2 | draw.randrange(4)
        if kind not in (WRITE, WRITE_IF, REPLICATE, ENTRY) and draw.random() < 0.97:
            length = 0
        if draw.random() < 0.04:
            kv["epoch"] ^= 1
        if draw.random() < 0.02:
            kv["detail"] ^= 1
        if draw.random() < 0.02:
            kv["client"] = draw.choice([4096, 8191])
        if draw.random() < 0.01:
            kv["candidate"] = draw.randint(0, 7)
        return self.request(source, kv, length)

    def request(self, source: int, kv: dict[str, int], length: int) -> dict[str, int] | None:
        draw, free = self.draw, self.rig.free
        has_place = kv["kind"] in frames.KINDS_WITH_PLACE
        if has_place and not free:
            return None
        place = free.pop() if has_place else 0
        request = {
            "from": source,
            "kv": pack(KV_FIELDS, kv),
            "hash": frames.crc32c(kv["key"].to_bytes(8, "big")),
            "length": length,
            "too_long": length == 1024 and draw.random() < 0.05,
            "summed": draw.getrandbits(1),
            "sum": draw.getrandbits(16),
            "has_place": has_place,
            "place": place,
        }
        self.past.append(request)
        return request

    def again(self, old: dict[str, int]) -> dict[str, int] | None:
        return self.request(old["from"], unpack(KV_FIELDS, old["kv"]), old["length"])


async def begun(dut: Any, model: Node, *, misses: float = 0.1, idle: float = 0.0, seed: int = 1) -> Rig:
    """An engine out of reset, its memories cleared."""
    bench = Bench(dut, seed)
    rig = Rig(bench, model)
    rig.misses, rig.idle = misses, idle
    for name in ("request_valid_i", "dead_i", "leftovers_i", "clear_i"):
        rig.pins[name].set(1)
        rig.pins[name].set(0)
    await bench.reset()
    # What the sequencer does.
    rig.pins["clear_i"].set(1)
    for address in range(4096):
        rig.pins["clear_at_i"].set(address)
        await bench.cycle()
    rig.pins["clear_i"].set(0)
    await bench.cycle(2)
    return rig


async def run(
    dut: Any,
    model: Node,
    count: int,
    *,
    misses: float = 0.1,
    idle: float = 0.0,
    seed: int = 1,
    versions: tuple[int, int, int, int] | None = None,
    crowded: bool = False,
) -> Rig:
    rig = await begun(dut, model, misses=misses, idle=idle, seed=seed)
    bench = rig.bench
    traffic = Traffic(rig)
    if versions:
        traffic.preset(versions)
    if crowded:
        traffic.crowd()
    for _ in range(count):
        while len(rig.requests) > 8:
            await bench.cycle()
        request = traffic.next()
        if request is None:
            await bench.cycle()
        else:
            rig.submit(request)
    await bench.until(lambda: rig.quiet)
    await bench.cycle(80)
    rig.check()
    return rig


@cocotb.test()
async def a_cluster_of_three(dut: Any) -> None:
    for seed in range(3):
        await run(dut, Node({0, 2, 5}), 1500, seed=seed, misses=0.1 * seed, idle=0.15 * seed)


@cocotb.test()
async def alone(dut: Any) -> None:
    await run(dut, Node({SELF}), 800)


@cocotb.test()
async def eight(dut: Any) -> None:
    await run(dut, Node(set(range(8))), 1200, idle=0.1)


@cocotb.test()
async def crowded_tables_of_all_sizes(dut: Any) -> None:
    """Keys that are not in their first bucket, or nowhere, and new ones that are put elsewhere."""
    usual = kv_model.BUCKET_BITS
    try:
        for seed, kv_model.BUCKET_BITS in enumerate([8, 9, 10, 11, 12, 12, 12, 13, 20, 21]):
            members = {0, 2, 5} if seed % 3 else {SELF}
            node, idle = Node(members, accept=seed % 4 != 1), 0.1 * (seed % 2)
            rig = await run(dut, node, 700, crowded=True, seed=100 + seed, idle=idle)
            assert (rig.walks > 20) == (kv_model.BUCKET_BITS > 8), rig.walks
    finally:
        kv_model.BUCKET_BITS = usual


@cocotb.test()
async def stored_before_it_is_acknowledged(dut: Any) -> None:
    await run(dut, Node({0, 2}, accept=False), 1200)


@cocotb.test()
async def versions_that_wrap(dut: Any) -> None:
    for top in (2**30 - 5, 2**31 - 5, 2**32 - 5):
        for second in (top, (top - 2**31 + 6) % 2**32):
            versions = (second, top, (top - 100) % 2**32, 0)
            for members in ({0, 2, 5}, {SELF}):
                model = Node(members, accept=top != 2**31 - 5)
                await run(dut, model, 400, versions=versions, seed=top % 1000)
                assert model.refreshed == (second != top and members != {SELF})


@cocotb.test()
async def more_notes_of_a_bucket_than_a_byte_counts(dut: Any) -> None:
    """Of five leaders, one after another, as after as many epochs; when all are committed nothing is pending."""
    model = Node(set(range(8)))
    rig = await begun(dut, model)
    traffic = Traffic(rig)
    key = traffic.keys[0]
    bucket = frames.crc32c(key.to_bytes(8, "big")) % 2**kv_model.BUCKET_BITS
    leads, named = [0], number_of(frames.crc32c(key.to_bytes(8, "big")), bucket)
    model.leader = lambda slot: leads[0]  # type: ignore[method-assign]
    written: list[dict[str, int]] = []

    async def submit(source: int, kv: dict[str, int]) -> None:
        while (request := traffic.request(source, kv, 0)) is None or len(rig.requests) > 8:
            await rig.bench.cycle()
        rig.submit(request)

    async def settled() -> None:
        await rig.bench.until(lambda: rig.quiet)
        await rig.bench.cycle(80)
        rig.check()

    def header(kind: int, **fields: int) -> dict[str, int]:
        kv = {"kind": kind, "node": 0, "detail": 0, "epoch": 0, "client": 0, "request": 0, "version": 0, "key": key}
        return kv | {"candidate": 0} | fields

    async def read() -> None:
        await submit(1 << 90, header(READ, client=7, request=len(written)))
        await settled()

    leaders = [node for node in range(8) if node != SELF][:5]
    for leads[0] in leaders:
        for place in range(64):
            fields = {
                "node": leads[0],
                "epoch": EPOCH,
                "candidate": named,
                "version": len(written) + 1,
                "request": len(written) + 1,
            }
            written.append(header(REPLICATE, detail=place, client=place, **fields))
            await submit(PEERS[leads[0]], written[-1])
        await read()
    assert len(model.notes) == 320
    for leads[0] in leaders:
        for kv in written:
            if kv["node"] == leads[0]:
                await submit(PEERS[leads[0]], kv | {"kind": COMMIT})
        await read()
    assert not model.notes
    assert model.line(bucket)[0].version == 320


@cocotb.test()
async def not_serving_or_closed(dut: Any) -> None:
    await run(dut, Node({0, 2}, serving=False), 300)
    await run(dut, Node({0, 2}, opened=False), 300)


TOP = """
module top (input wire clk_i, input wire rst_i);
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  logic [255:0][2:0] leaders;
  logic [7:0][95:0] peers;
  logic [7:0] slot;
  logic [2:0] peer;
  logic hold, slow, op_done, ending;
  op_t op, end_op;
  request_t head;
  seen_t seen;
  bucket_t bucket;
  logic [5:0] bits;
  logic [31:0] version;
  kv_engine dut (
    .clk_i, .rst_i, .slot_o(slot), .leader_i(leaders[slot]), .peer_o(peer), .peer_i(peers[peer]), .bucket_bits_i(bits),
    .slow_valid_o(slow), .stop_i(slow || hold || waits_q != '0 || walks), .head_o(head), .seen_o(seen),
    .op_done_o(op_done),
    .op_valid_i(ending || op_valid_q), .op_i(ending ? end_op : op), .walked_version_i(version), .want_bucket_o(bucket)
  );

  // As kv_sequencer and kv_handed have it.
  logic walks, op_valid_q, order_valid, cell_wanted;
  logic [3:0] waits_q;
  logic [11:0] offset;
  bucket_t first_q;
  cell_t found;
  order_t order, order_q;
  always_ff @(posedge clk_i) begin
    waits_q <= {waits_q[2:0], slow && head.kv.kind[4:3] == '0};
    if (slow) first_q <= bucket;
    if (!op_valid_q) begin
      op_valid_q <= order_valid;
      order_q    <= order;
    end else if (op_done) op_valid_q <= 1'b0;
    if (rst_i) begin
      waits_q    <= '0;
      op_valid_q <= 1'b0;
    end
  end
  kv_walk walk (
    .clk_i, .rst_i, .start_i(waits_q[3]), .go_i(!op_valid_q), .active_o(walks), .read_i(head.kv.kind == KindRead),
    .here_i(1'b1), .hash_i(head.hash), .bucket_mask_i(bucket_t'('1) << bits), .seen_valid_i(op_valid_q && op_done),
    .seen_i(seen), .cell_o(cell_wanted), .offset_o(offset), .order_valid_o(order_valid), .order_o(order),
    .version_o(version)
  );
  kv_operation operation (
    .clk_i, .from_i(cell_wanted ? CellHead : CellKeep), .settle_lane_i('0), .settle_request_i('0), .list_i('0),
    .fetch_bucket_i('0), .fetch_way_i('0), .ask_lane_i('0), .ask_request_i('0),
    .head_bucket_i(first_q ^ {2'b0, offset, 8'b0}), .seen_valid_i(1'b0), .seen_i(seen), .order_i(order_q),
    .head_i(head.kv), .cell_o(found), .op_o(op)
  );
endmodule
"""


def test_kv_engine() -> None:
    top = COMMON.parent.parent / "build" / "hdl" / "test_kv_engine" / "top.sv"
    top.parent.mkdir(parents=True, exist_ok=True)
    top.write_text(TOP)
    packages = (KV / "generated" / "kv_frame_pkg.sv", KV / "kv_core_pkg.sv")
    simulate(
        __file__,
        sources=(*packages, *[KV / f"kv_{part}.sv" for part in PARTS], top),
    )
