# SPDX-License-Identifier: Apache-2.0
"""The nodes of `wherry run --hosts`: a connection to each, over which its ranks are started, signalled and watched.

The connection is a command (ssh) that runs `wherry run-part` there (wherry.route.part). Its standard input carries one
line of JSON, the part, and then a line for each order. Its standard output carries the ranks' lines, and reports, which
begin with a zero byte. ssh forwards the job's bootstrap socket, so the key and all data under it stay encrypted.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wherry.errors import InvalidArgument, NotFound
from wherry.route.processes import Lines, Process
from wherry.version import VERSION

REPORT = b"\0"
"""Begins a line of a part's standard output that does not come from a rank."""
PASSED_ON = ("WHERRY_", "UCX_", "OMP_")
"""Variables that ranks on other hosts get from here begin with one of these."""
SSH_OPTIONS = (
    "BatchMode=yes",  # no person could answer a question
    "ExitOnForwardFailure=yes",
    "StreamLocalBindUnlink=yes",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)
_NAME = re.compile(r"(?P<name>[A-Za-z0-9_][\w.@:-]*|\[[0-9a-fA-F:.]+\])(?:=(?P<address>[\w.:-]+))?")


@dataclass(frozen=True)
class Host:
    """A host that acts as a node: its name for ssh, and its address for other hosts. Empty: the name's address
    there."""

    name: str
    address: str = ""


def parse_hosts(text: str) -> list[Host]:
    """ "a,b" or "a=10.0.0.1,b=10.0.0.2", or a file with such an entry a line and # for comments.

    Raises InvalidArgument.
    """
    words = text.split(",")
    if "/" in text or Path(text).is_file():
        try:
            lines = Path(text).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"--hosts {text}: {getattr(error, 'strerror', 'it is no text')}") from None
        words = [line.partition("#")[0].strip() for line in lines]
        words = [word for word in words if word]
    hosts = []
    for word in words:
        match = _NAME.fullmatch(word.strip())
        if match is None:
            raise InvalidArgument(
                f"--hosts {text}: {word!r} is no host; say a,b or a=10.0.0.1,b=10.0.0.2, or a file's name"
            )
        hosts.append(Host(match["name"], match["address"] or ""))
    if not hosts:
        raise InvalidArgument(f"--hosts {text}: no host in it")
    return hosts


@dataclass(frozen=True)
class Part:
    """The part of a job on one host."""

    node: int
    ranks: list[int]
    program: list[str]
    placement: str
    cores: str
    directory: str
    """Where the program starts, if this directory exists there."""
    address: str
    """The address of this host for the others, which resolve a name."""
    environment: dict[str, str] = field(default_factory=dict)
    """The ranks' variables. Their number is added."""
    wherry: str = VERSION

    def line(self) -> bytes:
        """For the other end's standard input. It contains the job's key, so it is not an argument."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def parse(line: bytes) -> Part:
        """Raises InvalidArgument."""
        try:
            part = Part(**json.loads(line))
        except (ValueError, TypeError):
            raise InvalidArgument("this is the other end of `wherry run --hosts`, which starts it") from None
        if part.wherry != VERSION:
            raise InvalidArgument(f"wherry {VERSION} is here, wherry {part.wherry} where the job was started")
        return part


class RemoteProcess:
    """A rank or an agent on another host, for the launcher, like system.Process for a local one."""

    stdout = stderr = None

    def __init__(self, name: str, number: int, connection: Connection) -> None:
        """`number`: the rank. -1: the agent."""
        self.name, self.number = name, number
        self.status: int | None = None
        self._connection = connection

    def poll(self) -> int | None:
        """Its status, if it has ended and that was reported."""
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process and to those that it has started."""
        if self.status is None:
            self._connection.order({"signal": int(number), "to": self.number})

    def unwatch(self) -> None:
        """Only its connection watches it."""

    def close(self) -> None:
        """Its host ends it when the connection closes."""


