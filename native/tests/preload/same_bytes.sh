#!/usr/bin/env bash
# COMPAT-2: with nothing registered, a patched process computes the same bytes as an unpatched one.
#   same_bytes.sh PROGRAM...        its name, behind that of an emulator where it needs one
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$@" plain "$work/plain"
"$@" patched "$work/patched"
cmp "$work/plain" "$work/patched"
echo "the same $(stat -c %s "$work/plain") bytes"
