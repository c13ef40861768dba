# SPDX-License-Identifier: Apache-2.0
"""The compiled modules: _core (sessions and streams, on UCX), _kv_core (the store, without UCX, which loads slowly)."""

from wherry import libraries

libraries.prepare()
