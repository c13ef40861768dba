# SPDX-License-Identifier: Apache-2.0
"""`wherry bench bypass`."""

from wherry.bypass.bench.schema import BENCHMARK as BENCHMARK
