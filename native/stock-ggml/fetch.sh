#!/usr/bin/env bash
# Fetches the pinned npm package with ggml's CPU binaries, checks it, and unpacks the ggml part.
#   fetch.sh WORK_DIR OUTPUT_DIR
set -euo pipefail

package="@node-llama-cpp/linux-x64@3.21.1"
tarball="node-llama-cpp-linux-x64-3.21.1.tgz"
integrity="sha512-Totj6RTDMGo3FoK2yNUaz/oGmZD0olAqTrRluFUWmu0kW2i9TOzHSW0OWCAiGkzRCVX0WsU2CyUQo/W2NYtdPA=="
ggml_version="0.23.0"

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$1"
output="$2"

# npm writes digests in base64, sha512sum in hexadecimal.
expected="$(base64 -d <<<"${integrity#sha512-}" | od -An -vtx1 | tr -d ' \n')"

bash "$here/pinned-package.sh" "$package" "$tarball" "$expected" "$work"

stamp="$integrity $(sha256sum "${BASH_SOURCE[0]}" "$here/../manifest.sh" "$here/sbom.sh" "$here/LICENSE-ggml" "$here/NOTICE" | sha256sum | cut -d ' ' -f 1)"
if [[ -f "$work/unpacked.stamp" && -d "$output" && "$(cat "$work/unpacked.stamp")" == "$stamp" ]]; then
    exit 0
fi

rm -rf "$output" "$work/unpacked"
mkdir -p "$output" "$work/unpacked"
tar -xzf "$work/$tarball" -C "$work/unpacked" --strip-components=1
mv "$work"/unpacked/bins/linux-x64/libggml*.so "$output/"
cp "$work/unpacked/LICENSE" "$output/LICENSE-node-llama-cpp"
cp "$here/LICENSE-ggml" "$here/NOTICE" "$output/"
bash "$here/sbom.sh" "$package" "$expected" "$ggml_version" >"$work/sbom.json"
rm -rf "$work/unpacked"

# The base library first, then what links to it.
cd "$output"
bash "$here/../manifest.sh" ggml "$ggml_version" "npm $package" \
    libggml-base.so libggml.v*.so -- libggml-cpu-*.so >manifest.properties
echo "$stamp" >"$work/unpacked.stamp"
