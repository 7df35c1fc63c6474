#!/bin/sh
# Fetches a source package of Debian and the libraries in Go that it may need, with what apt says about them.
# Arguments: name and version of the source package.
set -eu
name=$1 version=$2

if [ -f /etc/apt/sources.list.d/debian.sources ]; then
  sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources
else
  sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > /etc/apt/sources.list.d/source.list
fi
apt-get update -qq
mkdir /tmp/assay-build/found /tmp/assay-build/found/libraries
cd /tmp/assay-build/found
apt-get source -qq --download-only "$name=$version"
apt-cache showsrc --only-source "$name" > sources
touch packages
sed -n 's/^Build-Depends[A-Za-z-]*: //p' sources | tr ',|' '\n\n' | sed 's/^ *//; s/[ (<:[].*//' \
  | { grep '^golang-.*-dev$' || true; } | sort -u > needed
if [ -s needed ]; then
  # Recursion passes virtual packages, whose names are in <>, on to those that provide them.
  xargs apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances < needed | sed -n 's/^\(golang-[^ :]*-dev\)\(:.*\)\{0,1\}$/\1/p' | sort -u > names
  xargs apt-cache show --no-all-versions < names > packages
  cd libraries
  xargs apt-get download -qq < ../names
fi
tar -C /tmp/assay-build/found -cf /tmp/assay-build/found.tar .
