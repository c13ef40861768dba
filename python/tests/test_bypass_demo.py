# SPDX-License-Identifier: Apache-2.0
"""`wherry bypass demo`: QEMU's NIC, driven by the card's RTL, answers Linux. docs/design/bypass-qemu.md."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import built_rtl, eventually

from wherry.bypass import demo
from wherry.errors import PermissionDenied
from wherry.system import paths

PINGS = 20
KEYS = 8

# Sends hand-made echo requests of all sizes, each with different contents, then uses the store through its usual
# client.
TRAFFIC = f"""
    import json, os, random, socket, struct
    from wherry.kv import Client
    address = "{demo.NIC}"
    chance = random.Random(1)
    port = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    port.settimeout(200)
    right = 0
    for number in range({PINGS}):
        body = chance.randbytes(number * 1472 // {PINGS - 1})
        head = struct.pack("!BBHHH", 8, 0, 0, 7, number)
        data = head + body + bytes(len(body) % 2)
        total = sum(struct.unpack(f"!{{len(data) // 2}}H", data))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        port.sendto(struct.pack("!BBHHH", 8, 0, total ^ 0xFFFF, 7, number) + body, (address, 0))
        while True:
            packet, sender = port.recvfrom(4096)
            if sender[0] == address and packet[20:22] == b"\\0\\0" and packet[24:28] == struct.pack("!HH", 7, number):
                break
        right += packet[28:] == body
    found = 0
    # Patient, since a simulated core takes milliseconds: what is asked again is answered again.
    patience = dict(deadline=200, connect_timeout=200, first_timeout=1.0, timeout_cap=10.0)
    with Client(cluster=os.environ["WHERRY_KV_CLUSTER"], first_lane=0, **patience) as store:
        values = [chance.randbytes(number * 1024 // {KEYS - 1}) for number in range({KEYS})]
        for key, value in enumerate(values):
            assert store.put_if(key, value, 0) == 1
        for key, value in enumerate(values):
            found += store.get(key) == (value, 1)
    print(json.dumps({{"right": right, "found": found}}))
"""


@pytest.fixture(autouse=True)
def program(namespaces: None) -> Path:
    """The program bypass_demo. Skips if it was not built or cannot run here."""
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun: the kernel has no TAP devices")
    return built_rtl("demo/bypass_demo")


class Place:
    """A directory for the demo, and checks that nothing of it remains afterwards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = f"MARK_OF_TEST={uuid.uuid4()}"
        self.interfaces = os.listdir("/sys/class/net")
        self.environment = os.environ | {"TMPDIR": str(directory)} | dict([self.mark.split("=", 1)])

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "wherry", "bypass", "demo", *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, check=False)

    def traffic(self, *words: str) -> dict[str, Any]:
        """Runs the demo with TRAFFIC, all of which must succeed; returns the demo's last figures."""
        done = self.run(*words, "--json", "--", sys.executable, "-c", textwrap.dedent(TRAFFIC))
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stderr.splitlines()[-1]) == {"right": PINGS, "found": KEYS}
        figures: dict[str, Any] = json.loads(done.stdout)
        assert [figures.pop(key) for key in ("command", "exit_status", "cause", "error")] == ["demo", 0, "none", None]
        return figures

    def processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def expect_nothing(self) -> None:
        assert eventually(lambda: not self.processes() and not list(self.directory.iterdir()))
        assert os.listdir("/sys/class/net") == self.interfaces


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for programs that replace those of the machine."""
    return tmp_path_factory.mktemp("tools")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path)
    yield one
    one.expect_nothing()


def check(figures: dict[str, Any], nic: str, core: str) -> None:
    assert (figures["nic"], figures["core"]) == (nic, core)
    answered = figures["answered"]
    assert answered["ping"] == PINGS
    assert answered["arp"] >= 1
    assert answered["kv"] >= 2 * KEYS
    assert figures["frames_out"] == sum(answered.values())
    # A client repeats a request before its answer comes through the slow simulation. The core answers a write once.
    assert figures["frames_in"] >= figures["frames_out"] + figures["ignored"]
    assert figures["card"]["tx_done"] == figures["frames_out"]
    assert figures["card"]["rx_frames"] == figures["frames_in"]
    assert (figures["card"]["tx_written_back"], figures["card"]["outside_writes"]) == (0, 0)
    assert figures["tail_writes"] > 0
    host = figures["host"]
    assert host["state"] == "T"
    assert host["setup_accesses"] > 100
    assert (host["accesses"], host["cpu_ns"]) == (host["setup_accesses"], host["setup_cpu_ns"]), "the host did nothing"


@pytest.mark.timeout(120)
def test_e1000e_and_the_rtl_answer_ping_and_kv_while_the_host_is_stopped(place: Place) -> None:
    check(place.traffic(), "e1000e", "rtl")


@pytest.mark.timeout(120)
def test_the_twin_answers_likewise(place: Place) -> None:
    check(place.traffic("--core", "twin"), "e1000e", "twin")


@pytest.mark.may_lack  # Debian 12's QEMU has no igb
@pytest.mark.timeout(120)
def test_igb_answers_likewise(place: Place) -> None:
    root = paths.repository()
    assert root is not None
    qemu = root / ".venv" / "qemu-backports" / "usr" / "bin" / "qemu-system-x86_64"
    if not qemu.is_file():
        pytest.skip("no QEMU with igb: tools/qemu-backports.sh unpacks one")
    check(place.traffic("--nic", "igb", "--qemu", str(qemu)), "igb", "rtl")


@pytest.mark.may_lack  # some machines do not allow user namespaces
@pytest.mark.timeout(120)
def test_where_no_network_namespace_is_allowed_a_user_namespace_is_enough(place: Place, tools: Path) -> None:
    user = ["unshare", "--user", "--map-root-user", "--net"]
    tried = subprocess.run([*user, "test", "-w", "/dev/net/tun"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("this machine allows no user namespaces")
    unshare = shutil.which("unshare")
    refusing = tools / "unshare"
    refusing.write_text(f'#!/bin/sh\n[ "$1" = --user ] || exit 1\nexec {unshare} "$@"\n')
    refusing.chmod(0o755)
    place.environment["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    check(place.traffic("--core", "twin"), "e1000e", "twin")


@pytest.mark.timeout(120)
def test_the_status_is_that_of_the_command(place: Place) -> None:
    done = place.run("--core", "twin", "--", "sh", "-c", f"ip -br addr show {demo.TAP}; exit 7")
    assert done.returncode == 7, done.stdout + done.stderr
    assert f"{demo.HOST}/{demo.PREFIX}" in done.stdout
    assert "the host made 0 register accesses, in 0.000 ms of CPU time" in done.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ended_by_a_signal_expect_nothing_left(place: Place, number: signal.Signals) -> None:
    with subprocess.Popen(
        place.command("--core", "twin"), env=place.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        while "end   Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert "and is stopped (SIGSTOP)" in said
        assert len(place.processes()) >= 4, "this command, the card, QEMU and the host"
        process.send_signal(number)
        rest, _ = process.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert process.returncode == 0
        assert "the host made 0 register accesses" in rest


@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", ["card", "NIC"])
def test_ctrl_c_while_a_child_is_stopped_expect_the_same_end(place: Place, who: str) -> None:
    with subprocess.Popen(
        place.command("--core", "twin"), env=place.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = 0
        for line in process.stdout:
            if line.startswith(who):
                pid = int(line.partition(", pid ")[2].partition(";")[0])
            if "end   Ctrl-C" in line:
                break
        os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "the host made 0 register accesses" in rest


def test_qemu_is_missing_expect_what_to_install(place: Place) -> None:
    done = place.run("--core", "twin", "--qemu", "/no/such/qemu")
    assert done.returncode == 1
    assert "install Debian's package qemu-system-x86" in done.stderr
    said = json.loads(place.run("--core", "twin", "--qemu", "/no/such/qemu", "--json").stdout)
    assert "install Debian's package qemu-system-x86" in said.pop("error")
    assert said == {"command": "demo", "exit_status": 1, "cause": "failed"}


def test_no_namespaces_expect_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho unshare: Operation not permitted >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermissionDenied, match=r"takes root .*: be root \(unshare: Operation not permitted\)"):
        demo.own_network()


def test_no_rights_at_all_expect_a_sentence(tmp_path: Path, program: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(demo.cluster_text())
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", str(program), "--cluster", str(cluster)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a TAP device takes root, or CAP_NET_ADMIN and /dev/net/tun" in done.stderr
