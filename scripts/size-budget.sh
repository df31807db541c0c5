#!/usr/bin/env bash
# Prints the size of a jar, and fails where it is over the budget.
#   size-budget.sh JAR MEGABYTES
set -euo pipefail
jar="$1" budget="$2"

bytes="$(stat -c %s "$jar")"
printf '%s: %d.%d MB of %d MB\n' "$(basename "$jar")" $((bytes / 1000000)) $((bytes % 1000000 / 100000)) "$budget"
if ((bytes > budget * 1000000)); then
    echo "size-budget: $jar has $bytes bytes, expected at most $((budget * 1000000))" >&2
    exit 1
fi
