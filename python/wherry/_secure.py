# SPDX-License-Identifier: Apache-2.0
"""Directories in which other users cannot put files in place of ours: the rules of src/base/secure_directory.hpp."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from wherry.errors import InvalidArgument, NotFound, PermissionDenied

_MAX_LINKS = 40


def open_directory(path: Path, make_mode: int = 0, *, follow_last: bool = True) -> int:
    """Opens a directory component by component, for `dir_fd` (O_PATH); the caller closes it.

    Symbolic links are followed if they belong to this user or root. make_mode: missing directories are made with it; 0:
    they are an error. Raises PermissionDenied for a link of somebody else, NotFound, InvalidArgument.
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
                try:
                    os.mkdir(name, make_mode, dir_fd=at)
                except FileExistsError:
                    pass
                component = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            status = os.fstat(component)
            if not stat.S_ISLNK(status.st_mode):
                at, component = component, at
                os.close(component)
                if not stat.S_ISDIR(status.st_mode):
                    raise InvalidArgument(f"cannot open the directory {path}: Not a directory")
                continue
            try:
                target = os.readlink("", dir_fd=component)
            finally:
                os.close(component)
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


def check_private(directory: int, path: Path, remedy: str, trusted: Collection[int] = ()) -> None:
    """Raises PermissionDenied unless only this user, root and `trusted` can put files into the open directory.

    One to which others may write is good enough if it is sticky, as /tmp is: there the files must be checked, too.
    """
    status = os.fstat(directory)
    if status.st_uid not in {os.getuid(), 0, *trusted}:
        raise PermissionDenied(f"{path} belongs to user {status.st_uid}, who could put false files there: {remedy}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise PermissionDenied(
            f"other users may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}) and could put false files "
            f"there: chmod go-w it, or {remedy}"
        )


@contextmanager
def secure_directory(path: Path, remedy: str = "name another directory") -> Iterator[int]:
    """The directory, made (mode 0700) if it is missing, as `dir_fd` of the files that are opened in it.

    Raises PermissionDenied when somebody else could put files there.
    """
    directory = open_directory(path, 0o700, follow_last=False)
    try:
        check_private(directory, path, remedy)
        yield directory
    finally:
        os.close(directory)
