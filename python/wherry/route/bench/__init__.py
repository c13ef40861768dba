# SPDX-License-Identifier: Apache-2.0
"""`wherry bench route`."""

from wherry.route.bench.schema import BENCHMARK as BENCHMARK
