# SPDX-License-Identifier: Apache-2.0
"""Loads the names of a package at their first use, so `wherry --help` loads neither pyarrow nor C++ modules."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def names(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of `package`. It finds the listed names in `modules`."""
    home = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(home[name]), name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find
