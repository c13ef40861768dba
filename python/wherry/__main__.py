# SPDX-License-Identifier: Apache-2.0
"""The entry point of the command `wherry`. It handles Ctrl-C before it imports most modules."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def _end_at_once(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def main() -> int:
    """Runs the command line; returns its exit status."""
    # A KeyboardInterrupt during an import would show a traceback, or the import would raise another error instead. No
    # cleanup is needed before the command itself begins or after it has ended.
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # SIGINT is ignored: `nohup` and shells set that for background jobs
        from wherry import cli

        return cli.main()
    signal.signal(signal.SIGINT, _end_at_once)
    from wherry import cli

    try:
        signal.signal(signal.SIGINT, before)
        status = cli.main()
        signal.signal(signal.SIGINT, _end_at_once)
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


if __name__ == "__main__":
    raise SystemExit(main())
