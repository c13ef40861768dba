# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, by what is broken. Every exception of Wherry is an `Error`."""


class Error(RuntimeError):
    """Base of all of Wherry's exceptions; the message says the exact cause and what to do."""


class WouldBlock(Error):
    """Back-pressure: nothing happened, call again later."""


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
    """Of a conditional write to the store: the version found, 0 if there is no such key. Otherwise not set."""


class DeadlineExceeded(Error, TimeoutError):
    """The call's time is over; what it waited for may still come about."""


class ResourceExhausted(Error):
    """Larger than the agent's budget can ever hold."""


class SourceFault(Error):
    """The agent could not read the host's memory."""


class BenchError(Error, ValueError):
    """A benchmark failed, or its JSON is not what a benchmark writes: the message names the file, the place in it, and
    what was expected."""


class Cancelled(Error):
    """The stream or session was closed first, or the offload's own deadline was over."""


class Unavailable(Error):
    """There is no agent, or it died."""


class PermissionDenied(Error):
    """Wrong token."""


class VersionMismatch(Error):
    """Client and agent are of different versions."""
