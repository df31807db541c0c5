#!/usr/bin/env bash
# Builds the native code and its tests with a sanitizer and runs the tests.
#   sanitize.sh address|thread CMAKE_DIR STOCK_GGML_DIR JOBS
set -euo pipefail

source="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
kind="$1" cmake_dir="$2" stock_ggml="$3" jobs="$4"

cmake -S "$source" -B "$cmake_dir" -G "Unix Makefiles" -DGGML_EXT_SANITIZE="$kind" \
    -DGGML_EXT_TEST_GGML_DIR="$stock_ggml" --log-level=WARNING >/dev/null
cmake --build "$cmake_dir" -j "$jobs" -- --no-print-directory -s

export GGML_EXT_TEST_GRAPHS=300 # of the thousands that the plain build runs: sanitizers are slow
# Tests ask for memory that no machine has.
export ASAN_OPTIONS="allocator_may_return_null=1:detect_stack_use_after_return=1:strict_string_checks=1:suppressions=$source/tests/asan.supp"
export UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="allocator_may_return_null=1:halt_on_error=1:second_deadlock_stack=1:suppressions=$source/tests/tsan.supp"
# The thread sanitizer of older compilers cannot place its shadow where the kernel randomises addresses widely.
run=()
if [[ "$kind" == thread ]] && setarch -R true 2>/dev/null; then
    run=(setarch -R)
fi
echo "ctest with the $kind sanitizer"
"${run[@]}" ctest --test-dir "$cmake_dir" --output-on-failure --no-tests=error
