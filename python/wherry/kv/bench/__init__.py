# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`."""

from wherry.kv.bench.schema import BENCHMARK as BENCHMARK
