# SPDX-License-Identifier: Apache-2.0
"""A small key-value store for tests of clients: one node on the loopback interface that answers kv frames."""

from __future__ import annotations

import random
import socket
import threading
from types import TracebackType

from wherry.kv.generated.frame import Kind, Kv, ReplyDetail, Status


class Store:
    """One node that leads every slot. `loss`: the fraction of datagrams that it drops in each direction."""

    def __init__(self, loss: float = 0.0, seed: int = 1) -> None:
        self.table: dict[int, tuple[int, bytes]] = {}
        self.versions: dict[int, int] = {}
        self.records: dict[int, tuple[int, int, Status]] = {}
        self.epoch = 1
        self.full = False
        self.silent = False
        self.executed = 0
        self._loss = loss
        self._random = random.Random(seed)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.02)
        self.name = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                data, sender = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            if self.silent or len(data) < Kv.BYTES or self._random.random() < self._loss:
                continue
            reply = self._answer(Kv.unpack(data[: Kv.BYTES]), data[Kv.BYTES :])
            if reply is not None and self._random.random() >= self._loss:
                self._socket.sendto(reply, sender)

    def _answer(self, request: Kv, value: bytes) -> bytes | None:
        out = Kv(
            kind=request.kind + 16,
            epoch=self.epoch,
            client=request.client,
            request=request.request,
            key=request.key,
        )
        found, data = self.table.get(request.key, (0, b""))
        status, reply = Status.OK, b""
        if request.kind == Kind.LANE:
            out.key, out.version, status = self.records.get(request.client, (0, 0, Status.OK))
        elif request.kind == Kind.READ:
            out.version, reply = found, data
            status = Status.OK if found else Status.NO_SUCH_KEY
        elif request.kind != Kind.PING:
            if request.epoch != self.epoch:
                status = Status.STALE_EPOCH
            else:
                number, out.version, status = self.records.get(request.client, (0, 0, Status.OK))
                ahead = (request.request - number) & 0xFFFFFFFF
                if ahead >= 1 << 31:
                    return None
                if ahead:
                    out.version, status = self._execute(request, found, value)
                    self.records[request.client] = (request.request, out.version, status)
        out.detail = ReplyDetail(status=status).pack()[0]
        return out.pack() + reply

    def _execute(self, request: Kv, found: int, value: bytes) -> tuple[int, Status]:
        self.executed += 1
        removes = request.kind in (Kind.REMOVE, Kind.REMOVE_IF)
        if removes and not found:
            return 0, Status.NO_SUCH_KEY
        if request.kind in (Kind.WRITE_IF, Kind.REMOVE_IF) and request.version != found:
            return found, Status.VERSION_MISMATCH
        if self.full and not found:
            return 0, Status.TABLE_FULL
        version = self.versions.get(request.key, 0) + 1
        self.versions[request.key] = version
        if removes:
            del self.table[request.key]
        else:
            self.table[request.key] = (version, value)
        return version, Status.OK
