# SPDX-License-Identifier: Apache-2.0
"""kv: the replicated key-value store. `from wherry.kv import Client`."""

from typing import TYPE_CHECKING

from wherry import lazy

if TYPE_CHECKING:
    from wherry.kv.client import Client as Client

if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(__name__, {"wherry.kv.client": ("Client",)})
