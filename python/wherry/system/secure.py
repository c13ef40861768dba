# SPDX-License-Identifier: Apache-2.0
"""Opens directories in which other users cannot replace our files, by the rules of src/base/secure_directory.hpp."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wherry.errors import InvalidArgument, NotFound, PermissionDenied

_MAX_LINKS = 40


def open_directory(path: Path, make_mode: int = 0, *, follow_last: bool = True) -> int:
    """Opens a directory component by component, and returns a descriptor (O_PATH) for `dir_fd`. The caller closes it.

    Follows symbolic links if they belong to this user or root. make_mode: the mode with which missing directories are
    made; 0: a missing directory is an error. Raises PermissionDenied for a link of another user, NotFound,
    InvalidArgument.
    """
    rest = [name for name in reversed(str(path).split("/")) if name not in ("", ".")]
    at = os.open("/" if path.is_absolute() else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    links = 0
    try:
        while rest:
            name = rest.pop()
            try:
                component = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            except FileNotFoundError:
                if make_mode == 0:
                    raise
                made = True
                try:
                    os.mkdir(name, make_mode, dir_fd=at)
                except FileExistsError:
                    made = False
                component = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            else:
                made = False
            try:
                if made:
                    _undo_umask(component, make_mode)
                status = os.fstat(component)
                if stat.S_ISLNK(status.st_mode):
                    target = os.readlink("", dir_fd=component)
                else:
                    at, component = component, at
            finally:
                os.close(component)
            if not stat.S_ISLNK(status.st_mode):
                if not stat.S_ISDIR(status.st_mode):
                    raise InvalidArgument(f"cannot open the directory {path}: Not a directory")
                continue
            if status.st_uid not in (os.getuid(), 0):
                raise PermissionDenied(
                    f"'{name}' in {path} is a symbolic link of user {status.st_uid}: name the directory itself"
                )
            links += 1
            if links > _MAX_LINKS or (not rest and not follow_last):
                what = "is a symbolic link: name the directory itself" if links <= _MAX_LINKS else "leads in a circle"
                raise PermissionDenied(f"'{name}' in {path} {what}")
            if target.startswith("/"):
                os.close(at)
                at = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            rest += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    except FileNotFoundError:
        os.close(at)
        raise NotFound(f"cannot open the directory {path}: it does not exist") from None
    except OSError as error:
        os.close(at)
        raise InvalidArgument(f"cannot open the directory {path}: {error.strerror}") from None
    except BaseException:
        os.close(at)
        raise
    return at


def _undo_umask(directory: int, mode: int) -> None:
    """Restores the owner's rights that the umask removed. It uses the descriptor, because the name may now belong to
    another file."""
    status = os.fstat(directory)
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & mode != mode:
        os.chmod(f"/proc/self/fd/{directory}", mode)


def check_private(directory: int, path: Path, remedy: str, trusted: Collection[int] = ()) -> None:
    """Raises PermissionDenied if users other than this user, root and `trusted` can put files into the open directory.

    A directory that others may write to is allowed if it is sticky, like /tmp. In that case, check its files as well.
    """
    status = os.fstat(directory)
    if status.st_uid not in {os.getuid(), 0, *trusted}:
        raise PermissionDenied(f"{path} belongs to user {status.st_uid}, which could put false files there: {remedy}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise PermissionDenied(
            f"other users may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}) and could put false files "
            f"there: chmod go-w it, or {remedy}"
        )


@contextmanager
def secure_directory(path: Path, remedy: str = "name another directory") -> Iterator[int]:
    """Yields a descriptor of the directory, for use as `dir_fd`. Makes a missing directory with mode 0700.

    Raises PermissionDenied if another user could put files there.
    """
    directory = open_directory(path, 0o700, follow_last=False)
    try:
        check_private(directory, path, remedy)
        yield directory
    finally:
        os.close(directory)


def open_own(name: str, flags: int, directory: int, path: Path, mode: int = 0o600) -> int:
    """Opens a file of this user in a secure directory. The caller closes the descriptor.

    `path` is for messages. Raises PermissionDenied if it is not a regular file of this user or root, or if it has
    several names, because a link could lead to any file of the caller. Raises FileNotFoundError if it is missing and
    O_CREAT is not set; InvalidArgument.
    """
    where = path / name
    try:  # without O_NONBLOCK, opening a FIFO would block until another process opens its other end
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionDenied(f"{where} is a symbolic link: remove it") from None
        raise InvalidArgument(f"cannot open {where}: {error.strerror}") from None
    status = os.fstat(handle)
    why = ""
    if not stat.S_ISREG(status.st_mode):
        why = "is not a file"
    elif status.st_uid not in (os.getuid(), 0):
        why = f"belongs to user {status.st_uid}"
    elif status.st_nlink > 1:
        why = f"has {status.st_nlink} names (hard links)"
    if why:
        os.close(handle)
        raise PermissionDenied(f"{where} {why}: remove it")
    return handle


def replace_own(name: str, text: str, directory: int) -> None:
    """Replaces the file of that name in a secure directory atomically with `text` (mode 0600).

    An existing file or link of that name is replaced, not written to. Raises OSError.
    """
    new = f"{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600, dir_fd=directory), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=directory)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a new, empty file beside `path`. It is renamed to `path` if the block succeeds, and removed if it fails.

    If `path` is a link, its target is replaced. A device or a FIFO is not replaced: the bytes are written to it at the
    end. The new file's name is unpredictable, because others could put a link under a known name into a directory such
    as /tmp. Raises OSError.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        with tempfile.TemporaryDirectory(prefix="wherry-") as directory:
            new = Path(directory) / "new"
            new.touch()
            yield new
            with new.open("rb") as whole, path.open("wb") as out:
                shutil.copyfileobj(whole, out)
        return
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
    except OSError as error:  # report the name that the caller knows
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
