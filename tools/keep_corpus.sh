#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After tools/fuzz.sh: the smallest inputs that together reach all that build/corpus reaches become tools/corpus/<target>, at most
# 64 KiB of them. Only where that reaches more than what is there already is it worth a commit.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=$((64 * 1024))
for path in build/fuzz/fuzzers/*_fuzz; do
  name=$(basename "$path")
  kept="build/corpus-kept/$name"
  rm -rf "$kept" && mkdir -p "$kept" "build/corpus/$name" "tools/corpus/$name"
  UCX_MEM_EVENTS=n ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0 \
    "$path" -set_cover_merge=1 -max_len=4096 "$kept" "tools/corpus/$name" "build/corpus/$name" >"build/fuzz/$name.merge.log" 2>&1
  rm -rf "tools/corpus/$name" && mkdir -p "tools/corpus/$name"
  total=0
  while read -r size file; do
    total=$((total + size))
    ((total > limit)) && break
    cp "$kept/$file" "tools/corpus/$name/$file"
  done < <(cd "$kept" && find . -type f -printf '%s %P\n' | sort -n)
  echo "$name: $(find "tools/corpus/$name" -type f | wc -l) inputs, $(du -bs "tools/corpus/$name" | cut -f1) bytes"
done
