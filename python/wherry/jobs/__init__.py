# SPDX-License-Identifier: Apache-2.0
"""Whole jobs, each one command: an application, Wherry, and an independent reader that checks what arrived."""


class JobFailed(RuntimeError):
    """A job did not do what it has to; the message says what."""
