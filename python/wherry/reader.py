# SPDX-License-Identifier: Apache-2.0
"""Reading what was offloaded: on the agent's machine without a copy, from anywhere else through Arrow Flight.

    for frame in wherry.open("particles"):          # follows the stream until it ends
        print(frame.tag, frame.batch.num_rows)      # frame.batch lies in the agent's memory

    client, options = wherry.flight_client()
    for metadata, batch in wherry.flight_frames(client, options, "particles"):
        print(metadata["tag"], batch.num_rows)

A frame that somebody reads is never taken away: its memory goes back to the agent when the last array made from it is
gone. Keep arrays for as long as they are needed, not longer; copy what must stay (`numpy.copy`, `to_pandas` do).
Readers may hold half of the agent's memory (`agent.reader_budget`); one that asks for more gets an Error.
"""

from __future__ import annotations

import collections
import json
import mmap
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from wherry import sessionfile
from wherry.errors import (
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    VersionMismatch,
)
from wherry.sessionfile import SessionFile
from wherry.system import arguments

if TYPE_CHECKING:
    import pyarrow.flight as flight

_VERSION = 1  # of the local reader's protocol
_SLICE_MS = 50  # a wait for the next frame is cut into slices, so that releases by other threads get through
_REPLY_TIMEOUT_S = 10.0  # beyond the wait that the request itself asks for
_MAX_REPLY = 1 << 24


class Located(Protocol):
    """A wherry.Session: it knows the session file of its agent."""

    @property
    def info(self) -> Any:
        """wherry.SessionInfo: its `session_file` is looked at."""


Agent = str | os.PathLike[str] | SessionFile | Located | None
"""Which agent: the path of its session file, that file loaded, a wherry.Session; None: $WHERRY_AGENT or the default."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream as its agent sees it. Frames held are [first, next) without those that were evicted in between."""

    name: str
    strategy: str
    open: bool
    """More frames may come."""
    first: int
    """Sequence number of the oldest frame held."""
    next: int
    """Sequence number of the next frame to come."""
    held_frames: int
    held_rows: int
    held_bytes: int
    total_frames: int
    total_bytes: int
    evicted_unread: int
    """Frames that went before anybody had read them."""
    sink_errors: int
    """Frames that did not become a file, though the stream has a sink."""
    sink_error: str
    """Why the first of them did not; empty: all did."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One offload, in the agent's memory."""

    batch: pa.RecordBatch
    """Shape (rows, fields). Read-only views; valid as long as any of them lives, also after the reader was closed."""
    sequence: int
    """0, 1, ... within the stream."""
    tag: int
    """The application's own number: a time step, say."""
    rows: int
    skipped: int
    """Frames that were evicted before this reader came to them, directly before this one."""
    transfer_ns: int
    """First get issued to last byte in place, on the agent's clock."""
    source_bytes: int
    """Moved from the host."""


def locate(agent: Agent = None) -> SessionFile:
    """The session file of `agent`, loaded and checked. Raises NotFound, Unavailable, sessionfile.BadSessionFile,
    VersionMismatch."""
    if isinstance(agent, SessionFile):
        return agent
    if agent is None:
        named = os.environ.get("WHERRY_AGENT", "")
        if named in ("", "auto", "embedded"):
            return sessionfile.load()
        agent = named
    if isinstance(agent, str | os.PathLike):
        text = os.fspath(agent)
        host, _, port = text.rpartition(":")
        if host and port.isdigit() and not Path(text).exists():
            raise Unavailable(f"{text} is an address: readers need the path of the agent's session file")
        return sessionfile.load(text)
    path = str(getattr(agent.info, "session_file", ""))
    if not path:
        raise Unavailable("the session was opened by address: readers need the path of its agent's session file")
    return sessionfile.load(path)


def _connect_unix(connection: socket.socket, path: Path) -> None:
    """Also where the path is longer than the 107 bytes of an address: through a descriptor of its directory."""
    if len(os.fsencode(path)) < 108:
        connection.connect(os.fspath(path))
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


_connections: weakref.WeakSet[_Connection] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a child of fork(): the agent shall see the parent's end, whatever the child does."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for connection in list(_connections):
        with suppress(OSError, AttributeError):
            if (descriptor := connection._socket.fileno()) >= 0:
                os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


