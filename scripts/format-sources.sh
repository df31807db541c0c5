#!/usr/bin/env bash
# Lists the Java sources of a module that people write.
#   format-sources.sh MODULE_DIR OUTPUT
set -euo pipefail
module="$1" output="$2"

mkdir -p "$(dirname "$output")"
find "$module/src" -name generated -prune -o -name '*.java' -print | sort >"$output"
