# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that posts one dataset: parts_rank.py SESSION_FILE STREAM STEPS VICTIM AT.

Its rank and the number of ranks come from the MPI launcher. Rank VICTIM kills itself with SIGKILL in step AT. The
others continue until the stream reports that steps cannot become complete. Each prints how many steps it has completed.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import wherry

ROWS = 2000
WAIT = 300.0


def values(rank: int, tag: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of rank `rank` in step `tag`: ids, and a pair of numbers for each."""
    ids = np.arange(rank, 4 * (ROWS + 10 * rank), 4, dtype=np.int64)
    return ids, np.sin(np.outer(ids + tag, [0.5, 0.25]))


def main() -> None:
    file, stream_name, steps, victim, at = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
    ids, pairs = values(rank, 0)
    with wherry.Session(file, name=f"rank{rank}") as session:
        data = {"id": ids, "pair": pairs}
        stream = session.stream(stream_name, data, keep_frames=0, part=rank, parts=size)
        step = stream.bind(data)
        done = 0
        try:
            for tag in range(1, steps + 1):
                pairs[:] = values(rank, tag)[1]
                ticket = step.post(tag, timeout=WAIT)
                if (rank, tag) == (victim, at):
                    os.kill(os.getpid(), signal.SIGKILL)
                ticket.wait(WAIT)
                done = tag
        except wherry.Unavailable as error:
            print(f"rank {rank}: {done} steps, then: {error}", flush=True)
        else:
            print(f"rank {rank}: {done} steps", flush=True)


if __name__ == "__main__":
    main()
