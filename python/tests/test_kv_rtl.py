# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up --rtl`: live clusters with the Verilated core, on UDP sockets and, as root, on TAP devices."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import built_rtl, eventually
from kvclusters import KvHome

from wherry.errors import Error, FailedPrecondition, NotFound
from wherry.kv import Client, cluster_file, keeper, network
from wherry.system import netns, paths
from wherry.system.ports import free_ports

PATIENCE_S = 200.0
"""A core simulates some hundred thousand cycles per second on an idle machine."""


@pytest.fixture(name="home")
def home_with_a_core(home: KvHome) -> KvHome:
    built_rtl("wherry-kv-rtl")
    return home


@pytest.fixture
def with_rights(namespaces: None) -> None:
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun: the kernel has no TAP devices")


def rtl_rows(home: KvHome) -> list[str]:
    return [line for line in home.ok("nodes").splitlines() if " rtl " in line]


def test_a_mixed_cluster_whose_core_dies_and_returns(home: KvHome) -> None:
    said = home.ok("up", "--detach", "--restart", "--nodes", "3", "--rtl", "1")
    assert said.count("serving") == 3
    assert [row.split()[:2] for row in rtl_rows(home)] == [["0", "rtl"]]
    client = home.client(lanes=1, deadline=PATIENCE_S)
    for key in range(40):  # the core leads a third of the keys, and follows for the others
        assert client.put_if(key, str(key).encode(), 0) == 1
    with pytest.raises(FailedPrecondition) as refused:
        client.put_if(3, b"other", 0)
    assert refused.value.version == 1
    assert client.put_if(3, b"", 1) == 2
    client.put(4, bytes(range(256)) * 4)
    client.remove(5)
    at_core = home.client(lanes=0, only=0, deadline=PATIENCE_S)
    assert at_core.get(3) == (b"", 2)
    assert at_core.get(4) == (bytes(range(256)) * 4, 2)
    assert at_core.get(7) == (b"7", 1)
    with pytest.raises(NotFound):
        at_core.get(5)

    dead = home.up.nodes[0]
    home.kill(0)
    for key in range(40):
        client.put(key, f"later {key}".encode())
    assert eventually(lambda: home.up.nodes[0] not in (0, dead) and home.all_serve(), PATIENCE_S), home.states()
    assert [row.split()[:2] for row in rtl_rows(home)] == [["0", "rtl"]]
    for key in range(40):
        assert at_core.get(key)[0] == f"later {key}".encode()
    home.ok("down")


# Sends a hand-made echo request, because some machines lack `ping`.
PING = """
    import socket, struct
    body = bytes(range(56))
    words = struct.unpack("!32H", b"\\x08\\0\\0\\0\\0\\x07\\0\\x09" + body)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    port = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    port.settimeout(100)
    port.sendto(struct.pack("!BBHHH", 8, 0, total ^ 0xFFFF, 7, 9) + body, ("10.89.0.1", 0))
    while True:
        data, sender = port.recvfrom(2000)
        if sender[0] == "10.89.0.1" and data[20:22] == b"\\0\\0" and data[24:28] == b"\\0\\x07\\0\\x09":
            break
    print(data[28:] == body)
"""

# A server in the node's namespace that sends back its input in reverse: 1 MB each way.
SERVER = """
    import socket
    listener = socket.create_server(("10.89.0.1", 7000))
    print("ready", flush=True)
    connection = listener.accept()[0]
    data = bytearray()
    while len(data) < 1 << 20:
        data += connection.recv(1 << 16)
    connection.sendall(bytes(reversed(data)))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
"""
CONNECTION = """
    import random, socket
    data = random.Random(1).randbytes(1 << 20)
    with socket.create_connection(("10.89.0.1", 7000), timeout=300) as connection:
        connection.sendall(data)
        back = bytearray()
        while part := connection.recv(1 << 16):
            back += part
    print(bytes(reversed(back)) == data)
"""

# A usual client that knows only the core, and runs until its standard input ends.
REQUESTS = """
    import sys, threading
    from wherry.kv import Client
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    store = Client(["10.89.0.1:19286"], lanes=0, deadline=200)
    every = Client.of(lanes=1, deadline=200)
    count = 0
    while not over.is_set():
        every.put(count % 16, str(count).encode())
        assert store.get(count % 16)[0] == str(count).encode()
        count += 1
        if count == 1:
            print("begun", flush=True)
    print(count)
"""


