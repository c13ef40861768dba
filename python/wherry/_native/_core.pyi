# SPDX-License-Identifier: Apache-2.0
"""What python/src offers to move/session.py. Errors are those of wherry.errors. One thread at a time."""

from typing import Any

import numpy as np

__version__: str

class SessionInfo:
    """What the agent is and what the self-test found."""

    @property
    def agent_version(self) -> str:
        """ "0.1.0"."""
    @property
    def transports(self) -> str:
        """As UCX names them, of the agent's side: "posix/memory cma/memory"."""
    @property
    def heap(self) -> str:
        """Gets from ordinary memory: "one_sided" (without the host's help) or "emulated"."""
    @property
    def allocated(self) -> str:
        """The same of memory from `Session.empty`."""
    @property
    def mapped(self) -> bool:
        """Whether the agent maps that memory: loads instead of gets."""
    @property
    def agent_pid(self) -> int:
        """Its process, on its own machine."""
    @property
    def session_file(self) -> str:
        """The file through which the agent was found, or ""."""
    @property
    def flight_uri(self) -> str:
        """ "grpc://127.0.0.1:12345", or ""."""

class Memory:
    """Memory that Wherry allocated."""

    def array(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]: ...

class Region:
    """Registered memory of a numpy array, which it keeps alive."""

    def unregister(self) -> None:
        """Ends the registration. Raises FailedPrecondition while offloads that read the memory are in flight."""

class Ticket:
    """A posted offload."""

    def ready(self) -> bool: ...
    def wait(self, timeout: float) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def transfer_ns(self) -> int: ...
    @property
    def sequence(self) -> int: ...

class Step:
    """Bound columns, whose memory the caller keeps. `deadline` 0: none."""

    def post(self, tag: int, deadline: float, timeout: float) -> Ticket: ...
    def in_flight(self) -> int: ...
    def release(self) -> None: ...

class Stream:
    """A stream open for writing. `deadline` 0: none. The caller keeps what the columns point to."""

    def post(self, columns: list[Any], tag: int, deadline: float, timeout: float) -> Ticket: ...
    def post_batch(self, array: Any, tag: int, deadline: float, timeout: float) -> Ticket: ...
    def post_raw(self, buffers: list[np.ndarray[Any, Any]], tag: int, deadline: float, timeout: float) -> Ticket: ...
    def bind(self, columns: list[Any]) -> Step: ...
    def bind_batch(self, array: Any) -> Step: ...
    def bind_raw(self, buffers: list[np.ndarray[Any, Any]]) -> Step: ...
    def close(self) -> None: ...
    @property
    def name(self) -> str: ...

class Session:
    """A connection to an agent; what belongs to it keeps it alive."""

    @property
    def info(self) -> SessionInfo: ...
    def allocate(self, bytes: int) -> Memory: ...
    def register(self, array: np.ndarray[Any, Any]) -> Region: ...
    def open_stream(
        self,
        name: str,
        schema: Any | None,
        strategy: str,
        keep_frames: int,
        keep_bytes: int,
        when_full: str,
        sink_dir: str,
        sink_format: str,
        announce: list[int],
        part: int,
        parts: int,
        operators: str,
    ) -> Stream: ...
    def in_flight(self) -> int: ...
    def drain(self, timeout: float) -> None: ...
    def leave(self) -> None: ...

def open_session(
    agent: str,
    token: str,
    name: str,
    transport: str,
    connect_timeout: float,
    max_tickets: int,
    embedded_budget: int,
    embedded_core: int,
    embedded_flight: bool,
    embedded_program: str,
    embedded_args: list[str],
) -> Session: ...
