# SPDX-License-Identifier: Apache-2.0
"""Wherry: move data off the host CPU. `Session` offloads, `open` and `flight_client` read; `wherry --help` is the
command line."""

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

TYPE_CHECKING = False  # `typing` takes milliseconds to import, in which Ctrl-C would show a traceback
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
if not TYPE_CHECKING:  # so that a checker of types knows which names there are
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
