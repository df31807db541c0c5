#!/usr/bin/env bash
# Prints the bill of materials of the stock binaries (CycloneDX): Maven does not know what npm brings.
#   sbom.sh NPM_PACKAGE SHA512 GGML_VERSION
set -euo pipefail
package="$1" sha512="$2" ggml_version="$3"

name="${package%@*}"
version="${package##*@}"
cat <<JSON
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.6",
  "version": 1,
  "metadata": {
    "component": {"type": "library", "group": "org.ggmlext", "name": "ggml-stock", "bom-ref": "ggml-stock"}
  },
  "components": [
    {
      "type": "library",
      "bom-ref": "npm-package",
      "name": "$name",
      "version": "$version",
      "purl": "pkg:npm/${name/@/%40}@$version",
      "hashes": [{"alg": "SHA-512", "content": "$sha512"}],
      "licenses": [{"license": {"id": "MIT"}}]
    },
    {
      "type": "library",
      "bom-ref": "ggml",
      "name": "ggml",
      "version": "$ggml_version",
      "purl": "pkg:github/ggml-org/ggml@v$ggml_version",
      "licenses": [{"license": {"id": "MIT"}}]
    }
  ],
  "dependencies": [
    {"ref": "ggml-stock", "dependsOn": ["npm-package"]},
    {"ref": "npm-package", "dependsOn": ["ggml"]},
    {"ref": "ggml"}
  ]
}
JSON
