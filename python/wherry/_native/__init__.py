# SPDX-License-Identifier: Apache-2.0
"""The compiled modules: _core (sessions and streams, uses UCX) and _kv_core (the store; no UCX, which loads slowly)."""

from wherry import libraries

libraries.prepare()
