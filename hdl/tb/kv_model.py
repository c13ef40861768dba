# SPDX-License-Identifier: Apache-2.0
"""A model of a kv node within one epoch, from docs/design/kv-protocol.md, sections 3 to 6."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import kv_frames as frames

SELF, EPOCH, LANES, BUCKET_BITS = 2, 0xA1B2, 4096, 12
PEERS = [frames.endpoint(f"02:00:00:00:01:{i:02x}", f"10.1.0.{i}", 19286) for i in range(8)]
READ, WRITE, WRITE_IF, REMOVE, REMOVE_IF, LANE, PING, REPLICATE, REPLICATE_REMOVE, COMMIT, FETCH, ENTER = range(1, 13)
LANE_RECORD, REPLICATED, REPLICATED_REMOVE, ENTRY, ENTERED = 22, 24, 25, 27, 28
OK, NO_SUCH_KEY, MISMATCH, FULL, TOO_LONG, BAD_FRAME, BAD_LANE = range(7)
BETWEEN = (
    REPLICATE,
    REPLICATE_REMOVE,
    REPLICATED,
    REPLICATED_REMOVE,
    COMMIT,
    FETCH,
    ENTRY,
    ENTER,
    ENTERED,
    LANE_RECORD,
)
NOT_LEADER, PENDING, BUSY, STALE, NOT_SERVING = range(8, 13)

KV_FIELDS = {
    "kind": 5, "node": 3, "detail": 8, "epoch": 16, "candidate": 3, "client": 13, "request": 32, "version": 32,
    "key": 64,
}  # fmt: skip
REQUEST = {
    "from": 96, "kv": 176, "hash": 32, "length": 11, "too_long": 1, "summed": 1, "sum": 16, "has_place": 1, "place": 6,
}  # fmt: skip
SUBJECT = {"kv": REQUEST["kv"], "hash": REQUEST["hash"]}  # the part of a request that kv_recovery sees
SEND = {"nodes": 8, "to": 96, "kv": 176, "place": 6, "length": 11, "summed": 1, "sum": 16}
JOB = {
    "write": 1,
    "bucket": 22,
    "way": 2,
    "length": 11,
    "has_value": 1,
    "has_header": 1,
    "clears": 1,
    "place": 6,
    "tag": 16,
}


def pack(layout: dict[str, int], values: dict[str, int]) -> int:
    """Returns a packed struct as a number."""
    word = 0
    for name, width in layout.items():
        word = word << width | (values[name] & ((1 << width) - 1))
    return word


def unpack(layout: dict[str, int], word: int) -> dict[str, int]:
    """Splits a packed struct into its fields."""
    found = {}
    for name, width in reversed(layout.items()):
        found[name] = word & ((1 << width) - 1)
        word >>= width
    return found


def newer(a: int, b: int) -> bool:
    """Compares serial numbers. 0 is older than all others."""
    return a != 0 and (b == 0 or 0 < (a - b) % 2**32 < 2**31)


def newer_request(a: int, b: int) -> bool:
    """Compares serial numbers. 0 is an ordinary number here."""
    return 0 < (a - b) % 2**32 < 2**31


def lags(older: int, newest: int) -> bool:
    """Returns true if a version must be refreshed before another write in the bucket."""
    return older != 0 and newest != 0 and ((newest >> 29) - (older >> 29)) % 8 == 3


def groups(hashed: int) -> list[list[int]]:
    """Returns a key's buckets in its one or two groups, each in search order: docs/reference/kv-frame.md."""
    first = hashed % 2**BUCKET_BITS
    found = [[first ^ by << 8 for by in range(min(4, 2 ** (BUCKET_BITS - 8)))]]
    if BUCKET_BITS > 10:
        x = (hashed >> 22) % 2 ** min(10, BUCKET_BITS - 10) or 1
        found.append([bucket ^ x << 10 for bucket in found[0]])
    return found


def candidates(hashed: int) -> list[int]:
    """Returns all buckets of a key, in search order."""
    return [bucket for group in groups(hashed) for bucket in group]


def number_of(hashed: int, bucket: int) -> int:
    """Returns the number by which frames name one of a key's buckets."""
    return (bucket not in groups(hashed)[0]) << 2 | (bucket >> 8) % 4


def bucket_named(hashed: int, number: int) -> int:
    """Returns the bucket of that number. Bits of the number that a small table does not need are ignored."""
    group = groups(hashed)[-1 if number & 4 else 0][0]
    return (group & ~0x300 | (number & 3) << 8) & ((1 << BUCKET_BITS) - 1)


