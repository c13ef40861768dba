# SPDX-License-Identifier: Apache-2.0
"""Clusters in mode static, without a keeper, as real processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from jobs import built, eventually
from kvclusters import KvHome

from wherry.errors import Error, NotFound
from wherry.kv import Client, cluster_file, keeper
from wherry.system.ports import free_ports

NODES = 3


class Static:
    """Nodes that are started separately, each with its own file."""

    def __init__(self, home: KvHome, folder: Path, stack: ExitStack) -> None:
        self._home, self._folder, self._stack = home, folder, stack
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.nodes = [f"127.0.0.1:{port}" for port in free_ports(NODES)]
        self.file = self.write("cluster.toml", 'name = "lab"\nbucket_bits = 10')

    def write(self, name: str, terms: str) -> Path:
        text = f'[cluster]\nmode = "static"\n{terms}\n'
        for number, at in enumerate(self.nodes):
            text += f'[[node]]\nnumber = {number}\nudp = "{at}"\n'
        (self._folder / name).write_text(text)
        return self._folder / name

    def start(self, number: int, file: Path | None = None) -> None:
        words = [built("wherry-kv"), "node", "--cluster", str(file or self.file), "--number", str(number)]
        with (self._folder / f"node{number}.log").open("wb") as log:
            process = subprocess.Popen(words, env=self._home.environment, stdout=log, stderr=log)
        self._stack.callback(process.wait, 20)
        self._stack.callback(process.kill)
        self.processes[number] = process

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait(60)

    def log(self, number: int) -> str:
        return (self._folder / f"node{number}.log").read_text()

    def serving(self) -> list[int]:
        said = keeper.ping(cluster_file.load(self.file))
        return sorted(number for number, state in said.items() if state == "serving")

    def client(self, only: int | None = None) -> Client:
        """A client; with `only`, it reads only at that node."""
        if only is None:
            return Client(cluster=self.file, first_lane=1, connect_timeout=60.0)
        nodes = [at if only == number else "" for number, at in enumerate(self.nodes)]
        return Client(nodes, lanes=0, connect_timeout=1.0, deadline=1.0)


@pytest.fixture
def static(home: KvHome, tmp_path: Path) -> Iterator[Static]:
    with ExitStack() as stack:
        yield Static(home, tmp_path, stack)


def test_a_node_that_starts_again_does_not_serve_an_empty_table(static: Static) -> None:
    for number in range(NODES):
        static.start(number)
    assert eventually(lambda: static.serving() == [0, 1, 2]), static.log(0)
    with static.client() as client:
        for key in range(100):
            client.put(key, b"%d" % key)
    static.kill(1)
    static.start(1)
    assert eventually(lambda: "node 1 was in this cluster before" in static.log(1)), static.log(1)
    assert "stop all its nodes and start them again" in static.log(1)
    assert static.serving() == [0, 2]
    for number in range(NODES):
        for key in range(0, 100, 10):
            try:
                with static.client(only=number) as client:
                    assert client.get(key)[0] == b"%d" % key
                assert number != 1
            except NotFound:
                pytest.fail(f"node {number} denies key {key}, of which the write was acknowledged")
            except Error:
                assert number == 1, "a node that went on"

    # If all nodes start again, the store is empty.
    for number in range(NODES):
        static.kill(number)
    for number in range(NODES):
        static.start(number)
    assert eventually(lambda: static.serving() == [0, 1, 2]), static.log(0)
    with static.client() as client:
        client.put(1, b"new")


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ('name = "lab"\nbucket_bits = 9', "bucket_bits = 9, the cluster's 10"),
        ('name = "other"\nbucket_bits = 10', "of cluster 'lab', not 'other'"),
    ],
)
def test_nodes_whose_cluster_files_differ_do_not_serve_and_name_both_values(
    static: Static, terms: str, said: str
) -> None:
    other = static.write("other.toml", terms)
    static.start(0)
    static.start(1)
    static.start(2, other)
    assert eventually(lambda: said in static.log(0) and said in static.log(2)), static.log(0) + static.log(2)
    assert static.serving() == []
    static.kill(2)
    static.start(2)
    assert eventually(lambda: static.serving() == [0, 1, 2]), static.log(0)
