# SPDX-License-Identifier: Apache-2.0
"""The entry of the command `wherry`. It catches Ctrl-C before most modules are imported."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def _end_at_once(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def main() -> int:
    """Runs the command line; returns its exit status."""
    # An exception in the middle of an import would show a traceback, or another error instead of KeyboardInterrupt. No
    # cleanup is needed before the command itself begins, nor after it has ended.
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as `nohup` and background jobs of shells want it
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
