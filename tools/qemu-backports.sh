#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks QEMU 10 from Debian's backports into .venv/qemu-backports, where the tests find it: Debian 12's own QEMU has no igb, and its NICs
# send frames of one buffer of 4 KiB only (docs/design/bypass-qemu.md). Optional. Nothing is installed: the libraries are those of Debian 12's
# qemu-system-x86, which tools/setup.sh installs. 13 MB to download, 85 MB on disk.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
target=.venv/qemu-backports
program=$target/usr/bin/qemu-system-x86_64
if [[ -x $program ]] && "$program" --version >/dev/null 2>&1; then
  exit 0
fi

# The machine's own mirror of Debian, but another suite; apt's lists stay as they are.
site=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 2>/dev/null | awk '$2 == "bookworm" && $3 == "Debian" {print $1; exit}')
[[ -n $site ]] || { echo "qemu-backports: apt knows no Debian 12 (bookworm) here: run apt-get update, or unpack a QEMU >= 9.1 into $target" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $site bookworm-backports main" >"$work/sources.list"
options=(-q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache")
[[ "$(id -u)" != 0 ]] || options+=(-o APT::Sandbox::User=root) # another user could not write there
echo "qemu-backports: fetching QEMU from bookworm-backports"
apt-get "${options[@]}" update >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
(cd "$work" && apt-get "${options[@]}" download qemu-system-{x86,common,data}/bookworm-backports >>"$work/log" 2>&1) || { cat "$work/log" >&2; exit 1; }
rm -rf "$target"
for package in "$work"/*.deb; do
  dpkg-deb -x "$package" "$target"
done
"$program" --version >/dev/null || { echo "qemu-backports: $program does not start: install Debian 12's qemu-system-x86 for its libraries" >&2; exit 1; }
"$program" --version | head -1
