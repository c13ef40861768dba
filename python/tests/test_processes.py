# SPDX-License-Identifier: Apache-2.0
"""Starting programs while signals arrive. Each test runs in a process of its own, because hooks of fork() stay."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

# A signal arrives in the hooks that Python runs around a fork, where it ignores exceptions.
SIGNAL_IN_A_HOOK = """
    import os, signal, subprocess, sys, threading, time
    from wherry.system import run_to_end, spawn

    class Ended(BaseException):
        pass

    def end(number, frame):
        raise Ended

    def hook():
        if armed:
            armed.pop()
            os.kill(os.getpid(), NUMBER)

    armed = []
    NUMBER = signal.Signals[sys.argv[1]]
    os.register_at_fork(**{sys.argv[2]: hook})
    for _ in range(int(sys.argv[3])):  # threads that may get the signal
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    if NUMBER != signal.SIGINT:
        signal.signal(NUMBER, end)
    def start():
        armed.append(1)
        {start}
    try:
        start()
        print("lost")
    except (Ended, KeyboardInterrupt) as error:
        print(type(error).__name__)
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("no child")
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *words], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("hook", ["before", "after_in_parent"])
@pytest.mark.parametrize("threads", ["0", "3"])
def test_a_signal_around_the_fork_expect_it_is_not_lost(number: str, hook: str, threads: str) -> None:
    start = 'run_to_end(["sleep", "1000"], before=lambda: None)'
    done = run(SIGNAL_IN_A_HOOK.replace("{start}", start), number, hook, threads)
    ended = "KeyboardInterrupt" if number == "SIGINT" else "Ended"
    assert (done.stdout.split("\n")[:2], done.stderr) == ([ended, "no child"], "")


def test_python_itself_loses_it() -> None:
    """Shows that the test above can fail."""
    start = 'subprocess.run(["true"], preexec_fn=lambda: None)'
    done = run(SIGNAL_IN_A_HOOK.replace("{start}", start), "SIGTERM", "after_in_parent", "0")
    assert done.stdout.startswith("lost")
    assert "Exception ignored in" in done.stderr


def test_the_program_gets_signals_as_usual() -> None:
    program = """
        import signal, subprocess
        from wherry.system import run_to_end, spawn

        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        shown = run_to_end(["grep", "Sig[BI]", "/proc/self/status"], before=lambda: None).stdout
        blocked, ignored = (int(line.split()[1], 16) for line in shown.splitlines())
        print(blocked, [s.name for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if ignored >> (s - 1) & 1])
        process = spawn(["sleep", "1000"], before=lambda: None)
        process.terminate()
        print(process.wait())
        try:
            spawn(["sleep", "1000"], before=lambda: 1 / 0)
        except subprocess.SubprocessError as error:
            print(error)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGINT).__name__)
    """
    done = run(program)
    assert done.stdout.splitlines() == [
        "0 ['SIGHUP']",
        "-15",
        "Exception occurred in preexec_fn.",
        "set() default_int_handler",
    ]
    assert done.stderr == ""


def test_what_a_program_says_and_how_it_ended() -> None:
    program = """
        from wherry.system import run_to_end
        done = run_to_end(["sh", "-c", "cat; echo out; echo $VALUE >&2; exit 3"], environment={"VALUE": "err"})
        print(done.returncode, done.stdout.split(), done.stderr.split())
    """
    assert run(program).stdout == "3 ['out'] ['err']\n"
