# SPDX-License-Identifier: Apache-2.0
"""Snapshots of kv clusters: docs/guide/kv-snapshot.md. A few lines of Python read and make the files from that page
alone. The dumped value of a key that was written meanwhile is judged like a read that lasted as long as the dump."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import built_rtl, eventually
from kvclusters import KvHome, Recorder, keys_of_one_hash

from wherry.errors import NotFound
from wherry.kv import Client

ROOT = Path(__file__).resolve().parents[2]
JUDGE = ROOT / "build" / "linearizable"
PATIENCE_S = 300

Content = dict[int, tuple[int, bytes]]
"""The version and the value of each key."""


def read_snapshot(file: Path) -> tuple[dict[str, Any], Content]:
    """Reads a snapshot as docs/guide/kv-snapshot.md describes it."""
    data = file.read_bytes()
    magic, schema, head_bytes, epoch, began, node, source, bits, name = struct.unpack_from("<8sHHIQBBBB", data)
    assert (magic, schema, head_bytes) == (b"WHERRYKV", 1, 128)
    assert struct.unpack_from("<I", data, 124)[0] == zlib.crc32(data[:124])
    head = {"epoch": epoch, "began": began, "node": node, "source": source, "bits": bits, "name": data[28 : 28 + name]}
    content: Content = {}
    at, total, value_bytes, last = 128, 0, 0, -1
    while data[at : at + 4] == b"BLCK":
        records, length, total_of_block = struct.unpack_from("<III", data, at + 4)
        block = data[at + 16 : at + 16 + length]
        assert zlib.crc32(data[at + 4 : at + 12] + block) == total_of_block
        total = zlib.crc32(struct.pack("<I", total_of_block), total)
        inside = 0
        for _ in range(records):
            key, version, size = struct.unpack_from("<QIH", block, inside)
            assert key > last
            last = key
            content[key] = (version, block[inside + 14 : inside + 14 + size])
            inside += 14 + size
            value_bytes += size
        assert inside == length
        at += 16 + length
    tag, all_sums, count, values, ended, _, own = struct.unpack_from("<4sIQQQII", data, at)
    assert (tag, all_sums, count, values) == (b"END!", total, len(content), value_bytes)
    assert own == zlib.crc32(data[at : at + 36])
    assert len(data) == at + 40
    assert began <= ended
    return head, content


def make_snapshot(content: dict[int, bytes], *, bits: int = 12, block: int = 7) -> bytes:
    """Makes a snapshot file with `block` records in each block."""
    name = b"made by hand"
    head = struct.pack("<8sHHIQBBBB", b"WHERRYKV", 1, 128, 3, 1, 0, 0, bits, len(name)) + name
    out = head.ljust(124, b"\0")
    out += struct.pack("<I", zlib.crc32(out))
    total, items = 0, sorted(content.items())
    for first in range(0, len(items), block):
        some = items[first : first + block]
        body = b"".join(struct.pack("<QIH", key, 1, len(value)) + value for key, value in some)
        counts = struct.pack("<II", len(some), len(body))
        sums = zlib.crc32(counts + body)
        total = zlib.crc32(struct.pack("<I", sums), total)
        out += b"BLCK" + counts + struct.pack("<I", sums) + body
    tail = b"END!" + struct.pack("<IQQQI", total, len(items), sum(map(len, content.values())), 2, 0)
    return out + tail + struct.pack("<I", zlib.crc32(tail))


def some_keys(count: int, seed: int) -> dict[int, bytes]:
    chance = random.Random(seed)
    return {chance.getrandbits(64): chance.randbytes(chance.choice([0, 1, 63, 64, 65, 1024])) for _ in range(count)}


def put_all(client: Client, content: dict[int, bytes]) -> None:
    for key, value in content.items():
        client.put(key, value, deadline=60)


def read_all(client: Client, keys: list[int]) -> dict[int, bytes | None]:
    found: dict[int, bytes | None] = {}
    for key in keys:
        try:
            found[key] = client.get(key, deadline=60)[0]
        except NotFound:
            found[key] = None
    return found


@pytest.fixture
def home() -> Iterator[KvHome]:
    one = KvHome()
    yield one
    one.clean_up()


def dump(home: KvHome, file: Path, *words: str) -> dict[str, Any]:
    """Runs `dump`. The file must have the content that the command reports."""
    said: dict[str, Any] = json.loads(home.ok("dump", str(file), "--json", *words))
    head, content = read_snapshot(file)
    assert (said["keys"], said["node"], said["epoch"]) == (len(content), head["node"], head["epoch"])
    return said


def test_dump_and_load_into_another_shape(home: KvHome, tmp_path: Path) -> None:
    """Dumps two software nodes, and loads into three nodes with another number of buckets. One of the three is the
    simulated core."""
    built_rtl("wherry-kv-rtl")
    content = some_keys(300, 1)
    home.ok("up", "--detach", "--nodes", "2", "--bucket-bits", "14")
    put_all(home.client(), content)
    gone = next(iter(content))
    home.client().remove(gone)
    del content[gone]
    file = tmp_path / "all.kv"
    said = dump(home, file, "--timeout", "100")
    head, kept = read_snapshot(file)
    assert {key: value for key, (_, value) in kept.items()} == content
    assert (head["bits"], said["gone"], said["source"]) == (14, 1, "software")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    home.ok("down")

    # This lease is long enough for a simulated core on a busy machine. Without a lease, a node does not list keys.
    home.ok("up", "--detach", "--nodes", "3", "--rtl", "1", "--bucket-bits", "10", "--lease-ms", "20000")
    loaded = json.loads(home.ok("load", str(file), "--json"))
    assert (loaded["loaded"], loaded["skipped"], loaded["no_room"]) == (len(content), 0, 0)
    assert read_all(home.client(), [*content, gone]) == content | {gone: None}
    again = tmp_path / "again.kv"
    said = dump(home, again, "--node", "0", "--timeout", "100")
    assert said["source"] == "hardware"
    assert {key: value for key, (_, value) in read_snapshot(again)[1].items()} == content
    home.ok("down")
    home.expect_nothing_left()


def test_keys_that_are_there_are_left_unless_told_otherwise(home: KvHome, tmp_path: Path) -> None:
    """Loads a hand-made file into a cluster that already has some of its keys."""
    home.ok("up", "--detach", "--nodes", "2")
    content = some_keys(50, 2)
    file = tmp_path / "made.kv"
    file.write_bytes(make_snapshot(content))
    assert "is whole: 50 keys" in home.ok("load", str(file), "--check")
    client = home.client()
    mine = dict.fromkeys(list(content)[:5], b"newer")
    put_all(client, mine)
    assert "45 of 50 keys" in (said := home.ok("load", str(file)))
    assert "5 were there already" in said
    assert read_all(client, list(content)) == content | mine
    assert "0 of 50 keys" in home.ok("load", str(file))
    before = client.get(next(iter(mine)))[1]
    assert "50 of 50 keys" in home.ok("load", str(file), "--overwrite")
    assert read_all(client, list(content)) == content
    assert client.get(next(iter(mine)))[1] > before, "a new version, whatever the file says"


def test_dump_under_load_is_judged(home: KvHome, tmp_path: Path) -> None:
    """Each key of a dump counts as a read that lasted as long as the dump. A missing key counts as a read that did not
    find it."""
    subprocess.run([ROOT / "tools" / "linearizable" / "build"], check=True, timeout=PATIENCE_S)
    home.ok("up", "--detach", "--nodes", "3", "--bucket-bits", "8")
    put_all(home.client(), fixed := some_keys(60, 3))
    recorder = Recorder(lambda _: home.client(), clients=3, keys=4)
    dumps: list[tuple[int, int, Content]] = []
    for number in range(6):
        assert eventually(lambda seen=recorder.count: recorder.count > seen + 60)
        file = tmp_path / f"{number}.kv"
        began = time.monotonic_ns()
        dump(home, file, "--node", str(number % 3))
        dumps.append((began, time.monotonic_ns(), read_snapshot(file)[1]))
    history = tmp_path / "history.jsonl"
    lines = recorder.finish(history)
    written = {int(line["key"], 16) for line in lines}
    with history.open("a") as out:
        for number, (began, ended, content) in enumerate(dumps):
            assert {key: content[key][1] for key in fixed} == fixed
            assert content.keys() <= written | fixed.keys()
            for key in written:
                version, value = content.get(key, (0, b""))
                line = {"client": 100 + number, "key": f"{key:016x}", "op": "get", "call": began, "return": ended}
                line |= {"value": value.hex()} if key in content else {}
                line |= {"outcome": "ok" if key in content else "no_such_key", "version": version}
                out.write(json.dumps(line) + "\n")
    judged = subprocess.run([JUDGE, "--timeout", "120s", history], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_what_is_no_snapshot_of_use(home: KvHome, tmp_path: Path) -> None:
    """Each file is refused with its own message, and no key is written."""
    home.ok("up", "--detach", "--nodes", "1", "--bucket-bits", "8")
    content = some_keys(20, 4)
    whole = make_snapshot(content)
    changed = bytearray(whole)
    changed[200] ^= 1
    for name, data, words in (
        ("text.kv", b"key,value\n" * 30, "not a snapshot"),
        ("empty.kv", b"", "not a snapshot"),
        ("cut.kv", whole[:-60], "truncated"),
        ("changed.kv", bytes(changed), "checksum"),
        ("newer.kv", whole[:8] + b"\2" + whole[9:], "schema 2"),
        ("large.kv", make_snapshot(dict.fromkeys(range(1025), b""), block=1000), "room for 1024 at most"),
    ):
        file = tmp_path / name
        file.write_bytes(data)
        done = home.run("load", str(file))
        assert done.returncode in (1, 2), name
        assert words in done.stderr, name
        assert name in done.stderr
    assert set(read_all(home.client(), list(content)).values()) == {None}
    assert "No such file" in home.run("load", str(tmp_path / "none.kv")).stderr

    # Keys of one hash share their buckets, and a table of 2^8 buckets has one per hash.
    crowd = dict.fromkeys(keys_of_one_hash(7, 6), b"x")
    file = tmp_path / "crowd.kv"
    file.write_bytes(make_snapshot(crowd))
    done = home.run("load", str(file), "--json")
    assert (done.returncode, json.loads(done.stdout)["no_room"], json.loads(done.stdout)["loaded"]) == (1, 2, 4)
    assert "no room for 2 of 6 keys" in done.stderr

    there = tmp_path / "there.kv"
    there.write_text("mine")
    done = home.run("dump", str(there))
    assert (done.returncode, there.read_text()) == (1, "mine")
    assert "--force" in done.stderr
    dump(home, there, "--force")
    assert "has no node 5" in home.run("dump", str(tmp_path / "x.kv"), "--node", "5").stderr
    assert not (tmp_path / "x.kv").exists()


def test_killed_in_the_middle(home: KvHome, tmp_path: Path) -> None:
    """Kills the commands and a node. No partial file remains, no acknowledged write is lost, and a repeated load
    completes."""
    home.ok("up", "--detach", "--nodes", "3", "--bucket-bits", "13", "--restart")
    content = some_keys(3000, 5)
    file = tmp_path / "made.kv"
    file.write_bytes(make_snapshot(content, block=100))
    with subprocess.Popen(home.command("load", str(file)), env=home.environment, stderr=subprocess.DEVNULL) as loading:
        client = home.client()
        first = min(content)
        assert eventually(lambda: read_all(client, [first])[first] is not None)
        loading.kill()
    mine = sorted(content)[-1]
    client.put(mine, b"newer", deadline=60)
    said = json.loads(home.ok("load", str(file), "--json", "--timeout", "100"))
    assert said["loaded"] + said["skipped"] == 3000
    assert read_all(client, list(content)) == content | {mine: b"newer"}

    for kill in (signal.SIGKILL, signal.SIGINT):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        command = home.command("dump", str(out / "all.kv"))
        with subprocess.Popen(command, env=home.environment, stderr=subprocess.DEVNULL) as dumping:
            assert eventually(lambda: home.processes(" dump ") or dumping.poll() is not None)
            os.kill(dumping.pid, kill)
        assert eventually(lambda: not home.processes(" dump "))
        for found in out.iterdir():  # the dump may have completed
            assert found.name == "all.kv"
            read_snapshot(found)
            found.unlink()

    home.kill(1)  # the dump continues with the other nodes
    dump(home, tmp_path / "all.kv", "--node", "0", "--timeout", "100")
    kept = read_snapshot(tmp_path / "all.kv")[1]
    assert {key: value for key, (_, value) in kept.items()} == content | {mine: b"newer"}
    home.wait_until_all_serve()
