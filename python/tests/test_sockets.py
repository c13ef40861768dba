# SPDX-License-Identifier: Apache-2.0
"""The sockets of agent, application and ranks. Every socket must withstand input from strangers."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sockets
from agents import Agent
from jobs import Jobs, built, eventually

import wherry
from wherry.session.metrics import read_metrics

pytestmark = pytest.mark.agent

WAIT_S = 0.3  # wait for an answer to wrong input, which may not come
WORK_S = 60  # for what must work
FEW = 20  # lines by which a log may grow, regardless of the number of strangers


@pytest.fixture
def listening(wherryd: Path, tmp_path: Path) -> Iterator[Agent]:
    """An agent with only a TCP listener."""
    agent = Agent(tmp_path, wherryd, "--listen", "127.0.0.1:0", "--flight", "off", "--metrics", "off")
    yield agent
    assert agent.stop() == 0, agent.log.read_text()


class _Sockets(list[socket.socket]):
    """Closed at the end."""

    def __enter__(self) -> _Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self:
            one.close()


def _unix(path: Path | str | None) -> Iterator[socket.socket]:
    while True:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.connect(str(path))  # waits for space in the agent's queue
        one.settimeout(WAIT_S)
        yield one


def _tcp(host: str, port: int) -> Iterator[socket.socket]:
    while True:
        one = socket.create_connection((host, port), timeout=300)
        one.settimeout(WAIT_S)
        yield one


def _recorded(connect: Iterator[socket.socket], token: str) -> bytes:
    """The bytes of a handshake that the agent accepted."""
    with next(connect) as connection:
        connection.settimeout(30)
        sent, let_in = sockets.handshake(connection, token.encode())
    assert let_in
    return sent


def _paths_of(agent: Agent) -> set[str]:
    """The Unix sockets that the agent's session file names."""
    return {str(agent.session.control), str(agent.session.local_socket)}


def test_an_agent_as_it_starts_listens_on_no_network(wherryd: Path, tmp_path: Path) -> None:
    agent = Agent(tmp_path, wherryd, "--flight", "off", "--metrics", "off")
    try:
        assert sockets.listeners(agent.process.pid) == set()
        assert sockets.datagram_sockets(agent.process.pid) == []
        assert sockets.unix_listeners(agent.process.pid) == _paths_of(agent)
        with wherry.Session(str(agent.session_file), transport="tcp") as session:
            stream = session.stream("s", {"x": np.zeros(10)})
            stream.offload({"x": np.arange(10.0)}).wait(20)
            assert session.info.transports == "stream/unix"
            assert sockets.listeners(agent.process.pid) == set()
            assert sockets.listeners(os.getpid()) == set(), "an application never listens"
    finally:
        agent.stop()


@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_nothing_that_strangers_send_changes_anything(listening: Agent, way: str) -> None:
    session = listening.session
    assert session.host
    assert sockets.listeners(listening.process.pid) == {(session.host, session.port)}
    arena = next(
        int(line.split("-")[0], 16)
        for line in Path(f"/proc/{listening.process.pid}/maps").read_text().splitlines()
        if "wherry-arena" in line and "rw-s" in line
    )

    def connect() -> Iterator[socket.socket]:
        return _tcp(session.host or "", session.port) if way == "tcp" else _unix(listening.session.control)

    with (
        _Sockets() as stalled,
        wherry.Session(agent=session.address, token=session.token, transport="tcp") as client,
    ):
        assert client.info.transports == "stream/tcp"
        assert sockets.listeners(os.getpid()) == set()
        stream = client.stream("s", {"x": np.zeros(1000)})
        stream.offload({"x": np.arange(1000.0)}).wait(20)
        lines = len(listening.log.read_text().splitlines())
        recorded = _recorded(connect(), session.token)
        for _ in range(5):
            stalled.extend(sockets.attack(connect(), arena + 4096, recorded))
        stalled.extend(next(connect()) for _ in range(200))  # more connections than may wait for their handshake
        stream.offload({"x": np.arange(1000.0)}).wait(20)
        for reader_of in wherry.open("s", str(listening.session_file), follow=False):
            assert np.array_equal(reader_of.batch["x"].to_numpy(), np.arange(1000.0)), "a published frame is as it was"
        with wherry.Session(str(listening.session_file)) as another:
            another.stream("t", {"x": np.zeros(1)}).offload({"x": np.ones(1)}).wait(20)
        assert listening.process.poll() is None
        assert len(listening.log.read_text().splitlines()) <= lines + FEW


