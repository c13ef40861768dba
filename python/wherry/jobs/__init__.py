# SPDX-License-Identifier: Apache-2.0
"""Whole jobs, each one command: an application, Wherry, and an independent reader that checks what arrived."""

from wherry.errors import Error


class JobFailed(Error):
    """A job did not do what it has to; the message says what."""
