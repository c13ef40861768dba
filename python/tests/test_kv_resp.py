# SPDX-License-Identifier: Apache-2.0
"""`wherry kv resp`: the gateway and Redis itself must answer the same requests with the same bytes. Also uses Redis'
own programs as clients, and kills nodes."""

from __future__ import annotations

import hashlib
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jobs import eventually
from kvclusters import KvHome

from wherry.system import peer_program

pytestmark = pytest.mark.agent
PATIENCE_S = 100


class Peer:
    """A client of the protocol that parses answers only to find their end."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._file = self._socket.makefile("rb")

    def ask(self, *words: bytes) -> bytes:
        self.send(*words)
        return self.answer()

    def send(self, *words: bytes) -> None:
        parts = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._socket.sendall(b"*%d\r\n%b" % (len(words), parts))

    def answer(self) -> bytes:
        line = self._file.readline()
        assert line.endswith(b"\r\n"), line
        kind, rest = line[:1], line[1:-2]
        if kind == b"$" and rest != b"-1":
            return line + self._file.read(int(rest) + 2)
        if kind in b"*%" and rest != b"-1":
            parts = int(rest) * (2 if kind == b"%" else 1)
            return line + b"".join(self.answer() for _ in range(parts))
        return line

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@contextmanager
def gateway(home: KvHome, *options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Runs `wherry kv resp`; yields its port and its process."""
    command = home.command("resp", "--listen", "127.0.0.1:0", *options)
    with subprocess.Popen(command, env=home.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on 127.0.0.1:"), line
            yield int(line.rsplit(":", 1)[1]), process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


@contextmanager
def redis(directory: Path) -> Iterator[int]:
    """Runs a separate Redis server; yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(peer_program("redis-server")), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen([*command, "--dir", str(directory)], stdout=subprocess.DEVNULL) as process:
        try:

            def answers() -> bool:
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            assert eventually(answers)
            yield port
        finally:
            process.terminate()


@pytest.fixture
def cluster(home: KvHome) -> Iterator[KvHome]:
    """Three nodes, all serving."""
    home.ok("up", "--detach", "--nodes", "3", "--bucket-bits", "10")
    home.wait_until_all_serve()
    yield home
    home.ok("down")


def any_command(chance: random.Random) -> list[bytes]:
    """A random command, right or wrong, that both servers know."""
    name = chance.choice([b"a", b"b", b"counter", b"", b"a name with blanks", b"\x00\r\n\xff"])
    other = chance.choice([b"a", b"b", b"c"])
    text = chance.choice([b"", b"7", b"-3", b"07", b"+1", b"9223372036854775807", b"text", b"\r\n$-1\r\n", bytes(300)])
    number = chance.choice(
        [b"0", b"1", b"-1", b"5", b"-100", b"100", b"x", b"9223372036854775807", b"-9223372036854775808"]
    )
    small = chance.choice([b"0", b"3", b"40", b"-1", b"x"])
    return chance.choice(
        [
            [b"GET", name],
            [b"get", name],
            [b"SET", name, text],
            [b"SET", name, text, chance.choice([b"NX", b"xx", b"GET", b"KEEPTTL", b"WHAT"])],
            [b"SET", name, text, b"NX", chance.choice([b"GET", b"XX"])],
            [b"SETNX", name, text],
            [b"GETSET", name, text],
            [b"GETDEL", name],
            [b"GETEX", name],
            [b"DEL", name, other, other],
            [b"UNLINK", name],
            [b"EXISTS", name, other, name],
            [b"TOUCH", name, other],
            [b"STRLEN", name],
            [b"APPEND", name, text[:10]],
            [b"GETRANGE", name, number, small],
            [b"GETRANGE", name, small, number],
            [b"SUBSTR", name, small, number],
            [b"SETRANGE", name, small, text[:20]],
            [b"INCR", b"counter"],
            [b"DECR", name],
            [b"INCRBY", name, number],
            [b"DECRBY", name, number],
            [b"TYPE", name],
            [b"TTL", name],
            [b"PTTL", name],
            [b"PERSIST", name],
            [b"MGET", name, other, name],
            [b"MSET", name, text, other, b"1", name, b"last"],
            [b"MSET", name],
            [b"ECHO", text],
            [b"PING"],
            [b"PING", text],
            [b"SELECT", b"0"],
            [b"GET"],
            [b"GET", name, other],
        ]
    )


def test_conversations_are_those_of_redis(cluster: KvHome, tmp_path: Path) -> None:
    with redis(tmp_path) as theirs, gateway(cluster, "--key-by-key") as (ours, _):
        one, two = Peer(ours), Peer(theirs)
        for seed in range(4):
            chance = random.Random(seed)
            for number in range(400):
                words = any_command(chance)
                assert one.ask(*words) == two.ask(*words), (seed, number, words)
            if seed % 2 == 1:  # and in protocol version 3, whose HELLO reply names the server
                for peer in (one, two):
                    assert peer.ask(b"HELLO", b"3").startswith(b"%7\r\n$6\r\nserver\r\n")
        assert one.ask(b"HELLO", b"4") == two.ask(b"HELLO", b"4")
        for peer in (one, two):  # a pipeline
            for i in range(100):
                peer.send(b"INCRBY", b"sum", b"%d" % i)
        assert [one.answer() for _ in range(100)] == [two.answer() for _ in range(100)]
        one.close()
        two.close()


def test_redis_own_programs_are_clients(cluster: KvHome) -> None:
    cli, benchmark = str(peer_program("redis-cli")), str(peer_program("redis-benchmark"))

    with gateway(cluster) as (port, _):

        def said(*words: str) -> str:
            done = subprocess.run([cli, "-p", str(port), *words], capture_output=True, text=True, timeout=PATIENCE_S)
            return done.stdout.strip()

        assert said("set", "a long name, longer than a number", "hello") == "OK"
        assert said("get", "a long name, longer than a number") == "hello"
        assert said("-3", "get", "nothing") == ""
        assert "do not expire" in said("expire", "x", "1")
        assert "keeps strings" in said("lpush", "l", "x")
        piped = subprocess.run(
            [cli, "-p", str(port)], input="set k 1\nincr k\nget k\n", capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert piped.stdout.split() == ["OK", "2", "2"]
        command = [
            benchmark,
            "-p",
            str(port),
            "-n",
            "2000",
            "-r",
            "500",
            "-c",
            "20",
            "-t",
            "ping,set,get,incr",
            "--csv",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        rows = [line.split(",")[0].strip('"') for line in done.stdout.splitlines()[1:]]
        assert done.returncode == 0, done.stderr
        assert rows == ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR"]
        assert "ERR" not in done.stdout + done.stderr
        # The gateway stores a name and its value as one value, which other clients can read.
        with cluster.client() as client:
            number = int.from_bytes(hashlib.sha256(b"k").digest()[:8], "big")
            assert client.get(number)[0] == b"R\x01\x01\x00k2"


def test_no_increment_is_lost_when_a_node_dies(cluster: KvHome) -> None:
    counted: list[int] = []
    failures: list[bytes] = []
    stop = threading.Event()

    def count(port: int) -> None:
        peer = Peer(port)
        done = 0
        while not stop.is_set():
            answer = peer.ask(b"INCR", b"n")
            if answer.startswith(b":"):
                done += 1
            else:
                failures.append(answer)
        peer.close()
        counted.append(done)

    with gateway(cluster) as (port, _), gateway(cluster) as (second, _):
        threads = [threading.Thread(target=count, args=(where,)) for where in (port, second, port)]
        for thread in threads:
            thread.start()
        watch = Peer(second)

        def value() -> int:
            answer = watch.ask(b"GET", b"n")
            return int(answer.split(b"\r\n")[1]) if answer.startswith(b"$") and answer != b"$-1\r\n" else 0

        assert eventually(lambda: value() > 50)
        cluster.kill(0)
        reached = value()
        assert eventually(lambda: value() > reached + 50)
        stop.set()
        for thread in threads:
            thread.join()
        # A write with an unknown outcome takes effect once or never.
        assert sum(counted) <= value() <= sum(counted) + len(failures)
        assert all(line.startswith((b"-UNKNOWN", b"-CLUSTERDOWN")) for line in failures), failures
        watch.close()


def refused(home: KvHome, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a process, because it replaces itself by the gateway."""
    command = home.command("resp", *options)
    return subprocess.run(command, env=home.environment, capture_output=True, text=True, timeout=PATIENCE_S)


def test_it_ends_in_order_and_says_what_is_wrong(cluster: KvHome, tmp_path: Path) -> None:
    with gateway(cluster) as (port, process):
        peer = Peer(port)
        assert peer.ask(b"SET", b"k", b"v") == b"+OK\r\n"
        taken = refused(cluster, "--listen", f"127.0.0.1:{port}")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert taken.returncode == 2
        peer.close()
    wrong = refused(cluster, "--listen", "0.0.0.0:0")
    assert wrong.returncode == 2
    assert "password" in wrong.stderr
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    secret.chmod(0o644)
    open_to_all = refused(cluster, "--listen", "127.0.0.1:0", "--password-file", str(secret))
    assert open_to_all.returncode != 0
    assert "chmod 600" in open_to_all.stderr
    secret.chmod(0o600)
    with gateway(cluster, "--password-file", str(secret)) as (port, _):
        peer = Peer(port)
        assert peer.ask(b"GET", b"k").startswith(b"-NOAUTH")
        assert peer.ask(b"AUTH", b"open sesame") == b"+OK\r\n"
        assert peer.ask(b"GET", b"k") == b"$1\r\nv\r\n"
        peer.close()
