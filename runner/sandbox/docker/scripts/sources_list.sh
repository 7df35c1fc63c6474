#!/bin/sh
# Writes what apt says about source packages of Debian, in every suite that the mirror has. Arguments: their names;
# `python3-x` is the name of a library, whatever its source is called. Unknown names have no entry.
set -eu

mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/.*|\1|p" | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
# A mirror may lag behind: old lists are good enough to find a file, whose digest is then pinned.
for suite in bullseye bookworm trixie forky sid; do
  if [ "$suite" = "$own" ] ||
    /usr/lib/apt/apt-helper download-file "$mirror/dists/$suite/Release" /tmp/release > /dev/null 2>&1; then
    echo "deb-src [signed-by=$keys check-valid-until=no] $mirror $suite main"
  fi
done > /tmp/suites
rm -f /etc/apt/sources.list.d/debian.sources
cp /tmp/suites /etc/apt/sources.list
apt-get update -qq
for name in "$@"; do
  case $name in
    python3-*) apt-cache showsrc "$name" 2> /dev/null || true ;;
    *) apt-cache showsrc --only-source "$name" 2> /dev/null || true ;;
  esac
done > /tmp/assay-build/sources
