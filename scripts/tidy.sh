#!/usr/bin/env bash
# Runs clang-tidy on the layer and its registered CPU kernels, with the checks of native/.clang-tidy; any finding fails.
#   scripts/tidy.sh [CMAKE_DIR]      a configured build of native/; as it comes native/target/cmake
# Says so and does nothing where clang-tidy is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v clang-tidy >/dev/null || {
    echo "tidy: skipped, clang-tidy is not installed (Debian: apt-get install clang-tidy)"
    exit 0
}
build="${1:-native/target/cmake}"
[[ -f "$build/compile_commands.json" ]] || {
    echo "tidy: $build is no build of native/: cmake -S native -B $build" >&2
    exit 1
}
# The kernels below native/kernels use vector extensions that clang does not have.
find native/src native/kernels/ggml -name '*.cpp' -not -path '*/bench/*' -print0 | sort -z |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build"
echo "tidy: nothing found"
