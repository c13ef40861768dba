#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-format, the rules of includes and imports, generated files fresh, ruff, mypy, gofmt and vet, the RTL (tools/lint_hdl.py); and, without --quick, clang-tidy on what changed since it was last clean.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv/bin
mapfile -t cpp < <(git ls-files 'src/*.cpp' 'src/*.hpp' 'include/*.hpp' 'include/*.h' 'bench/*.cpp' 'bench/*.hpp' 'apps/*.cpp' 'apps/*.hpp' 'sim/*.cpp' 'sim/*.hpp' 'examples/*.cpp' 'examples/*.c' 'python/*.cpp')
"$venv/clang-format" --dry-run -Werror "${cpp[@]}"
if git grep -nP '^(//|#) SPDX-License-Identifier: Apache-2\.0.'; then
  echo "lint: licence scanners take the rest of such a line for a part of the licence's name" >&2
  exit 1
fi
"$venv/python" tools/check_includes.py
"$venv/python" tools/generate_spec.py --check
"$venv/python" tools/fidelity.py --check
"$venv/python" tools/check_python.py
"$venv/ruff" format --check python apps examples tools hdl
"$venv/ruff" check python apps examples tools hdl
"$venv/mypy" python/wherry python/tests apps/lammps tools/soak.py tools/check_python.py
unformatted=$(gofmt -l tools/linearizable)
[[ -z "$unformatted" ]] || { echo "gofmt -w $unformatted" >&2; exit 1; }
(cd tools/linearizable && go vet ./...)
"$venv/python" tools/lint_hdl.py

[[ "${1:-}" == --quick ]] && exit 0

# clang-tidy takes seconds a file: a stamp by content of the file, all headers and the checks says what is clean already.
stamps=build/tidy
mkdir -p "$stamps"
headers=$(git ls-files 'src/*.hpp' 'apps/*.hpp' 'sim/*.hpp' 'bench/*.hpp' 'include/*' .clang-tidy | xargs cat | sha256sum | cut -c1-16)
todo=()
while read -r file; do
  key=$( (echo "$headers"; cat "$file") | sha256sum | cut -c1-32)
  [[ -e "$stamps/$key" ]] || todo+=("$key $file")
done < <(git ls-files 'src/*.cpp' 'bench/*.cpp' 'apps/*.cpp' 'sim/*.cpp' | grep -vE '_(test|fuzz)\.cpp$')
if ((${#todo[@]})); then
  echo "clang-tidy: ${#todo[@]} files"
  # It looks at files, and build/release compiles several at once.
  cmake --preset release -B "$stamps/alone" -DCMAKE_UNITY_BUILD=OFF -DWHERRY_ALL_TESTS=ON >"$stamps/configure.log" 2>&1 || { cat "$stamps/configure.log"; exit 1; }
  printf '%s\n' "${todo[@]}" | xargs -P "$(nproc)" -L 1 bash -c \
    'clang-tidy-16 -p build/tidy/alone --quiet "$1" 2>/dev/null && touch build/tidy/"$0"'
fi
echo "lint: clean"
