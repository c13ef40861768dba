# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up --xdp`: real processes on AF_XDP, in network namespaces. They are skipped, with the reason, if the user
lacks the rights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import built, eventually
from kvclusters import KvHome

from wherry.errors import Error
from wherry.kv import keeper, network
from wherry.system import netns, paths

QUICK = ("--xdp", "--nodes", "2", "--bucket-bits", "8", "--ping-ms", "40")


@pytest.fixture
def home(namespaces: None) -> Iterator[KvHome]:
    built("wherry-kv")
    one = KvHome()
    try:
        yield one
        one.expect_nothing_left()
        assert eventually(lambda: not one.processes())
    finally:
        one.clean_up()


def test_a_signal_while_the_network_is_made_leaves_nothing(home: KvHome, tmp_path: Path) -> None:
    place = tmp_path / "place"
    with home.start("up", "--dir", str(place), *QUICK) as running:
        assert eventually(lambda: (place / "cluster.toml").exists())
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=300)
        assert running.returncode == 0
    assert not (place / "cluster.toml").exists()


def inside(home: KvHome, program: str) -> str:
    """Runs a Python program in the clients' network. Returns its output."""
    done = subprocess.run(
        home.command("exec", sys.executable, "-c", textwrap.dedent(program)),
        env=home.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dropped(home: KvHome, node: int) -> int:
    return int(keeper.status(home.cluster)["nodes"][node]["dropped"])


# Sends a hand-made echo request, because some machines lack `ping`.
PING = """
    import socket, sys
    port = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    port.settimeout(5)
    port.sendto(bytes([8, 0, 0xF7, 0xFF]) + bytes(60), ("10.89.0.1", 0))
    while True:
        data, sender = port.recvfrom(2000)
        if sender[0] == "10.89.0.1" and data[20] == 0:
            break
    print("echo")
"""

# Sends a protocol ping with a wrong UDP checksum, then a correct ping, and receives its answer.
WRONG_CHECKSUM = """
    import socket
    from wherry.kv.generated.frame import Kind, Kv
    datagram = Kv(kind=Kind.PING, request=7).pack()
    to = ("10.89.0.1", 19286)
    wrong = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    ports = (5000).to_bytes(2) + to[1].to_bytes(2)
    wrong.sendto(ports + (8 + len(datagram)).to_bytes(2) + b"\\x12\\x34" + datagram, (to[0], 0))
    right = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    right.settimeout(5)
    right.sendto(datagram, to)
    print(Kv.unpack(right.recv(2000)[: Kv.BYTES]).request)
"""

PROGRAM = """
    from wherry.errors import FailedPrecondition
    from wherry.kv import Client
    store = Client.of()
    version = store.put_if(1, b"one", 0)
    assert store.get(1) == (b"one", version)
    try:
        store.put_if(1, b"other", 0)
    except FailedPrecondition as error:
        print("was", error.version == version)
"""


def test_reads_writes_ping_and_bad_frames(home: KvHome, tmp_path: Path) -> None:
    interfaces = os.listdir("/sys/class/net")
    said = home.ok("up", "--detach", "--dir", str(tmp_path), *QUICK, "--misses", "40", "--lease-ms", "2000")
    assert said.count("serving") == 2
    assert "wherry kv exec" in said
    assert os.listdir("/sys/class/net") == interfaces, "all of it is elsewhere"
    logs = [(tmp_path / f"node{number}.log").read_text() for number in range(2)]
    assert all("AF_XDP on eth0 queue 0, native, copy" in log for log in logs), logs

    # The usual commands, with sockets in the clients' namespace.
    home.ok("put", "greeting", "hello")
    assert home.ok("get", "greeting") == "hello\n"
    for node in ("0", "1"):
        assert home.ok("get", "greeting", "--node", node) == "hello\n"
    assert home.run("put", "greeting", "x", "--if-version", "9").returncode == 1
    home.ok("put", "greeting", "bye", "--if-version", "1")
    home.ok("delete", "greeting")
    assert home.ok("nodes").count("serving") == 2
    assert os.listdir("/sys/class/net") == interfaces, "the commands came back"
    assert inside(home, PROGRAM) == "was True"

    # Clients that bypass the kernel with reads, writes and conditional writes.
    load = (
        "bench",
        "--json",
        "--seconds",
        "0.2",
        "--keys",
        "50",
        "--reads",
        "1",
        "--writes",
        "1",
        "--conditional",
        "1",
    )
    for more in (("--xdp", "eth0", "--spin"), ("--xdp", "eth0", "--depth", "16"), ("--depth", "4")):
        result = subprocess.run(
            home.command(*load, *more), env=home.environment, capture_output=True, text=True, timeout=300
        )
        assert result.returncode == 0, result.stderr
        operations = json.loads(result.stdout)["operations"]
        assert operations.keys() == {"read", "write", "write_if"}
        assert all(operations[verb]["outcomes"]["ok"] > 0 for verb in operations)
        assert set(operations["read"]["outcomes"]) == {"ok"}
        assert set(operations["write"]["outcomes"]) == {"ok"}
    missing = home.run("bench", "--keys", "50", "--xdp", "nonesuch")
    assert missing.returncode == 1
    assert "no network interface nonesuch" in missing.stderr

    # Frames that do not belong to kv go to the kernel, and damaged frames are counted.
    assert inside(home, PING) == "echo"
    before = dropped(home, 0)
    assert inside(home, WRONG_CHECKSUM) == "7"
    # The counter may also count repeated requests of clients on a busy machine. The log that is read below has the
    # number of damaged frames.
    assert eventually(lambda: dropped(home, 0) > before), (before, dropped(home, 0))

    # The switch redirects frames. If only the bridge worked, this counter would be 0.
    switch = next(iter(home.processes("switch")))
    counters = subprocess.check_output(
        ["nsenter", "--target", str(switch), "--net", "ethtool", "--statistics", "clients"], text=True
    )
    redirected = next(line for line in counters.splitlines() if "rx_queue_0_xdp_redirect:" in line)
    assert int(redirected.split(":")[1]) > 1000, counters

    home.ok("down")
    assert "1 for their checksum" in (tmp_path / "node0.log").read_text()
    assert os.listdir("/sys/class/net") == interfaces


def test_a_node_and_the_switch_die_and_come_back(home: KvHome) -> None:
    home.ok("up", "--detach", "--restart", *QUICK)
    home.ok("put", "1", "one")
    switch = next(iter(home.processes("switch")))
    os.kill(switch, signal.SIGKILL)
    home.ok("put", "2", "two")  # through the bridge, or the next switch
    home.kill(0)
    home.ok("put", "3", "three")
    for key, value in (("1", "one"), ("2", "two"), ("3", "three")):
        assert home.ok("get", key, "--node", "1") == value + "\n"
    home.wait_until_all_serve()
    assert eventually(lambda: switch not in home.processes("switch") and home.processes("switch"))
    assert home.ok("get", "3", "--node", "0") == "three\n"
    home.ok("down")


def test_up_is_killed(home: KvHome) -> None:
    """Nothing remains, although no process of `up` can clean up."""
    home.ok("up", "--detach", *QUICK)
    up = home.up.pid
    file = home.up.namespace
    os.kill(up, signal.SIGKILL)
    assert eventually(lambda: not home.processes()), home.processes()
    assert not os.path.exists(file)
    done = home.run("down")
    assert done.returncode == 1
    assert "has gone" in done.stderr
    (home.runtime / "wherry" / "kv-up.json").unlink()


def test_what_is_refused(home: KvHome, tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[cluster]\nname = "a"\nmode = "static"\n[[node]]\nnumber = 0\nudp = "127.0.0.1:19286"\n')
    command = [built("wherry-kv"), "node", "--cluster", str(file), "--number", "0", "--xdp"]
    space = netns.Namespace()
    try:

        def refused(*words: str, without_rights: bool = False) -> str:
            before = ["setpriv", "--bounding-set=-all"] if without_rights else []
            done = subprocess.run(
                [*before, *command, *words], capture_output=True, text=True, timeout=300, preexec_fn=space.enter
            )
            assert done.returncode != 0
            return done.stderr

        assert "no network interface nonesuch" in refused("nonesuch")
        assert "want an interface, as eth0" in refused("lo:x")
        assert "lo: XDP: native mode: the driver has none; generic mode goes with any" in refused(
            "lo", "--xdp-mode", "native"
        )
        assert "be root" in refused("lo", without_rights=True)
    finally:
        space.close()

    # A cluster file for another network.
    file.write_text(file.read_text().replace('"static"', '"keeper"\nkeeper = "127.0.0.1:19287"'))
    done = home.run("up", "--xdp", "--dir", str(tmp_path))
    assert done.returncode == 1
    assert "has no node with xdp" in done.stderr
    file.write_text(file.read_text() + 'xdp = "eth0"\n')
    done = home.run("up", "--xdp", "--dir", str(tmp_path))
    assert done.returncode == 1
    assert 'udp = "10.89.0.1:19286", mac = "02:57:4b:56:00:01"' in done.stderr
    done = home.run("up", "--xdp", "--etcd", "http://127.0.0.1:1")
    assert "no way out" in done.stderr


def test_cabled_without_a_switch(home: KvHome, tmp_path: Path) -> None:
    """Nodes and a client with two interfaces each. They sleep while no frame arrives."""
    program = str(paths.built("bench", "kv_load"))
    file = tmp_path / "cluster.toml"
    with netns.Mesh(3) as mesh, ExitStack() as stack:
        both = ",".join(mesh.interfaces(0))
        assert both == "eth0,eth1"
        lines = ["[cluster]", 'name = "cabled"', 'mode = "static"', "bucket_bits = 10"]
        lines += [f'clients = ["{mesh.addresses[2]}"]']  # each cable is a subnet with one address
        nodes = [f"{address}:19286" for address in mesh.addresses[:2]]
        for number, address in enumerate(nodes):
            lines += ["[[node]]", f"number = {number}", f'udp = "{address}"', f'xdp = "{both}"']
        file.write_text("\n".join(lines) + "\n")
        logs = [tmp_path / f"node{number}.log" for number in range(2)]
        for number, log in enumerate(logs):
            command = [built("wherry-kv"), "node", "--cluster", str(file), "--number", str(number)]
            with log.open("wb") as output:
                node = subprocess.Popen(command, stderr=output, preexec_fn=mesh.namespaces[number].enter)
            stack.callback(node.wait, 10)
            stack.callback(node.terminate)
        for log in logs:
            assert eventually(lambda log=log: "AF_XDP on eth0 queue 0, native, copy; eth1" in log.read_text()), log

        def load(*words: str) -> subprocess.CompletedProcess[str]:
            command = [program, "--node", nodes[0], "--node", nodes[1], "--keys", "50"]
            command += ["--first-lane", "0", *words]
            return subprocess.run(
                command, capture_output=True, text=True, timeout=300, preexec_fn=mesh.namespaces[2].enter
            )

        for more in (["--spin"], ["--yield"], ["--depth", "16", "--read-from", "round_robin"]):
            for seconds in ("0.2", "3", "30"):  # on a busy machine a short run may be too short for both
                done = load("--seconds", seconds, "--reads", "1", "--writes", "1", "--xdp", both, *more)
                assert done.returncode == 0, done.stderr
                operations = json.loads(done.stdout)["operations"]
                if operations.keys() == {"read", "write"}:
                    break
            assert operations["read"]["outcomes"].keys() == {"ok"}
            assert operations["write"]["outcomes"].keys() == {"ok"}

        # A client has one address.
        assert "want an interface" in load("--xdp", "eth0,eth0").stderr
        mesh.namespaces[2].ip("addr", "flush", "dev", "eth1")
        mesh.namespaces[2].ip("addr", "add", "10.88.0.99/32", "dev", "eth1")
        assert "xdp: eth0 has the address 10.88.0.3, and eth1 has 10.88.0.99" in load("--xdp", both).stderr
    assert all("0 dropped: 0 for their length, 0 for their checksum" in log.read_text() for log in logs)


def test_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Error, match="be root"):
        network.require_root()
