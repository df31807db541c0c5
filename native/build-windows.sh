#!/usr/bin/env bash
# Cross-compiles the native libraries for Windows x86-64 and puts them, with their manifest and licences, where a jar takes them from.
#   build-windows.sh CMAKE_DIR CLASSES_DIR VERSION JOBS ON|OFF
# The last: build the tests too, and run them under wine on the ggml of a pinned npm package.
# Debian 12: apt-get install cmake make g++-mingw-w64-x86-64-posix, and for the tests doctest-dev npm wine64
set -euo pipefail

source="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
mkdir -p "$1" "$2"
cmake_dir="$(cd "$1" && pwd)" classes="$(cd "$2" && pwd)" version="$3" jobs="$4" tests="$5"
compiler=x86_64-w64-mingw32-g++-posix
output="$classes/META-INF/native/windows-x86_64"

fail() {
    echo "windows: $*" >&2
    exit 1
}

command -v "$compiler" >/dev/null || fail "$compiler is needed; install it (Debian: apt-get install g++-mingw-w64-x86-64-posix)"

stock_ggml="$cmake_dir/stock-ggml"
if [[ "$tests" == ON ]]; then
    integrity="JcIpCnra7bAd7JNWA8ehdn2DIRaTMuj+fBC8bw+5rKSNzszWFbuj2XA05c5QHovonDMBLN1ePXE/hcfZtzXoUQ=="
    tarball=node-llama-cpp-win-x64-3.21.1.tgz
    bash "$source/stock-ggml/pinned-package.sh" @node-llama-cpp/win-x64@3.21.1 "$tarball" \
        "$(base64 -d <<<"$integrity" | od -An -vtx1 | tr -d ' \n')" "$cmake_dir"
    mkdir -p "$stock_ggml"
    tar -xzf "$cmake_dir/$tarball" -C "$stock_ggml" --strip-components=3 --wildcards 'package/bins/win-x64/ggml*.dll'
fi

cmake -S "$source" -B "$cmake_dir" -G "Unix Makefiles" -DCMAKE_TOOLCHAIN_FILE="$source/cmake/mingw-w64/toolchain.cmake" \
    -DGGML_EXT_TESTS="$tests" -DGGML_EXT_TEST_GGML_DIR="$stock_ggml" --log-level=WARNING >/dev/null
cmake --build "$cmake_dir" -j "$jobs" -- --no-print-directory -s
if [[ "$tests" == ON ]]; then
    WINEDEBUG="${WINEDEBUG:--all}" ctest --test-dir "$cmake_dir" --output-on-failure --no-tests=error
fi

rm -rf "$classes/META-INF"
mkdir -p "$output"
libraries=(ggml-ext.dll ggml-ext-cpu.dll)
for library in "${libraries[@]}"; do
    x86_64-w64-mingw32-strip --strip-unneeded -o "$output/$library" "$cmake_dir/lib/$library"
done
mkdir "$classes/META-INF/native/include"
cp "$source"/include/*.h "$classes/META-INF/native/include/"
cp "$source/../LICENSE" "$source/NOTICE" "$classes/META-INF/"
runtime=/usr/share/doc/mingw-w64-x86-64-dev/copyright
[[ -f "$runtime" ]] || fail "there is no $runtime, the licences of what the compiler links in"
cp "$runtime" "$classes/META-INF/LICENSE-mingw-w64"

cd "$output"
bash "$source/manifest.sh" ggml-ext "$version" "built here" "${libraries[@]}" >manifest.properties
