# SPDX-License-Identifier: Apache-2.0
"""Teaches: many ranks, one dataset. Each rank is a process with its own session. It binds its arrays once, and posts
them each step. When all ranks have posted a step, a reader sees it as one table."""

import multiprocessing
import sys

import numpy as np

import wherry

RANKS, STEPS, ROWS = 3, 5, 10_000


def rank(agent: str, number: int) -> None:
    """Runs one rank of a job; under MPI, `number` is comm.Get_rank()."""
    x = np.zeros(ROWS)
    with wherry.Session(agent, name=f"rank{number}") as session:
        stream = session.stream("field", {"x": x}, part=number, parts=RANKS)
        step = stream.bind({"x": x})
        for tag in range(STEPS):
            x[:] = 100 * tag + number
            step.post(tag).wait(60)


def main() -> None:
    """Starts the ranks, and reads what they post."""
    with wherry.Session() as session:  # this session's agent serves the ranks, too
        agent = session.info.session_file
        spawn = multiprocessing.get_context("spawn")
        ranks = [spawn.Process(target=rank, args=(agent, number)) for number in range(RANKS)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        if any(process.exitcode for process in ranks):
            sys.exit("a rank failed")
        for frame in wherry.open("field", agent, follow=False):
            table = frame.table
            print(f"step {frame.tag}: {table.num_rows} rows of {len(frame.batches)} ranks")
            wanted = np.repeat(100.0 * frame.tag + np.arange(RANKS), ROWS)
            assert np.array_equal(table["x"].to_numpy(), wanted)
            assert frame.sequence == frame.tag
        assert frame.tag == STEPS - 1


if __name__ == "__main__":
    main()
