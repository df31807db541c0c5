#!/usr/bin/env bash
# Runs clang-tidy on the layer's own sources, with the checks of native/.clang-tidy; any finding fails.
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
find native/src native/kernels -name '*.cpp' -not -path '*/bench/*' -not -name 'test.cpp' -not -name 'bench.cpp' -not -name 'errors.cpp' \
    -not -path '*/tests/*' -print0 | sort -z | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build"
echo "tidy: nothing found"
