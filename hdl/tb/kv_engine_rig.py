# SPDX-License-Identifier: Apache-2.0
"""kv_engine with models of its neighbours, and a model of its expected behaviour."""

from __future__ import annotations

from collections import deque
from typing import Any

import kv_model
from bench import Bench
from flat import Scope, nets
from kv_model import (
    EPOCH,
    JOB,
    KV_FIELDS,
    PEERS,
    PING,
    REQUEST,
    SELF,
    SEND,
    SUBJECT,
    Node,
    pack,
    unpack,
)

OP = {"op": 4, "flag": 1, "nodes": 8, "kv": 176, "bucket": 22}  # kv_engine_pkg::op_t
OP_FREE = 13 << sum(list(OP.values())[1:])
LOOK, KEEP, RESOLVE, LEARN_LANE, CLEAR = 2, 5, 10, 12, 14  # kv_engine_pkg::op_e
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
    "line_changes_o",
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
    "later_almost_full_i",
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
    """The engine with models of its neighbours, and a model of its expected behaviour."""

    def __init__(self, bench: Bench, model: Node) -> None:
        self.bench, self.model = bench, model
        scope: Any = Scope(bench.dut)
        self.pins = {name: bench.pin(scope, name) for name in PINS}
        self.leaders, self.peers = bench.pin(bench.dut, "leaders"), bench.pin(bench.dut, "peers")
        self.peers.set(sum(peer << 96 * i for i, peer in enumerate(PEERS)))
        self.dealt: list[int] = []  # as `leaders` has them
        self.bits, self.end, self.end_op = (bench.pin(bench.dut, name) for name in ("bits", "ending", "end_op"))
        self.requests: deque[dict[str, int]] = deque()
        self.free = set(range(64))
        self.lines: dict[int, int] = {}
        self.present: set[int] = set()
        self.reads: deque[tuple[int, int] | None] = deque([None, None])
        self.coming: dict[int, int] = {}
        self.writing: list[tuple[int, int]] = []  # cycle, place
        self.line_due: tuple[int, int] | None = None  # bucket and way that are written in this cycle
        self.changing: deque[int | None] = deque([None] * 5)  # buckets that were looked up because they will change
        self.seen: dict[str, list[dict[str, int]]] = {"sends": [], "later": [], "deferred": [], "jobs": [], "slow": []}
        self.freed: list[int] = []
        self.misses, self.idle, self.received, self.refreshed, self.walks = 0.1, 0.0, 0, 0, 0
        self.ending = False  # the request that kv_recovery got
        self.operation = OP_FREE  # that ends it
        self.lines_asked = 0  # cycles
        self.quiet_for = 0  # cycles: nothing waits in the queue either
        self.sent_at: list[int] = []
        self.given_at: list[int] = []
        bench.agents.append(self)

    def reset(self) -> None:
        """Does nothing, because a scenario makes its own rig after a reset."""

    def submit(self, request: dict[str, int]) -> None:
        """Gives a request to the model and to the engine."""
        self.model.take(request)
        self.requests.append(request)

    def drive(self) -> None:
        """Drives the neighbours' signals in this cycle."""
        draw, pins, model = self.bench.random, self.pins, self.model
        pins["node_i"].set(SELF)
        pins["members_i"].set(sum(1 << member for member in model.members))
        for name in ("serving", "opened", "accept"):
            pins[f"{name}_i"].set(getattr(model, name))
        pins["epoch_i"].set(EPOCH)
        self.bits.set(kv_model.BUCKET_BITS)
        if self.dealt != model.dealt:
            self.dealt = model.dealt
            self.leaders.set(sum(model.leader(slot) << 3 * slot for slot in range(256)))
        pins["now_almost_full_i"].set(draw.random() < self.idle)
        pins["later_almost_full_i"].set(draw.random() < self.idle)
        pins["job_room_i"].set(draw.random() >= self.idle)
        self.giving = bool(self.requests) and bool(pins["room_o"].get()) and draw.random() >= self.idle
        pins["request_valid_i"].set(self.giving)
        pins["request_i"].set(pack(REQUEST, self.requests[0]) if self.giving else draw.getrandbits(346))
        bench_hold = self.bench.pin(self.bench.dut, "hold")
        bench_hold.set(self.ending)
        self.end.set(self.ending)
        self.end_op.set(self.operation)
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
        """Compares the engine's outputs in this cycle with the model."""
        draw, pins = self.bench.random, self.pins
        if self.giving:
            self.requests.popleft()
            self.given_at.append(self.bench.cycles)
        if pins["slow_valid_o"].get():
            request = unpack(SUBJECT, pins["head_o"].get())
            if unpack(KV_FIELDS, request["kv"])["kind"] > PING:
                self.seen["slow"].append(request)
                self.ending = True
            else:
                self.walks += 1
        if pins["op_done_o"].get():
            self.ending = False
        self.lines_asked += pins["line_read_o"].get() | pins["want_o"].get()
        bucket = pins["line_bucket_o"].get()
        if draw.random() < self.misses / 10:
            self.present.discard(bucket)
        self.reads.append((bucket, self.lines.get(bucket, 0)) if pins["line_read_o"].get() else None)
        if pins["want_o"].get():
            wanted = pins["want_bucket_o"].get()
            if self.coming.setdefault(wanted, self.bench.cycles + draw.randint(0, 20)) <= self.bench.cycles:
                self.present.add(wanted)
                del self.coming[wanted]
        written = (pins["line_write_bucket_o"].get(), pins["line_write_way_o"].get())
        assert (written if pins["line_write_o"].get() else None) == self.line_due
        self.line_due = None
        looked_up = self.changing.popleft()
        changes = pins["line_read_o"].get() and pins["line_changes_o"].get()
        self.changing.append(bucket if changes else None)
        if pins["line_write_o"].get():
            assert looked_up == written[0], "a line is written that was not looked up for that"
            assert not pins["line_read_o"].get()
            bucket, shift = written[0], 128 * written[1]
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
                if name == "job" and self.seen["jobs"][-1]["write"] and not self.seen["jobs"][-1]["clears"]:
                    self.seen["jobs"][-1]["header"] = pins["line_write_header_o"].get()
                    self.line_due = (self.seen["jobs"][-1]["bucket"], self.seen["jobs"][-1]["way"])
                    if not self.seen["jobs"][-1]["tag"] & 64:  # otherwise no request owns the place
                        self.writing.append((self.bench.cycles + draw.randint(1, 60), self.seen["jobs"][-1]["place"]))
        if pins["place_free_o"].get():
            self.freed.append(pins["place_freed_o"].get())
            self.free.add(self.freed[-1])
        self.received += pins["received_o"].get()
        self.refreshed += pins["refresh_o"].get()
        self.quiet_for = self.quiet_for + 1 if pins["quiet_o"].get() and not self.giving else 0

    @property
    def quiet(self) -> bool:
        """Returns true if nothing waits or is in progress."""
        return not self.requests and self.quiet_for > 20 and not self.writing

    def check(self) -> None:
        """Compares the output with the expected output, and forgets both."""
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
        assert self.seen["slow"] == [{key: int(item[key]) for key in SUBJECT} for item in model.slow]
        assert sorted(self.freed) == sorted(model.freed)
        assert self.pins["window_o"].get() == sum(1 << place for place in model.window)
        for items in (*self.seen.values(), self.freed, model.sends, model.later, model.jobs, model.freed, model.slow):
            items.clear()


