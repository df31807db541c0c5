#!/usr/bin/env bash
# Builds the CUDA kernel library with CMake and puts it, with its manifest, where the jar takes it from. Without nvcc the jar holds
# no library, and the build says so.
#   build.sh CMAKE_DIR CLASSES_DIR LIBGGML_EXT VERSION JOBS ARCHITECTURES ON|OFF
# ARCHITECTURES: as 90a, or "all"; the last: build the tests
set -euo pipefail

source="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cmake_dir="$1" classes="$2" ggml_ext="$3" version="$4" jobs="$5" architectures="$6" tests="$7"
output="$classes/META-INF/native/linux-x86_64/cuda"

rm -rf "$classes"
mkdir -p "$classes/META-INF"
cp "$source/../LICENSE" "$source/../native/NOTICE" "$classes/META-INF/"
if ! command -v nvcc >/dev/null; then
    echo "cuda-kernels: no nvcc here, the CUDA kernel library is not built"
    exit 0
fi

cmake -S "$source" -B "$cmake_dir" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release -DGGML_EXT_LIBRARY="$ggml_ext" \
    -DGGML_EXT_CUDA_ARCHITECTURES="${architectures/#all/}" -DGGML_EXT_CUDA_TESTS="$tests" --log-level=WARNING >/dev/null
cmake --build "$cmake_dir" -j "$jobs" -- --no-print-directory -s

mkdir -p "$output"
strip --strip-unneeded -o "$output/libggml-ext-cuda.so" "$cmake_dir/lib/libggml-ext-cuda.so"
cd "$output"
bash "$source/../native/manifest.sh" ggml-ext-cuda "$version" "built here" libggml-ext-cuda.so >manifest.properties
