#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel in an empty Debian, as a user without root and without a compiler, and runs `wherry demo` there.
#
#   tools/try_wheel.sh [--keep ROOT] [WHEEL [SUITE]]      dist/wherry-*.whl, bookworm
#
# Says how long the installation and the demonstration took. Exit status: that of the demonstration. Needs root, for the root directory of
# its own, and mmdebstrap; takes minutes, most of them for that directory. --keep: it is made at ROOT, or found there, and stays.
# A suite without Python 3.11 (bullseye, buster) runs the programs alone, with the libraries of the wheels: they name no newer glibc.
set -euo pipefail
cd "$(dirname "$0")/.."
keep=
if [[ ${1:-} == --keep ]]; then keep=$2; shift 2; fi
wheel=$(realpath "${1:-$(ls dist/wherry-*.whl)}") suite=${2:-bookworm}
[[ "$(id -u)" == 0 ]] || { echo "try_wheel: needs root" >&2; exit 2; }
root=${keep:-$(mktemp -d)}
finish() {
  for place in dev/shm dev proc sys; do umount -R -l "$root/$place" 2>/dev/null || true; done
  [[ -n $keep ]] || rm -rf --one-file-system "$root"
}
trap finish EXIT
if [[ ! -x $root/usr/bin/python3 ]]; then
  command -v mmdebstrap >/dev/null || { echo "try_wheel: install mmdebstrap" >&2; exit 2; }
  # It may reach its packages as this machine does.
  settings=()
  for file in /etc/apt/apt.conf.d/99*; do [[ ! -s $file ]] || settings+=(--aptopt="$(grep -v '^#' "$file" | tr '\n' ' ')"); done
  sources=()
  [[ $suite != bookworm ]] || for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [[ ! -s $file ]] || sources+=("$file"); done
  mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates "${settings[@]}" "$suite" "$root" "${sources[@]}"
fi
mkdir -p "$root/usr/local/share/ca-certificates"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1 || true
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do [[ ! -e $file ]] || cp "$file" "$root$file"; done
mount -t proc proc "$root/proc"
mount --rbind --make-rslave /sys "$root/sys"
mount -t tmpfs none "$root/dev"
for device in null zero full random urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir -p "$root/dev/shm" && mount -t tmpfs -o size=512m,mode=1777 none "$root/dev/shm"
ln -sf /proc/self/fd "$root/dev/fd"
chroot "$root" id guest >/dev/null 2>&1 || chroot "$root" useradd --create-home guest
cp "$wheel" "$root/home/guest/"
kept=(HOME=/home/guest PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8)
for name in PIP_CERT PIP_INDEX_URL PIP_DEFAULT_TIMEOUT http_proxy https_proxy no_proxy SSL_CERT_FILE REQUESTS_CA_BUNDLE; do
  [[ -z ${!name:-} ]] || kept+=("$name=${!name}")
done
as_guest() { chroot --userspec=guest:guest "$root" env -i "${kept[@]}" bash -euc "cd; $1" _ "${wheel##*/}"; }
echo "try_wheel: $suite, $(chroot "$root" ldd --version | sed -n '1s/.* //p;q') is its glibc, $(chroot "$root" python3 --version)"
as_guest '! command -v cc gcc c++ g++ clang'
if ! chroot "$root" python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  command -v pip >/dev/null || { echo "try_wheel: this machine needs pip, for a Python that $suite does not have" >&2; exit 2; }
  place="$root/home/guest/site"
  rm -rf "$place"
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile --target "$place" "$wheel"
  as_guest 'for one in wherryd wherry-kv wherry-bypass wherry-probe; do site/wherry/_prefix/bin/$one --version; done
    site/wherry/_prefix/lib/wherry/apps/histogram --updates 100000 | cut -c1-100'
  echo "try_wheel: the programs run"
  exit 0
fi
start=$(date +%s.%N)
as_guest 'rm -rf v; python3 -m venv v; v/bin/pip install -q --disable-pip-version-check ./"$1"'
installed=$(date +%s.%N)
as_guest 'v/bin/wherry demo'
end=$(date +%s.%N)
awk -v a="$start" -v b="$installed" -v c="$end" 'BEGIN {printf "try_wheel: venv and pip install %.0f s, demonstration %.0f s, in all %.0f s\n", b - a, c - b, c - a}'
