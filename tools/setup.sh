#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Wherry needs and this machine lacks: Debian packages (as root or through sudo) and the pinned Python
# packages in .venv. Does nothing, quickly, when all of it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
while read -r package; do
  [[ -z "$package" || "$package" == \#* ]] && continue
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" == installed ]] || missing+=("$package")
done < tools/debian-packages.txt

if ((${#missing[@]})); then
  echo "setup: installing ${missing[*]}"
  as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    command -v sudo >/dev/null || { echo "setup: need root or sudo to install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

stamp=.venv/wherry.lock
if ! cmp -s requirements.lock "$stamp"; then
  echo "setup: Python packages into .venv"
  [[ -x .venv/bin/python ]] || /usr/bin/python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements.lock
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" > "$site/wherry.pth"
  printf '#!%s\nimport sys\nfrom wherry.cli import main\nsys.exit(main())\n' "$PWD/.venv/bin/python" > .venv/bin/wherry
  chmod +x .venv/bin/wherry
  cp requirements.lock "$stamp"
fi
