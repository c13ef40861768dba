# SPDX-License-Identifier: Apache-2.0
"""Columns that were bound: the same arrays, posted again and again."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from wherry import arguments
from wherry.move.ticket import InFlight, Ticket, time_to_give_up

if TYPE_CHECKING:
    import wherry._native._core as _core


class Step:
    """The same arrays, posted again and again; `Stream.bind` makes it. A post costs the same for any number of columns.

    The step keeps the arrays alive. Each must stay the same memory: change values, and do not resize. `numpy` refuses
    `resize()` while the step lives, unless it is told not to check references; memory that is gone then fails the
    ticket (SourceFault), and memory that was used again for something else is posted as it is.
    """

    __slots__ = ("_core", "_in_flight", "_post", "_sources", "_turn")

    def __init__(self, core: _core.Step, sources: Any, in_flight: InFlight, turn: threading.Lock) -> None:
        self._core = core
        self._post = core.post
        self._sources = sources
        self._in_flight = in_flight
        self._turn = turn  # the stream's

    def post(self, tag: int = 0, deadline: float | None = None, timeout: float = 0.0) -> Ticket:
        """Hands the arrays, as they are now, to the agent and returns at once. Arguments and errors: `Stream.offload`.

        May be called while earlier posts are in flight: each is a frame of its own. Change values only when the latest
        ticket is ready. Raises FailedPrecondition when the stream or the session is closed, or the step released.
        """
        self._in_flight.forget_finished()
        limit = 0.0
        if deadline is not None:
            limit = time_to_give_up(deadline)
        try:
            with self._turn:
                core = self._post(tag, limit, timeout)
        except TypeError:  # numbers of other kinds, numpy's say, or what is none
            tag = arguments.number("tag", tag, 0, arguments.U64)
            timeout = arguments.seconds("timeout", timeout)
            with self._turn:
                core = self._post(tag, limit, timeout)
        ticket = Ticket(core, self._sources)
        self._in_flight.add(ticket)
        return ticket

    def in_flight(self) -> int:
        """Posts of this step that are not complete."""
        return self._core.in_flight()

    def release(self) -> None:
        """Ends it, and lets go of the arrays; the agent may read them until the tickets are ready. Idempotent."""
        with self._turn:
            self._core.release()
        self._sources = None

    def __enter__(self) -> Step:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