class Connection:
    """To one host. In a running event loop."""

    def __init__(
        self,
        host: Host,
        part: Part,
        rsh: Sequence[str],
        bootstrap: Path,
        ended: Callable[[RemoteProcess], None],
        failed: Callable[[str], None],
        lost: Callable[[OSError], None],
    ) -> None:
        """`bootstrap`: this end's socket. The other end gets it under another name, in /tmp. `ended`: called for a
        process there; `failed(why)`: for the connection, or the start there; `lost`: if standard output fails."""
        self.host, self._ended, self._failed = host, ended, failed
        self.agent: RemoteProcess | None = None
        self.agent_words = ""
        if part.placement in ("shared", "host"):
            self.agent = RemoteProcess(f"the agent of node {part.node}", -1, self)
        self.ranks = [RemoteProcess(f"rank {rank}", rank, self) for rank in part.ranks]
        there = f"/tmp/wherry-run-{secrets.token_hex(16)}"
        part.environment["WHERRY_BOOTSTRAP"] = there
        options = [word for option in SSH_OPTIONS for word in ("-o", option)]
        command = [*rsh, *options, "-R", f"{there}:{bootstrap}", host.name]
        command.append(shlex.join([sys.executable, "-m", "wherry", "run-part"]))
        self.process = Process(
            f"the connection to {host.name}",
            command,
            environment=os.environ,
            cores=os.sched_getaffinity(0),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.lines = [
            Lines(self.process.stdout, 1, b"", lost, self._report),
            Lines(self.process.stderr, 2, b"", lambda _: None, self._heard),
        ]
        self._said = b""
        asyncio.get_running_loop().add_reader(self.process.pidfd, self._gone)
        self._write(part.line())

    def order(self, what: dict[str, Any]) -> None:
        """Sends a line to the other end, if it is connected."""
        self._write(json.dumps(what).encode() + b"\n")

    def hang_up(self) -> None:
        """The other end ends its processes, and then itself."""
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except OSError:
                pass  # it has gone

    def _write(self, line: bytes) -> None:
        stdin = self.process.stdin
        if stdin is None or stdin.closed:
            return
        try:
            stdin.write(line)
            stdin.flush()
        except OSError:
            pass  # it is going: that is noticed, and said

    def _report(self, line: bytes) -> bool:
        """Takes a line that does not come from a rank."""
        if not line.startswith(REPORT):
            return False
        try:
            said = json.loads(line[len(REPORT) :])
            if "failed" in said:
                self._failed(f"{self.host.name}: {said['failed']}")
                return True
            process = (
                self.agent if said["ended"] == -1 else next(one for one in self.ranks if one.number == said["ended"])
            )
            assert process is not None
            if process is self.agent:
                self.agent_words = str(said.get("words", ""))
            process.status = int(said["status"])
        except (ValueError, KeyError, TypeError, StopIteration, AssertionError):
            self._failed(f"{self.host.name} has sent a report that makes no sense")
            return True
        self._ended(process)
        return True

    def _heard(self, line: bytes) -> bool:
        """Remembers ssh's own output, which is also passed on."""
        if not line.startswith(b"["):
            self._said = line
        return False

    def _gone(self) -> None:
        asyncio.get_running_loop().remove_reader(self.process.pidfd)
        status = self.process.poll()
        running = [one for one in (*self.ranks, *([self.agent] if self.agent else [])) if one.status is None]
        for line in self.lines:
            line.stop()
        for one in running:
            if one.status is None:
                one.status = -int(signal.SIGKILL)  # no more messages will come
        if any(one in running for one in self.ranks):
            said = f": {self._said.decode(errors='replace').strip()}" if self._said else ""
            self._failed(f"the connection to {self.host.name} has ended (status {status}){said}")


def rsh_command(text: str) -> list[str]:
    """The words of --rsh. Raises NotFound."""
    words = shlex.split(text)
    if not words or shutil.which(words[0]) is None:
        raise NotFound(f"--rsh {text}: no such program; hosts are reached by ssh (package openssh-client)")
    return words
