# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that counts the bytes that a server sends, whichever client uses it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Wire:
    """Relays every connection to `port` on this machine to the address `to`."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._lock = threading.Lock()
        self._received = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def taken(self) -> int:
        """Bytes from the server since the last call."""
        with self._lock:
            received, self._received = self._received, 0
            return received

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
            except OSError:
                return
            self._ends += [near, far]
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                if counted:
                    with self._lock:  # before the client can read it
                        self._received += len(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends all connections."""
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextlib.contextmanager
def wire(to: tuple[str, int]) -> Iterator[Wire]:
    """A relay that runs until the `with` block ends."""
    relay = Wire(to)
    try:
        yield relay
    finally:
        relay.close()
