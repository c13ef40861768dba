# SPDX-License-Identifier: Apache-2.0
"""The bench of kv_registers: a model of the register map from spec/kv_registers.toml, the bus, and kv_recovery."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from bench import Bench, Pin, Sink, Source
from bundles import Axi
from flat import Scope, config, wrapper
from simulate import ROOT

SPEC = tomllib.loads((ROOT / "spec" / "kv_registers.toml").read_text())
CONFIGS = {
    "wide": {"max_followers": 7, "lane_bits": 12, "channels": 2},
    "lean": {"max_followers": 2, "lane_bits": 9, "channels": 4},
}
ASKERS = {"wide": 2, "lean": 3}
SOURCES = 14
BUILDING = 1500  # cycles from a write of source_ip or source_mask after which it counts, for certain
CLEARING = 135  # cycles from the write of clear_counters after which everything counts again, for certain


class Register:
    """One word of the register map."""

    def __init__(self, entry: dict[str, Any], index: int) -> None:
        self.name, self.index = entry["name"], index
        self.access, self.reset, self.staged = entry["access"], entry["reset"], entry.get("staged", False)
        fields = {field["name"]: ((1 << field["bits"]) - 1) << field["low"] for field in entry.get("fields", [])}
        self.low = {field["name"]: field["low"] for field in entry.get("fields", [])}
        acts = sum(fields[field["name"]] for field in entry.get("fields", []) if field.get("acts"))
        self.mask = sum(fields.values()) & ~acts or (1 << entry.get("bits", 32)) - 1
        self.fields = fields
        self.is_counter = entry["offset"] >= MAP_COUNTERS


MAP_COUNTERS = next(entry["offset"] for entry in SPEC["register"] if entry["name"] == "frames_kv")
MAP: dict[int, Register] = {}
AT: dict[str, int] = {}
for entry in SPEC["register"]:
    AT[entry["name"]] = entry["offset"]
    for i in range(entry.get("count", 1)):
        assert entry["offset"] + i * entry.get("stride", 4) not in MAP
        MAP[entry["offset"] + i * entry.get("stride", 4)] = Register(entry, i)
MOST_BUCKET_BITS = max(bits for bits in range(33) if (64 + 4 * 1024) << bits <= 2**34)
"""The largest table whose lines and values fit in the memory that 34 bits address."""
FIELDS = {MAP[AT[name]].name: MAP[AT[name]] for name in ("control", "state", "capability", "members")}
CLEAR_COUNTERS, CLEAR_TABLE = (FIELDS["control"].fields[name] for name in ("clear_counters", "clear_table"))

SINGLES = {
    "frame_kv_i": "frames_kv",
    "passed_rx_i": "frames_passed_rx",
    "passed_tx_i": "frames_passed_tx",
    "dropped_checksum_i": "dropped_checksum",
    "dropped_length_i": "dropped_length",
    "dropped_epoch_i": "dropped_epoch",
    "dropped_duplicate_i": "dropped_duplicate",
    "retry_i": "retries",
    "dropped_busy_i": "dropped_busy",
    "dropped_host_i": "dropped_host",
    "dropped_source_i": "dropped_source",
}
INDEXED = [
    ("reply_i", "reply_status_i", "replies"),
    ("received_i", "received_kind_i", "received"),
    ("sent_i", "sent_kind_i", "sent"),
]
BUNDLES = {
    "settings_o": (
        "kv_settings_t",
        {f"{name}_o": f"staged.{name}" for name in ("epoch", "node", "members", "serving_members", "self")}
        | {
            f"{name}_o": f"direct.{name}"
            for name in ("enable", "accept", "retry_cycles", "bucket_bits", "line_base", "value_base")
        }
        | {"leased_o": "leased", "misplaced_o": "misplaced"},
    ),
    "entering_o": ("entering_t", {"enter_valid_o": "valid", "enter_epoch_o": "epoch", "copied_o": "copied"}),
    "step_i": ("entry_step_t", {"enter_copy_i": "copy", "entered_i": "entered"}),
    "fetch_o": (
        "fetch_order_t",
        {f"sync_{name}_o": name for name in ("count_write", "lanes_write", "data", "from")},
    ),
    "fetch_left_i": ("fetch_left_t", {"sync_count_i": "count", "sync_lanes_i": "lanes"}),
    "state_i": (
        "kv_registers_pkg::state_t",
        {f"{field}_i": field for field in FIELDS["state"].fields if field != "entering"},
    ),
    "events_i": (
        "events_t",
        {
            "frame_kv_i": "rx.received",
            "passed_rx_i": "rx.passed",
            "passed_tx_i": "passed_tx",
            "dropped_epoch_i": "engine.dropped_epoch",
            "dropped_duplicate_i": "engine.dropped_duplicate",
            "retry_i": "retry",
            "dropped_host_i": "dropped_host",
            "reply_i": "engine.replied",
            "reply_status_i": "engine.status[3:0]",
            "received_i": "engine.received",
            "received_kind_i": "engine.kind",
            "sent_i": "sent",
            "sent_kind_i": "sent_kind",
        }
        | {f"dropped_{name}_i": f"rx.dropped_{name}" for name in ("checksum", "length", "busy", "source")},
    ),
}

# For each asker.
WHO = """
  logic [ASKERS-1:0][7:0] slot_i;
  logic [ASKERS-1:0][2:0] peer_index_i, leader_o;
  endpoint_t [ASKERS-1:0] peer_o;
  who_ask_t [ASKERS-1:0] ask;
  who_t [ASKERS-1:0] who;
  for (genvar i = 0; i < ASKERS; i++) begin : gen_asker
    assign ask[i] = '{slot: slot_i[i], node: peer_index_i[i]};
    assign leader_o[i] = who[i].leader;
    assign peer_o[i] = who[i].at;
  end