os.register_at_fork(after_in_child=_leave_to_the_parent)


class _Connection:
    """One connection to the agent's local socket, and the mapping of its arena. Thread-safe.

    Requests and replies alternate under one lock. Leases are given back by destructors: on any thread, at any time,
    also while the same thread holds the lock. So they are queued, and sent by whoever can take the lock or holds it
    already.
    """

    def __init__(self, session: SessionFile, timeout: float) -> None:
        self._lock = threading.Lock()
        self._returned: collections.deque[int] = collections.deque()
        self._leases = 0  # granted by the agent and not given back; guarded by the lock, as everything below
        self._unread = 0  # requests sent whose replies were not read: more than one after an interruption (Ctrl-C)
        self._input = bytearray()
        self._closing = False
        self._closed = False
        self._pid = os.getpid()
        self.session = session
        _connections.add(self)
        if session.local_socket is None:
            raise Error(f"{session!r} offers no local socket: read it through wherry.flight_client()")
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
        """Presents the token; maps the arena whose descriptor comes with the answer. The array holds the mapping."""
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
        """Sends one request and returns its reply. Raises Error if the agent refuses, breaks off or is silent."""
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
        """Queues the release of a lease, and sends it now or when the request in progress is done."""
        self._returned.append(lease)
        self._give_back()

    def close(self) -> None:
        """Closes the socket, once every frame that is still in use has been given back."""
        if self._inherited():
            self._socket.close()
            return
        with self._lock:
            self._closing = True
            self._give_back_locked()
        self._give_back()

    def _inherited(self) -> bool:
        """Whether a parent opened it. Its lock may be held for ever here, by a thread that only the parent has."""
        return self._pid != os.getpid()

    def _give_back(self) -> None:
        if self._inherited():
            self._returned.clear()
            return
        # The queue is looked at again after the lock was let go: whoever queued in between found it taken, and left.
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
                pass  # the agent has gone, and its leases with it
        if self._closing and self._leases == 0:
            self._shut()

    def _exchange(self, message: dict[str, Any], wait_s: float) -> dict[str, Any]:
        agent = f"the agent of {self.session.path} (pid {self.session.pid})"
        try:
            self._socket.settimeout(wait_s + _REPLY_TIMEOUT_S)
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
                if isinstance(reply.get("lease"), int):  # the answer to a request that was interrupted
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
        with suppress(Exception):  # nobody holds a lease any more: leases hold the connection
            self._socket.close()


def _reason(reply: dict[str, Any]) -> str:
    return str(reply.get("error") or "no reason given")


class _Lease:
    """The right to read one frame. Arrow buffers hold it: with the last of them the agent gets the memory back."""

    __slots__ = ("_connection", "_number")

    def __init__(self, connection: _Connection, number: int) -> None:
        self._connection = connection
        self._number = number

    def __del__(self) -> None:
        with suppress(Exception):  # interpreter shutdown: modules may be gone already
            self._connection.give_back(self._number)


