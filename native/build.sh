#!/usr/bin/env bash
# Builds the native libraries with CMake and puts them, with their manifest, headers and licences, where the jar takes them from.
#   build.sh CMAKE_DIR OUTPUT_DIR STOCK_GGML_DIR VERSION JOBS ON|OFF      the last: build the tests
set -euo pipefail

source="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cmake_dir="$1" output="$2" stock_ggml="$3" version="$4" jobs="$5" tests="$6"

command -v cmake >/dev/null || {
    echo "native: cmake is needed; install it (Debian: apt-get install cmake g++ make doctest-dev)" >&2
    exit 1
}

cmake -S "$source" -B "$cmake_dir" -G "Unix Makefiles" -DGGML_EXT_TEST_GGML_DIR="$stock_ggml" \
    -DGGML_EXT_TESTS="$tests" --log-level=WARNING >/dev/null
cmake --build "$cmake_dir" -j "$jobs" -- --no-print-directory -s

rm -rf "$output"
mkdir -p "$output"
libraries=(libggml-ext.so)
if [[ -f "$cmake_dir/lib/libggml-ext-cpu.so" ]]; then
    libraries+=(libggml-ext-cpu.so)
fi
for library in "${libraries[@]}"; do
    strip --strip-unneeded -o "$output/$library" "$cmake_dir/lib/$library"
done
mkdir -p "$output/../include"
cp "$source"/include/*.h "$output/../include/"
cp "$source/../LICENSE" "$source/NOTICE" "$output/../../"

cd "$output"
bash "$source/manifest.sh" ggml-ext "$version" "built here" "${libraries[@]}" >manifest.properties
