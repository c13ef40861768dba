# SPDX-License-Identifier: Apache-2.0
"""`wherry bench probe`."""

from wherry.probe.bench.schema import BENCHMARK as BENCHMARK
