# SPDX-License-Identifier: Apache-2.0
"""Wherry: move data off the host CPU. `Session` offloads, `open` and `flight_client` read; `wherry --help` is the
command line."""

from typing import TYPE_CHECKING, Any

from wherry import errors
from wherry.errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    SourceFault,
    Unavailable,
    Unsupported,
    VersionMismatch,
    WouldBlock,
)

if TYPE_CHECKING:
    from wherry._columns import schema_of
    from wherry.reader import flight_client, flight_frames, open, streams
    from wherry.session import Session, Stream, Ticket

__version__ = "0.1.0"

_LAZY = {
    "Session": "session", "Stream": "session", "Ticket": "session", "schema_of": "_columns",
    "open": "reader", "streams": "reader", "flight_client": "reader", "flight_frames": "reader",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads pyarrow and the C++ module only when they are used: `wherry --help` stays quick."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"wherry.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'wherry' has no attribute '{name}'")


__all__ = [
    "AlreadyExists",
    "Cancelled",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "InvalidArgument",
    "NotFound",
    "PermissionDenied",
    "ResourceExhausted",
    "Session",
    "SourceFault",
    "Stream",
    "Ticket",
    "Unavailable",
    "Unsupported",
    "VersionMismatch",
    "WouldBlock",
    "errors",
    "flight_client",
    "flight_frames",
    "open",
    "schema_of",
    "streams",
]
