# SPDX-License-Identifier: Apache-2.0
"""Two hosts: an agent and a client in two network namespaces, joined by a veth pair, over TCP.

If the user is not root, they are created in a user namespace. If that is forbidden, these tests fail, because no other
tests have two hosts.
"""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.system import paths

AGENT, CLIENT = "10.77.0.1", "10.77.0.2"

CLIENT_PROGRAM = textwrap.dedent(
    """
    import json, sys, threading
    import numpy as np
    import wherry

    address, token, transport = sys.argv[1:4]
    try:
        session = wherry.Session(agent=address, token=token, transport=transport)
    except wherry.Error as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        raise SystemExit(0)
    x = np.arange(3_000_000, dtype=np.float64)
    kept = session.empty(1000, np.int32)
    kept[:] = 7
    stream = session.stream("net", {"x": x})
    tickets = [stream.offload({"x": x[: 1 + 700_000 * i]}, tag=i, timeout=20.0) for i in range(4)]
    other = session.stream("kept", {"k": kept})
    other.offload({"k": kept}).wait(20)
    for ticket in tickets:
        ticket.wait(20)
    info = session.info
    threads = [open(f"/proc/self/task/{t}/comm").read().strip() for t in __import__("os").listdir("/proc/self/task")]
    said = {"transports": info.transports, "heap": info.heap, "mapped": info.mapped}
    said["progress"] = "wherry-progress" in threads
    said["sequences"] = [t.sequence for t in tickets]
    print(json.dumps(said), flush=True)
    sys.stdin.readline()
    """
)


@contextlib.contextmanager
def _root() -> Iterator[list[str]]:
    """The first words of a command line that runs as a user with the right to create network namespaces."""
    if os.geteuid() == 0:
        yield []
        return
    with _held(["unshare", "--user", "--map-root-user"]) as holder:
        yield ["nsenter", f"--target={holder}", "--user", "--preserve-credentials", "--"]


