# SPDX-License-Identifier: Apache-2.0
"""Processes of a job. They end with the launcher in any case, and their output is passed on in whole lines."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from wherry.errors import Unavailable
from wherry.system.os_errors import doing

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

LONGEST_LINE = 1 << 20
"""The most bytes of a line. Longer lines are passed on in parts."""

# The sweeper outlives the launcher and then ends the process groups that it knows, because a rank's child processes do
# not notice that the launcher died. The sweeper makes the directory itself, so the directory never exists without a
# sweeper. It ignores SIGPIPE, because the launcher may be killed before it reads "made".
_SWEEPER = """
trap '' INT TERM HUP PIPE
mkdir -m 700 -- "$1" || exit 1
echo made
exec >/dev/null 2>&1
groups=
while read -r word; do
  [ "$word" = done ] && exit 0
  groups="$groups -$word"
done
[ -z "$groups" ] || kill -s KILL -- $groups 2>/dev/null
# Those that die with the launcher may still be making files.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1"
  sleep 0.1
  [ -e "$1" ] || break
done
"""


def inherited() -> list[int]:
    """The descriptors, except the standard streams, that a program started by this process would inherit."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the descriptor of the listing itself, which is closed by now
    return found


class Workspace:
    """A private directory for sockets, session files, logs and results. A helper process removes it even after kill
    -9."""

    def __init__(self, base: str | None = None) -> None:
        """`base`: the parent directory; None: the directory for temporary files, or /tmp if a socket's path would be
        too long. Raises Error."""
        if base is None:  # the path of a Unix socket has at most 107 bytes
            base = tempfile.gettempdir() if len(tempfile.gettempdir()) < 70 else "/tmp"
        self.directory = Path(base).absolute() / f"wherry-run-{secrets.token_hex(6)}"
        with doing(f"no directory for temporary files in {base}"):
            self._sweeper = subprocess.Popen(
                ["/bin/sh", "-c", _SWEEPER, "wherry-run-sweeper", str(self.directory)],
                env={"PATH": os.defpath},  # independent of this process's PATH
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        assert self._sweeper.stdout is not None
        assert self._sweeper.stderr is not None
        if self._sweeper.stdout.readline() != b"made\n":
            _, said = self._sweeper.communicate()
            raise Unavailable(f"no directory for temporary files: {said.decode(errors='replace').strip()}")
        self._sweeper.stdout.close()
        self._sweeper.stderr.close()
        self._sweeper.stdout = self._sweeper.stderr = None

    def sweep_also(self, group: int) -> None:
        """Makes the helper end this process group as well if the launcher is killed."""
        self._tell(str(group))

    def close(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self._tell("done")
        self._sweeper.communicate()

    def _tell(self, word: str) -> None:
        assert self._sweeper.stdin is not None
        try:
            self._sweeper.stdin.write(word.encode() + b"\n")
            self._sweeper.stdin.flush()
        except BrokenPipeError:
            pass  # the helper was killed


@contextmanager
def scratch_directory(base: str | None = None) -> Iterator[Path]:
    """A private directory that is removed at the end of the block or of the process, even after kill -9. Raises
    Error."""
    workspace = Workspace(base or tempfile.gettempdir())
    try:
        yield workspace.directory
    finally:
        workspace.close()


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to end."""


@contextmanager
def ending_held() -> Iterator[list[int]]:
    """This program's handlers of signals that ask it to end run after the block. Yields those signals' numbers.

    For a fork in the main thread, where Python runs its handlers: in hooks that it runs around a fork, Python ignores
    exceptions. So it would lose a signal whose handler raises one, such as Ctrl-C.
    """
    seen: list[int] = []
    handlers: dict[signal.Signals, Any] = {}
    error: BaseException | None = None
    try:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if callable(handler := signal.getsignal(number)):
                    handlers[number] = handler
                    signal.signal(number, lambda number, _: seen.append(number))
        yield seen
    finally:
        for number, handler in handlers.items():
            while signal.getsignal(number) is not handler:
                try:
                    signal.signal(number, handler)  # may first run a handler that is restored already
                except BaseException as raised:  # noqa: BLE001 - raised below
                    error = raised
        for one in seen:
            handlers[signal.Signals(one)](one, None)
        if error is not None:
            raise error


def spawn(command: Sequence[str], *, before: Callable[[], None], **more: Any) -> subprocess.Popen[Any]:
    """Starts a program like subprocess.Popen (`more`), and runs `before` in the new process first. Meanwhile, signals
    are held (ending_held()). If a handler then raises an exception, the program is killed."""
    process: subprocess.Popen[Any] | None = None
    try:
        with ending_held() as seen:

            def prepare() -> None:
                before()
                for number in ENDING:
                    if callable(signal.getsignal(number)):  # of this program, not of that one
                        signal.signal(number, signal.SIG_DFL)
                for one in seen:
                    os.kill(os.getpid(), one)

            process = subprocess.Popen(list(command), preexec_fn=prepare, **more)
    except BaseException:
        if process is not None:
            process.kill()
            process.wait()
        raise
    return process


def run_to_end(
    command: Sequence[str],
    *,
    before: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program without input until it ends, and returns its output. Like subprocess.run, but with spawn().

    `before`: see spawn(); by default, the program ends when this process ends. `environment`: default: this process's.
    """
    with spawn(
        command,
        before=before or ends_with_us(),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)


def ends_with_us() -> Callable[[], None]:
    """A function for spawn(). The program gets SIGTERM when the thread that started it ends, even by
    kill -9. The program must end its own children."""
    launcher = os.getpid()

    def before() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != launcher:
            os._exit(1)

    return before


PATIENCE_S = 30.0
"""The seconds until a program that was asked to end is killed."""


def ask_to_end(process: subprocess.Popen[Any]) -> None:
    """Sends SIGTERM, then SIGCONT, because a stopped program (SIGSTOP, Ctrl-Z) handles SIGTERM only when it
    continues."""
    process.terminate()
    process.send_signal(signal.SIGCONT)


def wait_for_end(process: subprocess.Popen[Any], seconds: float = PATIENCE_S) -> None:
    """Waits for the end of a process after ask_to_end(), and kills it after `seconds`."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Process:
    """A process in its own Unix session and process group. Its pid is not reused before close()."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        cores: set[int],
        enter: Callable[[], None] | None = None,
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
    ) -> None:
        """`enter` runs in the new process before the program. Raises Error if the process cannot be started."""
        self.name = name
        self.status: int | None = None
        """The exit status in the form of subprocess' returncode. None while the process runs."""
        launcher = os.getpid()

        def before() -> None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != launcher:
                os._exit(1)
            os.sched_setaffinity(0, cores)
            if enter is not None:
                enter()

        with doing(f"cannot start {name}"):
            try:
                self._popen = spawn(
                    command,
                    before=before,
                    env=dict(environment),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except subprocess.SubprocessError as error:  # an error in before()
                raise Unavailable(f"cannot start {name}: {error}") from None
            try:
                self.pidfd = os.pidfd_open(self._popen.pid)
            except OSError:
                self._popen.kill()
                self._popen.communicate()
                raise
        self.stdin, self.stdout, self.stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr

    @property
    def pid(self) -> int:
        """The process id, which is also the number of its process group."""
        return self._popen.pid

    def poll(self) -> int | None:
        """The exit status if the process has ended. The process stays a zombie, so that its group's number is not
        reused."""
        if self.status is None:
            ended = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process group: the process and its children."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def unwatch(self) -> None:
        """Removes `pidfd` from the running event loop."""
        asyncio.get_running_loop().remove_reader(self.pidfd)

    def close(self) -> None:
        """Ends the process and the rest of its process group."""
        self.signal(signal.SIGKILL)
        self._popen.wait()
        os.close(self.pidfd)
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unwritten input of a process that has ended
                    pipe.close()


def how_it_ended(status: int) -> str:
    """A status in words: "was killed by signal 9 (SIGKILL)" or "exited with status 1"."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"


def exit_status(status: int) -> int:
    """The status in a shell's form, such as 128 + 9 for a process that signal 9 killed."""
    return status if status >= 0 else 128 - status


class Lines:
    """Passes on the output from a pipe in whole lines, with a prefix for each."""

    def __init__(
        self,
        pipe: IO[bytes],
        to: int,
        prefix: bytes,
        lost: Callable[[OSError], None],
        taken: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        """`lost` is called with the error if `to` fails. `taken`: returns true for a line that must not be passed on.

        Needs a running event loop.
        """
        self._pipe, self._to, self._prefix, self._lost, self._taken = pipe, to, prefix, lost, taken
        self._rest = bytearray()
        self.ended = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._read)

    def stop(self) -> None:
        """Passes on the remaining output, and stops reading."""
        if self.ended.is_set():
            return
        asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self.ended.set()
        if self._rest:
            self._write([self._rest])

    def _read(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.stop()
            return
        self._rest += data
        if b"\n" not in data and len(self._rest) < LONGEST_LINE:
            return
        lines = self._rest.split(b"\n")
        self._rest = lines.pop() if len(lines) > 1 else bytearray()
        self._write(lines)

    def _write(self, lines: Sequence[bytes | bytearray]) -> None:
        data = memoryview(b"".join(self._prefix + line + b"\n" for line in lines if not self._taken(bytes(line))))
        while data:
            try:
                data = data[os.write(self._to, data) :]
            except BlockingIOError:
                select.select([], [self._to], [])
            except OSError as error:
                self._lost(error)
                return
