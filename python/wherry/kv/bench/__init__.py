# SPDX-License-Identifier: Apache-2.0
"""`wherry bench kv`: what it writes, and what its bars are made of."""

from wherry.bench import Benchmark
from wherry.kv.bench.basis import basis_of
from wherry.kv.bench.schema import KvBench

BENCHMARK = Benchmark(
    name="kv",
    schema=KvBench,
    basis=basis_of,
    paper="003 (replication, which kv answers: Alveo U55C, 100 Gbit/s)",
)