async def begun(dut: Any, model: Node, *, misses: float = 0.1, idle: float = 0.0, seed: int = 1) -> Rig:
    """Returns an engine after reset, with its memories cleared."""
    bench = Bench(dut, seed)
    rig = Rig(bench, model)
    rig.misses, rig.idle = misses, idle
    for name in ("request_valid_i", "dead_i", "leftovers_i", "clear_i"):
        rig.pins[name].set(1)
        rig.pins[name].set(0)
    await bench.reset()
    # Clears the memories, as kv_recovery does.
    rig.pins["clear_i"].set(1)
    for address in range(4096):
        bench.agents = [rig] if address % 16 == 0 else []  # checks now and then that nothing happens
        rig.pins["clear_at_i"].set(address)
        await bench.cycle()
    bench.agents = [rig]
    rig.pins["clear_i"].set(0)
    await bench.cycle(2)
    return rig


BUNDLES = {
    "settings_i": (
        "kv_settings_t",
        {
            "node_i": "staged.node",
            "members_i": "staged.members",
            "epoch_i": "staged.epoch",
            "accept_i": "direct.accept",
            "bits": "direct.bucket_bits",
        },
    ),
    "arrival_i": ("arrival_t", {"request_valid_i": "valid", "request_i": "what"}),
    "standing_i": (
        "standing_t",
        {"serving_i": "serving", "opened_i": "opened", "dead_i": "dead", "leftovers_i": "leftovers"},
    ),
    "recovery_i": (
        "to_engine_t",
        {"refreshing_i": "refreshing", "clear_i": "clear.valid", "clear_at_i": "clear.at"},
    ),
    "recovery_o": (
        "from_engine_t",
        {
            "op_done_o": "op_done",
            "slow_valid_o": "handed_on",
            "head_o": "head",
            "settle_valid_o": "settle",
            "settle_lane_o": "settled.lane",
            "settle_request_o": "settled.request",
            "pending_o": "pending",
            "refresh_o": "refresh",
            "quiet_o": "quiet",
            "window_o": "window",
        },
    ),
    "lookup_o": ("lookup_t", {"line_read_o": "read", "line_changes_o": "changes", "line_bucket_o": "bucket"}),
    "found_i": ("found_t", {"line_hit_i": "hit", "line_i": "line"}),
    "want_o": ("want_t", {"want_o": "want", "want_bucket_o": "bucket"}),
    "line_write_o": (
        "line_write_t",
        {
            "line_write_o": "write",
            "line_write_bucket_o": "bucket",
            "line_write_way_o": "way",
            "line_write_header_o": "header",
        },
    ),
    "free_o": ("free_place_t", {"place_free_o": "valid", "place_freed_o": "place"}),
    "almost_full_i": ("almost_full_t", {"now_almost_full_i": "now", "later_almost_full_i": "later"}),
    "sending_o": (
        "sending_t",
        {"now_valid_o": "now", "later_valid_o": "later", "deferred_valid_o": "deferred", "send_o": "send"},
    ),
    "events_o": (
        "engine_events_t",
        {
            "received_o": "received",
            "replied_o": "replied",
            "replied_status_o": "status",
            "dropped_epoch_o": "dropped_epoch",
            "dropped_duplicate_o": "dropped_duplicate",
        },
    ),
}

