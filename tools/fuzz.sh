#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets for the given number of seconds each, as many at a time as there are cores: tools/fuzz.sh SECONDS [TARGET...].
# Corpora grow under build/corpus; what was worth keeping is in tools/corpus/<target> (tools/keep_corpus.sh). A finding is left in
# build/fuzz and fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-16 || command -v llvm-symbolizer || true)  # names in what a finding prints
export ASAN_SYMBOLIZER_PATH

one() {
  local name=$1 seconds=$2 log="build/fuzz/$1.log"
  mkdir -p "build/corpus/$name" "tools/corpus/$name"
  if UCX_MEM_EVENTS=n ASAN_OPTIONS=detect_leaks=1:detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
      "build/fuzz/fuzzers/$name" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
      "build/corpus/$name" "tools/corpus/$name" >"$log" 2>&1; then
    echo "$name: $(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log" | tail -1)"
  else
    echo "$name: FAILED; the end of $log:"
    tail -40 "$log"
    return 255  # xargs starts no further target
  fi
}
export -f one

targets=("$@")
if ((${#targets[@]} == 0)); then
  for path in build/fuzz/fuzzers/*_fuzz; do targets+=("$(basename "$path")"); done
fi
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I {} bash -c 'one "$1" "$2"' _ {} "$seconds"
