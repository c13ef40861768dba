# SPDX-License-Identifier: Apache-2.0
"""The paths of Wherry's programs and files. Only this module knows the layout of a checkout and of a wheel."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from wherry import libraries
from wherry.errors import NotFound

PACKAGE = Path(__file__).resolve().parent.parent


def repository() -> Path | None:
    """The checkout that contains this package. None if the package was installed from a wheel."""
    root = PACKAGE.parent.parent
    return root if (root / "CMakeLists.txt").is_file() and (root / "include" / "wherry").is_dir() else None


def _find(
    name: str, variable: str | None, candidates: Iterable[Path], remedy: str, environment: Mapping[str, str]
) -> Path:
    named = environment.get(variable) if variable else None
    if named:
        path = Path(named).expanduser()
        if not _runnable(path):
            raise NotFound(f"${variable} names {path}, which is not an executable file")
        return path.resolve()
    tried = list(candidates)
    for path in tried:
        if _runnable(path):
            return path.resolve()
    on_path = shutil.which(name, path=environment.get("PATH"))
    if on_path:
        return Path(on_path).resolve()
    places = ", ".join(str(path) for path in tried)
    raise NotFound(
        f"no {name}: looked at {places} and in PATH; {remedy}" + (f", or set ${variable}" if variable else "")
    )


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _program(name: str, variable: str, environment: Mapping[str, str] | None) -> Path:
    """A program that wheels contain, from $`variable`, the wheel, the checkout's release build or PATH, in this order.

    Raises NotFound, which lists the searched places.
    """
    environment = os.environ if environment is None else environment
    libraries.prepare()
    candidates = [PACKAGE / "_bin" / name, PACKAGE / "_prefix" / "bin" / name]
    root = repository()
    if root is not None:
        candidates.append(root / "build" / "release" / "src" / name)
    return _find(name, variable, candidates, "build it with `make build`", environment)


def prefix() -> Path | None:
    """A wheel's folder for C and C++, with include, lib/libwherry.so, lib/cmake and lib/pkgconfig. None: there is no
    such folder."""
    place = PACKAGE / "_prefix"
    return place if place.is_dir() else None


def wherryd(environment: Mapping[str, str] | None = None) -> Path:
    """The agent's program. $WHERRY_WHERRYD overrides it. Raises NotFound."""
    return _program("wherryd", "WHERRY_WHERRYD", environment)


def wherry_kv(environment: Mapping[str, str] | None = None) -> Path:
    """The program of kv's nodes and keeper. $WHERRY_KV overrides it. Raises NotFound."""
    return _program("wherry-kv", "WHERRY_KV", environment)


def wherry_bypass(environment: Mapping[str, str] | None = None) -> Path:
    """The program of bypass's host. $WHERRY_BYPASS overrides it. Raises NotFound."""
    return _program("wherry-bypass", "WHERRY_BYPASS", environment)


def wherry_probe(environment: Mapping[str, str] | None = None) -> Path:
    """The program that measures paths. $WHERRY_PROBE overrides it. Raises NotFound."""
    return _program("wherry-probe", "WHERRY_PROBE", environment)


def application(name: str) -> Path:
    """An application of route that is installed with Wherry (apps/). Raises NotFound."""
    libraries.prepare()
    # A wheel contains the prefix inside of the package. In an installed prefix, the package is
    # LIBDIR/wherry/python/wherry.
    candidates = [PACKAGE / "_prefix" / "lib" / "wherry" / "apps" / name, PACKAGE.parent.parent / "apps" / name]
    root = repository()
    if root is not None:
        candidates.append(root / "build" / "release" / "apps" / name)
    return _find(name, None, candidates, "build it with `make build`", os.environ)


def built(folder: str, name: str, environment: Mapping[str, str] | None = None) -> Path:
    """A program from the checkout's release build (build/release/<folder>/<name>) or from PATH. Raises NotFound."""
    environment = os.environ if environment is None else environment
    root = repository()
    candidates = [] if root is None else [root / "build" / "release" / folder / name]
    return _find(name, None, candidates, "build it with `make build`", environment)


def peer_program(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """A program that kv is compared with, from PATH, else from where tools/setup.sh unpacks it. Raises NotFound."""
    environment = os.environ if environment is None else environment
    # Does not resolve links: redis-server is a link to a program whose behaviour depends on the name it is called by.
    for path in (shutil.which(name, path=environment.get("PATH")), Path(sys.prefix) / "bin" / name):
        if path is not None and _runnable(Path(path)):
            return Path(path)
    raise NotFound(f"no {name}: looked in PATH and in {sys.prefix}/bin; `make setup` puts it there")


def runtime_directory(environment: Mapping[str, str] | None = None) -> Path:
    """The directory for files of the user's running processes: $XDG_RUNTIME_DIR/wherry, else /tmp/wherry-<uid>.

    <uid> is the user's number outside of user namespaces, because any user may be 0 inside one (src/base/user.hpp).
    """
    environment = os.environ if environment is None else environment
    if environment.get("XDG_RUNTIME_DIR"):
        return Path(environment["XDG_RUNTIME_DIR"]) / "wherry"
    return Path(f"/tmp/wherry-{_user_outside()}")


def _user_outside() -> int:
    mine = os.getuid()
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return mine
    for line in lines:
        first, outside, count = (int(word) for word in line.split())
        if first <= mine < first + count:
            return outside + mine - first
    return mine