@dataclass(frozen=True)
class Way:
    """A location."""

    key: int = 0
    version: int = 0
    present: bool = False
    length: int = 0
    sum: int = 0
    summed: bool = False
    second: bool = False  # in the key's second group

    def bytes(self) -> bytes:
        """Returns the bytes in memory."""
        flags = self.present << 15 | self.summed << 14 | self.second << 12 | (self.version != 0) << 11 | self.length
        return b"".join(
            value.to_bytes(size, "big") for value, size in ((self.key, 8), (self.version, 4), (flags, 2), (self.sum, 2))
        )


@dataclass
class Write:
    """A write in flight at its leader."""

    request: dict[str, int]
    kv: dict[str, int]
    bucket: int
    way: int
    version: int
    remove: bool
    answered: set[int] = field(default_factory=set)


@dataclass
class Lane:
    """The record of a lane."""

    request: int = 0
    version: int = 0
    status: int = OK
    in_flight: bool = False
    settled: bool = False
    used: bool = False


def line_number(ways: list[Way]) -> int:
    """Returns a line as a number, as in the RTL."""
    return int.from_bytes(b"".join(way.bytes() for way in ways), "little")


def cell_of(bucket: int) -> int:
    """Returns a bucket's cell, of 4096. Buckets of one cell share the answer to a question about one of them."""
    return bucket % 4096 ^ (bucket >> 12) % 256