def test_every_socket_of_an_agent_as_it_starts_bears_what_strangers_send(wherryd: Path, tmp_path: Path) -> None:
    """This includes the sockets of Flight and metrics, which libraries serve, and of local readers."""
    agent = Agent(tmp_path, wherryd, "--listen", "127.0.0.1:0")
    session = agent.session
    assert session.flight
    assert session.metrics
    ports = {
        int(at.partition("://")[2].partition("/")[0].rpartition(":")[2]) for at in (session.flight, session.metrics)
    }
    listeners = sockets.listeners(agent.process.pid)
    assert {port for _, port in listeners} == {session.port, *ports}, "nothing else listens"
    assert sockets.datagram_sockets(agent.process.pid) == []
    assert sockets.unix_listeners(agent.process.pid) == _paths_of(agent)
    ways: list[Callable[[], Iterator[socket.socket]]] = [partial(_tcp, host, port) for host, port in sorted(listeners)]
    ways += [partial(_unix, path) for path in (session.control, session.local_socket)]
    with (
        _Sockets() as stalled,
        wherry.Session(agent=session.address, token=session.token, transport="tcp") as client,
    ):
        stream = client.stream("s", {"x": np.zeros(1000)})
        recorded = _recorded(_tcp(session.host or "", session.port), session.token)
        lines = len(agent.log.read_text().splitlines())
        for connect in ways:
            stalled.extend(sockets.attack(connect(), 4096, recorded))
            stream.offload({"x": np.arange(1000.0)}).wait(WORK_S)
        frame = wherry.open("s", str(agent.session_file), follow=False).read(WORK_S)
        assert frame is not None
        assert np.array_equal(frame.batch["x"].to_numpy(), np.arange(1000.0))
        flight, options = wherry.flight_client(str(agent.session_file))
        with flight:
            batches = [batch for _, batch in wherry.flight_frames(flight, options, "s", follow=False)]
        assert batches
        assert all(np.array_equal(batch["x"].to_numpy(), np.arange(1000.0)) for batch in batches)
        assert read_metrics(session)["wherry_agent_sessions"] == 1
        with wherry.Session(str(agent.session_file)) as another:
            another.stream("t", {"x": np.zeros(1)}).offload({"x": np.ones(1)}).wait(WORK_S)
        assert len(agent.log.read_text().splitlines()) <= lines + FEW, agent.log.read_text()
    assert agent.stop() == 0, agent.log.read_text()


def test_requests_to_metrics_that_stall_do_not_hold_up_offloads(agent: Agent) -> None:
    """The page has its own threads. The agent ends a stalled request after 2 s, so a busy machine may need several
    rounds. If a data thread served the page, it would be blocked until the first request ends."""
    assert agent.session.metrics
    port = int(agent.session.metrics.partition("://")[2].partition("/")[0].rpartition(":")[2])
    with wherry.Session(str(agent.session_file)) as session:
        stream = session.stream("s", {"x": np.zeros(1)})

        def offload_beside_stalled_requests() -> bool:
            with _Sockets() as stalled:
                for _ in range(10):  # more requests than threads
                    stalled.append(socket.create_connection(("127.0.0.1", port), timeout=300))
                    stalled[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
                if not eventually(lambda: sockets.connections_read(agent.process.pid, port), 1):
                    return False
                stream.offload({"x": np.ones(1)}).wait(WORK_S)
                return select.select(stalled, [], [], 0)[0] == []  # none has been ended

        assert eventually(offload_beside_stalled_requests, WORK_S)


def test_handshakes_that_stall_are_ended_by_the_agent(listening: Agent) -> None:
    session = listening.session
    with socket.create_connection((session.host, session.port), timeout=300) as one:
        one.sendall(sockets.opening()[:20])
        assert one.recv(1) == b"", "it waits for ever"


def test_strangers_do_not_end_an_agent_that_gets_no_more_memory(wherryd: Path, tmp_path: Path) -> None:
    """The test limits its address space while connections arrive, until the agent reports that memory ran out."""
    agent = Agent(tmp_path, wherryd, "--listen", "127.0.0.1:0")
    session, pid = agent.session, agent.process.pid
    with _Sockets() as several:
        line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmSize" in line)
        size = int(line.split()[1]) * 1024
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (size, before[1]))

        def out_of_memory() -> bool:
            for _ in range(50):
                if len(several) == 800:
                    several.pop(0).close()
                try:
                    several.append(socket.create_connection((session.host, session.port), timeout=300))
                except ConnectionError:
                    return agent.process.poll() is not None
            return "out of memory" in agent.log.read_text()

        assert eventually(out_of_memory, WORK_S)
    assert agent.process.poll() is None, agent.log.read_text()
    resource.prlimit(pid, resource.RLIMIT_AS, before)

    def let_in() -> bool:
        try:
            with socket.create_connection((session.host, session.port), timeout=300) as one:
                return sockets.handshake(one, session.token.encode())[1]
        except ConnectionError:
            return False

    assert eventually(let_in, WORK_S)
    assert agent.stop() == 0, agent.log.read_text()


APPLICATION = textwrap.dedent(
    """
    import sys
    import numpy as np
    import wherry

    with wherry.Session(agent=sys.argv[1], token=sys.argv[2], transport="tcp") as session:
        stream = session.stream("app", {"x": np.zeros(1 << 20)})
        print("open", flush=True)
        sys.stdin.readline()
        x = np.arange(float(1 << 20))
        stream.offload({"x": x}).wait(60)
        print("done", flush=True)
    """
)


