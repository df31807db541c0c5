#!/usr/bin/env bash
# Has an npm package's tarball in a folder: fetches it where it is not there yet, and refuses it when its digest is not the pinned one.
#   pinned-package.sh PACKAGE@VERSION TARBALL SHA512_IN_HEXADECIMAL WORK_DIR
set -euo pipefail
package="$1" tarball="$2" expected="$3" work="$4"

fail() {
    echo "stock-ggml: $*" >&2
    exit 1
}

mkdir -p "$work"
if [[ ! -f "$work/$tarball" ]]; then
    command -v npm >/dev/null || fail "npm is needed to fetch $package; install it (Debian: apt-get install npm)"
    echo "stock-ggml: fetching $package"
    npm pack --silent --prefer-offline --pack-destination "$work" "$package" >/dev/null ||
        fail "npm could not fetch $package (its message is above)"
fi

found="$(sha512sum "$work/$tarball" | cut -d ' ' -f 1)"
if [[ "$found" != "$expected" ]]; then
    mv "$work/$tarball" "$work/$tarball.rejected"
    fail "$package has SHA-512 $found, expected $expected; the file was kept as $work/$tarball.rejected"
fi
