#!/usr/bin/env bash
# Tests fetch.sh on what a build has fetched before: a damaged package is refused, a good one is not fetched again.
#   fetch-test.sh WORK_DIR
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
tarball="$(echo "$1"/node-llama-cpp-linux-x64-*.tgz)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "fetch-test: $*" >&2
    exit 1
}

# No npm in these runs: an attempt to fetch fails.
mkdir "$scratch/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/npm"
chmod +x "$scratch/bin/npm"
export PATH="$scratch/bin:$PATH"

mkdir "$scratch/damaged"
cp "$tarball" "$scratch/damaged/"
printf x >>"$scratch/damaged/$(basename "$tarball")"
if message="$(bash "$here/fetch.sh" "$scratch/damaged" "$scratch/out" 2>&1)"; then
    fail "a damaged package was accepted"
fi
[[ "$message" == *"has SHA-512"*"expected"* ]] || fail "the message does not name both digests: $message"
[[ ! -e "$scratch/out" ]] || fail "a damaged package was unpacked"

mkdir "$scratch/good"
cp "$tarball" "$scratch/good/"
bash "$here/fetch.sh" "$scratch/good" "$scratch/out" || fail "a good package was refused or fetched again"
(cd "$scratch/out" && sed -n 's/^sha256\.\([^=]*\)=\(.*\)$/\2  \1/p' manifest.properties | sha256sum --check --quiet) ||
    fail "the manifest's digests are not those of the files"

mkdir "$scratch/empty"
if message="$(bash "$here/fetch.sh" "$scratch/empty" "$scratch/none" 2>&1)"; then
    fail "fetch.sh succeeded although npm failed"
fi
[[ "$message" == *"could not fetch"* ]] || fail "the message does not say that npm failed: $message"
echo "fetch-test: 3 passed, 0 failed"
