# SPDX-License-Identifier: Apache-2.0
"""Tickets of offloads, and what keeps the sources of those in flight."""

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
    """A posted offload. The sources stay referenced, and must stay unchanged, until it is ready."""

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

        Raises what became of the offload: SourceFault, ResourceExhausted, Cancelled, Unavailable, ...
        DeadlineExceeded: it is still in flight, and may be waited for again.
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
    """Seconds, as C++ takes them; None: for ever."""
    return _FOREVER if timeout is None else arguments.seconds("timeout", timeout)


def time_to_give_up(deadline: float) -> float:
    """Seconds, as C++ takes an offload's deadline."""
    limit = arguments.seconds("deadline", deadline)
    if limit > 0:
        return limit
    raise InvalidArgument(f"deadline is {deadline}: want seconds, more than 0, or None")


class InFlight:
    """Keeps the sources of offloads that the agent may still read, whoever else drops them: tickets, streams or the
    session. Every stream of a session holds it; when the last of them goes, the session ends before the sources do."""

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
        """At the end of the interpreter, which frees sources in any order."""
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
            self._tickets.clear()  # tickets hold the session, too
            self._core = None  # waits for what is in flight, 2 s at most, then cuts the agent off
            del sources


_sessions: weakref.WeakSet[InFlight] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    with suppress(KeyboardInterrupt):  # not waited for, then
        for in_flight in list(_sessions):
            in_flight.finish()
