# SPDX-License-Identifier: Apache-2.0
"""Directories that other users cannot change: the same tests as src/base/secure_directory_test.cpp."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wherry.errors import InvalidArgument, NotFound, PermissionDenied
from wherry.system.secure import open_directory, secure_directory


def secured(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    try:
        with secure_directory(path, "take another place"):
            pass
    finally:
        assert len(os.listdir("/proc/self/fd")) == before


def test_missing_directories_are_made_for_this_user_alone(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_directory(tmp_path / "a")
    secured(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_files_are_opened_in_the_directory_that_was_checked(tmp_path: Path) -> None:
    with secure_directory(tmp_path / "a") as directory:
        (tmp_path / "a").rename(tmp_path / "moved")
        (tmp_path / "a").mkdir()
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600, dir_fd=directory))
    assert (tmp_path / "moved" / "file").exists()
    assert not (tmp_path / "a" / "file").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_refused_unless_it_is_sticky(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(PermissionDenied, match="chmod go-w it, or take another place"):
        secured(tmp_path)
    tmp_path.chmod(0o1777)
    secured(tmp_path)


def test_a_directory_that_cannot_be_read_leaves_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a").mkdir()
    monkeypatch.setattr("wherry.system.secure.os.fstat", failing)
    with pytest.raises(InvalidArgument, match="Input/output error"):
        secured(tmp_path / "a")
    monkeypatch.undo()
    monkeypatch.setattr("wherry.system.secure._undo_umask", failing)
    with pytest.raises(InvalidArgument, match="Input/output error"):
        secured(tmp_path / "b")


def test_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    secured(tmp_path / "link" / "inner")
    with pytest.raises(PermissionDenied, match="symbolic link"):
        secured(tmp_path / "link")
    with pytest.raises(PermissionDenied, match="circle"):
        secured(tmp_path / "loop" / "x")
    (tmp_path / "file").write_text("text")
    with pytest.raises(InvalidArgument, match="Not a directory"):
        secured(tmp_path / "file")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    os.chown(tmp_path / "theirs", 12345, -1)
    os.chown(tmp_path / "link", 12345, -1, follow_symlinks=False)
    with pytest.raises(PermissionDenied, match="belongs to user 12345"):
        secured(tmp_path / "theirs")
    with pytest.raises(PermissionDenied, match="symbolic link of user 12345"):
        secured(tmp_path / "link" / "real")
