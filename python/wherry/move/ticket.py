# SPDX-License-Identifier: Apache-2.0
"""Tickets of offloads, and the object that keeps the source arrays of offloads in flight."""

from __future__ import annotations

import atexit
import collections
import math
import os
import sys
import weakref
from contextlib import suppress
from typing import Any

import wherry._native._core as _core
from wherry import arguments
from wherry.errors import Error, InvalidArgument

_FOREVER = math.inf
_AT_EXIT_S = 10.0


class Ticket:
    """A posted offload. Until the ticket is ready, it references the source arrays, which must not change.

    Any thread may use a ticket.
    """

    __slots__ = ("_core", "_sources")

    def __init__(self, core: _core.Ticket, sources: Any) -> None:
        self._core = core
        self._sources = sources

    def ready(self) -> bool:
        """Whether the offload is complete or failed, so that the sources may be changed. Makes no system call. Unlike
        wait(), does not notice that the agent died."""
        done = self._core.ready()
        if done:
            self._sources = None
        return done

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the sources may be changed, for at most `timeout` seconds (None: as long as the agent lives).

        Raises the failure of the offload: SourceFault, ResourceExhausted, Cancelled, Unavailable, ... DeadlineExceeded:
        the offload is still in flight, and you may wait again.
        """
        try:
            self._core.wait(time_limit(timeout))
        finally:
            self.ready()

    @property
    def transfer_ns(self) -> int:
        """Nanoseconds from the first get until the last byte arrived, on the agent's clock. Valid after success."""
        return self._core.transfer_ns

    @property
    def sequence(self) -> int:
        """The frame's number in its stream. Valid after success."""
        return self._core.sequence


def time_limit(timeout: float | None) -> float:
    """A timeout in the form for C++, in seconds. None: no limit."""
    return _FOREVER if timeout is None else arguments.seconds("timeout", timeout)


def time_to_give_up(deadline: float) -> float:
    """An offload's deadline in the form for C++, in seconds."""
    limit = arguments.seconds("deadline", deadline)
    if limit > 0:
        return limit
    raise InvalidArgument(f"deadline is {deadline}: want seconds, more than 0, or None")


class InFlight:
    """Keeps the source arrays that the agent may still read, even if the tickets, the streams or the session are
    destroyed. Every stream of a session holds this object. When the last stream is destroyed, the session ends before
    the sources are freed."""

    __slots__ = ("__weakref__", "_core", "_owner", "_tickets")

    def __init__(self, core: _core.Session) -> None:
        self._core: _core.Session | None = core
        self._owner = os.getpid()
        self._tickets: collections.deque[Ticket] = collections.deque()
        _sessions.add(self)

    def add(self, ticket: Ticket) -> None:
        """Keeps the ticket's sources."""
        self._tickets.append(ticket)

    def forget_finished(self) -> None:
        """Drops the references to sources of finished offloads, oldest first."""
        with suppress(IndexError):  # no ticket is left
            while (first := self._tickets.popleft()).ready():
                pass
            self._tickets.appendleft(first)

    def finish(self) -> None:
        """Waits for offloads in flight at interpreter exit, because the interpreter then frees sources in any order."""
        core = self._core
        if core is None or self._owner != os.getpid():  # a child of fork() has no offloads
            return
        try:
            if core.in_flight() != 0:
                core.drain(_AT_EXIT_S)
        except Error as error:
            print(f"wherry: at the end of the process: {error}", file=sys.stderr)

    def __del__(self) -> None:
        with suppress(Exception):  # errors during interpreter shutdown
            sources = [ticket._sources for ticket in self._tickets]
            self._tickets.clear()  # tickets also reference the session
            self._core = None  # ends the session: waits at most 2 s for offloads in flight, then disconnects
            del sources


_sessions: weakref.WeakSet[InFlight] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    with suppress(KeyboardInterrupt):  # Ctrl-C ends the wait
        for in_flight in list(_sessions):
            in_flight.finish()