"""


def top() -> str:
    """Returns a wrapper with a flat bus for each set of parameters, and an instance of each."""
    bus = Axi("s_axil", address=12, data=32, id=0, types="")
    nets = [re.sub(r"^(input wire|output logic)", "logic", line) + ";" for line in bus.ports()]
    declared = "\n".join(f"  {line}" for line in nets) + "\n"
    declared += "  kv_axil_req_t s_axil_req;\n  kv_axil_resp_t s_axil_resp;\n"
    declared += "  `AXI_LITE_FROM_FLAT(s_axil, s_axil_req, s_axil_resp)\n"
    text = '`include "axi.svh"\n'
    for name, askers in ASKERS.items():
        text += wrapper(
            f"registers_{name}",
            "kv_registers",
            BUNDLES,
            parameters=f".Config({config(**CONFIGS[name])}), .Askers({askers})",
            declared=declared + WHO.replace("ASKERS", str(askers)),
            connected=".s_axil_req, .s_axil_resp, .ask_i(ask), .who_o(who)",
        )
    cells = "".join(f"  registers_{name} {name} (.clk_i, .rst_i);\n" for name in ASKERS)
    return f"{text}module top (input wire clk_i, input wire rst_i);\n{cells}endmodule\n"


def merged(old: int, data: int, strobe: int) -> int:
    """Returns a word after a write of some of its bytes."""
    mask = sum(0xFF << (8 * i) for i in range(4) if strobe >> i & 1)
    return (old & ~mask) | (data & mask)


class Rig:
    """An instance with its bus, its neighbours, and the expected values."""

    def __init__(self, bench: Bench, name: str) -> None:
        handle = getattr(bench.dut, name)
        scope = Scope(handle)
        self.bench, self.name, self.scope = bench, name, scope
        self.pins: dict[str, Pin] = {"idle_q": bench.pin(handle.dut.i_access, "idle_q")}
        self.askers = ASKERS[name]

        def channel(kind: Any, prefix: str, fields: list[str]) -> Any:
            pins = [bench.pin(scope, f"s_axil_{prefix}{field}") for field in ("valid", "ready", *fields)]
            return kind(bench, pins[0], pins[1], pins[2:])

        self.aw, self.w = channel(Source, "aw", ["addr"]), channel(Source, "w", ["data", "strb"])
        self.ar = channel(Source, "ar", ["addr"])
        self.b, self.r = channel(Sink, "b", ["resp"]), channel(Sink, "r", ["data", "resp"])
        self.rate, self.spread = 0.0, 0.5  # of events, and how often their index is any
        self.drain, self.settle = (0, 20), (0, 20)  # cycles that kv_recovery takes
        bench.agents.append(self)
        self.reset()

    def pin(self, name: str) -> Pin:
        """Returns a signal of the instance."""
        if name not in self.pins:
            self.pins[name] = self.bench.pin(self.scope, name)
        return self.pins[name]

    def pace(self, idle_aw: float, idle_w: float, stall: float) -> None:
        """Sets how often the bus manager pauses."""
        self.aw.idle, self.w.idle, self.ar.idle = idle_aw, idle_w, idle_aw
        self.b.stall = self.r.stall = stall

    # ---- the model

    def reset(self) -> None:
        """Sets the expected state after a reset of two cycles."""
        self.words = {offset: register.reset for offset, register in MAP.items() if register.access != "wo"}
        low = FIELDS["capability"].low
        self.words[AT["capability"]] = (
            sum(value << low[name] for name, value in CONFIGS[self.name].items())
            | 6 << low["place_bits"]
            | MOST_BUCKET_BITS << low["bucket_bits"]
            | SOURCES << low["sources"]
        )
        self.active = {"epoch": 0, "node": 0, "members": 0, "self": (0, 0, MAP[AT["udp_port"]].reset)}
        self.peers: list[tuple[int, int, int]] | None = None
        self.leaders: list[int] | None = None
        self.phase, self.wait = "idle", 0
        self.target = 0
        self.entered_at = -100
        self.entries = 0
        self.asked: list[int] = []  # epochs that kv_recovery was asked to enter
        self.expected_asked: list[int] = []
        self.epoch_before = self.answered_at = 0
        self.idle_before = 1  # no epoch was being entered when a write was taken
        self.misplaced = False
        self.none_before = self.none_now = self.idle_now = True
        self.leased = self.answering = 0
        self.cleared = False
        self.last_epoch = 0  # before the one that has just been entered
        self.pulses = {"clear_table_o": 0, "sync_count_write_o": 0, "sync_lanes_write_o": 0}
        self.expected_pulses = dict.fromkeys(self.pulses, 0)
        self.synced: list[tuple[str, int]] = []
        self.expected_synced: list[tuple[str, int]] = []
        # A count is between these two values, because events during clearing may or may not count.
        self.least = {offset: 0 for offset, register in MAP.items() if register.is_counter}
        self.most = dict(self.least)
        self.blind_until = self.bench.cycles + 2 + CLEARING
        self.zero = self.bench.cycles + 2  # when `cycles` is 0, two cycles of reset from here

    def shown(self, offset: int) -> int:
        """Returns the value of a register that does not change by itself."""
        register = MAP.get(offset & ~3)
        if register is None:
            return 0
        if register.name == "state":
            pins = {field: self.pin(f"{field}_i").get() for field in register.fields if field != "entering"}
            pins["entering"] = int(not self.pin("idle").get())
            return sum(value << register.low[field] for field, value in pins.items())
        if register.name in ("sync_count", "sync_lanes"):
            return self.pin(f"{register.name}_i").get()
        return self.words[offset & ~3]

    def none_at_write(self) -> bool:
        """Returns true if there was no epoch, and none was being entered, when the write happened: one cycle before the
        response."""
        if 0 <= self.answered_at - self.entered_at <= 5 and self.words[AT["epoch"]] & 0xFFFF == 0:
            return self.cleared  # too close to call
        return self.none_before

    def wrote(self, offset: int, data: int, strobe: int) -> None:
        """Updates the model for a write that has taken effect."""
        offset &= ~3
        register = MAP.get(offset)
        if register is None or register.access != "rw" or strobe == 0:
            return
        old, given = self.words[offset], merged(0, data, strobe)
        new = merged(old, data, strobe) & register.mask
        if (register.name == "epoch" or register.staged) and not self.idle_before:
            return
        if register.name == "epoch":
            new = merged(self.epoch_before, data, strobe)
            self.expected_asked += [new] * (new != self.epoch_before)
            assert self.asked == self.expected_asked
            return
        if register.name == "bucket_bits":
            if not (self.none_at_write() and 8 <= new <= MOST_BUCKET_BITS):
                return
            self.words[offset] = new
            self.clears(new != old)
        self.words[offset] = new
        if register.name in ("line_base", "value_base"):
            self.clears(False)
        if register.name == "control":
            if given & CLEAR_COUNTERS:
                self.least = dict.fromkeys(self.least, 0)
                self.most = dict(self.least)
                self.blind_until = self.bench.cycles + CLEARING
            self.clears(bool(given & CLEAR_TABLE) and self.none_at_write())
        if register.name in ("sync_count", "sync_lanes"):
            self.expected_pulses[f"{register.name}_write_o"] += 1
            self.expected_synced.append((f"{register.name}_write_o", new))

    def clears(self, asked: bool) -> None:
        """Updates the model when the table must be cleared, or is at another address."""
        bits = self.words[AT["bucket_bits"]]
        fits = all(
            self.wide(name) % 4096 == 0 and self.wide(name) + (size << bits) <= 2**34
            for name, size in (("line_base", 64), ("value_base", 4096))
        )
        if asked and fits:
            self.expected_pulses["clear_table_o"] += 1
            self.misplaced = False
        self.misplaced |= not fits

    def wide(self, name: str) -> int:
        """Returns the value of two words."""
        return self.words[AT[name]] | self.words[AT[name] + 4] << 32

    def check_outputs(self) -> None:
        """Checks outputs that do not change between writes."""
        control, low = self.words[AT["control"]], FIELDS["control"].low
        assert self.pin("enable_o").get() == control >> low["enable"] & 1
        assert self.pin("accept_o").get() == control >> low["accept"] & 1
        assert self.pin("retry_cycles_o").get() == self.words[AT["retry_cycles"]]
        assert self.pin("bucket_bits_o").get() == self.words[AT["bucket_bits"]]
        assert self.pin("line_base_o").get() == self.wide("line_base")
        assert self.pin("value_base_o").get() == self.wide("value_base")
        assert self.pin("sync_from_o").get() == self.words[AT["sync_from"]]
        assert self.pin("misplaced_o").get() == self.misplaced
        assert self.pulses == self.expected_pulses
        assert self.synced == self.expected_synced

    def copy(self) -> None:
        """Makes all staged registers take effect."""
        words, self.target = self.words, self.asked[-1]
        in_epoch = self.target & 0xFFFF != 0
        self.active["epoch"] = self.target
        self.active["node"] = words[AT["node"]]
        self.active["members"] = words[AT["members"]] if in_epoch else 0
        self.peers = []
        for i in range(MAP_PEERS):
            mac = words[AT["peer_mac_low"] + 16 * i] | words[AT["peer_mac_high"] + 16 * i] << 32
            self.peers.append((mac, words[AT["peer_ip"] + 16 * i], words[AT["peer_port"] + 16 * i]))
        mac, ip, _ = self.peers[words[AT["node"]]]
        self.active["self"] = (mac, ip, words[AT["udp_port"]])
        self.leaders = [words[AT["leader"] + slot // 8 * 4] >> slot % 8 * 4 & 7 for slot in range(256)]

    # ---- in each cycle

    def drive(self) -> None:
        """Drives kv_recovery, look-ups and events in a cycle."""
        draw = self.bench.random
        self.pin("enter_copy_i").set(self.phase == "drained")
        self.pin("entered_i").set(self.phase == "settled")
        self.looked = [draw.choice((7, draw.randrange(8))) for _ in range(self.askers)]  # 7: copied last
        self.slots = [draw.randrange(256) for _ in range(self.askers)]
        self.pin("peer_index_i").set(sum(value << 3 * i for i, value in enumerate(self.looked)))
        self.pin("slot_i").set(sum(value << 8 * i for i, value in enumerate(self.slots)))
        self.events = []
        for pin, counter in SINGLES.items():
            happens = draw.random() < self.rate
            self.pin(pin).set(happens)
            if happens:
                self.events.append(AT[counter])
        for pin, index, counter in INDEXED:
            happens = draw.random() < self.rate
            self.pin(pin).set(happens)
            which = draw.getrandbits(self.pin(index).width) if draw.random() < self.spread else 3
            self.pin(index).set(which)
            if happens:
                self.events.append(AT[counter] + 4 * which)

    def sample(self) -> None:
        """Compares all outputs that can be compared in every cycle."""
        for offset in self.events:
            self.most[offset] += 1
            if self.bench.cycles > self.blind_until:
                self.least[offset] += 1
        for name in self.pulses:
            if self.pin(name).get():
                self.pulses[name] += 1
                if name.startswith("sync"):
                    self.synced.append((name, self.pin("sync_data_o").get()))
        self.sequence()
        self.leased = self.pin("leased_o").get()
        if self.pin("s_axil_bvalid").get() and not self.answering:
            self.answered_at, self.none_before = self.bench.cycles, self.none_now
            self.cleared = bool(self.pin("clear_table").get())
            self.epoch_before, self.idle_before = self.words[AT["epoch"]], self.pin("idle_q").get()
            if not 0 <= self.bench.cycles - self.entered_at <= 6:  # otherwise the exact cycle is not known
                assert self.idle_before == self.idle_now
        self.answering = self.pin("s_axil_bvalid").get()
        self.idle_now = self.phase == "idle"
        self.none_now = self.idle_now and self.words[AT["epoch"]] & 0xFFFF == 0
        if self.phase == "copying":
            return
        active = self.active
        assert self.pin("epoch_o").get() == active["epoch"], self.name
        assert self.pin("node_o").get() == active["node"], self.name
        assert self.pin("members_o").get() == active["members"] & 0xFF, self.name
        assert self.pin("serving_members_o").get() == active["members"] >> 8, self.name
        assert self.endpoint("self_o", 0) == active["self"], self.name
        if self.peers is not None and self.leaders is not None:
            for i, node in enumerate(self.looked):
                assert self.endpoint("peer_o", i) == self.peers[node], self.name
            for i, slot in enumerate(self.slots):
                assert self.pin("leader_o").get() >> 3 * i & 7 == self.leaders[slot], self.name

    def endpoint(self, name: str, i: int) -> tuple[int, int, int]:
        """Returns an endpoint_t: MAC address, IPv4 address, port."""
        value = self.pin(name).get() >> 96 * i & (1 << 96) - 1
        return value >> 48, value >> 16 & 0xFFFFFFFF, value & 0xFFFF

    def sequence(self) -> None:
        """Acts as kv_recovery: drains, allows the copy, settles."""
        valid, copied = self.pin("enter_valid_o").get(), self.pin("copied_o").get()
        now, draw = self.bench.cycles, self.bench.random
        assert copied == (copied and self.phase == "copying"), self.phase
        assert valid or self.phase == "idle", self.phase
        if self.phase == "idle" and valid:
            self.phase, self.wait = "draining", now + draw.randint(*self.drain)
            self.asked.append(self.pin("enter_epoch_o").get())
        if self.phase == "draining" and now >= self.wait:
            self.phase = "drained"
        elif self.phase == "drained":
            self.phase, self.copy_at = "copying", now
        elif self.phase == "copying" and copied:
            self.copied_after = now - self.copy_at
            self.copy()
            self.phase, self.wait = "settling", now + draw.randint(*self.settle)
        elif self.phase == "settling" and now >= self.wait:
            self.phase = "settled"
        elif self.phase == "settled":
            self.phase, self.entered_at = "idle", now
            self.words[AT["epoch"]] = self.target
            self.entries += 1

    # ---- accesses

    def start_write(self, offset: int, data: int, strobe: int = 15) -> None:
        """Starts a write, and does not wait for its end."""
        self.b.items.clear(), self.b.cycles_of.clear(), self.aw.cycles_of.clear()
        self.aw.items.append(offset)
        self.w.items.append((data, strobe))

    def start_read(self, offset: int) -> None:
        """Starts a read, and does not wait for its end."""
        self.r.items.clear(), self.r.cycles_of.clear(), self.ar.cycles_of.clear()
        self.ar.items.append(offset)

    async def write(self, offset: int, data: int, strobe: int = 15) -> None:
        """Writes, and returns after the response."""
        await self.both((offset, data, strobe), None)

    async def read(self, offset: int) -> int:
        """Reads, and checks the value."""
        return await self.both(None, offset)

    async def both(self, write: tuple[int, int, int] | None, read: int | None) -> int:
        """Makes a write, a read, or both at once. Checks the results as far as they can be known."""
        register = None if read is None else MAP.get(read & ~3)
        counter = (read or 0) & ~3
        least = self.least.get(counter, 0)
        before: int | None = None
        if write:
            self.start_write(*write)
        if read is not None:
            self.start_read(read)
        value, wrote = 0, write is None
        while not wrote or read is not None:
            if read is not None and before is None:
                await self.bench.settle()
                before = self.shown(read)
            await self.bench.cycle()
            if not wrote and self.b.items:
                assert self.b.items == [0]
                wrote = True
                if write:
                    self.wrote(*write)
            if read is not None and self.r.items:
                (item,) = self.r.items
                value, response = item
                assert response == 0
                if register is not None and register.is_counter:
                    if write is None:
                        assert least <= value <= self.most[counter], (hex(read), least, value, self.most[counter])
                elif register is not None and register.name == "cycles":
                    first, last = self.ar.cycles_of[0] - self.zero, self.bench.cycles - self.zero
                    assert register.index == 1 or first < value <= last
                else:
                    may = {before, self.shown(read)}
                    if write and (write[0] ^ read) & ~3 == 0:
                        may.add(self.after(write))
                    if register is not None and register.name == "epoch" and self.bench.cycles - self.entered_at < 12:
                        may.add(self.last_epoch)
                    assert value in may, (self.name, hex(read), value, may)
                read = None
            if self.phase == "idle" and self.bench.cycles - self.entered_at >= 12:
                self.last_epoch = self.words[AT["epoch"]]
        return value

    def after(self, write: tuple[int, int, int]) -> int | None:
        """Returns the value that a write in flight will leave."""
        register = MAP.get(write[0] & ~3)
        if register is None or register.access != "rw" or register.name == "epoch":
            return None  # nothing new, or nothing soon
        return merged(self.words[write[0] & ~3], write[1], write[2]) & register.mask

    def disturb(self) -> None:
        """Changes the inputs that registers show."""
        fields = (f"{field}_i" for field in FIELDS["state"].fields if field != "entering")
        for name in ("sync_count_i", "sync_lanes_i", *fields):
            self.pin(name).set(self.bench.random.getrandbits(self.pin(name).width))

    async def enter(self, epoch: int) -> None:
        """Enters an epoch and waits until it is entered."""
        await self.write(AT["epoch"], epoch)
        await self.bench.until(lambda: self.phase == "idle")
        await self.bench.cycle(3)
        self.last_epoch = self.words[AT["epoch"]]

    async def stage(self) -> None:
        """Writes a random value to every staged register."""
        for offset, register in MAP.items():
            if register.staged:
                await self.write(offset, self.bench.random.getrandbits(32))


MAP_PEERS = sum(1 for register in MAP.values() if register.name == "peer_ip")
