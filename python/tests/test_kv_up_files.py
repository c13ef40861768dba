# SPDX-License-Identifier: Apache-2.0
"""`wherry kv up --dir` does not write to its caller's files through a link that another user put into that
directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kvclusters import KvHome

from wherry.errors import PermissionDenied
from wherry.kv import running
from wherry.system import secure

QUICK = ("--bucket-bits", "8", "--ping-ms", "40")
WRITTEN = ("up.lock", "cluster.toml", "keeper.log", "node0.log", "up.log", "cluster.toml.state.json.lock")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("precious")
    return file


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("hard", [False, True], ids=["symbolic", "hard"])
def test_a_link_in_place_of_a_file_is_refused_and_what_it_leads_to_is_untouched(
    home: KvHome, tmp_path: Path, precious: Path, name: str, hard: bool
) -> None:
    place = tmp_path / "place"
    place.mkdir(0o700)
    if hard:
        (place / name).hardlink_to(precious)
    else:
        (place / name).symlink_to(precious)
    done = home.run("up", "--detach", "--dir", str(place), *QUICK, "--nodes", "1")
    assert precious.read_text() == "precious"
    assert done.returncode == 1, done.stdout
    assert name in done.stderr
    assert "remove it" in done.stderr


def test_links_under_the_names_of_temporary_files_are_left_alone(home: KvHome, tmp_path: Path, precious: Path) -> None:
    place = tmp_path / "place"
    place.mkdir(0o700)
    (place / "up.json").symlink_to(precious)
    (place / "cluster.toml.state.json.new").symlink_to(precious)
    home.ok("up", "--detach", "--dir", str(place), *QUICK, "--nodes", "1")
    assert precious.read_text() == "precious"
    assert json.loads((place / "up.json").read_text())["pid"] == home.up.pid
    assert not (place / "up.json").is_symlink()
    home.ok("down")


def test_a_directory_of_another_user_or_that_others_may_write_to_is_refused(home: KvHome, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o777)
    done = home.run("up", "--dir", str(place), *QUICK)
    assert done.returncode == 1
    assert f"other users may write to {place} (mode 0777)" in done.stderr
    assert "name another --dir" in done.stderr
    assert list(place.iterdir()) == []
    if os.geteuid() == 0:
        place.chmod(0o755)
        os.chown(place, 65534, 0)
        done = home.run("up", "--dir", str(place), *QUICK)
        assert done.returncode == 1
        assert f"{place} belongs to user 65534" in done.stderr
        assert list(place.iterdir()) == []
    link = tmp_path / "link"
    link.symlink_to(place)
    done = home.run("up", "--dir", str(link), *QUICK)
    assert done.returncode == 1
    assert "is a symbolic link: name the directory itself" in done.stderr


def test_what_others_may_have_written_is_not_believed(home: KvHome, tmp_path: Path) -> None:
    said = {"pid": os.getpid(), "started": running.start_time(os.getpid()), "cluster": "x", "keeper": 0}
    said["nodes"] = {}
    place = tmp_path / "place"
    place.mkdir(0o700)
    file = place / "up.json"
    file.write_text(json.dumps(said))
    assert running.read_up(file).pid == os.getpid()
    place.chmod(0o777)
    with pytest.raises(PermissionDenied, match="other users may write"):
        running.read_up(file)
    place.chmod(0o700)
    other = tmp_path / "other.json"
    file.rename(other)
    file.symlink_to(other)
    with pytest.raises(PermissionDenied, match="symbolic link"):
        running.read_up(file)
    if os.geteuid() == 0:
        file.unlink()
        other.rename(file)
        os.chown(file, 65534, 0)
        with pytest.raises(PermissionDenied, match="belongs to user 65534"):
            running.read_up(file)


def test_a_fifo_does_not_hold_whoever_opens_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (
        secure.secure_directory(tmp_path) as directory,
        pytest.raises(PermissionDenied, match="is not a file"),
    ):
        secure.open_own("fifo", os.O_RDONLY, directory, tmp_path)


def test_a_device_and_a_link_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")
    with secure.replacing(tmp_path / "link") as new:
        new.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with secure.replacing(tmp_path / "fifo") as new:
        new.write_text("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "fifo").is_fifo()
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space"), secure.replacing(tmp_path / "full") as new:
        new.write_text("lost")
    assert Path("/dev/full").is_char_device()


def test_what_replaces_a_file_is_written_under_a_name_that_nobody_knows_before(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")
    names = set()
    for text in ("one", "two"):
        with secure.replacing(file) as new:
            new.write_text(text)
            names.add(new.name)
        assert file.read_text() == text
    assert len(names) == 2

    def interrupted() -> None:
        with secure.replacing(file) as new:
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "two"
    assert [one.name for one in tmp_path.iterdir()] == ["out.json"]