TOP = f"""
module top (input wire clk_i, input wire rst_i);
  import kv_frame_pkg::*;
  import kv_core_pkg::*;
  import kv_engine_pkg::*;
  import kv_recovery_pkg::*;
{nets(BUNDLES)}"""
TOP += """
  logic [255:0][2:0] leaders;
  logic [7:0][95:0] peers;
  who_ask_t ask;
  who_t who;
  assign who = '{leader: leaders[ask.slot], at: peers[ask.node]};
  logic hold, slow, op_done, ending;
  op_t op, end_op;
  subject_t head;
  logic [31:0] version;
  to_engine_t recovery;
  assign slow = recovery_o_bundle.handed_on;
  assign op_done = recovery_o_bundle.op_done;
  assign head = recovery_o_bundle.head;
  always_comb begin
    recovery = recovery_i_bundle;
    recovery.op_valid = ending || op_valid_q;
    recovery.op = ending ? end_op : op;
    recovery.walked_version = version;
  end
  kv_engine dut (
    .clk_i, .rst_i, .ask_o(ask), .who_i(who), .arrival_i(arrival_i_bundle),
    .settings_i(settings_i_bundle), .standing_i(standing_i_bundle),
    .recovery_i(recovery), .recovery_o(recovery_o_bundle), .stop_i(slow || hold || waits_q != '0 || walks),
    .lookup_o(lookup_o_bundle), .found_i(found_i_bundle),
    .want_o(want_o_bundle), .line_write_o(line_write_o_bundle), .free_o(free_o_bundle),
    .almost_full_i(almost_full_i_bundle), .sending_o(sending_o_bundle), .events_o(events_o_bundle)
  );

  // As kv_recovery and kv_recovery_request have it.
  logic walks, op_valid_q, cell_wanted;
  logic [3:0] waits_q;
  logic [11:0] offset;
  bucket_t first_q;
  cell_t found;
  order_t order, order_q;
  always_ff @(posedge clk_i) begin
    waits_q <= {waits_q[2:0], slow && head.kv.kind[4:3] == '0};
    if (slow) first_q <= recovery_o_bundle.looked_in;
    if (!op_valid_q) begin
      op_valid_q <= order.valid;
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
    .seen_i(recovery_o_bundle.seen), .cell_o(cell_wanted), .offset_o(offset), .order_o(order), .version_o(version)
  );
  kv_recovery_cell operation (
    .clk_i, .from_i(cell_wanted ? CellHead : CellKeep), .settle_i('0), .list_i('0), .fetch_bucket_i('0),
    .fetch_way_i('0), .ask_i('0), .head_bucket_i(first_q ^ {2'b0, offset, 8'b0}), .seen_valid_i(1'b0),
    .seen_i(recovery_o_bundle.seen), .order_i(order_q), .head_i(head.kv), .cell_o(found), .op_o(op)
  );
endmodule
"""