def test_an_application_over_tcp_listens_on_nothing(listening: Agent) -> None:
    command = [sys.executable, "-c", APPLICATION, listening.session.address, listening.session.token]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "open\n"
        assert sockets.listeners(program.pid) == set()
        print(file=program.stdin, flush=True)
        assert program.stdout.readline() == "done\n"
        assert sockets.listeners(program.pid) == set()
        program.stdin.close()
        assert program.wait(timeout=30) == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("placement", ["inline", "host"])
def test_a_job_over_tcp_goes_on_whatever_strangers_send(jobs: Jobs, placement: str) -> None:
    jobs.environment["WHERRY_ROUTE_BETWEEN"] = "tcp"
    jobs.environment["WHERRY_ROUTE_LISTEN"] = "127.0.0.1"
    jobs.environment["UCX_TLS"] = "all"  # a setting that a user has for other programs
    shape = ("--nodes", "2", "--ranks-per-node", "1", "--placement", placement)
    with _Sockets() as stalled, jobs.start(*shape, "--", built("route_chatter"), "15") as job:
        assert job.stdout
        assert {job.stdout.readline().split()[-1] for _ in range(2)} == {"talking"}
        ranks = [pid for pid, line in jobs.processes("route_chatter").items() if "-m" not in line.split()]
        agents = [pid for pid, line in jobs.processes("wherryd").items() if "-m" not in line.split()]
        routers = agents if placement == "host" else ranks
        assert len(routers) == 2
        for pid in ranks + agents:
            ports = {at for at in sockets.listeners(pid) if not sockets.serves_http(at)}
            assert len(ports) == (1 if pid in routers else 0), "one for its peers, where it has any on another node"
            for host, port in ports:
                stalled.extend(sockets.attack(_tcp("127.0.0.1" if host in ("0.0.0.0", "::") else host, port), 4096))
        out, err = job.communicate(timeout=90)
        assert (job.returncode, out) == (0, ""), err
        assert len(err.splitlines()) <= FEW


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("placement", ["inline", "host"])
def test_a_job_ends_when_a_link_goes_down_and_names_who_is_lost(jobs: Jobs, placement: str) -> None:
    jobs.environment["WHERRY_PEER_TIMEOUT_S"] = "4"
    shape = ("--nodes", "2", "--ranks-per-node", "1", "--netns", "--placement", placement)
    with jobs.start(*shape, "--", built("route_chatter"), "100") as job:
        assert job.stdout
        assert {job.stdout.readline().split()[-1] for _ in range(2)} == {"talking"}
        victim = next(pid for pid, line in jobs.processes("route_chatter").items() if "-m" not in line.split())
        inside = ["nsenter", f"--target={victim}", "--net", "--"]
        links = subprocess.run([*inside, "ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
        name = next(line.split()[0].partition("@")[0] for line in links.splitlines() if not line.startswith("lo"))
        subprocess.run([*inside, "ip", "link", "set", name, "down"], check=True)
        out, err = job.communicate(timeout=250)  # without the error, the job waits forever
        said = out + err
        assert job.returncode != 0
        names = [f"rank {n}" if placement == "inline" else f"the agent of node {n} (rank {n})" for n in range(2)]
        address = r"\(10\.88\.0\.\d:\d+\)"
        lost = [re.search(f"{re.escape(name)} {address} cannot be reached any more", said) for name in names]
        assert any(lost), said


def test_arrow_reads_what_came_over_a_stream(listening: Agent) -> None:
    """Posts columns of several sizes. Some of them change while the connection is busy with others."""
    columns = {f"c{i}": np.arange(float(1 << i)) for i in (0, 5, 12)}
    table = pa.table({"x": np.arange(300_000.0), "y": np.arange(300_000, dtype=np.int32)})
    with wherry.Session(agent=listening.session.address, token=listening.session.token) as session:
        small = [session.stream(name, {name: values}) for name, values in columns.items()]
        large = session.stream("table", table.schema)
        tickets = [large.offload(table, tag=i) for i in range(8)]
        for stream, (name, values) in zip(small, columns.items(), strict=True):
            stream.offload({name: values}).wait(20)
        for ticket in tickets:
            ticket.wait(20)
    frames = list(wherry.open("table", str(listening.session_file), follow=False))
    assert [frame.tag for frame in frames] == list(range(8))
    for frame in frames:
        assert pa.Table.from_batches([frame.batch]).equals(table)


def test_the_agent_outlives_clients_that_are_killed_in_the_middle(listening: Agent) -> None:
    with wherry.Session(listening.session.address, token=listening.session.token) as session:
        session.stream("first", {"x": np.zeros(1)}).offload({"x": np.ones(1)}).wait(20)
    assert eventually(lambda: "ended" in listening.log.read_text())
    before = len(os.listdir(f"/proc/{listening.process.pid}/fd"))
    for _ in range(5):
        command = [sys.executable, "-c", APPLICATION, listening.session.address, listening.session.token]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "open\n"
        print(file=program.stdin, flush=True)
        program.send_signal(signal.SIGKILL)
        program.communicate()
    assert eventually(lambda: len(os.listdir(f"/proc/{listening.process.pid}/fd")) <= before), "sockets are left"
