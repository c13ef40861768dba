# SPDX-License-Identifier: Apache-2.0
"""Explains errors of the operating system in sentences: the failure, the cause, the remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from wherry.errors import Error, InvalidArgument, PermissionDenied, ResourceExhausted

_REMEDIES = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise the quota",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the machine's limit on open files (fs.file-max)",
    errno.ENOMEM: "free some memory, or raise the limits on it (ulimit -v, control group)",
    errno.EAGAIN: "raise the limit on processes (ulimit -u), or that of the control group",
    errno.EROFS: "name another directory",
    errno.EACCES: "name another one, or change its permissions",
    errno.EPERM: "name another one, or change its permissions",
}
RESOURCES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""Errors that mean that the machine lacks a resource or the process reached a limit. They are not faults of the
program."""


def system_error(error: OSError) -> str:
    """The cause of the error and its remedy, such as "No space left on device: free some space there"."""
    why = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{why}: {remedy}" if remedy else why


@contextmanager
def doing(failed: str) -> Iterator[None]:
    """Wraps system calls: converts an OSError to an error of Wherry that begins with `failed`, such as "cannot write
    FILE"."""
    try:
        yield
    except OSError as error:
        if isinstance(error, Error):
            raise
        kind = (
            ResourceExhausted
            if error.errno in RESOURCES
            else PermissionDenied
            if error.errno in (errno.EACCES, errno.EPERM)
            else InvalidArgument
        )
        raise kind(
            f"{failed}: {system_error(error) if str(error.filename) in failed else system_error_at(error)}"
        ) from None


def system_error_at(error: OSError) -> str:
    """Like system_error(), with the file that the error names, if any."""
    file = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    return f"{file}: {system_error(error)}" if file else system_error(error)
