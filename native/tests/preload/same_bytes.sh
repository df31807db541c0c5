#!/usr/bin/env bash
# COMPAT-2: with nothing registered, a patched process computes the same bytes as an unpatched one.
#   same_bytes.sh PROGRAM
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$1" plain "$work/plain"
"$1" patched "$work/patched"
cmp "$work/plain" "$work/patched"
echo "the same $(stat -c %s "$work/plain") bytes"
