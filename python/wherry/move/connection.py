# SPDX-License-Identifier: Apache-2.0
"""Connects readers to an agent with the local reader's protocol: one connection to the agent's socket, the mapping of
its arena, and leases of frames."""

from __future__ import annotations

import collections
import json
import mmap
import os
import socket
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from wherry.errors import Error, FailedPrecondition, PermissionDenied, ResourceExhausted, Unavailable, VersionMismatch
from wherry.session import Agent as Agent
from wherry.session import find_agents as find_agents
from wherry.session import locate as locate

_VERSION = 2  # version of the local reader's protocol
REPLY_TIMEOUT_S = 10.0
"""The time limit of a reply, in addition to the wait that the request contains."""
_MAX_REPLY = 1 << 24


def _connect_unix(connection: socket.socket, path: Path) -> None:
    """Connects also to a path longer than the 107 bytes of a socket address, through a descriptor of its directory."""
    if len(os.fsencode(path)) < 108:
        connection.connect(os.fspath(path))
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


def flight_of(agent: Agent) -> tuple[str, str]:
    """The address of the agent's Flight server, and the required token. Raises the errors of locate(); Error if the
    agent has no Flight server."""
    session = locate(agent)
    if session.flight is None:
        raise Error(f"the agent of {session.path} serves no Arrow Flight: start it with --flight 127.0.0.1:0")
    return session.flight, session.token


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """Runs in a child after fork(). Disconnects the child, so that the agent notices the parent's end even if the child
    lives."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for connection in list(_connections):
        with suppress(OSError, AttributeError):
            if (descriptor := connection._socket.fileno()) >= 0:
                os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_leave_to_the_parent)


class Connection:
    """One connection to the agent's local socket, and the mapping of its arena. Thread-safe.

    Requests and replies alternate under one lock. Destructors return leases on any thread at any time, even on the
    thread that holds the lock. So returned leases are queued, and the current or next holder of the lock sends them.
    """

    def __init__(self, agent: Agent, timeout: float) -> None:
        """Connects to the agent. Raises the errors of locate(), Unavailable, PermissionDenied, Error."""
        self._lock = threading.Lock()
        self._returned: collections.deque[int] = collections.deque()
        self._leases = 0  # leases granted and not returned; the lock guards this and all attributes below
        self._unread = 0  # requests whose replies were not read yet: more than one after Ctrl-C
        self._input = bytearray()
        self._closing = False
        self._closed = False
        self._pid = os.getpid()
        self.session = session = locate(agent)
        _connections.add(self)
        if session.local_socket is None:
            raise Error(f"the agent of {session.path} offers no local socket: read it through wherry.flight_client()")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.settimeout(timeout)
            try:
                _connect_unix(self._socket, session.local_socket)
            except OSError as error:
                raise Unavailable(
                    f"no agent at {session.local_socket} ({error.strerror or error}), which {session.path} names; "
                    f"`wherry agent status` tells more"
                ) from None
            self._arena = self._greet()
        except BaseException:
            self._shut()
            raise
        self.address: int = self._arena.ctypes.data
        self.arena_bytes = int(self._arena.size)

    def _greet(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """Sends the token, and maps the arena whose descriptor comes with the answer. The returned array owns the
        mapping."""
        where = self.session.path
        descriptors: list[int] = []
        try:
            self._send({"token": self.session.token, "version": _VERSION})
            while b"\n" not in self._input:
                data, received, _, _ = socket.recv_fds(self._socket, 4096, 4, socket.MSG_CMSG_CLOEXEC)
                descriptors.extend(received)
                if not data:
                    raise Error(f"the agent of {where} closed the connection before it answered")
                self._input += data
            reply = self._take_line()
            if not reply.get("ok"):
                reason = _reason(reply)
                kind = (
                    PermissionDenied if "token" in reason else VersionMismatch if "version" in reason else Unavailable
                )
                raise kind(f"the agent of {where} refused this reader: {reason}")
            size = reply.get("arena_bytes")
            if not isinstance(size, int) or size <= 0 or len(descriptors) != 1:
                raise Error(f"the agent sent no arena ({len(descriptors)} descriptors, arena_bytes {size!r})")
            if os.fstat(descriptors[0]).st_size < size:
                raise Error(f"the agent's arena is smaller than the {size} bytes that it names")
            mapping = mmap.mmap(descriptors[0], size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        except TimeoutError:
            raise Error(f"the agent of {where} did not answer") from None
        except ConnectionError as error:
            raise Error(f"the agent of {where} broke the connection: {error.strerror}") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return np.frombuffer(mapping, dtype=np.uint8)

    def request(self, message: dict[str, Any], wait_s: float = 0.0) -> dict[str, Any]:
        """Sends one request and returns its reply. Raises Error if the agent refuses, disconnects or does not
        answer."""
        if self._inherited():
            raise FailedPrecondition(
                f"this reader was opened by process {self._pid}, of which this process is a fork: open a reader here"
            )
        with self._lock:
            if self._closing or self._closed:
                raise Error("the reader was closed, or has lost its agent")
            self._give_back_locked()
            reply = self._exchange(message, wait_s)
        self._give_back()
        if not reply.get("ok"):
            kind = ResourceExhausted if reply.get("code") == "resource_exhausted" else Error
            raise kind(f"the agent refused {message.get('op')!r}: {_reason(reply)}")
        return reply

    def give_back(self, lease: int) -> None:
        """Queues the release of a lease. It is sent now, or after the request in progress."""
        self._returned.append(lease)
        self._give_back()

    def close(self) -> None:
        """Closes the socket as soon as no frame is in use."""
        if self._inherited():
            self._socket.close()
            return
        with self._lock:
            self._closing = True
            self._give_back_locked()
        self._give_back()

    def _inherited(self) -> bool:
        """Whether a parent process opened the connection. The lock may then stay held in this process, by a thread that
        exists only in the parent."""
        return self._pid != os.getpid()

    def _give_back(self) -> None:
        if self._inherited():
            self._returned.clear()
            return
        # Checks the queue again after the lock is released: meanwhile another thread may have queued an item and
        # returned, because it could not get the lock.
        while self._returned and self._lock.acquire(blocking=False):
            try:
                self._give_back_locked()
            finally:
                self._lock.release()

    def _give_back_locked(self) -> None:
        while self._returned:
            lease = self._returned.popleft()
            self._leases -= 1
            if self._closed:
                continue
            try:
                self._exchange({"op": "release", "lease": lease}, 0.0)
            except Error:
                pass  # the agent has ended, so its leases no longer exist
        if self._closing and self._leases == 0:
            self._shut()

    def _exchange(self, message: dict[str, Any], wait_s: float) -> dict[str, Any]:
        agent = f"the agent of {self.session.path} (pid {self.session.pid})"
        try:
            self._socket.settimeout(wait_s + REPLY_TIMEOUT_S)
            self._send(message)
            self._unread += 1
            while True:
                while b"\n" not in self._input:
                    data = self._socket.recv(1 << 16)
                    if not data:
                        self._shut()
                        raise Error(f"{agent} has gone")
                    self._input += data
                    if len(self._input) > _MAX_REPLY:
                        self._shut()
                        raise Error("the agent's reply does not end: this is not the local reader's protocol")
                reply = self._take_line()
                self._unread -= 1
                if isinstance(reply.get("lease"), int):
                    self._leases += 1
                if self._unread == 0:
                    return reply
                if isinstance(reply.get("lease"), int):  # reply to an interrupted request
                    self._returned.append(reply["lease"])
        except TimeoutError:
            raise Error(f"{agent} does not answer") from None
        except OSError as error:
            self._shut()
            raise Error(f"{agent} has gone: {error.strerror}") from None

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _take_line(self) -> dict[str, Any]:
        line, _, rest = bytes(self._input).partition(b"\n")
        self._input = bytearray(rest)
        try:
            reply = json.loads(line)
        except ValueError:
            raise Error(f"the agent's reply is not JSON: {line[:80]!r}") from None
        if not isinstance(reply, dict):
            raise Error(f"the agent's reply is not a JSON object: {line[:80]!r}")
        return reply

    def _shut(self) -> None:
        self._closed = True
        self._socket.close()

    def __del__(self) -> None:
        with suppress(Exception):  # no lease exists at this point, because leases hold the connection
            self._socket.close()


def _reason(reply: dict[str, Any]) -> str:
    return str(reply.get("error") or "no reason given")


class Lease:
    """The right to read one frame. Arrow buffers hold the lease. When the last buffer is freed, the memory returns to
    the agent."""

    __slots__ = ("_connection", "_number")

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number

    def __del__(self) -> None:
        with suppress(Exception):  # at interpreter shutdown, modules may no longer exist
            self._connection.give_back(self._number)
