# SPDX-License-Identifier: Apache-2.0
"""Wherry: move data off the host CPU. `Session` offloads data; `open` and `flight_client` read it. `wherry --help`
describes the command line."""

from wherry import errors, lazy, version
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

TYPE_CHECKING = False  # importing `typing` takes milliseconds; Ctrl-C during that time shows a traceback
if TYPE_CHECKING:
    from wherry.move import (
        Session,
        Step,
        Stream,
        Ticket,
        dataset,
        flight_client,
        flight_frames,
        open,
        schema_of,
        streams,
    )

__version__ = version.VERSION

_OF_MOVE = (
    "Session",
    "Step",
    "Stream",
    "Ticket",
    "dataset",
    "flight_client",
    "flight_frames",
    "open",
    "schema_of",
    "streams",
)
if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(__name__, {"wherry.move": _OF_MOVE})

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
    "Step",
    "Stream",
    "Ticket",
    "Unavailable",
    "Unsupported",
    "VersionMismatch",
    "WouldBlock",
    "dataset",
    "errors",
    "flight_client",
    "flight_frames",
    "open",
    "schema_of",
    "streams",
]
