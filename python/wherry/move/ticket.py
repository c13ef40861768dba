# SPDX-License-Identifier: Apache-2.0
"""Tickets of offloads, and the owner of their source arrays while they are in flight."""

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
    """A posted offload. The sources stay referenced, and must not change, until it is ready.

    Any thread may use it.
    """

    __slots__ = ("_core", "_sources")

    def __init__(self, core: _core.Ticket, sources: Any) -> None:
        self._core = core
        self._sources = sources

    def ready(self) -> bool:
        """Whether the sources may be changed (or the offload failed). No system call. Does not notice that the agent
        died: wait() does."""
        done = self._core.ready()
        if done:
            self._sources = None
        return done

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the sources may be changed, `timeout` seconds at most (None: for as long as the agent lives).

        Raises the failure of the offload: SourceFault, ResourceExhausted, Cancelled, Unavailable, ... DeadlineExceeded:
        it is still in flight, and you may wait for it again.
        """
        try:
            self._core.wait(time_limit(timeout))
        finally:
            self.ready()

    @property
    def transfer_ns(self) -> int:
        """Nanoseconds from the first get to the last byte in place, on the agent's clock. After success."""
        return self._core.transfer_ns

    @property
    def sequence(self) -> int:
        """The frame's number in its stream. After success."""
        return self._core.sequence


def time_limit(timeout: float | None) -> float:
    """Seconds, in C++'s form. None: for ever."""
    return _FOREVER if timeout is None else arguments.seconds("timeout", timeout)


def time_to_give_up(deadline: float) -> float:
    """An offload's deadline in seconds, in C++'s form."""
    limit = arguments.seconds("deadline", deadline)
    if limit > 0:
        return limit
    raise InvalidArgument(f"deadline is {deadline}: want seconds, more than 0, or None")


class InFlight:
    """Keeps the sources of offloads that the agent may still read, even if tickets, streams or the session drop them.
    Every stream of a session holds it. When the last of them is destroyed, the session ends before the sources do."""

    __slots__ = ("__weakref__", "_core", "_owner", "_tickets")

    def __init__(self, core: _core.Session) -> None:
        self._core: _core.Session | None = core
        self._owner = os.getpid()
        self._tickets: collections.deque[Ticket] = collections.deque()
        _sessions.add(self)

    def add(self, ticket: Ticket) -> None:
        """Keeps its sources."""
        self._tickets.append(ticket)

    def forget_finished(self) -> None:
        """Drops the references to sources that are free, oldest first."""
        with suppress(IndexError):  # none is left
            while (first := self._tickets.popleft()).ready():
                pass
            self._tickets.appendleft(first)

    def finish(self) -> None:
        """Runs at the end of the interpreter, which frees sources in any order."""
        core = self._core
        if core is None or self._owner != os.getpid():  # a child of fork() has none
            return
        try:
            if core.in_flight() != 0:
                core.drain(_AT_EXIT_S)
        except Error as error:
            print(f"wherry: at the end of the process: {error}", file=sys.stderr)

    def __del__(self) -> None:
        with suppress(Exception):  # interpreter shutdown
            sources = [ticket._sources for ticket in self._tickets]
            self._tickets.clear()  # tickets hold the session as well
            self._core = None  # waits for offloads in flight, 2 s at most, then disconnects the agent
            del sources


_sessions: weakref.WeakSet[InFlight] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    with suppress(KeyboardInterrupt):  # not waited for, then
        for in_flight in list(_sessions):
            in_flight.finish()
