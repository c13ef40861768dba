# SPDX-License-Identifier: Apache-2.0
"""Agents for tests: wherryd, and a scripted agent for local readers that counts requests, and misbehaves or dies on
demand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.errors import Error
from wherry.session import sessionfile

TOKEN = "6f6e6520746f6b656e"

Reply = dict[str, Any]


def process_exists(pid: int) -> bool:
    """Whether process `pid` runs. A zombie, whose parent has not waited for it yet, does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Agent:
    """A running wherryd for one test."""

    def __init__(self, directory: Path, program: Path, *arguments: str) -> None:
        self.session_file = directory / "agent.json"
        self.log = directory / "agent.out"
        line = [str(program), "--session-file", str(self.session_file), "--budget", "256MiB", *arguments]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(line, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f"wherryd ended with {self.process.returncode}: {self.log.read_text()}")
            try:
                self.session = sessionfile.load_session(self.session_file)
                break
            except Error:
                if time.monotonic() > deadline:
                    self.stop()
                    raise AssertionError(f"wherryd was not ready: {self.log.read_text()}") from None
                time.sleep(0.01)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
            try:
                self.process.wait(timeout=300)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


class LocalAgent:
    """The agent's side of the local readers' protocol (src/move/service/local_reader.hpp), with frames in a memfd.

    `leases` are the leases that readers hold; `log` has every request after the greeting.
    """

    def __init__(self, path: Path, token: str, arena_bytes: int = 1 << 20) -> None:
        self.token = token
        self.arena_bytes = arena_bytes
        self.memory = os.memfd_create("arena")
        os.ftruncate(self.memory, arena_bytes)
        self.frames: list[Reply] = []
        self.open = True
        self.leases: set[int] = set()
        self.released: list[int] = []
        self.log: list[Reply] = []
        self.answer: Callable[[Reply], Reply | bytes | None] = lambda _: None
        """Replaces the answer to a request: a reply, raw bytes, or None for the usual answer."""
        self.changed = threading.Condition()
        self._used = 0
        self._next_lease = 0
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._start(self._accept)

    def add(self, batch: pa.RecordBatch, *, tag: int = 0, sequence: int | None = None) -> None:
        """Adds a frame as a complete Arrow IPC stream, at an offset that is a multiple of 64 bytes."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue().to_pybytes()
        offset = -(-self._used // 64) * 64
        os.pwrite(self.memory, data, offset)
        self._used = offset + len(data)
        with self.changed:
            number = (self.frames[-1]["sequence"] + 1 if self.frames else 0) if sequence is None else sequence
            self.frames.append(
                {"sequence": number, "tag": tag, "rows": batch.num_rows, "offset": offset, "bytes": len(data),
                 "transfer_ns": 1000 + number, "source_bytes": batch.nbytes}
            )  # fmt: skip
            self.changed.notify_all()

    def end(self) -> None:
        """The stream ends."""
        with self.changed:
            self.open = False
            self.changed.notify_all()

    def wait_for_leases(self, count: int) -> bool:
        """Waits up to a minute until readers hold `count` leases; whether they do."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.leases) == count, timeout=60)

    def break_connections(self) -> None:
        """Breaks all connections, as the readers see it when the agent dies."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_connections()
        for thread in self._threads:
            thread.join(timeout=300)
        for connection in self._connections:
            connection.close()
        os.close(self.memory)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        held: set[int] = set()
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            hello = json.loads(lines.readline() or b"{}")
            replaced = self.answer({"op": "hello", **hello})
            if replaced is None and hello.get("token") != self.token:
                replaced = {"ok": False, "error": "wrong token"}
            if replaced is not None:
                connection.sendall(replaced if isinstance(replaced, bytes) else json.dumps(replaced).encode() + b"\n")
                connection.shutdown(socket.SHUT_RDWR)
                return
            greeting = json.dumps({"ok": True, "arena_bytes": self.arena_bytes}).encode() + b"\n"
            socket.send_fds(connection, [greeting], [self.memory])
            for line in lines:
                request = json.loads(line)
                self.log.append(request)
                reply = self.answer(request)
                if reply is None:
                    reply = self._usual(request, held)
                connection.sendall(reply if isinstance(reply, bytes) else json.dumps(reply).encode() + b"\n")
        with self.changed:
            self.leases -= held
            self.changed.notify_all()

    def _usual(self, request: Reply, held: set[int]) -> Reply:
        if request["op"] == "list":
            stream = {
                "name": "s",
                "strategy": "ipc",
                "open": self.open,
                "generation": 3,
                "first": 0,
                "evicted_unread": 0,
                "sink_errors": 0,
                "sink_error": "",
            }
            stream |= {
                "next": len(self.frames),
                "held_frames": len(self.frames),
                "held_rows": 0,
                "held_bytes": self._used,
            }
            return {"ok": True, "streams": [stream | {"total_frames": len(self.frames), "total_bytes": self._used}]}
        with self.changed:
            if request["op"] == "release":
                self.released.append(request["lease"])
                held.discard(request["lease"])
                self.leases.discard(request["lease"])
                self.changed.notify_all()
                return {"ok": True}
            wanted = request["sequence"]
            found: list[Reply] = []

            def ready() -> bool:
                found[:] = [frame for frame in self.frames if frame["sequence"] >= wanted][:1]
                return bool(found) or not self.open

            self.changed.wait_for(ready, timeout=request["timeout_ms"] / 1000)
            if not found:
                return {"ok": True, "what": "timeout" if self.open else "end"}
            self._next_lease += 1
            held.add(self._next_lease)
            self.leases.add(self._next_lease)
            self.changed.notify_all()
            skipped = found[0]["sequence"] - wanted
            return {
                "ok": True,
                "what": "frame",
                "lease": self._next_lease,
                "skipped": skipped,
                "generation": 3,
                **found[0],
            }
