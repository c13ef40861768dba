#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for the given number of seconds: tools/fuzz.sh SECONDS. Corpora grow under build/corpus; what was worth
# keeping is in tools/corpus/<target>. A finding is left in build/fuzz and fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS}
mkdir -p build/fuzz build/corpus
for target in build/fuzz/fuzzers/*_fuzz; do
  name=$(basename "$target")
  mkdir -p "build/corpus/$name" "tools/corpus/$name"
  log="build/fuzz/$name.log"
  if UCX_MEM_EVENTS=n ASAN_OPTIONS=detect_leaks=1:detect_container_overflow=0 \
      "$target" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
      "build/corpus/$name" "tools/corpus/$name" >"$log" 2>&1; then
    echo "$name: $(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log" | tail -1)"
  else
    tail -40 "$log"
    echo "$name: FAILED"
    exit 1
  fi
done
