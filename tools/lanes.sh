#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes lists of targets beside one another: tools/lanes.sh FOLDER "TARGET..." "TARGET..."... The targets of a list (a lane) are made one after
# another. What the first lane prints is seen at once; that of the others goes to FOLDER/lane2.log and so on, and is shown when the first has
# ended. The first lane that fails ends the others, and the script with its status; what it had printed is shown last. Within `make -k` all lanes
# go on to their ends, and the status is that of the first that failed.
set -euo pipefail
folder=${1:?usage: tools/lanes.sh FOLDER \"TARGET...\" \"TARGET...\"...}
shift
mkdir -p "$folder"
keep=() failed=0
flags=${MAKEFLAGS:-}
[[ ${flags%% *} == -* || ${flags%% *} != *k* ]] || keep=(-k)  # the first word has the options of a letter
groups=()
end() {
  for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  wait || true
}
trap 'end; exit 130' INT TERM
lane=0
for targets; do
  lane=$((lane + 1))
  # A group of its own, so that it can be ended whole. Not with the other's job slots. Targets are several arguments.
  # shellcheck disable=SC2086
  if ((lane == 1)); then
    MAKEFLAGS='' setsid make --no-print-directory ${keep[@]+"${keep[@]}"} $targets &
  else
    echo "lane $lane: make $targets (its output: $folder/lane$lane.log, and below)"
    # shellcheck disable=SC2086
    MAKEFLAGS='' setsid make --no-print-directory ${keep[@]+"${keep[@]}"} $targets >"$folder/lane$lane.log" 2>&1 &
  fi
  groups+=($!)
done

running=("${groups[@]}")
while ((${#running[@]})); do
  status=0
  wait -n -p ended "${running[@]}" || status=$?
  lane=1
  while [[ ${groups[lane - 1]} != "$ended" ]]; do lane=$((lane + 1)); done
  if ((status != 0)) && [[ ${keep[*]} == -k ]]; then
    ((failed != 0)) || failed=$status
    echo "lane $lane failed; the others go on (-k)" >&2
  elif ((status != 0)); then
    end
    ((lane == 1)) || cat "$folder/lane$lane.log"
    echo "lane $lane failed" >&2
    for place in . "${TMPDIR:-/tmp}"; do
      left=$(df --output=avail -BM "$place" | tail -1 | tr -dc 0-9)
      ((left > 512)) || echo "$left MiB are free in $place: a full disk may be why; the first whole run takes about 14 GiB" >&2
    done
    exit "$status"
  fi
  left=()
  for group in "${running[@]}"; do [[ $group == "$ended" ]] || left+=("$group"); done
  running=(${left[@]+"${left[@]}"})
  echo "lane $lane has ended after $SECONDS s"
done
for ((lane = 2; lane <= ${#groups[@]}; lane++)); do
  echo "lane $lane:"
  cat "$folder/lane$lane.log"
done
exit "$failed"
