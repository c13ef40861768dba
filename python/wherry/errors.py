# SPDX-License-Identifier: Apache-2.0
"""Wherry's exceptions. Each class is derived from `Error`."""


class Error(RuntimeError):
    """Base of all of Wherry's exceptions. The message gives the exact cause and the remedy."""


class WouldBlock(Error):
    """Back-pressure: the call did nothing; call again later."""


class InvalidArgument(Error, ValueError):
    """An argument of the call is wrong."""


class NotFound(Error):
    """There is no agent, stream, frame, key or file of that name."""


class AlreadyExists(Error):
    """A stream or an agent of that name exists already."""


class Unsupported(Error):
    """Wherry does not support the type, transport or option that the message names."""


class FailedPrecondition(Error):
    """The object's state does not allow the call, for example because a stream is closed."""

    version: int
    """The version that a conditional write found in the store, 0 if the key does not exist. Not set by other calls."""


class DeadlineExceeded(Error, TimeoutError):
    """The time limit of the call has passed. The operation may still take effect."""


class ResourceExhausted(Error):
    """A limit is reached, for example by a frame larger than the agent's budget."""


class SourceFault(Error):
    """The agent could not read the host's memory."""


class BenchError(Error, ValueError):
    """A benchmark failed, or a file is not a benchmark's JSON. The message names the file, the wrong field and the
    expected value."""


class Cancelled(Error):
    """The operation was cancelled: its stream or session was closed first, or the offload's own deadline passed."""


class Unavailable(Error):
    """No agent or node answers: it does not run, or it died."""


class PermissionDenied(Error):
    """The token is wrong, or the operating system denies access."""


class VersionMismatch(Error):
    """Client and agent have different versions."""
