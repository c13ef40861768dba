#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts cpp-httplib's implementation into build/httplib, for programs that have it in them (cmake/Portable.cmake).
#
# Debian's package has the shared library and a header without the implementation. This takes the source package of the same version from
# where this machine gets its packages, needs no root, and changes nothing of the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(dpkg-query -W -f='${source:Version}' libcpp-httplib-dev)
[[ -e build/httplib/httplib.cc && "$(cat build/httplib/version 2>/dev/null)" == "$version" ]] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial"
for file in /etc/apt/sources.list.d/*.sources; do
  [[ ! -e $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/${file##*/}"
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -e $file ]] || sed -n 's/^deb /deb-src /p' "$file" >>"$work/parts/all.list"
done
options=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists"
  -o Dir::Cache="$work/cache" -o APT::Get::List-Cleanup=false)
[[ "$(id -u)" != 0 ]] || options+=(-o APT::Sandbox::User=root) # another user could not write there
echo "httplib: fetching the source of cpp-httplib $version"
apt-get "${options[@]}" update -qq
(cd "$work" && apt-get "${options[@]}" source -qq "cpp-httplib=$version" >/dev/null)
mkdir -p build/httplib
python3 "$work"/cpp-httplib-*/split.py -o "$PWD/build/httplib" >/dev/null
echo "$version" >build/httplib/version
