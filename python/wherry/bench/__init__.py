# SPDX-License-Identifier: Apache-2.0
"""The common parts of all benchmarks: types of their JSON, programs, tables, published values."""

from wherry.bench.benchmark import Basis as Basis
from wherry.bench.benchmark import Benchmark as Benchmark
from wherry.bench.benchmark import basis_of as basis_of
from wherry.bench.benchmark import benchmarks as benchmarks
from wherry.bench.benchmark import load as load
from wherry.bench.benchmark import parse as parse
from wherry.bench.program import mark_part as mark_part
from wherry.bench.published import published_text as published_text
from wherry.bench.published import published_values as published_values
from wherry.bench.schema import Bar as Bar
from wherry.bench.schema import Run as Run
from wherry.bench.schema import parse_as as parse_as
from wherry.bench.schema import read_json as read_json
from wherry.bench.schema import rows as rows
from wherry.bench.tables import print_bench as print_bench
from wherry.bench.words import met_of as met_of
