# SPDX-License-Identifier: Apache-2.0
"""kv: the replicated key-value store. `from wherry.kv import Client`."""

from typing import TYPE_CHECKING

from wherry import lazy

if TYPE_CHECKING:
    from wherry.kv.client import Client as Client

if not TYPE_CHECKING:  # so that a checker of types knows which names there are
    __getattr__ = lazy.names(__name__, {"wherry.kv.client": ("Client",)})
