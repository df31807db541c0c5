#!/usr/bin/env bash
# COMPAT-2: ggml's own test-backend-ops gives the same answer for every test in a patched and in an unpatched process.
#   test_backend_ops.sh ATTACH_LIBRARY [OPS]
# The program is $GGML_EXT_TEST_BACKEND_OPS, else the one that Debian's ggml packages install. Leaves 77 where there is none.
set -euo pipefail

attach="$1" ops="${2:-SQR,SQRT,LOG,SIN,COS,CLAMP,LEAKY_RELU}"

program="${GGML_EXT_TEST_BACKEND_OPS:-}"
if [[ -z "$program" ]]; then
    for candidate in /usr/libexec/*/ggml/test-backend-ops /usr/libexec/ggml/test-backend-ops; do
        if [[ -x "$candidate" ]]; then
            program="$candidate"
        fi
    done
fi
if [[ ! -x "$program" ]]; then
    echo "skipped: no test-backend-ops here: install Debian's ggml tests or set GGML_EXT_TEST_BACKEND_OPS"
    exit 77
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
arguments=(test -b CPU)
if [[ "$ops" != all ]]; then
    arguments+=(-o "$ops")
fi

# one line a test, without colours
run() {
    local status=0
    cd "$(dirname "$program")" # backends are looked for beside the program
    LD_PRELOAD="$2" "$program" "${arguments[@]}" >"$work/$1.out" 2>"$work/$1.err" || status=$?
    sed 's/\x1b\[[0-9;]*m//g' "$work/$1.out" | { grep -E '^ +[A-Z0-9_]+\(' || true; } | sort >"$work/$1.tests"
    echo "$1: exit status $status, $(grep -c ': OK$' "$work/$1.tests" || true) OK, $(grep -vc ': OK$' "$work/$1.tests" || true) others"
}

run unpatched ""
run patched "$attach"

grep 'ggml-ext-attach: attached CPU' "$work/patched.err" || {
    echo "the patched run attached nothing:"
    cat "$work/patched.err"
    exit 1
}
grep -q ': OK$' "$work/unpatched.tests" || {
    echo "the unpatched run passed no test:"
    tail "$work/unpatched.out" "$work/unpatched.err"
    exit 1
}
diff "$work/unpatched.tests" "$work/patched.tests" && echo "the same for every test"
