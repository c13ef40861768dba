# SPDX-License-Identifier: Apache-2.0
"""`wherry bench move`."""

from wherry.move.bench.schema import BENCHMARK as BENCHMARK
