# SPDX-License-Identifier: Apache-2.0
"""Forks while a session is open, for test_fork.py. The argument names how the child is created and how it ends."""

import multiprocessing
import os
import sys
from collections.abc import Callable

import numpy as np

import wherry

session = wherry.Session("embedded", embedded_flight=False)
x = np.zeros(4)
stream = session.stream("p", {"x": x})
stream.offload({"x": x}, tag=0).wait(60)
held = stream.offload({"x": x}, tag=1)


def refused(call: Callable[[], object]) -> None:
    try:
        call()
    except wherry.FailedPrecondition as error:
        print("refused:", error, flush=True)
    else:
        raise AssertionError(f"{call} was not refused")


def child() -> None:
    x[:] = 7.0
    refused(lambda: stream.offload({"x": x}, tag=9))
    refused(lambda: session.stream("q", {"x": x}))
    refused(lambda: held.wait(60))
    assert held.ready()


def own() -> None:
    x[:] = 7.0
    with wherry.Session("embedded", embedded_flight=False) as mine, mine.stream("p", {"x": x}) as again:
        again.offload({"x": x}).wait(60)
        frames = [frame.batch.column(0)[0].as_py() for frame in wherry.open("p", mine, follow=False)]
        print("the child's frames:", frames, flush=True)


def main() -> None:
    how = sys.argv[1]
    if how == "multiprocessing":
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0, process.exitcode
    else:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            (own if how == "own" else child)()
            global stream, session
            del stream, session  # as the interpreter does when it exits
            if how == "exception":
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                raise RuntimeError("the child's end")
            sys.exit(0)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == (1 if how == "exception" else 0), status
    held.wait(60)
    stream.offload({"x": x}, tag=2).wait(60)
    assert os.path.exists(session.info.session_file)
    frames = [(frame.tag, frame.batch.column(0)[0].as_py()) for frame in wherry.open("p", session, follow=False)]
    print("the parent's frames:", frames)


main()
