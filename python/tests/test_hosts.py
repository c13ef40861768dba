# SPDX-License-Identifier: Apache-2.0
"""`wherry run --hosts` with a fake ssh that starts the other end on this machine, and with OpenSSH if it is
installed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Jobs, built, eventually

from wherry.errors import InvalidArgument
from wherry.route.hosts import Host, parse_hosts

SSH = """#!/usr/bin/env bash
# A stand-in: every host is this machine, and the forwarded socket a link to the real one.
while [[ $1 == -* ]]; do
  case $1 in
    -o) echo "$2" >>"$SAID"; shift 2 ;;
    -R) ln -s "${2#*:}" "${2%%:*}" || exit 255; shift 2 ;;
    *) echo "ssh: unexpected $1" >&2; exit 255 ;;
  esac
done
[[ $1 != unreachable ]] || { echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255; }
shift
exec env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" UCX_LOG_LEVEL=fatal "$MARKED" sh -c "$*"
"""


@pytest.fixture
def there(jobs: Jobs, tmp_path: Path) -> Jobs:
    """Replaces ssh, so that any host name works. Processes started by it also have the mark."""
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    said = tmp_path / "said"
    jobs.environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SAID": str(said), "MARKED": jobs.mark}
    return jobs


RANK = "bootstrap_rank"


def ranks(output: str) -> list[tuple[int, int]]:
    """Rank and node of each rank that printed them."""
    return sorted((int(r), int(n)) for r, n in re.findall(r"rank (\d+) of \d+ node (\d+) job", output))


def running(jobs: Jobs) -> list[int]:
    """Pids of ranks."""
    return [pid for pid, line in jobs.processes(RANK).items() if line.startswith(built(RANK))]


def nothing_in_tmp(before: set[Path]) -> bool:
    return set(Path("/tmp").glob("wherry-run-*")) <= before


# ---- the list


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", [Host("a")]),
        ("a,me@b.c", [Host("a"), Host("me@b.c")]),
        ("a=10.0.0.1,b=fe80::1", [Host("a", "10.0.0.1"), Host("b", "fe80::1")]),
        ("127.0.0.1,127.0.0.2", [Host("127.0.0.1"), Host("127.0.0.2")]),
    ],
)
def test_lists_of_hosts(text: str, hosts: list[Host]) -> None:
    assert parse_hosts(text) == hosts


def test_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# two\na\n\n b=10.0.0.2  # the second\n")
    assert parse_hosts(str(file)) == [Host("a"), Host("b", "10.0.0.2")]


@pytest.mark.parametrize("text", ["", ",", "a,,b", "-oProxyCommand=x", "a b", "a;b", "a=", "=b", "/nonexistent/hosts"])
def test_what_is_no_list_of_hosts_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgument, match="--hosts"):
        parse_hosts(text)


# ---- jobs


@pytest.mark.agent
@pytest.mark.parametrize("placement", ["inline", "shared"])
def test_each_host_is_a_node(there: Jobs, placement: str) -> None:
    before = set(Path("/tmp").glob("wherry-run-*"))
    words = ["--hosts", "one=127.0.0.1,two=127.0.0.1", "--ranks-per-node", "2", "--placement", placement]
    done = there.run(*words, "--", built(RANK), "exchange", "leave", "messages")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert len(re.findall(rf"rank \d of 4 on node [01] of 2, placement {placement}", done.stdout)) == 4
    assert all(re.match(r"\[[0-3]\] ", line) for line in done.stdout.splitlines()), "whole lines with their rank"
    assert "\0" not in done.stdout
    assert eventually(lambda: nothing_in_tmp(before))


@pytest.mark.agent
def test_an_application_has_the_result_that_it_has_on_one_machine(there: Jobs) -> None:
    program = ["--", built("../apps/histogram"), "--counters", "4096", "--updates", "20000"]
    here = there.run("--ranks-per-node", "2", *program)
    hosts = there.run("--hosts", "one,two,three", *program)
    assert hosts.returncode == 0, hosts.stderr
    sums = re.findall(r'"checksum": ?"(\w+)"', here.stdout + hosts.stdout)
    assert len(sums) == 2
    assert len(set(sums)) == 1


@pytest.mark.agent
@pytest.mark.parametrize(("how", "status"), [("exit=5", 5), ("kill", 137)])
def test_a_rank_that_dies_ends_the_job(there: Jobs, how: str, status: int) -> None:
    done = there.run("--hosts", "one,two", "--", built(RANK), "exchange", f"1:{how}", "sleep=300000")
    assert done.returncode == status, done.stderr
    assert "rank 1 " in done.stderr.splitlines()[-1]
    there.expect_nothing_left()


@pytest.mark.agent
def test_an_agent_that_dies_ends_the_job(there: Jobs) -> None:
    process = there.start(
        "--hosts", "one=127.0.0.1,two=127.0.0.1", "--placement", "shared", "--", built(RANK), "sleep=300000"
    )
    with process:
        assert eventually(lambda: len(running(there)) == 2)
        os.kill(next(iter(there.processes("wherryd"))), signal.SIGKILL)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 137, err
    assert "the agent of node" in err.splitlines()[-1]
    there.expect_nothing_left()


@pytest.mark.agent
@pytest.mark.parametrize("victim", ["connection", "launcher"])
def test_nothing_runs_on_without_its_connection(there: Jobs, victim: str) -> None:
    process = there.start("--hosts", "one,two", "--", built(RANK), "exchange", "sleep=300000")
    with process:
        assert eventually(lambda: len(running(there)) == 2)
        # The fake ssh has become the other end, so its death ends the connection, as with the real ssh.
        pid = process.pid if victim == "launcher" else next(iter(there.processes("run-part")))
        os.kill(pid, signal.SIGKILL)
        _, err = process.communicate(timeout=300)
    if victim == "connection":
        assert process.returncode == 1
        assert re.search(r"the connection to (one|two) has ended", err.splitlines()[-1])
    there.expect_nothing_left()


@pytest.mark.agent
def test_ctrl_c_ends_all(there: Jobs) -> None:
    process = there.start("--hosts", "one,two", "--placement", "inline", "--", built(RANK), "exchange", "sleep=300000")
    with process:
        assert eventually(lambda: len(running(there)) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "wherry run: interrupted"
    there.expect_nothing_left()


def test_a_host_that_cannot_be_reached_is_named(there: Jobs) -> None:
    done = there.run("--hosts", "one,unreachable", "--", built(RANK), "exchange")
    assert done.returncode == 1
    assert "the connection to unreachable has ended (status 255): ssh: connect to host" in done.stderr.splitlines()[-1]


def test_a_program_that_is_not_there_is_named(there: Jobs) -> None:
    done = there.run("--hosts", "one", "--", "./nothing", "exchange")
    assert done.returncode == 1
    assert "one: ./nothing is not a program there" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--hosts", "a", "--netns"], "--netns"),
        (["--hosts", "a,b", "--nodes", "3"], "--nodes 3"),
        (["--hosts", "a", "--placement", "dpu"], "dpu"),
        (["--hosts", "a", "--rsh", "no-such-program"], "no-such-program"),
    ],
)
def test_what_does_not_go_together_is_an_error(there: Jobs, words: list[str], said: str) -> None:
    done = there.run(*words, "--", built(RANK), "exchange")
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_key_of_the_job_is_in_no_command_line(there: Jobs) -> None:
    process = there.start("--hosts", "one", "--", built(RANK), "exchange", "sleep=300000")
    with process:
        assert eventually(lambda: len(running(there)) == 1)
        variables = Path(f"/proc/{running(there)[0]}/environ").read_bytes().split(b"\0")
        (key,) = [one.partition(b"=")[2].decode() for one in variables if one.startswith(b"WHERRY_JOB_KEY=")]
        assert len(key) == 64
        assert not any(key in line for line in there.processes().values())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)


def test_the_other_end_refuses_what_is_no_part() -> None:
    for line in (b"", b"{}\n", b"[]\n", b'{"node": 1}\n', b"\xff\n"):
        done = subprocess.run(
            [sys.executable, "-m", "wherry", "run-part"], input=line, capture_output=True, timeout=300, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith(b'\0{"failed": "this is the other end of'), done.stdout


# ---- OpenSSH

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.fixture
def openssh(jobs: Jobs, tmp_path: Path) -> Iterator[list[str]]:
    """Words for --rsh that connect to this test's own ssh server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in ("host_key", "key"):
        line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(line, check=True, stdin=subprocess.DEVNULL)
    (tmp_path / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host_key\nPidFile {tmp_path}/pid\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path}/key.pub\nAllowStreamLocalForwarding yes\nPermitRootLogin yes\n"
        f"SetEnv {jobs.mark} PYTHONPATH={jobs.environment['PYTHONPATH']}\n"
    )
    server = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(tmp_path / "sshd.conf")], stderr=subprocess.DEVNULL)

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
            return True
        return False

    try:
        assert eventually(listens)
        yield ["ssh", "-p", str(port), "-i", str(tmp_path / "key"), "-o", "StrictHostKeyChecking=no", "-F", "none"]
    finally:
        server.terminate()
        server.wait()


@pytest.mark.agent
@pytest.mark.may_lack
@pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="no OpenSSH here (openssh-server, -client)")
def test_openssh(jobs: Jobs, openssh: list[str], tmp_path: Path) -> None:
    before = set(Path("/tmp").glob("wherry-run-*"))
    rsh = " ".join([*openssh, "-o", f"UserKnownHostsFile={tmp_path}/known"])
    words = ["--hosts", "127.0.0.1,localhost=127.0.0.1", "--rsh", rsh, "--ranks-per-node", "2", "--placement", "shared"]
    done = jobs.run(*words, "--", built(RANK), "exchange", "leave", "messages")
    assert done.returncode == 0, done.stderr
    assert ranks(done.stdout) == [(0, 0), (1, 0), (2, 1), (3, 1)]
    died = jobs.run(*words, "--", built(RANK), "exchange", "2:kill", "sleep=300000")
    assert died.returncode == 137, died.stderr
    assert "rank 2 was killed" in died.stderr
    assert eventually(lambda: nothing_in_tmp(before))
    jobs.expect_nothing_left()
