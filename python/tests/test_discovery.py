# SPDX-License-Identifier: Apache-2.0
"""Finds agents by a hosts file, and by a real etcd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from agents import Agent
from inputs import WAIT
from jobs import eventually

import wherry
from wherry.session import discovery
from wherry.session.discovery import Entry, find_agents
from wherry.session.etcd import Etcd
from wherry.system import free_ports


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL."""
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    folder = tmp_path_factory.mktemp("etcd")
    words = ["etcd", "--data-dir", str(folder), "--listen-client-urls", client, "--advertise-client-urls", client]
    words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    words += ["--initial-cluster", f"default={peer}", "--logger", "zap", "--log-level", "error"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def answers() -> bool:
                try:
                    Etcd(client).under("/")
                except wherry.Unavailable:
                    return False
                return True

            assert eventually(answers)
            yield client
        finally:
            process.kill()


@pytest.fixture
def two(make_agent: Callable[..., Agent]) -> Iterator[list[Agent]]:
    """Two agents with the stream "s". Agent k has the rows 10 k to 10 k + 9."""
    with ExitStack() as stack:
        agents = [make_agent() for _ in range(2)]
        for number, agent in enumerate(agents):
            session = stack.enter_context(wherry.Session(str(agent.session_file)))
            data = {"id": np.arange(10) + 10 * number}
            session.stream("s", data).offload(data, tag=1).wait(WAIT)
        yield agents


@pytest.fixture
def announce(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `wherry agent announce`."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "wherry", "agent", "announce", *words]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def says(process: subprocess.Popen[str], what: str) -> None:
    """Reads the process's output up to a line that contains `what`."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if what in line:
            return
    raise AssertionError(f"it ended without {what!r}: {said}")


def entries(url: str, prefix: str) -> dict[str, str]:
    return Etcd(url).under(prefix)


@pytest.mark.agent
def test_a_hosts_file_names_session_files_and_hosts(two: list[Agent], tmp_path: Path) -> None:
    (tmp_path / "node1.json").symlink_to(two[1].session_file)
    hosts = tmp_path / "agents.txt"
    hosts.write_text(f"# two agents\n{two[0].session_file}\n\nnode1 slots=4  # node1.json\nnode1\n")
    assert find_agents(f"hosts:{hosts}") == [two[0].session_file, tmp_path / "node1.json"]
    with wherry.dataset("s", f"hosts:{hosts}") as dataset:
        assert dataset.table(1)["id"].to_pylist() == list(range(20))


def test_wrong_places_are_refused(tmp_path: Path) -> None:
    empty, odd = tmp_path / "empty", tmp_path / "odd"
    empty.write_text("# nobody\n")
    odd.write_text("node0\nnode1 node2\n")
    with pytest.raises(wherry.NotFound, match="names no agent"):
        find_agents(f"hosts:{empty}")
    with pytest.raises(wherry.InvalidArgument, match=r"odd, line 2: .*'node1 node2'"):
        find_agents(f"hosts:{odd}")
    with pytest.raises(wherry.InvalidArgument, match="cannot read the hosts file"):
        find_agents(f"hosts:{tmp_path / 'none'}")
    for text in ("node0", "hosts:", "etcd:", "nfs:/x"):
        with pytest.raises(wherry.InvalidArgument, match="want a list of agents"):
            find_agents(text)
    for text in (
        "etcd:http://127.0.0.1:2379",
        "etcd:http://127.0.0.1:2379/",
        "etcd:ftp://a/b",
        "etcd:http://user:secret@127.0.0.1/a",
        "etcd:http://127.0.0.1:1/a b",
    ):
        with pytest.raises(wherry.InvalidArgument, match="not a place in an etcd"):
            find_agents(text)
    (port,) = free_ports(1)
    with pytest.raises(wherry.Unavailable, match="no etcd answers"):
        find_agents(f"etcd:http://127.0.0.1:{port}/wherry")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "nul\0", '{"version":2,"session_file":"/a"}', '{"version":1,"session_file":"a"}',
     '{"version":1,"session_file":"/a\\u0000"}', '{"version":1,"session_file":"/a","of":0}',
     '{"version":1,"session_file":"/a","of":true}', "[" * 100000],
)  # fmt: skip
def test_what_others_wrote_to_etcd_is_not_believed(text: str) -> None:
    with pytest.raises(wherry.InvalidArgument, match="not an agent's announcement"):
        Entry.parse("/wherry/a", text)


@pytest.mark.agent
def test_announced_agents_are_a_dataset(etcd: str, two: list[Agent], announce: Callable[..., object]) -> None:
    place = f"etcd:{etcd}/wherry/lab"
    with pytest.raises(wherry.NotFound, match="no agent is announced at etcd:"):
        wherry.dataset("s", place)
    announce(place, "--agent", str(two[1].session_file), "--name", "b", "--of", "2")
    assert eventually(lambda: len(entries(etcd, "/wherry/lab/")) == 1)
    with pytest.raises(wherry.Unavailable, match="1 of 2 agents are announced"):
        wherry.dataset("s", place)
    announce(place, "--agent", str(two[0].session_file), "--name", "a", "--of", "2")
    announce(f"{place}oratory", "--agent", str(two[0].session_file), "--name", "other")
    assert eventually(lambda: len(entries(etcd, "/wherry/lab")) == 3)
    with wherry.dataset("s", place) as dataset:
        assert dataset.table(1)["id"].to_pylist() == list(range(20))
    held = entries(etcd, "/wherry/lab/")
    assert list(held) == ["/wherry/lab/a", "/wherry/lab/b"]
    for agent in two:
        about = json.loads(agent.session_file.read_text())
        assert about["token"] not in str(held)
        assert about["flight"] not in str(held)


@pytest.mark.agent
def test_an_entry_goes_with_its_agent_and_with_its_announcer(
    etcd: str,
    two: list[Agent],
    announce: Callable[..., subprocess.Popen[str]],
) -> None:
    prefix = "/wherry/ends"
    words = (f"etcd:{etcd}{prefix}", "--agent", str(two[0].session_file), "--name", "a")
    first = announce(*words)
    says(first, "announced: /wherry/ends/a")
    first.kill()  # its entry stays for 10 s; a new announcement of the same agent replaces it
    second = announce(*words)
    says(second, "announced: /wherry/ends/a")
    other = announce(words[0], "--agent", str(two[1].session_file), "--name", "a")
    said, _ = other.communicate(timeout=100)
    assert other.returncode == 1
    assert "/wherry/ends/a is announced already" in said
    second.send_signal(signal.SIGTERM)
    said, _ = second.communicate(timeout=100)
    assert second.returncode == 0, said
    assert entries(etcd, prefix) == {}
    third = announce(*words)
    says(third, "announced: /wherry/ends/a")
    two[0].stop()
    said, _ = third.communicate(timeout=100)
    assert third.returncode == 0
    assert "has ended" in said
    assert entries(etcd, prefix) == {}


@pytest.mark.agent
def test_an_entry_that_etcd_lost_is_written_again(
    etcd: str,
    two: list[Agent],
    announce: Callable[..., subprocess.Popen[str]],
) -> None:
    prefix = "/wherry/lost"
    process = announce(f"etcd:{etcd}{prefix}", "--agent", str(two[0].session_file), "--ttl", "3")
    says(process, "announced: /wherry/lost/")
    client = Etcd(etcd)
    for lease in client._call("lease/leases", {})["leases"]:
        client.revoke(int(lease["ID"]))
    says(process, "announced again: /wherry/lost/")
    (name,) = entries(etcd, prefix)
    assert name == f"{prefix}/{os.uname().nodename}"


def test_an_entry_that_cannot_be_written_reports_the_first_error() -> None:
    class Gone:
        """An etcd that ends after it has granted the lease."""

        def grant(self, _ttl_s: int) -> int:
            return 7

        def under(self, _prefix: str) -> dict[str, str]:
            raise wherry.Unavailable("the first error")

        def revoke(self, _lease: int) -> None:
            raise wherry.Unavailable("another one")

    with pytest.raises(wherry.Unavailable, match="the first error"):
        discovery._write(Gone(), "/wherry/a", Entry(Path("/a.json"), None), 3)  # type: ignore[arg-type]
