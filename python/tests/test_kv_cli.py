# SPDX-License-Identifier: Apache-2.0
"""`wherry kv` with real processes: a cluster on the loopback interface, and its behaviour when processes are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jobs import built, eventually
from kvclusters import KvHome, Recorder

from wherry.errors import Cancelled, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from wherry.kv import keeper, keys
from wherry.system.ports import free_ports

QUICK = ("--bucket-bits", "8", "--ping-ms", "40")
# For tests in which no node dies: on a busy machine, no node loses its lease.
CALM = ("--bucket-bits", "8", "--ping-ms", "1000")
ROOT = Path(__file__).resolve().parents[2]


def test_put_get_delete_and_versions(home: KvHome, tmp_path: Path) -> None:
    said = home.ok("up", "--detach", *CALM)
    assert said.count("serving") == 3
    assert "wherry kv put greeting hello" in said
    first = home.ok("put", "greeting", "hello")
    version = int(first.removeprefix("version "))
    done = home.run("get", "greeting")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", first)

    wrong = home.run("put", "greeting", "x", "--if-version", str(version + 7))
    assert (wrong.returncode, wrong.stderr) == (1, f"another version: it is {version}\n")
    wrong = home.run("put", "other", "x", "--if-version", "3")
    assert (wrong.returncode, wrong.stderr) == (1, "another version: there is no such key\n")
    assert home.run("put", "greeting", "x", "--if-version", "0").returncode == 1
    home.ok("put", "greeting", "bye", "--if-version", str(version))

    for words in (["get", "nobody"], ["delete", "nobody"]):
        missing = home.run(*words)
        assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "no such key\n")
    assert home.run("delete", "greeting", "--if-version", str(version)).returncode == 1
    home.ok("delete", "greeting", "--if-version", str(version + 1))
    assert home.run("get", "greeting").returncode == 1

    # A binary value, read from a file and written to a file. Key 0x41 is the number of the text "A".
    blob = tmp_path / "blob"
    blob.write_bytes(bytes(range(256)) * 4)
    home.ok("put", "0x41", f"@{blob}")
    home.ok("get", "A", "--out", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == blob.read_bytes()
    assert json.loads(home.ok("get", "65", "--json")) == {"key": 65, "version": 1, "hex": blob.read_bytes().hex()}
    home.ok("put", "7", "--hex", "00ff")
    assert home.ok("get", "7") == "0x00ff\n"
    piped = subprocess.run(
        home.command("get", "7", "--out", "-"), env=home.environment, capture_output=True, timeout=300
    )
    assert (piped.returncode, piped.stdout) == (0, b"\x00\xff")
    blob.write_bytes(bytes(1025))
    long = home.run("put", "1", f"@{blob}")
    assert long.returncode == 2
    assert "1025 bytes: at most 1024" in long.stderr
    # The exit status must not be 1, which would be an answer about the key.
    for words, why in (
        (["get", "ninebytes"], "9 bytes"),
        (["delete", "0x1_0"], "not hexadecimal"),
        (["put", "18446744073709551616", "x"], "below 2^64"),
        (["put", "1", "--hex", "0g"], "not hexadecimal"),
        (["put", "1", "x", "--lane", "1024"], "static"),
        (["get", "1", "--node", "7"], "no node 7"),
    ):
        wrong = home.run(*words)
        assert (wrong.returncode, wrong.stdout) == (2, ""), wrong.stderr
        assert why in wrong.stderr
    home.ok("down")


def test_keys_as_users_write_them() -> None:
    parse = keys.parse_key
    assert [parse(word) for word in ("0", "42", "0x2a", "0XfF", "a", "user:42")] == [
        0, 42, 42, 255, 0x61, 0x757365723A3432,
    ]  # fmt: skip
    assert parse("42", text=True) == 0x3432
    assert parse("18446744073709551615") == 2**64 - 1
    for wrong, why in (
        ("18446744073709551616", "below 2"),
        ("0x", "not hexadecimal"),
        ("0x1_0", "not hexadecimal"),
        ("ninebytes", "9 bytes"),
        ("", "0 bytes"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            parse(wrong)


def test_a_killed_node_the_others_go_on_and_it_returns_with_the_data(home: KvHome) -> None:
    home.ok("up", "--detach", *QUICK)
    client = home.client(lanes=1)
    for key in range(200):
        client.put(key, str(key).encode())
    home.kill(1)
    for key in range(0, 200, 3):
        client.put(key, f"later {key}".encode())
    assert client.get(1) == (b"1", client.get(1)[1])
    client.remove(2)
    assert eventually(lambda: home.states() == {0: "serving", 1: "silent", 2: "serving"}), home.states()
    shown = home.ok("nodes")
    assert "silent" in shown
    assert "removed node 1" in shown
    with pytest.raises(Unavailable):
        home.client(lanes=0, only=1, connect_timeout=0.3)

    with home.program("node", "--number", "1"):
        home.wait_until_all_serve()
        leads = {one["node"]: one["leads"] for one in keeper.status(home.cluster)["nodes"]}
        assert min(leads.values()) > 80
        alone = home.client(lanes=0, only=1)
        with pytest.raises(NotFound):
            alone.get(2)
        for key in set(range(200)) - {2}:
            assert alone.get(key)[0] == (str(key) if key % 3 else f"later {key}").encode()
        # It also leads. Once the other nodes are dead, it is the only replica.
        for number in (0, 2):
            home.kill(number)
            assert eventually(lambda number=number: home.states()[number] == "silent")
        client.put(1, b"alone")
        assert home.ok("get", "1", "--node", "1") == "alone\n"
        refused = home.run("nodes", "--remove", "1")
        assert refused.returncode == 1
        assert "alone has the data" in refused.stderr
    home.ok("down")


def test_ctrl_c_while_a_cluster_starts_in_the_background_leaves_nothing(home: KvHome) -> None:
    with home.start("up", "--detach", *CALM) as running:
        assert eventually(lambda: home.processes("keeper") or running.poll() is not None)
        running.send_signal(signal.SIGINT)  # only to the command, not to the child that becomes the cluster
        running.communicate(timeout=300)
    assert running.returncode in (0, 130)
    if running.returncode == 0:  # it was faster
        home.ok("down")


def test_two_clients_with_default_options_lose_nothing(home: KvHome) -> None:
    home.ok("up", "--detach", *CALM)
    clients = [home.client(), home.client()]
    for i in range(300):
        for who, client in enumerate(clients):
            client.put((who + 1) * 1_000_000 + i, str(who).encode())
    reader = home.client(lanes=0)
    for i in range(300):
        for who in range(2):
            assert reader.get((who + 1) * 1_000_000 + i)[0] == str(who).encode()
    lanes = keeper.status(home.cluster)["lanes"]
    assert (lanes["clients"], lanes["granted"], lanes["static"]) == (2, 2, 1024)
    # Static lanes have separate numbers.
    static = home.client(lane=1023)
    static.put(1, b"static")
    with pytest.raises(InvalidArgument, match=r"those below 1024 are static"):
        home.client(lane=1024)
    home.ok("down")


def test_two_clients_on_one_static_lane_are_both_told(home: KvHome) -> None:
    home.ok("up", "--detach", *CALM)
    clients = [home.client(lane=5), home.client(lane=5)]
    acknowledged = set()
    told = [0, 0]
    for i in range(20):
        for who, client in enumerate(clients):
            key = (who + 1) * 1_000_000 + i
            try:
                client.put(key, b"x")
                acknowledged.add(key)
            except Cancelled:
                told[who] += 1
    assert min(told) > 0
    reader = home.client(lanes=0)
    for key in acknowledged:
        assert reader.get(key)[0] == b"x"
    home.ok("down")


def test_a_node_with_another_cluster_file_is_refused(home: KvHome, tmp_path: Path) -> None:
    home.ok("up", "--detach", *QUICK)
    home.ok("put", "1", "one")
    bits = home.cluster.bucket_bits
    other = tmp_path / "other.toml"
    other.write_text(home.up.cluster.read_text().replace(f"bucket_bits = {bits}", f"bucket_bits = {bits + 1}"))
    home.kill(1)
    assert eventually(lambda: home.states()[1] == "silent")
    with home.program("node", "--number", "1", cluster=other):
        assert eventually(lambda: home.states()[1] == "refused"), home.states()
        assert f"bucket_bits = {bits + 1}, the cluster's {bits}" in home.ok("nodes")
        home.ok("put", "1", "two")
    with home.program("node", "--number", "1"):
        home.wait_until_all_serve()
    home.ok("down")


def test_removed_and_admitted_by_the_operator(home: KvHome) -> None:
    home.ok("up", "--detach", *QUICK)
    home.ok("put", "1", "one")
    home.ok("nodes", "--remove", "2")
    assert eventually(lambda: home.states()[2] == "removed")
    home.ok("put", "1", "two")
    home.ok("nodes", "--admit", "2")
    home.wait_until_all_serve()
    assert home.ok("get", "1", "--node", "2") == "two\n"
    document = json.loads(home.ok("nodes", "--json"))
    assert {node["pid"] for node in document["nodes"]} == set(home.up.nodes.values())
    home.ok("down")


def test_keeper_killed_the_store_stops_and_goes_on(home: KvHome) -> None:
    home.ok("up", "--detach", *QUICK)
    client = home.client(lanes=1)
    version = client.put(1, b"one")
    os.kill(home.up.keeper, signal.SIGKILL)
    assert eventually(lambda: home.up.keeper == 0)
    assert eventually(lambda: "serving" not in keeper.ping(home.cluster, 0.05).values())
    done = home.run("get", "1", "--timeout", "0.2")
    assert done.returncode == 4, done.stderr
    shown = home.run("nodes")
    assert shown.returncode == 4
    assert shown.stdout.count("not serving") == 3
    assert "is not there" in shown.stderr
    with home.program("keeper"):
        home.wait_until_all_serve()
        assert client.get(1) == (b"one", version)
        client.put_if(1, b"two", version)
    home.ok("down")


def test_all_nodes_killed_the_data_is_lost_and_it_is_said(home: KvHome, tmp_path: Path) -> None:
    place = ("--dir", str(tmp_path / "place"))
    home.ok("up", "--detach", *QUICK, "--restart", *place)
    client = home.client(lanes=1)
    client.put(1, b"one")
    for pid in home.up.nodes.values():
        os.kill(pid, signal.SIGKILL)
    lost = lambda: keeper.status(home.cluster)["phase"] == "lost"  # noqa: E731
    assert eventually(lost)
    shown = home.ok("nodes")
    assert "the data is gone" in shown
    assert "wherry kv nodes --start-over" in shown
    assert "that was the last one: the data is lost" in (tmp_path / "place" / "up.log").read_text()
    assert home.run("get", "1", "--timeout", "0.3").returncode == 4
    assert eventually(lambda: home.run("nodes", "--start-over").returncode == 0)
    home.wait_until_all_serve()
    assert home.run("get", "1").returncode == 1  # no such key
    client.put(1, b"new")  # a client from before the restart still works
    home.ok("down")

    # A new `up` in the same directory: the keeper remembers its epochs. The store is empty, and `up` reports this.
    again = home.run("up", "--detach", *place)
    assert again.returncode == 0, again.stderr
    assert f"the store is empty: what an earlier `wherry kv up` in {place[1]} held" in again.stderr
    with pytest.raises(NotFound):
        client.get(1)
    client.put(1, b"newer")
    refused = home.run("up", *place)
    assert refused.returncode == 1
    assert "another `wherry kv up` runs" in refused.stderr
    home.ok("down", "--cluster", str(tmp_path / "place" / "cluster.toml"))
    refused = home.run("up", *place, "--nodes", "2")
    assert refused.returncode == 1
    assert "--nodes: edit it" in refused.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_however_it_ends_nothing_is_left(home: KvHome, number: signal.Signals, status: int) -> None:
    with home.start("up", *QUICK) as running:
        assert running.stdout
        shown = [running.stdout.readline() for _ in range(4)]
        assert [line.split()[2] for line in shown[1:]] == ["serving"] * 3
        assert len(home.processes("wherry-kv")) == 4
        running.send_signal(number)
        running.communicate(timeout=300)
        assert running.returncode == status
    if number == signal.SIGKILL:  # no process was left to remove kv-up.json; commands notice that the cluster is gone
        assert eventually(lambda: not home.processes())
        assert "has gone" in home.run("get", "1").stderr
        (home.runtime / "wherry" / "kv-up.json").unlink()
        assert eventually(lambda: list(home.temporary.iterdir()) == [home.runtime])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_before_all_serve_leaves_nothing(home: KvHome, tmp_path: Path, number: signal.Signals) -> None:
    place = tmp_path / "place"
    with home.start("up", "--dir", str(place), *QUICK) as running:
        assert eventually(lambda: (place / "cluster.toml").exists())
        running.send_signal(number)
        said, _ = running.communicate(timeout=300)
        assert running.returncode == (130 if number == signal.SIGINT else 0)
    assert (place / "cluster.toml").exists() == ("serving" in said)


def test_a_client_that_is_closed_gives_its_lanes_back(home: KvHome) -> None:
    home.ok("up", "--detach", *CALM, "--nodes", "2")
    most = home.cluster.lanes - home.cluster.static_lanes
    for value in (b"one", b"two"):
        with home.client(lanes=most) as client:
            client.put(7, value)
    with pytest.raises(ResourceExhausted, match="are wanted"):
        home.client(lanes=most + 1, connect_timeout=3600)
    home.ok("down", "--dir", str(home.up.cluster.parent))


def test_the_one_before_is_found_again_when_the_newest_ends(home: KvHome) -> None:
    """Three clusters run. The middle one ends first, before the newest."""
    files = []
    for value in ("first", "second", "third"):
        home.ok("up", "--detach", *CALM, "--nodes", "2")
        files.append(str(home.up.cluster))
        home.ok("put", "7", value)
    listed = json.loads(home.ok("list", "--json"))
    assert [one["cluster"] for one in listed] == files
    assert [(one["nodes_running"], one["nodes"]) for one in listed] == [(2, 2)] * 3
    assert listed[-1]["pid"] == home.up.pid
    shown = home.ok("list").splitlines()
    assert [line.split()[0] == "*" for line in shown[1:]] == [False, False, True], "the one that commands mean"
    home.ok("down", "--cluster", files[1])
    assert home.ok("get", "7") == "third\n"
    assert [one["cluster"] for one in json.loads(home.ok("list", "--json"))] == [files[0], files[2]]
    home.ok("down")
    assert home.ok("get", "7") == "first\n"
    assert [one["cluster"] for one in json.loads(home.ok("list", "--json"))] == files[:1]
    home.ok("down")
    assert "no `wherry kv up` of this user runs" in home.run("get", "7").stderr
    assert home.ok("list") == "no `wherry kv up` of this user runs\n"


def test_the_one_before_is_listed_when_the_newest_was_killed(home: KvHome) -> None:
    home.ok("up", "--detach", *CALM, "--nodes", "1")
    older = home.up
    home.ok("up", "--detach", *CALM, "--nodes", "1")
    newest = home.up
    os.kill(newest.pid, signal.SIGKILL)
    assert eventually(lambda: not newest.alive())
    assert [one["pid"] for one in json.loads(home.ok("list", "--json"))] == [older.pid]
    home.ok("down", "--cluster", str(older.cluster))
    (home.runtime / "wherry" / "kv-up.json").unlink()  # of the killed one


@pytest.mark.parametrize(
    "wrong",
    [["--nodes", "3", "--rtl", "5"], ["--etcd", "nonsense"]],
    ids=" ".join,
)
def test_an_up_that_failed_does_not_block_the_next_one(home: KvHome, tmp_path: Path, wrong: list[str]) -> None:
    place = ("--dir", str(tmp_path / "place"))
    refused = home.run("up", *place, *wrong, timeout=300)
    assert refused.returncode == 1, refused.stdout
    home.ok("up", "--detach", *place, *CALM, "--nodes", "2")
    home.ok("down")
    # A cluster file that was in use is kept, with its ports and edits.
    assert (tmp_path / "place" / "cluster.toml").exists()


def test_a_cluster_in_the_background_keeps_no_file_of_its_caller_open(home: KvHome, tmp_path: Path) -> None:
    """`flock` and scripts with `exec 3>file` pass open files to their children."""
    lock = tmp_path / "lock"
    done = subprocess.run(
        ["flock", "-n", str(lock), *home.command("up", "--detach", *CALM)],
        env=home.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=300,
    )
    assert done.returncode == 0
    assert subprocess.run(["flock", "-n", str(lock), "true"], timeout=300).returncode == 0
    home.ok("down")


def test_what_cannot_be_started_says_why(home: KvHome, tmp_path: Path) -> None:
    refused = home.run("up", "--rtl", "2", "--nodes", "1")
    assert refused.returncode == 1
    assert "--rtl 2: the cluster has 1 node\n" in refused.stderr
    missing = home.run("get", "1")
    assert missing.returncode == 1
    assert "no `wherry kv up` of this user runs" in missing.stderr
    file = tmp_path / "cluster.toml"
    file.write_text('[cluster]\nname = "x"\nmode = "keeper"\nkeeper = "127.0.0.1:1"\n[[node]]\nnumber = 9\n')
    for words in (
        ["get", "1", "--cluster", str(file)],
        ["up", "--dir", str(tmp_path)],
        ["nodes", "--cluster", str(file)],
    ):
        done = home.run(*words)
        assert done.returncode == 1
        assert f"{file}, line 6: 'node.number': want a whole number from 0 to 7" in done.stderr
    assert "line 6" in home.run("get", "1", WHERRY_KV_CLUSTER=str(file)).stderr
    # With an address of another machine, the node's own error appears, and no process remains.
    file.write_text(
        '[cluster]\nname = "x"\nmode = "keeper"\nkeeper = "127.0.0.1:29371"\n'
        '[[node]]\nnumber = 0\nudp = "198.51.100.1:29371"\n'
    )
    for more in ([], ["--detach"]):
        done = home.run("up", "--dir", str(tmp_path), *more)
        assert done.returncode == 1
        assert "node 0" in done.stderr
        assert "198.51.100.1:29371: cannot bind" in done.stderr


def _bench(home: KvHome, verbs: set[str], *words: str) -> dict[str, Any]:
    """The operations of a run with some of each verb. On a busy machine a short run may be too short for that."""
    for seconds in ("0.3", "3", "30"):
        operations: dict[str, Any] = json.loads(home.ok("bench", "--seconds", seconds, *words, "--json"))["operations"]
        if set(operations) == verbs and all(verb["count"] > 10 for verb in operations.values()):
            return operations
    raise AssertionError(f"half a minute was too short: {operations}")


def test_bench_counts_what_it_did(home: KvHome) -> None:
    built("wherry-kv")
    home.ok("up", "--detach", *CALM)
    mix = ("--reads", "2", "--writes", "1", "--conditional", "1", "--keys", "200", "--zipf", "0.9")
    operations = _bench(home, {"read", "write", "write_if"}, "--clients", "2", "--depth", "4", *mix)
    for verb in operations.values():
        assert sum(verb["outcomes"].values()) == verb["count"]
        assert 0 < verb["p50_us"] <= verb["p99_us"] <= verb["p999_us"] <= verb["max_us"]
        assert set(verb["outcomes"]) <= {"ok", "version mismatch"}
    shown = home.ok("bench", "--seconds", "0.1", "--no-fill", "--keys", "200", "--value-bytes", "0")
    assert "p99.9 us" in shown
    assert "a second in all" in shown
    few = _bench(home, {"read", "write"}, "--keys", "1e2")
    assert few["read"]["outcomes"].keys() == {"ok"}
    for words, status, said in (
        (["--keys", "1025"], 1, "cluster 'local' has room for 1024 keys; start it with a larger --bucket-bits, 9 for"),
        (["--keys", "1.5"], 2, "'1.5' is not a whole number, as 10000 or 1e4"),
        (["--keys", "0"], 2, "0: want 1 or more"),
        (["--keys", "many"], 2, "'many' is not a whole number"),
    ):
        refused = home.run("bench", *words)
        assert refused.returncode == status, refused.stderr
        assert said in refused.stderr
    refused = home.run("bench", "--clients", "5", "--depth", "1000")
    assert refused.returncode == 1
    assert "the keeper of cluster 'local' grants 3072" in refused.stderr
    refused = home.run("bench", "--first-lane", "1000", "--depth", "100")
    assert refused.returncode == 1
    assert "those below 1024 are static" in refused.stderr
    home.ok("down")


def test_etcd_keeps_the_configuration(home: KvHome, tmp_path: Path) -> None:
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    words = ["etcd", "--data-dir", str(tmp_path / "etcd"), "--listen-client-urls", client, "--advertise-client-urls"]
    words += [client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    words += ["--initial-cluster", f"default={peer}", "--logger", "zap", "--log-level", "error"]
    with subprocess.Popen(words, env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as etcd:
        try:
            home.ok("up", "--detach", *CALM, "--etcd", client, "--name", "in-etcd")
            home.ok("put", "1", "one")
            assert home.ok("get", "1") == "one\n"
            home.ok("down")
        finally:
            etcd.terminate()


def test_bench_fills_the_store_though_it_loses_its_lanes(home: KvHome, tmp_path: Path) -> None:
    """The keeper is stopped for longer than lanes last, so all writes in flight end without an answer."""
    place = ("--dir", str(tmp_path / "place"))
    home.ok("up", "--detach", "--ping-ms", "40", *place)
    home.ok("down", *place)
    file = tmp_path / "place" / "cluster.toml"
    file.write_text(file.read_text().replace("[timing]\n", "[timing]\nlane_ttl_ms = 100\n"))
    home.ok("up", "--detach", *place)
    with ThreadPoolExecutor(1) as pool:
        bench = pool.submit(home.run, "bench", "--keys", "20000", "--seconds", "0.1")
        for _ in range(4):
            time.sleep(0.4)
            os.kill(home.up.keeper, signal.SIGSTOP)
            time.sleep(0.4)
            os.kill(home.up.keeper, signal.SIGCONT)
        done = bench.result()
    assert done.returncode == 0, done.stderr
    home.ok("down", *place)


def test_linearizable_while_nodes_are_killed_and_return(home: KvHome, tmp_path: Path) -> None:
    subprocess.run([ROOT / "tools" / "linearizable" / "build"], check=True, timeout=300)
    home.ok("up", "--detach", "--bucket-bits", "8", "--ping-ms", "40", "--restart")
    recorder = Recorder(lambda number: home.client(lanes=1))
    for victim in (0, 1, 2, 1):
        before = recorder.count
        assert eventually(lambda before=before: recorder.count > before + 200)
        pid = home.up.nodes[victim]
        home.kill(victim)
        assert eventually(lambda victim=victim, pid=pid: home.up.nodes[victim] not in (0, pid))
        home.wait_until_all_serve()
    # A node that is stopped for longer than its lease must not answer from its old data.
    for victim in (0, 2):
        pid = home.up.nodes[victim]
        os.kill(pid, signal.SIGSTOP)
        assert eventually(lambda victim=victim: home.states().get(victim) == "silent")
        before = recorder.count
        assert eventually(lambda before=before: recorder.count > before + 200)
        os.kill(pid, signal.SIGCONT)
        home.wait_until_all_serve()
    os.kill(home.up.keeper, signal.SIGKILL)
    assert eventually(home.all_serve)
    time.sleep(0.1)
    file = tmp_path / "history.jsonl"
    lines = recorder.finish(file)
    home.ok("down")
    outcomes = {name: sum(line["outcome"] == name for line in lines) for name in ("ok", "unknown", "refused")}
    assert outcomes["ok"] > 1000
    judged = subprocess.run(
        [ROOT / "build" / "linearizable", "--timeout", "300s", file], capture_output=True, text=True, timeout=300
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
