#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs COMMAND while the make targets of WORDS are made beside it: tools/beside.sh LOG "WORDS" COMMAND... What those print goes to LOG
# and is shown at the end. Fails if either fails.
set -euo pipefail
log=${1:?usage: tools/beside.sh LOG "WORDS" COMMAND...} words=$2
shift 2
mkdir -p "$(dirname "$log")"
echo "beside the following: make $words (its output: $log, and at the end)"
# A group of its own, so that it can be ended whole; words are several arguments. Not with the other's job slots.
# shellcheck disable=SC2086
MAKEFLAGS='' setsid make --no-print-directory $words >"$log" 2>&1 &
beside=$!
end() {
  kill -- "-$beside" 2>/dev/null || true
  wait "$beside" 2>/dev/null || true
}
trap 'end; exit 130' INT TERM
status=0
"$@" || status=$?
if ((status != 0)); then
  end
  exit "$status"
fi
wait "$beside" || status=$?
cat "$log"
exit "$status"
