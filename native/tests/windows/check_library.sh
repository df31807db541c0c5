#!/usr/bin/env bash
# What a library for Windows shows and needs: names of the interface alone, and libraries of Windows and of this project alone. Nothing in
# it moves vectors of 32 or 64 bytes as if they lay aligned: the stack does not align them there.
#   check_library.sh OBJDUMP LIBRARY
set -euo pipefail

objdump="$1" library="$2"

fail() {
    echo "$(basename "$library"): $*" >&2
    exit 1
}

headers="$("$objdump" -p "$library")"

exported="$(sed -n '/^\[Ordinal\/Name Pointer\] Table/,/^$/ s/^\t\[ *[0-9]*\] *\(+base\[ *[0-9]*\] *[0-9a-f]* *\)\{0,1\}//p' <<<"$headers")"
[[ -n "$exported" ]] || fail "it exports nothing"
others="$(grep -v '^ggml_ext_' <<<"$exported" || true)"
[[ -z "$others" ]] || fail "it exports" $others

others="$(sed -n 's/^\tDLL Name: //p' <<<"$headers" | grep -viE '^(kernel32|msvcrt|api-ms-win-crt-.*|ggml-ext)\.dll$' || true)"
[[ -z "$others" ]] || fail "it needs" $others

moves="$("$objdump" -d "$library" | grep -E 'vmov(ap[sd]|dqa(32|64)?|ntp[sd]|ntdqa?) .*%[yz]mm' | grep -F '(' || true)"
[[ -z "$moves" ]] || fail $'aligned moves:\n' "$moves"
echo "$(basename "$library"): $(wc -l <<<"$exported") names"
