# SPDX-License-Identifier: Apache-2.0
"""Several keepers that elect one through etcd, as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import built, eventually
from kvclusters import KvHome, Recorder

from wherry.errors import Error
from wherry.kv import Client, cluster_file, keeper
from wherry.system.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
NODES = 3


class Keepers:
    """An etcd, two keepers and three nodes. The first keeper is elected."""

    def __init__(self, home: KvHome, folder: Path, stack: ExitStack) -> None:
        self._home, self._folder, self._stack = home, folder, stack
        ports = free_ports(4 + NODES)
        etcd, peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
        self.at = [f"127.0.0.1:{port}" for port in ports[2:4]]
        self.file = folder / "cluster.toml"
        lines = ["[cluster]", 'name = "elect"', 'mode = "etcd"', f"keeper = {json.dumps(self.at)}"]
        # On a busy machine, slow nodes must not count as dead.
        lines += [f'etcd = ["{etcd}"]', "bucket_bits = 8", "[timing]", "misses = 30"]
        for number, port in enumerate(ports[4:]):
            lines += ["[[node]]", f"number = {number}", f'udp = "127.0.0.1:{port}"']
        self.file.write_text("\n".join(lines) + "\n")
        words = ["etcd", "--data-dir", str(folder / "etcd"), "--listen-client-urls", etcd]
        words += ["--advertise-client-urls", etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        words += ["--initial-cluster", f"default={peer}", "--logger", "zap", "--log-level", "error"]
        self.etcd = self._start("etcd", words)
        self.keepers = []
        for number, at in enumerate(self.at):
            words = [built("wherry-kv"), "keeper", "--cluster", str(self.file), "--listen", at]
            self.keepers.append(self._start(f"keeper{number}", words))
            if number == 0:
                assert eventually(lambda: ": elected" in self.log("keeper0")), self.log("keeper0")
        for number in range(NODES):
            words = [built("wherry-kv"), "node", "--cluster", str(self.file), "--number", str(number)]
            self._start(f"node{number}", words)
        assert eventually(self.all_serve), self.log("keeper0")

    def _start(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, env=self._home.environment, stdout=log, stderr=log)
        self._stack.callback(process.wait, 20)
        self._stack.callback(process.kill)
        return process

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def all_serve(self) -> bool:
        try:
            status = keeper.status(cluster_file.load(self.file), 1)
        except Error:
            return False
        return bool(status["settled"]) and {node["state"] for node in status["nodes"]} == {"serving"}


@pytest.fixture
def keepers(home: KvHome, tmp_path: Path) -> Iterator[Keepers]:
    with ExitStack() as stack:
        yield Keepers(home, tmp_path, stack)


def test_writes_go_on_while_the_elected_keeper_is_stopped_and_after_it_goes_on(
    home: KvHome, keepers: Keepers, tmp_path: Path
) -> None:
    subprocess.run([ROOT / "tools" / "linearizable" / "build"], check=True, timeout=200)
    first = keepers.keepers[0]
    recorder = Recorder(lambda _: Client(cluster=keepers.file, lanes=1, connect_timeout=60.0))
    with Client(cluster=keepers.file, connect_timeout=60.0, deadline=1.0) as client:
        version = client.put(1, b"before")
        epoch = keeper.status(cluster_file.load(keepers.file))["epoch"]
        os.kill(first.pid, signal.SIGSTOP)
        assert eventually(lambda: ": elected" in keepers.log("keeper1")), keepers.log("keeper1")

        def written() -> bool:
            try:
                return client.put(1, b"meanwhile") > version
            except Error:
                return False

        assert eventually(written), keepers.log("keeper1")
        assert eventually(keepers.all_serve), home.run("nodes", "--cluster", str(keepers.file)).stdout
        nodes = json.loads(home.ok("nodes", "--cluster", str(keepers.file), "--json"))
        assert nodes["epoch"] == epoch, "a node that still looked for the new keeper was removed"
        before = recorder.count
        assert eventually(lambda: recorder.count > before + 200)
        with Client(cluster=keepers.file, connect_timeout=60.0) as other:
            other.put(2, b"a client that came since")
        state = Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T", "the first keeper is still stopped"

        os.kill(first.pid, signal.SIGCONT)
        assert eventually(lambda: ": no longer elected" in keepers.log("keeper0")), keepers.log("keeper0")
        before = recorder.count
        assert eventually(lambda: recorder.count > before + 200)
        assert eventually(written)
        assert eventually(keepers.all_serve)
    file = tmp_path / "history.jsonl"
    lines = recorder.finish(file)
    assert sum(line["outcome"] == "ok" for line in lines) > 400
    judged = subprocess.run(
        [ROOT / "build" / "linearizable", "--timeout", "300s", file], capture_output=True, text=True, timeout=300
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_reads_and_writes_go_on_while_etcd_is_stopped(keepers: Keepers) -> None:
    # If a keeper asked etcd in the thread that grants leases, it would block that thread for 1 s each time. The nodes'
    # leases last only 300 ms.
    with Client(cluster=keepers.file, connect_timeout=60.0, deadline=20.0) as client:
        client.put(1, b"before")

        def served_while_etcd_is_stopped() -> bool:
            assert eventually(keepers.all_serve)
            client.put(1, b"again")  # its lanes are there
            os.kill(keepers.etcd.pid, signal.SIGSTOP)
            try:
                # The election stays valid for at least 3 s more.
                end = time.monotonic() + 2.5
                while time.monotonic() < end:
                    client.get(1, deadline=0.4)
                    client.put(1, b"meanwhile", deadline=0.4)
            except Error:
                return False
            finally:
                os.kill(keepers.etcd.pid, signal.SIGCONT)
            return True

        # Tries again if this machine was too busy.
        assert any(served_while_etcd_is_stopped() for _ in range(10)), keepers.log("keeper0")
