# SPDX-License-Identifier: Apache-2.0
"""Random requests for the bench of kv_engine."""

from __future__ import annotations

from typing import Any

import kv_frames as frames
import kv_model
from kv_model import (
    COMMIT,
    ENTRY,
    EPOCH,
    FETCH,
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
    SELF,
    WRITE,
    WRITE_IF,
    Way,
    candidates,
    line_number,
    number_of,
    pack,
    unpack,
)


class Traffic:
    """Requests that concentrate on the difficult cases."""

    def __init__(self, rig: Any, keys: int = 24, lanes: int = 6) -> None:
        self.rig, self.draw = rig, rig.bench.random
        self.lanes = [0, 1, 4095, *range(100, 100 + lanes - 3)]
        self.next_request = dict.fromkeys(self.lanes, 2**32 - 5)
        self.past: list[dict[str, int]] = []
        # Several keys share a bucket, and this node leads at least two of five slots. Of 2^13 buckets, the first four
        # differ only in bits 0 and 12: they are in two slots and two cells.
        buckets: dict[int, list[int]] = {}
        key = 0
        while sum(len(found) for found in buckets.values()) < keys or len(buckets) < 5:
            key += 1
            bucket = frames.crc32c(key.to_bytes(8, "big")) % 2**kv_model.BUCKET_BITS
            leads = rig.model.leader(bucket) == SELF
            wanted = len(buckets) < 3 or (len(buckets) < 5 and leads)
            if kv_model.BUCKET_BITS == 13 and len(buckets) < 4:
                wanted = (bucket ^ next(iter(buckets))) & ~0x1001 == 0 if buckets else leads
            if bucket in buckets or wanted:
                buckets.setdefault(bucket, []).append(key)
        self.keys = [key for found in buckets.values() for key in found[:7]]
        self.buckets = {bucket: found[0] for bucket, found in buckets.items()}

    def preset(self, versions: tuple[int, int, int, int]) -> None:
        """Gives all these buckets versions as if keys had been written and deleted."""
        for bucket, key in self.buckets.items():
            line = self.rig.model.line(bucket)
            line[:] = [Way(key, version) for version in versions]
            self.rig.lines[bucket] = line_number(line)

    def crowd(self) -> None:
        """Fills the candidates of all keys as if many others were or had been there, with versions of all distances."""
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
        """Returns a request or a message. None: nothing is possible now."""
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
            # Like a leader, chooses the key's way or a free way.
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
                # Requests of the same lanes through other leaders: older than the record, equal, or newer.
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
            # The key at that location. For the refresh that is never settled here, any possible key.
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
        """Returns a request in the form of the parser's output. None: there is no free place."""
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
        """Repeats the request with its own place."""
        return self.request(old["from"], unpack(KV_FIELDS, old["kv"]), old["length"])
