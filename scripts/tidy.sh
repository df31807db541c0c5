#!/usr/bin/env bash
# Runs clang-tidy on the layer and its registered CPU kernels, with the checks of native/.clang-tidy; any finding fails.
#   scripts/tidy.sh [CMAKE_DIR] [FILE...]      a configured build of native/, as it comes native/target/cmake; all files, as it comes
# Says so and does nothing where clang-tidy is not installed: other versions of it find other things.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tidy=clang-tidy-19
command -v "$tidy" >/dev/null || {
    echo "tidy: skipped, $tidy is not installed (Debian 12 and 13, Ubuntu 24.04: apt-get install $tidy)"
    exit 0
}
build="${1:-native/target/cmake}"
[[ -f "$build/compile_commands.json" ]] || {
    echo "tidy: $build is no build of native/: cmake -S native -B $build" >&2
    exit 1
}
files=("${@:2}")
if ((${#files[@]} == 0)); then
    # The kernels below native/kernels are compiled once for each instruction set, with options of GCC.
    mapfile -t files < <(find native/src native/kernels/ggml -name '*.cpp' -not -path '*/bench/*' | sort)
fi
# clang warns of what the headers of GCC's own library use, and the build makes errors of warnings
printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P "$(nproc)" "$tidy" --quiet -p "$build" --extra-arg=-Wno-deprecated-declarations
echo "tidy: nothing found in ${#files[@]} files"