class StreamReader:
    """Iterates over the frames of one stream, in order, each once.

    One thread at a time may iterate; frames may go to any thread, and stay readable after the reader was closed.
    """

    def __init__(
        self,
        name: str,
        agent: Agent = None,
        *,
        follow: bool = True,
        from_sequence: int = 0,
        timeout: float | None = None,
    ) -> None:
        self.name = arguments.text("name", name)
        self.follow = bool(follow)
        self.timeout = None if timeout is None else arguments.seconds("timeout", timeout, 0)
        self.next_sequence = arguments.number("from_sequence", from_sequence, 0, arguments.U64)
        self._generation: int | None = None  # of the stream that was read: another one may take over its name
        self._ended = False
        session = locate(agent)
        self._connection = _Connection(session, _REPLY_TIMEOUT_S)
        if not any(stream.name == name for stream in _list(self._connection, name)):
            known = _list(self._connection)
            self._connection.close()
            names = ", ".join(sorted(stream.name for stream in known)) or "none yet"
            raise NotFound(f"no stream {name!r} at {session!r}; streams: {names}")

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        frame = None if self._ended else self.read(self.timeout)
        if frame is None:
            self._ended = True
            raise StopIteration
        return frame

    def read(self, timeout: float | None = None) -> Frame | None:
        """The next frame; None at the stream's end (follow=False: or when all held frames were read).

        Blocks up to `timeout` seconds (None: for ever) when the reader follows. Raises DeadlineExceeded; NotFound
        when the stream was dropped meanwhile; ResourceExhausted when readers hold all that they may
        (agent.reader_budget): release frames, or copy them; Error when the agent has gone.
        """
        deadline = None if timeout is None else time.monotonic() + arguments.seconds("timeout", timeout)
        while True:
            wait_ms = 0
            if self.follow:
                wait_ms = _SLICE_MS
                if deadline is not None:
                    wait_ms = max(0, round(min(wait_ms, (deadline - time.monotonic()) * 1000)))
            question = {"op": "next", "stream": self.name, "sequence": self.next_sequence, "timeout_ms": wait_ms}
            if self._generation is not None:
                question["generation"] = self._generation
            reply = self._connection.request(question, wait_ms / 1000)
            what = reply.get("what")
            if what == "frame":
                return self._frame(reply)
            if what == "end":
                return None
            if what == "no_stream":
                raise NotFound(f"the agent has no stream {self.name!r} any more")
            if what != "timeout":
                raise Error(f"the agent answered {what!r} to a request for the next frame of {self.name!r}")
            if not self.follow:
                return None
            if deadline is not None and time.monotonic() >= deadline:
                raise DeadlineExceeded(f"no frame of {self.name!r} after {self.next_sequence - 1} within {timeout} s")

    def _frame(self, reply: dict[str, Any]) -> Frame:
        connection = self._connection
        try:
            lease = _Lease(connection, int(reply["lease"]))  # from here on, given back whatever happens
            offset, size = int(reply["offset"]), int(reply["bytes"])
            if offset < 0 or size < 0 or offset + size > connection.arena_bytes:
                raise Error(f"a frame at {offset}, {size} bytes, is outside of the {connection.arena_bytes} mapped")
            memory = pa.foreign_buffer(connection.address + offset, size, base=lease)
            with pa.ipc.open_stream(pa.BufferReader(memory)) as stream:
                batch = stream.read_next_batch()
            frame = Frame(
                batch=batch,
                sequence=int(reply["sequence"]),
                tag=int(reply["tag"]),
                rows=int(reply["rows"]),
                skipped=int(reply["skipped"]),
                transfer_ns=int(reply["transfer_ns"]),
                source_bytes=int(reply["source_bytes"]),
            )
        except (pa.ArrowException, OSError, StopIteration) as error:  # before ValueError, which ArrowInvalid is
            where = f"frame {reply.get('sequence')} of {self.name!r}"
            raise Error(f"{where} is not an Arrow IPC stream: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise Error(f"the agent's answer for {self.name!r} cannot be used: {error!r}") from None
        self.next_sequence = frame.sequence + 1
        self._generation = reply.get("generation")
        return frame

    def close(self) -> None:
        """Ends the iteration, and leaves the agent as soon as no frame is in use any more. Idempotent."""
        self._ended = True
        self._connection.close()

    def __enter__(self) -> StreamReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(
    name: str,
    agent: Agent = None,
    *,
    follow: bool = True,
    from_sequence: int = 0,
    timeout: float | None = None,
) -> StreamReader:
    """Opens stream `name` for reading without a copy, on the agent's machine.

    follow: wait for frames to come until the stream ends; False: stop after those that the agent holds now.
    from_sequence: the first frame wanted; older ones are not read, and evicted ones are counted in Frame.skipped.
    timeout: seconds that the iteration waits for one frame, None for ever; then DeadlineExceeded.

    Raises NotFound (no agent, no such stream), Unavailable, PermissionDenied, VersionMismatch, Error.
    """
    return StreamReader(name, agent, follow=follow, from_sequence=from_sequence, timeout=timeout)


def streams(agent: Agent = None) -> list[StreamStatus]:
    """All streams of the agent, by name. Raises as open() does."""
    connection = _Connection(locate(agent), _REPLY_TIMEOUT_S)
    try:
        return _list(connection)
    finally:
        connection.close()


def _list(connection: _Connection, only: str = "") -> list[StreamStatus]:
    """Of all streams, or of the one of that name."""
    reply = connection.request({"op": "list", "stream": only} if only else {"op": "list"})
    names = StreamStatus.__dataclass_fields__
    try:
        found = [StreamStatus(**{name: entry[name] for name in names}) for entry in reply["streams"]]
    except (KeyError, TypeError) as error:
        raise Error(f"the agent's list of streams cannot be used: {error!r}") from None
    return sorted(found, key=lambda stream: stream.name)


def flight_client(agent: Agent = None) -> tuple[flight.FlightClient, flight.FlightCallOptions]:
    """A Flight client of the agent, and the call options that present its token: `client.list_flights(b"", options)`.

    Connects on the first call. Raises as locate() does; Error when the agent serves no Flight.
    """
    import pyarrow.flight as flight

    session = locate(agent)
    if session.flight is None:
        raise Error(f"{session!r} serves no Arrow Flight: start the agent with --flight 127.0.0.1:0")
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer " + session.token.encode())])
    # The token is for the agent, not for a proxy that the environment may name.
    return flight.FlightClient(session.flight, generic_options=[("grpc.enable_http_proxy", 0)]), options


def flight_frames(
    client: flight.FlightClient,
    options: flight.FlightCallOptions,
    name: str,
    follow: bool = True,
    from_sequence: int = 0,
    count: int | None = None,
) -> Iterator[tuple[dict[str, Any], pa.RecordBatch]]:
    """Yields (metadata, batch) for each frame of stream `name`, in order; at most `count` of them.

    metadata: {"sequence", "tag", "rows", "skipped", "transfer_ns", "source_bytes"}. The batch is the client's own copy.
    A frame of more than 1 GiB comes as several batches, whose metadata have a further key "first_row".
    Raises PermissionDenied, NotFound; Unavailable when it cannot be reached; ResourceExhausted when other readers hold
    all that readers may (agent.reader_budget) for 10 s; DeadlineExceeded after the options' timeout; Error when it
    breaks off.
    """
    import pyarrow.flight as flight

    wanted: dict[str, Any] = {
        "stream": arguments.text("name", name),
        "from": arguments.number("from_sequence", from_sequence, 0, arguments.U64),
        "follow": bool(follow),
    }
    if count is not None:
        wanted["count"] = count
    ticket = flight.Ticket(json.dumps(wanted).encode())
    try:
        stream = client.do_get(ticket, options)
        try:
            while True:
                try:
                    chunk = stream.read_chunk()
                except StopIteration:
                    return
                if chunk.data is None:
                    continue
                if chunk.app_metadata is None:
                    raise Error(f"a batch of {name!r} came without its metadata: this is not a Wherry agent")
                yield json.loads(chunk.app_metadata.to_pybytes()), chunk.data
        finally:
            with suppress(pa.ArrowException):
                stream.cancel()
    except (flight.FlightUnauthenticatedError, flight.FlightUnauthorizedError) as error:
        raise PermissionDenied(f"the agent refused the token: {_first_line(error)}") from None
    except flight.FlightTimedOutError as error:
        kind = ResourceExhausted if error.extra_info == b"resource_exhausted" else DeadlineExceeded
        raise kind(f"reading {name!r} stopped: {_first_line(error)}") from None
    except flight.FlightUnavailableError as error:
        raise Unavailable(f"no agent answers, or it has gone: {_first_line(error)}") from None
    except flight.FlightCancelledError as error:
        raise Error(f"reading {name!r} was cancelled: {_first_line(error)}") from None
    except (pa.ArrowKeyError, pa.ArrowInvalid, flight.FlightServerError) as error:
        text = _first_line(error)
        if isinstance(error, KeyError) or "not found" in text.lower() or "no stream" in text.lower():
            raise NotFound(f"the agent has no stream {name!r}: {text}") from None
        raise Error(f"reading {name!r} failed: {text}") from None
    except flight.FlightError as error:
        raise Error(f"reading {name!r} failed: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    """An Arrow error without the trace of source lines and the gRPC debug context that follow it."""
    text = str(error.args[0]) if error.args else str(error)
    return text.strip("'\"").splitlines()[0].split(". gRPC client debug context")[0].split(". Client context:")[0]
