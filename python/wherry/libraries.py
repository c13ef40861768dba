# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of other wheels that an installed Wherry needs: UCX from libucx-cu12, Arrow from pyarrow.

Programs and modules of our wheel find the libraries by a RUNPATH in their own site-packages. prepare() checks that the
right versions are there. It also works if pip installed the other wheels in another site-packages (`pip install
--user`, a virtual environment with --system-site-packages). A checkout and an installed prefix have no needs.json and
need no check, because their RUNPATH names the libraries of the build.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from wherry.errors import NotFound, VersionMismatch

_PACKAGE = Path(__file__).resolve().parent
_NEEDS = _PACKAGE / "_native" / "needs.json"

_prepared = False


def prepare() -> None:
    """Call this before you import a compiled module or start a program of the wheel. Later calls are quick.

    Raises NotFound if a wheel is missing, and VersionMismatch if its libraries have another ABI than Wherry was built
    with.
    """
    global _prepared
    if _prepared or not _NEEDS.is_file():
        return
    needs: dict[str, dict[str, Any]] = json.loads(_NEEDS.read_text())
    elsewhere = []
    for folder, need in needs.items():
        place = _place(folder, need)
        missing = [name for name in need["files"] if not (place / name).is_file()]
        if missing:
            raise VersionMismatch(
                f"this Wherry was built with {need['wheel']} {need['built_with']} and needs its {missing[0]}, which "
                f"{place} does not have: pip install '{need['wheel']}{need['range']}'"
            )
        if place != (_PACKAGE.parent / folder).resolve():
            elsewhere.append((place, need["modules"]))
    if elsewhere:
        _tell_programs([place for place, _ in elsewhere])
        _load([place / name for place, names in elsewhere for name in names])
    _prepared = True


def _place(folder: str, need: dict[str, Any]) -> Path:
    package, _, inside = folder.partition("/")
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        wanted = f"{need['wheel']}{need['range']}"
        raise NotFound(
            f"Wherry needs the Python package {need['wheel']}, which is not installed: pip install '{wanted}'"
        )
    return (Path(next(iter(found.submodule_search_locations))) / inside).resolve()


def _tell_programs(places: list[Path]) -> None:
    """Makes programs that this process starts search for libraries in `places` as well."""
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = ":".join([*map(str, places), *([before] if before else [])])


def _load(files: list[Path]) -> None:
    """Loads the libraries now. Modules that are loaded later use a loaded library of the same name."""
    import ctypes

    for file in files:
        ctypes.CDLL(str(file))