class Node:
    """The behaviour of a node by the protocol. All members are in one epoch, and the node has no leftovers."""

    def __init__(self, members: set[int], *, serving: bool = True, opened: bool = True, accept: bool = True) -> None:
        self.members, self.serving, self.opened, self.accept = members, serving, opened, accept
        self.others = members - {SELF}
        self.dealt = sorted(members)  # slots go to them in turn
        self.lines: dict[int, list[Way]] = {}
        self.lanes: dict[int, Lane] = {}
        self.notes: dict[tuple[int, int], tuple[int, int, int, int, int]] = {}
        self.window: dict[int, Write] = {}
        self.leads: set[int] = set()  # cells of buckets
        self.refreshed = 0  # locations; the first one is never settled here
        self.sends: list[dict[str, int]] = []
        self.later: list[dict[str, int]] = []
        self.jobs: list[dict[str, int]] = []
        self.freed: list[int] = []
        self.slow: list[dict[str, int]] = []
        self.deferred: list[dict[str, int]] = []

    def leader(self, bucket: int) -> int:
        """Returns the leader of the bucket's slot."""
        return self.dealt[bucket % 256 % len(self.dealt)]

    def line(self, bucket: int) -> list[Way]:
        """Returns the bucket's four ways."""
        return self.lines.setdefault(bucket, [Way() for _ in range(4)])

    def _pending(self, bucket: int) -> bool:
        return any(cell_of(note[0]) == cell_of(bucket) for note in self.notes.values())

    def _send(
        self, to: int, kv: dict[str, int], *, nodes: set[int] | None = None, value: dict[str, int] | None = None
    ) -> dict[str, int]:
        send = {
            "nodes": sum(1 << n for n in nodes or ()),
            "to": to,
            "place": 0,
            "length": 0,
            "summed": 1,
            "sum": 0,
        }
        send["kv"] = pack(KV_FIELDS, kv)
        if value:
            send |= {
                "place": value["place"],
                "length": value["length"],
                "summed": value["summed"],
                "sum": value["sum"],
            }
        return send

    def _reply(
        self, request: dict[str, int], kv: dict[str, int], status: int, version: int = 0, **also: int
    ) -> dict[str, int]:
        leader = SELF if kv["kind"] in (LANE, PING) else self.leader(request["hash"] % 2**BUCKET_BITS)
        done = (
            kv | {"kind": kv["kind"] | 16, "node": leader, "detail": status, "epoch": EPOCH, "version": version} | also
        )
        return self._send(request["from"], done)

    def take(self, request: dict[str, int]) -> None:
        """Processes a request, and records the expected output."""
        kv = unpack(KV_FIELDS, request["kv"])
        kept = False
        kind = kv["kind"]
        if kind == FETCH:
            bucket = (kv["key"] >> 2) % 2**BUCKET_BITS
        elif kind in BETWEEN:
            bucket = bucket_named(request["hash"], kv["candidate"])
        else:
            bucket = request["hash"] % 2**BUCKET_BITS
        if kind in (PING, LANE):
            self._on_question(request, kv)
        elif kind == READ:
            self._on_read(request, kv, bucket)
        elif kind in (WRITE, WRITE_IF, REMOVE, REMOVE_IF):
            kept = self._on_write(request, kv, bucket)
        elif kind in BETWEEN:
            kept = self._known(request, kv, bucket) and self._between(request, kv, bucket)
        if request["has_place"] and not kept:
            self.freed.append(request["place"])

    def _refusal(self, request: dict[str, int], kv: dict[str, int], bucket: int) -> int:
        if request["too_long"]:
            return TOO_LONG
        if (request["length"] and kv["kind"] not in (WRITE, WRITE_IF)) or kv["detail"] or kv["node"]:
            return BAD_FRAME
        if (kv["client"] >= LANES or kv["candidate"]) and kv["kind"] not in (READ, PING):
            return BAD_LANE
        if not self.serving:
            return NOT_SERVING
        if kv["kind"] not in (READ, PING, LANE):
            if kv["epoch"] != EPOCH:
                return STALE
            if self.leader(bucket) != SELF:
                return NOT_LEADER
            if not self.opened:
                return BUSY
        return OK

    def _on_question(self, request: dict[str, int], kv: dict[str, int]) -> None:
        status = self._refusal(request, kv, 0)
        if kv["kind"] == PING or status:
            self.sends.append(self._reply(request, kv, status, key=0))
            return
        lane = self.lanes.get(kv["client"], Lane())
        if lane.used and not lane.settled:
            self.sends.append(self._reply(request, kv, OK, 0, key=(lane.request - 1) % 2**32))
        else:
            self.sends.append(self._reply(request, kv, lane.status, lane.version, key=lane.request))

    def _to_look_into(self, hashed: int) -> list[int]:
        """Returns the first bucket, and the others if it ever held two keys."""
        buckets = candidates(hashed)
        written = sum(way.version != 0 for way in self.line(buckets[0]))
        return buckets if written >= 2 else buckets[:1]

    def _in(self, bucket: int, key: int) -> int | None:
        return next((i for i, way in enumerate(self.line(bucket)) if way.present and way.key == key), None)

    def _on_read(self, request: dict[str, int], kv: dict[str, int], bucket: int) -> None:
        if status := self._refusal(request, kv, bucket):
            self.sends.append(self._reply(request, kv, status))
            return
        for visited in self._to_look_into(request["hash"]):
            if self._pending(visited):
                status = BUSY if self.leader(bucket) == SELF else PENDING
                self.sends.append(self._reply(request, kv, status))
                return
            if (number := self._in(visited, kv["key"])) is not None:
                way = self.line(visited)[number]
                self._give(self._reply(request, kv, OK, way.version), visited, number, way)
                return
        self.sends.append(self._reply(request, kv, NO_SUCH_KEY))

    def _give(self, send: dict[str, int], bucket: int, number: int, way: Way) -> None:
        if not way.length:
            self.sends.append(send)
            return
        self.later.append(send | {"length": way.length, "summed": way.summed, "sum": way.sum})
        self.jobs.append({"write": 0, "bucket": bucket, "way": number, "length": way.length})

    def _on_write(self, request: dict[str, int], kv: dict[str, int], bucket: int) -> bool:
        status = self._refusal(request, kv, bucket)
        lane = self.lanes.setdefault(kv["client"], Lane()) if status == OK else Lane()
        if status == OK and lane.used and not newer_request(kv["request"], lane.request):
            if kv["request"] == lane.request and not lane.in_flight and lane.settled:
                self.sends.append(self._reply(request, kv, lane.status, lane.version))
            return False
        if status == OK and not request["has_place"]:
            status = BUSY
        found = None
        if status == OK:
            for visited in self._to_look_into(request["hash"]):
                if self._pending(visited) or cell_of(visited) in self.leads:
                    status = BUSY
                    break
                if (found := self._in(visited, kv["key"])) is not None:
                    bucket = visited
                    break
        if status:
            self.sends.append(self._reply(request, kv, status))
            return False
        remove = kv["kind"] in (REMOVE, REMOVE_IF)
        outcome, told, new = OK, 0, found is None
        if new:
            where = self._place_of(request["hash"])
            if remove:
                outcome = NO_SUCH_KEY
            elif kv["kind"] == WRITE_IF and kv["version"]:
                outcome = MISMATCH
            elif where is None:
                outcome = FULL
            else:
                bucket, found = where
        line = self.line(bucket)
        if outcome == OK:
            lagging = [i for i in range(4) if any(lags(line[i].version, way.version) for way in line)]
            if lagging:
                self.sends.append(self._reply(request, kv, BUSY))
                if not self.refreshed:
                    self._refresh(request, kv, bucket, lagging[0])
                return False
            assert found is not None
            if not new and kv["kind"] in (WRITE_IF, REMOVE_IF) and kv["version"] != line[found].version:
                outcome, told = MISMATCH, line[found].version
        if outcome:
            self.lanes[kv["client"]] = Lane(kv["request"], told, outcome, False, True, True)
            self.sends.append(self._reply(request, kv, outcome, told))
            return False
        assert found is not None
        version = self._version_of_new(request["hash"], bucket) if new else self._next_version(bucket)
        self.lanes[kv["client"]] = Lane(kv["request"], version, OK, True, False, True)
        write = Write(request, kv, bucket, found, version, remove)
        if not self.others:
            self._commit(write)
            return True
        self.window[request["place"]] = write
        self.leads.add(cell_of(bucket))
        self._replicate(write, self.others)
        return True

    def _place_of(self, hashed: int) -> tuple[int, int] | None:
        """Returns bucket and way for a key that does not exist: docs/design/kv-protocol.md, section 5, step 4."""

        def keys(buckets: list[int]) -> int:
            return sum(way.present for bucket in buckets for way in self.line(bucket))

        both = groups(hashed)
        first = both[0][0]
        group = [first] if keys([first]) < 2 else min(both, key=keys)  # of equals min takes the first
        for bucket in group:
            free = [i for i, way in enumerate(self.line(bucket)) if not way.present]
            if free:
                return bucket, hashed >> 30 if hashed >> 30 in free else free[0]
        return None

    def _next_version(self, bucket: int) -> int:
        newest = 0
        for way in self.line(bucket):
            newest = way.version if newer(way.version, newest) else newest
        return newest % (2**32 - 1) + 1

    def _version_of_new(self, hashed: int, bucket: int) -> int:
        """Returns a version newer than the key may have had in another bucket, unless that is more than 2^28 ahead."""
        version = self._next_version(bucket)
        if len(self._to_look_into(hashed)) > 1:
            steps = [(self._next_version(other) - version) % 2**32 for other in candidates(hashed)]
            version = (version + max(step for step in steps if step <= 2**28)) % 2**32
        return version

    def _refresh(self, request: dict[str, int], kv: dict[str, int], bucket: int, number: int) -> None:
        """Refreshes a location. kv_recovery's part, which makes the note a leftover, is not modelled."""
        way = replace(self.line(bucket)[number], version=self._next_version(bucket))
        self.line(bucket)[number] = way
        if self.others:
            self.refreshed += 1
            self.notes[SELF, 0] = (bucket, number, way.version, kv["client"], (kv["request"] - 1) % 2**32)
        self.jobs.append({
            "write": 1, "bucket": bucket, "way": number, "length": way.length, "has_value": 0, "has_header": 1,
            "clears": 0, "place": request["place"], "tag": request["place"] | 64, "header": line_number([way]),
        })  # fmt: skip

    def _replicate(self, write: Write, nodes: set[int]) -> None:
        kind = REPLICATE_REMOVE if write.remove else REPLICATE
        kv = write.kv | {
            "kind": kind,
            "node": SELF,
            "detail": write.way << 6 | write.request["place"],
            "epoch": EPOCH,
            "candidate": number_of(write.request["hash"], write.bucket),
            "version": write.version,
        }
        self.sends.append(self._send(write.request["from"], kv, nodes=nodes, value=write.request))

    def _store(self, bucket: int, number: int, way: Way, place: int, answer: dict[str, int]) -> None:
        line = self.line(bucket)
        line[number] = way
        length = way.length if way.present else 0
        self.jobs.append({
            "write": 1, "bucket": bucket, "way": number, "length": length, "has_value": length > 0,
            "has_header": 1, "clears": 0, "place": place,
            "tag": place | 128 * (not self.accept), "header": line_number([way]),
        })  # fmt: skip
        if self.accept:
            self.sends.append(answer)
        else:
            self.deferred.append(answer | {"place": place})

    def _commit(self, write: Write) -> None:
        request, kv = write.request, write.kv
        way = Way(
            kv["key"], write.version, not write.remove, request["length"], request["sum"], bool(request["summed"]),
            number_of(request["hash"], write.bucket) > 3,
        )  # fmt: skip
        self._store(write.bucket, write.way, way, request["place"], self._reply(request, kv, OK, write.version))
        lane = self.lanes[kv["client"]]
        if lane.request == kv["request"]:
            self.lanes[kv["client"]] = Lane(kv["request"], write.version, OK, False, True, True)

    def _known(self, request: dict[str, int], kv: dict[str, int], bucket: int) -> bool:
        sender = kv["node"]
        right = kv["epoch"] == EPOCH and sender in self.others and request["from"] % 2**48 == PEERS[sender] % 2**48
        right &= not request["too_long"] and (not request["length"] or kv["kind"] in (REPLICATE, ENTRY))
        right &= kv["client"] < LANES or kv["kind"] == FETCH
        right &= kv["version"] != 0 or kv["kind"] not in (REPLICATE, REPLICATE_REMOVE, COMMIT)
        if kv["kind"] in (REPLICATE, REPLICATE_REMOVE, COMMIT):
            right &= self.leader(bucket) == sender
        elif kv["kind"] in (REPLICATED, REPLICATED_REMOVE, FETCH):
            right &= self.leader(bucket) == SELF
        return right

    def _between(self, request: dict[str, int], kv: dict[str, int], bucket: int) -> bool:
        kind, sender = kv["kind"], kv["node"]
        way, place = kv["detail"] >> 6, kv["detail"] & 63
        echo = kv | {"node": SELF}
        if kind in (REPLICATE, REPLICATE_REMOVE):
            answer = self._send(request["from"], echo | {"kind": kind | 16})
            if not newer(kv["version"], self.line(bucket)[way].version):
                self.sends.append(answer)
                return False
            new = Way(
                kv["key"], kv["version"], kind == REPLICATE, request["length"], request["sum"], bool(request["summed"]),
                number_of(request["hash"], bucket) > 3,
            )  # fmt: skip
            self.notes[sender, place] = (bucket, way, kv["version"], kv["client"], kv["request"])
            lane = self.lanes.setdefault(kv["client"], Lane())
            # A newer record stays. A record of the same request may be from an earlier epoch, so it is replaced.
            if not lane.used or not newer_request(lane.request, kv["request"]):
                self.lanes[kv["client"]] = Lane(kv["request"], kv["version"], OK, False, False, True)
            self._store(bucket, way, new, request["place"], answer)
            return True
        if kind in (REPLICATED, REPLICATED_REMOVE):
            write = self.window.get(place)
            same = write and (
                write.version, number_of(write.request["hash"], write.bucket), write.kv["client"], write.kv["request"],
            ) == (kv["version"], kv["candidate"], kv["client"], kv["request"])  # fmt: skip
            if not write or not same:
                self.sends.append(self._send(request["from"], echo | {"kind": COMMIT}))
                return False
            write.answered.add(sender)
            if write.answered >= self.others:
                del self.window[place]
                self.leads.discard(cell_of(write.bucket))
                self._commit(write)
                self.sends.append(self._send(request["from"], echo | {"kind": COMMIT}, nodes=self.others))
            return False
        if kind == COMMIT:
            note = self.notes.get((sender, place))
            if note and note[0] == bucket and note[2:] == (kv["version"], kv["client"], kv["request"]):
                del self.notes[sender, place]
                lane = self.lanes[kv["client"]]
                if lane.request == kv["request"]:
                    lane.settled = True
            return False
        if kind == FETCH:
            number = kv["key"] % 4
            way_now = self.line(bucket)[number]
            busy = self._pending(bucket)  # a refresh is under way
            detail = number << 6 | (BUSY if busy else way_now.present << 5)
            hashed = frames.crc32c(way_now.key.to_bytes(8, "big"))
            entry = self._send(
                request["from"],
                echo
                | {
                    "kind": ENTRY,
                    "detail": detail,
                    "candidate": number_of(hashed, bucket) if way_now.version else 0,
                    "key": way_now.key,
                    "version": way_now.version,
                },
            )
            self._give(entry, bucket, number, way_now if way_now.present and not busy else replace(way_now, length=0))
            return False
        self.slow.append(request)
        return False
