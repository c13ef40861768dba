#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After tools/fuzz.sh: of the smallest inputs that together reach all that build/corpus reaches, at most 64 become tools/corpus/<target>:
# a start for the next run, a few tens of kilobytes a target.
set -euo pipefail
cd "$(dirname "$0")/.."
inputs=64
for path in build/fuzz/fuzzers/*_fuzz; do
  name=$(basename "$path")
  kept="build/corpus-kept/$name"
  rm -rf "$kept" && mkdir -p "$kept" "build/corpus/$name" "tools/corpus/$name"
  UCX_MEM_EVENTS=n ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0 \
    "$path" -set_cover_merge=1 -max_len=4096 "$kept" "tools/corpus/$name" "build/corpus/$name" >"build/fuzz/$name.merge.log" 2>&1
  find "tools/corpus/$name" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete  # what has a name stays
  # Of many, some of every size.
  mapfile -t files < <(cd "$kept" && find . -type f -printf '%s %P\n' | sort -n | cut -d' ' -f2)
  step=$(((${#files[@]} + inputs - 1) / inputs))
  for ((i = 0; i < ${#files[@]}; i += step)); do cp "$kept/${files[i]}" "tools/corpus/$name/"; done
  echo "$name: $(find "tools/corpus/$name" -type f | wc -l) inputs, $(du -bs "tools/corpus/$name" | cut -f1) bytes"
done