def program(home: KvHome, text: str, *before: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.Popen(
        [*before, *command] if before else home.command("exec", *command),
        env=home.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0
    return said.strip()


def test_on_tap_devices_kv_is_answered_and_the_rest_passes(home: KvHome, tmp_path: Path, with_rights: None) -> None:
    interfaces = os.listdir("/sys/class/net")
    words = ("--detach", "--dir", str(tmp_path), "--nodes", "3", "--rtl", "1", "--tap")
    assert home.ok("up", *words).count("serving") == 3
    assert os.listdir("/sys/class/net") == interfaces, "all of it is elsewhere"
    assert "TAP node0, and eth0 for the host" in (tmp_path / "node0.log").read_text()
    assert [row.split()[:3] for row in rtl_rows(home)] == [["0", "rtl", "10.89.0.1:19286"]]
    home.ok("put", "greeting", "hello")
    for node in ("0", "1"):
        assert home.ok("get", "greeting", "--node", node) == "hello\n"
    assert home.run("put", "greeting", "x", "--if-version", "9", "--timeout", "100").returncode == 1
    assert output(program(home, PING)) == "True"

    server = program(home, SERVER, "nsenter", "--target", str(home.up.nodes[0]), "--net")
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    requests = program(home, REQUESTS)
    assert requests.stdout is not None
    assert requests.stdout.readline() == "begun\n"
    assert output(program(home, CONNECTION)) == "True"
    assert output(server) == ""
    assert int(output(requests)) > 5, "requests went on"
    home.wait_until_all_serve()

    home.ok("down")
    assert "0 frames lost" in (tmp_path / "node0.log").read_text()
    assert os.listdir("/sys/class/net") == interfaces
    assert eventually(lambda: not home.processes())


def test_on_tap_devices_a_core_dies_and_returns(home: KvHome, with_rights: None) -> None:
    home.ok("up", "--detach", "--restart", "--nodes", "2", "--rtl", "1", "--tap")
    dead = home.up.nodes[0]
    home.ok("put", "1", "one")
    home.kill(0)
    home.ok("put", "2", "two")
    assert eventually(lambda: home.up.nodes[0] not in (0, dead) and home.all_serve(), PATIENCE_S), home.states()
    for key, value in (("1", "one"), ("2", "two")):
        assert home.ok("get", key, "--node", "0") == value + "\n"
    assert output(program(home, PING)) == "True", "its host has kept its address"
    home.ok("down")


def ask(port: socket.socket, node: tuple[str, int]) -> None:
    """Sends a ping with tag 7 to a node."""
    port.sendto(struct.pack(">BBHHIIQ", 7 << 3, 0, 0, 0, 7, 0, 0), node)


def test_a_core_answers_only_the_clients_of_the_cluster_file(home: KvHome, tmp_path: Path) -> None:
    with ExitStack() as stack:

        def bound(address: str) -> socket.socket:
            port = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            port.bind((address, 0))
            port.setblocking(False)
            return port

        strangers = [bound(address) for address in ("127.0.0.7", "127.0.0.10", "127.1.0.8")]
        named = [bound(address) for address in ("127.0.0.8", "127.0.0.9", "127.0.0.1")]
        with bound("127.0.0.1") as free:
            node = free.getsockname()
        file = tmp_path / "cluster.toml"
        file.write_text(
            '[cluster]\nname = "a"\nmode = "static"\nbucket_bits = 8\nlanes = 16\nclients = ["127.0.0.8/31"]\n'
            f'[[node]]\nnumber = 0\nudp = "127.0.0.1:{node[1]}"\n'
        )
        command: list[str | Path] = [paths.built("sim", "wherry-kv-rtl"), "--cluster", str(file), "--number", "0"]
        process = stack.enter_context(subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL))
        stack.callback(process.kill)
        for one in named:  # the last address is that of a member

            def answered(one: socket.socket = one) -> bool:
                for stranger in strangers:  # strangers ask first; they must not get an answer
                    ask(stranger, node)
                ask(one, node)
                return bool(select.select([one], [], [], 1.0)[0])

            assert eventually(answered, PATIENCE_S)
            assert one.recv(2000)[0] >> 3 == 7 | 16
        assert select.select(strangers, [], [], 0)[0] == []


def test_a_core_and_a_software_node_in_mode_static_take_neither_back(home: KvHome, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    text = '[cluster]\nname = "a"\nmode = "static"\nbucket_bits = 8\nlanes = 16\n'
    for number, port in enumerate(free_ports(2)):
        text += f'[[node]]\nnumber = {number}\nudp = "127.0.0.1:{port}"\n'
    file.write_text(text)
    programs: list[list[str | Path]] = [[built_rtl("wherry-kv-rtl")], [paths.wherry_kv(), "node"]]
    with ExitStack() as stack:

        def start(number: int) -> tuple[subprocess.Popen[bytes], Path]:
            log = tmp_path / f"node{number}.log"
            words = [*programs[number], "--cluster", file, "--number", str(number)]
            with log.open("wb") as output:
                process = subprocess.Popen([str(word) for word in words], env=home.environment, stderr=output)
            stack.callback(process.wait, 20)
            stack.callback(process.kill)
            return process, log

        def serving() -> list[int]:
            said = keeper.ping(cluster_file.load(file), 1.0)
            return sorted(number for number, state in said.items() if state == "serving")

        nodes = [start(number)[0] for number in range(2)]
        assert eventually(lambda: serving() == [0, 1])
        with Client(cluster=file, first_lane=1, connect_timeout=PATIENCE_S, deadline=PATIENCE_S) as client:
            client.put(1, b"one")
        for number in (1, 0):
            nodes[number].kill()
            nodes[number].wait(60)
            again, log = start(number)
            assert eventually(lambda log=log: "was in this cluster before" in log.read_text()), log.read_text()
            assert number not in serving()
            again.kill()
            again.wait(60)
            # Restarts all nodes for the next turn.
            for process in nodes:
                process.kill()
                process.wait(60)
            nodes = [start(one)[0] for one in range(2)]
            assert eventually(lambda: serving() == [0, 1])


def test_more_clients_than_a_core_holds_are_refused(home: KvHome, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    clients = json.dumps([f"10.0.{2 * i}.0/24" for i in range(14)])
    [port] = free_ports(1)
    file.write_text(
        f'[cluster]\nname = "a"\nmode = "static"\nbucket_bits = 8\nlanes = 16\nclients = {clients}\n'
        f'[[node]]\nnumber = 0\nudp = "127.0.0.1:{port}"\n'
    )
    command: list[str | Path] = [paths.built("sim", "wherry-kv-rtl"), "--cluster", str(file), "--number", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode != 0
    assert "the core holds 14 subnets that it answers" in done.stderr
    assert "are 15 after all that can be were merged" in done.stderr


def test_what_is_refused(home: KvHome, tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        done = home.run("up", *words)
        assert done.returncode == 1
        return done.stderr

    assert "say how many with --rtl" in refused("--tap")
    assert "--xdp has neither" in refused("--rtl", "1", "--xdp")
    file = tmp_path / "cluster.toml"
    file.write_text('[cluster]\nname = "a"\nmode = "static"\n[[node]]\nnumber = 0\nudp = "127.0.0.1:19286"\n')
    command: list[str | Path] = [
        paths.built("sim", "wherry-kv-rtl"),
        "--cluster",
        str(file),
        "--number",
        "0",
        "--tap",
        "cable",
    ]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "--tap requires --host-tap" in alone.stderr
    no_mac = subprocess.run([*command, "--host-tap", "card"], capture_output=True, text=True, timeout=300)
    assert "node 0 has no 'mac'" in no_mac.stderr
    file.write_text(file.read_text() + 'mac = "02:00:00:00:00:01"\n')
    command += ["--host-tap", "card"]
    no_rights = subprocess.run(
        ["setpriv", "--bounding-set=-all", *command], capture_output=True, text=True, timeout=300
    )
    if os.geteuid() == 0:
        assert "be root" in no_rights.stderr


def test_another_mac_is_refused(home: KvHome, tmp_path: Path, with_rights: None) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[cluster]\nname = "a"\nmode = "static"\n[[node]]\nnumber = 0\nudp = "127.0.0.1:19286"\n')
    file.write_text(file.read_text() + 'mac = "02:00:00:00:00:01"\n')
    space = netns.Namespace()
    try:
        command: list[str | Path] = [paths.built("sim", "wherry-kv-rtl"), "--cluster", str(file), "--number", "0"]
        done = subprocess.run(
            [*command, "--tap", "cable", "--host-tap", "card"],
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=space.enter,
        )
        assert done.returncode == 2
        assert "the cluster file says 020000000001 for this node" in done.stderr
    finally:
        space.close()


def test_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Error, match="--tap makes network namespaces and interfaces, which takes root"):
        network.require_root("--tap")
