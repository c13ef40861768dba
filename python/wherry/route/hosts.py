# SPDX-License-Identifier: Apache-2.0
"""The hosts of `wherry run --hosts`. The launcher starts, signals and watches a host's ranks through one connection to
it.

The connection is an ssh process that runs `wherry run-part` on the host (wherry.route.part). Its standard input carries
a line of JSON, the part, and then one line for each order. Its standard output carries the ranks' lines, and reports,
which begin with a zero byte. ssh forwards the job's bootstrap socket, so the job's key and the bootstrap data are
encrypted.
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
"""The first byte of a report, which is a line of a part's standard output that does not come from a rank."""
PASSED_ON = ("WHERRY_", "UCX_", "OMP_")
"""Prefixes of the environment variables that ranks on other hosts get from the launcher."""
SSH_OPTIONS = (
    "BatchMode=yes",  # ssh must not ask questions
    "ExitOnForwardFailure=yes",
    "StreamLocalBindUnlink=yes",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)
_NAME = re.compile(r"(?P<name>[A-Za-z0-9_][\w.@:-]*|\[[0-9a-fA-F:.]+\])(?:=(?P<address>[\w.:-]+))?")


@dataclass(frozen=True)
class Host:
    """A host that acts as a node. `name`: for ssh. `address`: for other hosts; empty: the address that the name has on
    the host."""

    name: str
    address: str = ""


def parse_hosts(text: str) -> list[Host]:
    """Parses "a,b" or "a=10.0.0.1,b=10.0.0.2", or a file with one such entry per line and # for comments.

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
    """The working directory of the program, if it exists on the host."""
    address: str
    """The host's address or name, at which other hosts reach it."""
    environment: dict[str, str] = field(default_factory=dict)
    """The ranks' environment variables. Each rank also gets its number."""
    wherry: str = VERSION

    def line(self) -> bytes:
        """The line for the other end's standard input. It is not an argument, because it contains the job's key."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def parse(line: bytes) -> Part:
        """Parses such a line. Raises InvalidArgument."""
        try:
            part = Part(**json.loads(line))
        except (ValueError, TypeError):
            raise InvalidArgument("this is the other end of `wherry run --hosts`, which starts it") from None
        if part.wherry != VERSION:
            raise InvalidArgument(f"wherry {VERSION} is here, wherry {part.wherry} where the job was started")
        return part


class RemoteProcess:
    """A rank or an agent on another host. The launcher uses it like system.Process."""

    stdout = stderr = None

    def __init__(self, name: str, number: int, connection: Connection) -> None:
        """`number`: the rank, or -1 for the agent."""
        self.name, self.number = name, number
        self.status: int | None = None
        self._connection = connection

    def poll(self) -> int | None:
        """The exit status, if the host has reported the end of the process."""
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process and its children."""
        if self.status is None:
            self._connection.order({"signal": int(number), "to": self.number})

    def unwatch(self) -> None:
        """Does nothing, because only the connection watches the process."""

    def close(self) -> None:
        """Does nothing, because the host ends the process when the connection closes."""


class Connection:
    """The connection to one host. Needs a running event loop."""

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
        """`bootstrap`: the local bootstrap socket, which ssh forwards to another name in the host's /tmp. `ended`:
        called when a process there ends; `failed(why)`: when the connection or the start there fails; `lost`: when
        standard output fails."""
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
        """Closes the other end's standard input, so that it ends its processes and then itself."""
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except OSError:
                pass  # the connection has ended

    def _write(self, line: bytes) -> None:
        stdin = self.process.stdin
        if stdin is None or stdin.closed:
            return
        try:
            stdin.write(line)
            stdin.flush()
        except OSError:
            pass  # the connection is ending, which _gone() reports

    def _report(self, line: bytes) -> bool:
        """Handles a report. Returns False for a line of a rank."""
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
        """Remembers ssh's own messages for errors. All lines are also passed on."""
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
                one.status = -int(signal.SIGKILL)  # the host can no longer report
        if any(one in running for one in self.ranks):
            said = f": {self._said.decode(errors='replace').strip()}" if self._said else ""
            self._failed(f"the connection to {self.host.name} has ended (status {status}){said}")


def rsh_command(text: str) -> list[str]:
    """The command of --rsh as a list. Raises NotFound."""
    words = shlex.split(text)
    if not words or shutil.which(words[0]) is None:
        raise NotFound(f"--rsh {text}: no such program; hosts are reached by ssh (package openssh-client)")
    return words
