#!/bin/sh
# Builds the bundle of a PyPI package in $1: a virtual environment of the `python` bundle, at its final path.
set -eu
dest=$1 name=$2
build=/tmp/assay-build
find "$dest" -mindepth 1 -delete # what an interrupted build left
"$build/uv" venv --quiet --no-config --no-project --allow-existing --python /opt/assay/python/bin/python3 "$dest"

# The lock is the whole truth: nothing that it does not name, nothing that is not a wheel. Bytecode names its source by
# hash, because a time would make the content differ from build to build.
export PYC_INVALIDATION_MODE=UNCHECKED_HASH
"$build/uv" pip install --quiet --no-config --no-cache --link-mode copy --compile-bytecode --no-deps \
    --only-binary :all: --require-hashes --python "$dest/bin/python" -r "$build/requirements.lock"

find "$dest" -name '*.a' -delete
installed=$("$build/uv" pip list --quiet --no-config --format json --python "$dest/bin/python")
printf '{"name": "%s", "installed": %s}\n' "$name" "$installed" > "$dest/bundle.json"
python3 -I "$build/content.py" "$dest" > /var/lib/assay-content
rm -rf "$build"
