# SPDX-License-Identifier: Apache-2.0
"""The systemd units of kv: systemd accepts them, and they grant only the documented rights. They start a cluster that
serves, lists its keys, and stops on request."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from deployed import DEPLOY, Unit, elsewhere, running
from jobs import built, eventually

from wherry.errors import Error
from wherry.kv import Client, cluster_file, keeper
from wherry.system.ports import free_ports

pytestmark = pytest.mark.agent
NODE, KEEPER, RESP = (DEPLOY / f"wherry-kv-{name}.service" for name in ("node@", "keeper", "resp"))
UNITS = (NODE, KEEPER, RESP)
INSTANCE = "1"
OPEN_FOR_KV = 2.0
"""systemd's exposure score, 0 to 10, of a service's remaining rights. wherryd, which shares memory with other
processes, has 6.0."""

CLUSTER = """\
[cluster]
name = "units"
mode = "keeper"
keeper = "127.0.0.1:{}"
bucket_bits = 8
lanes = 256
[timing]
lease_ms = 3000     # a busy machine
[[node]]
number = 0
udp = "127.0.0.1:{}"
[[node]]
number = 1
udp = "127.0.0.1:{}"
"""


def analyze() -> str:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on this machine")
    return program


@pytest.mark.may_lack
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_unit(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name.replace("@", f"@{INSTANCE}")
    copy.write_text(path.read_text().replace("/usr/bin/wherry-kv", built("wherry-kv")))
    done = subprocess.run([analyze(), "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if copy.name in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


@pytest.mark.may_lack
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_scores_the_unit_as_closed(path: Path) -> None:
    threshold = f"--threshold={OPEN_FOR_KV * 10:.0f}"
    done = subprocess.run(
        [analyze(), "security", "--offline=true", threshold, path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_unit_is_closed_as_the_agents_and_its_user_is_made(path: Path) -> None:
    agent = Unit(DEPLOY / "wherryd.service")
    unit = Unit(path, INSTANCE)
    for key in ("CapabilityBoundingSet", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "KillSignal"):
        assert unit[key] == agent[key], key
    assert f"u {unit['User']} " in (DEPLOY / "wherry.sysusers").read_text()
    assert unit["User"] == unit["Group"] != agent["User"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_programs_help_has_every_option_of_the_unit(path: Path) -> None:
    _, command, *_ = Unit(path, INSTANCE).line("ExecStart")
    told = subprocess.run([built("wherry-kv"), command, "--help"], capture_output=True, text=True, check=True).stdout
    head = path.read_text().split("[Unit]")[0]
    options = {*re.findall(r"(?<![\w-])--[a-z-]+", " ".join([*Unit(path, INSTANCE).line("ExecStart"), head]))}
    of_others = {"--now"}
    assert len(options) >= 2
    assert [one for one in sorted(options - of_others) if not re.search(rf"{one}\b", told)] == []


def ask(port: int, *words: bytes) -> bytes:
    """Sends one command in Redis' protocol; returns the first line of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=100) as connection, connection.makefile("rb") as file:
        connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
        return file.readline()


def test_what_the_units_start_serves_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    ports = free_ports(3)
    (tmp_path / "etc/wherry").mkdir(parents=True)
    file = tmp_path / "etc/wherry/kv.toml"
    file.write_text(CLUSTER.format(*ports))
    programs = {"/usr/bin/wherry-kv": built("wherry-kv")}
    with ExitStack() as stack:

        def start(unit: Unit, says: str, **environment: str) -> str:
            for key, place in (("RuntimeDirectory", "run"), ("StateDirectory", "var/lib")):
                if key in unit:
                    assert unit[f"{key}Mode"] == "0700"
                    (tmp_path / place / unit[key]).mkdir(parents=True, mode=0o700)
            if "ExecStartPre" in unit:
                subprocess.run(elsewhere(unit.line("ExecStartPre"), tmp_path, programs), check=True)
            command = elsewhere(unit.line("ExecStart", environment), tmp_path, programs)
            return stack.enter_context(running(command, says))

        start(Unit(KEEPER), "kv keeper of cluster units")
        for number in ("0", "1"):
            start(Unit(NODE, number), f"kv node {number} of cluster units", NODE_OPTIONS="--log-level info")
        cluster = cluster_file.load(file)

        def serve() -> bool:
            try:
                nodes = keeper.status(cluster, 10)["nodes"]
            except Error:
                return False
            return [node["state"] for node in nodes] == ["serving"] * 2

        assert eventually(serve)
        assert (tmp_path / "var/lib/wherry-kv/keeper.json").is_file()
        with Client(cluster=file, connect_timeout=100) as client:
            client.put(7, b"a value", deadline=100)
            assert client.get(7, deadline=100)[0] == b"a value"
        line = start(Unit(RESP), "listening on ", RESP_LISTEN="127.0.0.1:0")
        assert ask(int(line.rsplit(":", 1)[1]), b"SET", b"name", b"text") == b"+OK\r\n"
        # As the comment at the head of the node's unit describes, through the socket for listing keys beside the copy
        # of the cluster file.
        copy = str(tmp_path / "run/wherry-kv-node-0/kv.toml")
        dump = [built("wherry-kv"), "dump", "--cluster", copy, str(tmp_path / "all.kv")]
        done = subprocess.run(dump, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert not [*(tmp_path / "run").rglob("*.keys")], "a node that ended in order leaves no socket"
    state = json.loads((tmp_path / "var/lib/wherry-kv/keeper.json").read_text())
    assert state, "the keeper's successor reads this"
