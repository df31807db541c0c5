#!/usr/bin/env bash
# Writes google-java-format's arguments for all Java sources that people write.
#   java-sources.sh OUTPUT check|replace
set -euo pipefail
output="$1" mode="$2"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

{
    case "$mode" in
        check) printf '%s\n' --dry-run --set-exit-if-changed ;;
        replace) echo --replace ;;
        *) echo "format.mode is '$mode', expected check or replace" >&2 && exit 1 ;;
    esac
    find . \( -name target -o -name generated -o -name .git \) -prune -o -name '*.java' -print | sort
} >"$output"
