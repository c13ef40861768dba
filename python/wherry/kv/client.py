# SPDX-License-Identifier: Apache-2.0
"""A client of the replicated key-value store (docs/design/kv-protocol.md).

    from wherry.kv import Client

    store = Client.of("lab.toml")            # or Client(keepers=["10.0.0.9:19287"])
    version = store.put(7, b"value")
    value, version = store.get(7)
    store.put_if(7, b"other", version)       # FailedPrecondition, with .version, if somebody was faster

Keys are numbers of 64 bits; values have at most 1024 bytes. Every live node has each acknowledged write. Any thread may
use a client; its calls run one at a time. Other threads run while a call waits, and Ctrl-C ends the wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any, Self, SupportsIndex

import wherry._native._kv_core as _core
from wherry import arguments
from wherry.errors import FailedPrecondition, InvalidArgument
from wherry.kv.generated.frame import MAX_LANES

_MOST = 1024
_BUFFERS = bytes | bytearray | memoryview


def _key(key: SupportsIndex) -> int:
    return arguments.number("key", key, 0, arguments.U64)


def _version(version: SupportsIndex) -> int:
    """Checks a version: one that get() or put() returned, or 0 for "no such key"."""
    return arguments.number("version", version, 0, (1 << 32) - 1)


def _value(value: _BUFFERS) -> bytes:
    if not isinstance(value, _BUFFERS):
        raise InvalidArgument(f"a value is bytes, not {type(value).__name__}")
    data = bytes(value)
    if len(data) > _MOST:
        raise InvalidArgument(f"a value of {len(data)} bytes: at most {_MOST}")
    return data


def _deadline(deadline: float) -> float:
    time = arguments.seconds("deadline", deadline)
    if not time > 0:
        raise InvalidArgument(f"deadline is {deadline}: want seconds above 0")
    return time


class Client:
    """A client of the store. It returns its lanes on close(), at the end of a `with` block, and when it is destroyed.

    nodes: "host:port" or "host", in the order of their numbers in the cluster.
    keepers: "host:port" of the keepers, which grant lanes and know the nodes.
    cluster: the cluster file, which names both; see also of().
    first_lane: use static lanes, starting with this one, instead of granted lanes. No other client may use them.
    lanes: how many writes may be in flight at once; 0 for reads only, without a keeper.
    deadline: the default time limit of a call, in seconds.
    reads: the node that reads ask first: "nearest", "round_robin" or "leader".
    spin: wait for answers by polling, which keeps one core busy.
    first_timeout: seconds until a request is sent again. Each further wait is twice as long.
    timeout_cap: the longest wait until a request is sent again, in seconds.
    connect_timeout: seconds to wait until a node serves and a keeper has granted the lanes.
    seed: the random seed of pauses and tags; 0: chosen at random.

    Raises Unavailable if no node serves, or no keeper grants lanes, in time; ResourceExhausted if too few lanes are
    free. Any thread may use a client; its calls run one at a time. A key is from 0 to 2**64 - 1, a value is at most
    1024 bytes, and a deadline is in seconds (None: the client's default).
    """

    def __init__(
        self,
        nodes: Iterable[str] = (),
        *,
        keepers: Iterable[str] = (),
        cluster: str | os.PathLike[str] | None = None,
        first_lane: int | None = None,
        lanes: int = 1,
        deadline: float = 5.0,
        reads: str = "nearest",
        spin: bool = False,
        first_timeout: float = 0.002,
        timeout_cap: float = 0.1,
        connect_timeout: float = 5.0,
        seed: int = 0,
    ) -> None:
        self._deadline = _deadline(deadline)
        self._lock = threading.Lock()
        self._core: _core.Client | None = _core.connect(
            arguments.texts("nodes", nodes),
            "" if cluster is None else arguments.path("cluster", cluster),
            arguments.texts("keepers", keepers),
            None if first_lane is None else arguments.number("first_lane", first_lane, 0, MAX_LANES - 1),
            arguments.number("lanes", lanes, 0, MAX_LANES),
            arguments.text("reads", reads),
            bool(spin),
            arguments.seconds("first_timeout", first_timeout, 0),
            arguments.seconds("timeout_cap", timeout_cap, 0),
            arguments.seconds("connect_timeout", connect_timeout, 0),
            arguments.number("seed", seed, 0, arguments.U64),
        )

    @classmethod
    def of(cls, cluster: str | os.PathLike[str] | None = None, **options: Any) -> Client:
        """A client of the cluster that a file describes.

        The default is $WHERRY_KV_CLUSTER, else the cluster of your newest `wherry kv up`. `options`: arguments of
        Client.
        """
        from wherry.kv import running

        where = running.locate(cluster)
        with running.reached(where):
            return cls(cluster=where.path, **options)

    def close(self) -> None:
        """Returns the lanes. Any later call except another close() raises FailedPrecondition."""
        with self._lock:
            self._core = None

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the client."""
        self.close()

    def _open(self) -> _core.Client:
        if self._core is None:
            raise FailedPrecondition("this client is closed: make another")
        return self._core

    def _seconds(self, deadline: float | None) -> float:
        return self._deadline if deadline is None else _deadline(deadline)

    def get(self, key: SupportsIndex, *, deadline: float | None = None) -> tuple[bytes, int]:
        """Value and version of `key`. Raises NotFound if it does not exist, Unavailable if no node answers within
        `deadline`."""
        number = _key(key)
        with self._lock:
            version, value = self._open().get(number, self._seconds(deadline))
        return value, version

    def put(self, key: SupportsIndex, value: _BUFFERS, *, deadline: float | None = None) -> int:
        """Writes `value`, whether `key` exists or not. Returns the new version.

        Raises ResourceExhausted if the key's bucket has no room. DeadlineExceeded: no answer within `deadline`; the
        write may have taken effect, or may still take effect, once. Unavailable: no answer, and nothing was changed.
        Cancelled: another client writes through this client's lane; the write may have taken effect, once. All writes
        raise these errors.
        """
        number, data = _key(key), _value(value)
        with self._lock:
            version, _ = self._open().put(number, data, self._seconds(deadline))
        return version

    def put_if(
        self, key: SupportsIndex, value: _BUFFERS, version: SupportsIndex, *, deadline: float | None = None
    ) -> int:
        """Writes `value` only if `key` has this `version`. Version 0: only if `key` does not exist. Returns the new
        version.

        Raises FailedPrecondition otherwise, with the version found as `version` (0: the key does not exist). `deadline`
        and other errors: see put().
        """
        number, expected, data = _key(key), _version(version), _value(value)
        with self._lock:
            written, _ = self._open().put_if(number, expected, data, self._seconds(deadline))
        return written

    def remove(self, key: SupportsIndex, *, deadline: float | None = None) -> int:
        """Deletes `key`. Returns the version of the deletion. Raises NotFound if `key` does not exist. `deadline` and
        other errors: see put()."""
        number = _key(key)
        with self._lock:
            version, _ = self._open().remove(number, self._seconds(deadline))
        return version

    def remove_if(self, key: SupportsIndex, version: SupportsIndex, *, deadline: float | None = None) -> int:
        """Deletes `key` only if it has this `version`. Otherwise raises FailedPrecondition, like put_if().

        `deadline` and other errors: see put().
        """
        number, expected = _key(key), _version(version)
        with self._lock:
            removed, _ = self._open().remove_if(number, expected, self._seconds(deadline))
        return removed
