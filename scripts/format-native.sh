#!/usr/bin/env bash
# Formats the sources in C, C++ and CUDA as .clang-format says, or names those that are formatted otherwise.
#   scripts/format-native.sh [--check]
# Says so and does nothing where clang-format is not installed: other versions of it format otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

format=clang-format-19
command -v "$format" >/dev/null || {
    echo "format-native: skipped, $format is not installed (Debian 12 and 13, Ubuntu 24.04: apt-get install $format)"
    exit 0
}
mapfile -t files < <(find native cuda-kernels benchmarks/src examples ggml-ext-java/src/test/c -name target -prune -o \
    -type f \( -name '*.c' -o -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print | sort)
if [[ "${1:-}" == --check ]]; then
    "$format" --dry-run -Werror "${files[@]}" || {
        echo "format-native: scripts/format-native.sh mends that" >&2
        exit 1
    }
else
    "$format" -i "${files[@]}"
fi
