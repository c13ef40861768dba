# SPDX-License-Identifier: Apache-2.0
"""Wherry's exceptions. Each of them is an `Error`."""


class Error(RuntimeError):
    """Base of all of Wherry's exceptions. The message gives the exact cause and the remedy."""


class WouldBlock(Error):
    """Back-pressure: nothing happened, so call again later."""


class InvalidArgument(Error, ValueError):
    """The call is wrong."""


class NotFound(Error):
    """No agent, stream, frame or file of that name."""


class AlreadyExists(Error):
    """A stream or an agent of that name is there already."""


class Unsupported(Error):
    """A type, transport or option that Wherry does not offer, by name."""


class FailedPrecondition(Error):
    """The right call at the wrong moment."""

    version: int
    """The version that a conditional write to the store found, 0 if there is no such key. Not set for other calls."""


class DeadlineExceeded(Error, TimeoutError):
    """The call's time is over. The operation may still take effect."""


class ResourceExhausted(Error):
    """Larger than the agent's budget can ever hold."""


class SourceFault(Error):
    """The agent could not read the host's memory."""


class BenchError(Error, ValueError):
    """A benchmark failed, or a file is not a benchmark's JSON. The message names the file, the place in it, and the
    expected value."""


class Cancelled(Error):
    """The stream or session was closed first, or the offload's own deadline was over."""


class Unavailable(Error):
    """There is no agent, or it died."""


class PermissionDenied(Error):
    """Wrong token."""


class VersionMismatch(Error):
    """Client and agent are of different versions."""