@contextlib.contextmanager
def _held(unshare: list[str]) -> Iterator[int]:
    """Creates namespaces that exist as long as the process in them; yields its pid."""
    command = [*unshare, "sh", "-c", "echo ready && exec cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stderr
        if holder.stdout.readline() != "ready\n":
            pytest.fail(f"{' '.join(command)}: {holder.stderr.read().strip()}")
        yield holder.pid
        holder.stdin.close()


class Hosts:
    """Two connected network namespaces, named by the pids of the processes that keep them alive."""

    def __init__(self, root: list[str], agent: int, client: int) -> None:
        self.root, self.agent, self.client = root, agent, client

    def on(self, host: int, *command: str) -> list[str]:
        """A command line that runs `command` on one of the hosts."""
        return [*self.root, "nsenter", f"--target={host}", "--net", "--", *command]

    def ip(self, host: int, *words: str) -> str:
        done = subprocess.run(self.on(host, "ip", *words), capture_output=True, text=True)
        assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
        return done.stdout

    def wait_until_up(self, host: int) -> None:
        """A veth gets its carrier shortly after both ends are up. UCX ignores interfaces without a carrier."""
        deadline = time.monotonic() + 300
        while " UP " not in self.ip(host, "-br", "link", "show", "veth0"):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Removed afterwards."""
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(_root())
        hosts = Hosts(root, *(stack.enter_context(_held([*root, "unshare", "--net"])) for _ in range(2)))
        peer = ["type", "veth", "peer", "name", "veth0", "netns", str(hosts.client)]
        hosts.ip(hosts.agent, "link", "add", "veth0", *peer)
        for host, address in ((hosts.agent, AGENT), (hosts.client, CLIENT)):
            hosts.ip(host, "addr", "add", f"{address}/24", "dev", "veth0")
            hosts.ip(host, "link", "set", "veth0", "up")
            hosts.ip(host, "link", "set", "lo", "up")
        for host in (hosts.agent, hosts.client):
            hosts.wait_until_up(host)
        yield hosts


@pytest.fixture
def remote_agent(hosts: Hosts, tmp_path: Path) -> Iterator[dict[str, object]]:
    """Runs an agent on the first host that listens for the second; yields the content of its session file."""
    file = tmp_path / "agent.json"
    command = hosts.on(hosts.agent, str(paths.wherryd()), "--session-file", str(file))
    command += ["--listen", f"{AGENT}:0", "--flight", f"{AGENT}:0", "--log-level", "warn", "--budget", "256MiB"]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 300
        while not file.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield json.loads(file.read_text())
    finally:
        process.terminate()
        assert process.wait(timeout=10) == 0


def _client(hosts: Hosts, agent: dict[str, object], transport: str) -> subprocess.Popen[str]:
    # The separate PID namespace, as on another machine, prevents the use of shared memory and CMA.
    own = 'mount --make-rprivate /proc && mount -t proc proc /proc && exec "$@"'
    command = hosts.on(hosts.client, "unshare", "--pid", "--fork", "--mount", "--propagation", "unchanged")
    command += ["sh", "-c", own, "sh", sys.executable, "-c", CLIENT_PROGRAM]
    command += [f"{agent['host']}:{agent['port']}", str(agent["token"]), transport]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(90)
def test_offload_over_tcp_between_two_hosts(hosts: Hosts, remote_agent: dict[str, object]) -> None:
    with _client(hosts, remote_agent, "auto") as client:
        assert client.stdout
        assert client.stdin
        said = json.loads(client.stdout.readline())
        assert said["transports"] == "stream/tcp"
        assert said["heap"] == "emulated", "a get over TCP is emulated: the docs say so"
        assert said["progress"], "emulated gets need the client's progress thread"
        assert not said["mapped"]
        assert said["sequences"] == [0, 1, 2, 3]

        # A stock Flight client on the client's host reads the frames.
        reader = textwrap.dedent(
            """
            import sys
            import numpy as np
            import pyarrow.flight as flight

            client = flight.connect(sys.argv[1])
            options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + sys.argv[2].encode())])
            rows = [len(chunk.data) for chunk in client.do_get(flight.Ticket(b"net"), options)]
            assert rows == [1, 700_001, 1_400_001, 2_100_001], rows
            batch = client.do_get(flight.Ticket(b"net"), options).read_all()
            assert np.array_equal(batch["x"].to_numpy()[-2_100_001:], np.arange(2_100_001, dtype=np.float64))
            print("read")
            """
        )
        command = hosts.on(hosts.client, sys.executable, "-c", reader)
        command += [str(remote_agent["flight"]), str(remote_agent["token"])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.stdout.strip() == "read", done.stderr
        client.stdin.write("\n")
        client.stdin.close()
        assert client.wait(timeout=20) == 0


@pytest.mark.timeout(90)
def test_an_agent_that_cannot_be_reached_any_more_is_not_said_to_be_gone(
    hosts: Hosts, remote_agent: dict[str, object]
) -> None:
    address = f"{remote_agent['host']}:{remote_agent['port']}"
    program = textwrap.dedent(
        """
        import sys, time, numpy, wherry
        session = wherry.Session(agent=sys.argv[1], token=sys.argv[2])
        stream = session.stream("net", {"x": numpy.zeros(1)})
        print("ready", flush=True)
        sys.stdin.readline()
        while True:
            try:
                stream.offload({"x": numpy.zeros(1)}, timeout=0.2).wait(0.2)
            except wherry.errors.DeadlineExceeded:
                continue
            except wherry.errors.Error as error:
                print(error, flush=True)
                break
        """
    )
    command = hosts.on(hosts.client, sys.executable, "-c", program, address, str(remote_agent["token"]))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as client:
        assert client.stdin
        assert client.stdout
        assert client.stdout.readline() == "ready\n"
        hosts.ip(hosts.agent, "link", "set", "veth0", "down")
        client.stdin.write("\n")
        client.stdin.flush()
        said = client.stdout.readline()
        assert f"the agent at {address}" in said
        assert "cannot be reached any more" in said
        client.kill()


@pytest.mark.timeout(60)
def test_shared_memory_by_name_between_hosts_is_an_error(hosts: Hosts, remote_agent: dict[str, object]) -> None:
    with _client(hosts, remote_agent, "shm") as client:
        said, _ = client.communicate(timeout=300)
    answer = json.loads(said)
    assert answer["error"] == "Unsupported"
    assert "shm" in answer["message"]
