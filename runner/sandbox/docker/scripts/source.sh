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
apt-cache showsrc --only-source "$name" > sources
mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/.*|\1|p" | head -n 1)
# Digest and path of each archive of this version.
awk -v version="$version" 'BEGIN { RS = ""; FS = "\n" }
  index("\n" $0 "\n", "\nVersion: " version "\n") {
    listed = 0
    for (line = 1; line <= NF; line++) {
      if ($line ~ /^Directory: /) folder = substr($line, 12)
      if ($line ~ /^[A-Za-z]/) listed = ($line ~ /^Checksums-Sha256:/)
      else if (listed && $line ~ /\.tar\.[a-z0-9]+$/) { split($line, parts, " "); digest[parts[3]] = parts[1] }
    }
    for (file in digest) print digest[file], folder "/" file
    exit
  }' sources > archives
[ -s archives ] || { echo "Debian has no $name $version"; exit 1; }
while read -r digest path; do
  # Mirrors keep what the authors published longer than what Debian adds to it, which only describes the package.
  /usr/lib/apt/apt-helper download-file "$mirror/$path" "${path##*/}" "SHA256:$digest" || case $path in
    *.debian.tar.*) ;;
    *) exit 1 ;;
  esac
done < archives
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
