#!/usr/bin/env bash
# Prints the manifest of a folder of native libraries (the current folder), as a Java properties file.
#   manifest.sh NAME VERSION SOURCE LIBRARY... [-- BACKEND...]
# Libraries are opened by the loader, in the given order; of the backends ggml itself picks one.
set -euo pipefail

name="$1" version="$2" source="$3"
shift 3

libraries=()
backends=()
while (($# > 0)) && [[ "$1" != "--" ]]; do
    libraries+=("$1")
    shift
done
if (($# > 0)); then
    backends=("${@:2}")
fi

join() {
    local IFS=,
    echo "$*"
}

echo "name=$name"
echo "version=$version"
echo "source=$source"
echo "libraries=$(join "${libraries[@]}")"
echo "backends=$(join "${backends[@]}")"
for file in "${libraries[@]}" "${backends[@]}"; do
    echo "sha256.$file=$(sha256sum "$file" | cut -d ' ' -f 1)"
done
