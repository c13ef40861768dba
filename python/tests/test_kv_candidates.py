# SPDX-License-Identifier: Apache-2.0
"""A software node against the Python model hdl/tb/kv_model.py, with keys that share buckets and are written and
removed."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import kv_frames
import kv_model as oracle
import pytest
from jobs import built
from kvclusters import keys_of_one_hash

from wherry.kv.generated import frame as kv
from wherry.system.ports import free_ports

BITS = oracle.BUCKET_BITS
PATIENCE_S = 60


class Alone:
    """A cluster of one node, to which the test sends frames."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(0.2)
        self.address = ("127.0.0.1", *free_ports(1))
        file = folder / "alone.toml"
        file.write_text(
            f'[cluster]\nname = "alone"\nmode = "static"\nbucket_bits = {BITS}\nlanes = {oracle.LANES}\n'
            f'[[node]]\nnumber = 0\nudp = "127.0.0.1:{self.address[1]}"\n'
        )
        command: list[str | Path] = [built("wherry-kv"), "node", "--cluster", file, "--number", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.tag = 0

    def call(self, asked: kv.Kv) -> kv.Kv:
        """Sends the request until a reply arrives. A repetition counts as the same request."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert self.process.poll() is None
            self.socket.sendto(asked.pack() + (b"v" if asked.kind in (2, 3) else b""), self.address)
            try:
                reply = kv.Kv.unpack(self.socket.recv(2048)[: kv.Kv.BYTES])
            except (TimeoutError, ConnectionRefusedError):
                continue
            if reply.request == asked.request and reply.detail & 31 != kv.Status.NOT_SERVING:
                return reply
        pytest.fail("the node does not answer")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.socket.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    node = Alone(tmp_path)
    yield node
    node.close()


class Model:
    """The oracle, alone."""

    def __init__(self) -> None:
        self.node = oracle.Node({oracle.SELF})

    def call(self, asked: kv.Kv) -> tuple[int, int]:
        fields = {name: getattr(asked, name) for name in oracle.KV_FIELDS}
        self.node.take({
            "from": 0, "kv": oracle.pack(oracle.KV_FIELDS, fields | {"epoch": oracle.EPOCH}),
            "hash": kv.hash_of(asked.key), "length": asked.kind in (2, 3), "too_long": 0, "summed": 0, "sum": 0,
            "has_place": asked.kind in kv_frames.KINDS_WITH_PLACE, "place": 0,
        })  # fmt: skip
        (said,) = self.node.sends + self.node.later
        self.node.sends, self.node.later, self.node.jobs = [], [], []
        reply = oracle.unpack(oracle.KV_FIELDS, said["kv"])
        return reply["detail"] & 31, reply["version"]


@pytest.mark.timeout(300)
def test_a_software_node_does_what_the_oracle_says(alone: Alone) -> None:
    """Statuses and versions show where keys are placed: table_full must occur at the same requests, and versions belong
    to a bucket."""
    draw, model = random.Random(8), Model()
    keys = keys_of_one_hash(77, 36)  # more keys than their buckets hold
    first = oracle.candidates(kv.hash_of(77))
    near = [key for key in range(200_000) if kv.hash_of(key) % 2**BITS in first]
    keys += draw.sample(near, 20)
    told = dict.fromkeys(range(13), 0)
    seen: dict[int, int] = {}
    for number in range(1, 6001):
        # Alternates long phases of writes, which fill buckets, with long phases of removals.
        kinds, weights = [1, 2, 3, 4, 5], ([3, 6, 1, 1, 0.5] if number // 400 % 2 == 0 else [3, 2, 1, 5, 1])
        kind = draw.choices(kinds, weights)[0]
        key = draw.choice(keys)
        version = seen.get(key, 0) if kind in (3, 5) and draw.random() < 0.8 else draw.choice([0, 1, 7])
        asked = kv.Kv(kind=kind, epoch=1, client=number % 32, request=number, key=key)
        asked.version = version if kind in (3, 5) else 0
        reply = alone.call(asked)
        status = reply.detail & 31
        told[status] += 1
        assert (status, reply.version) == model.call(asked), (number, asked)
        seen[key] = reply.version
    for status in (kv.Status.OK, kv.Status.NO_SUCH_KEY, kv.Status.VERSION_MISMATCH, kv.Status.TABLE_FULL):
        assert told[status] > 30, told


def test_the_oracles_candidates_are_those_of_the_docs() -> None:
    from test_kv_frame import candidates

    for key in range(500):
        hashed = kv.hash_of(key)
        assert [(b, oracle.number_of(hashed, b)) for b in oracle.candidates(hashed)] == candidates(key, BITS)
