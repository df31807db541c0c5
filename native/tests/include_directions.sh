#!/usr/bin/env bash
# The folders of src/ include each other in one direction only: each may use those before it. docs/architecture.md says the same.
#   include_directions.sh SOURCE_DIR      the folder of native/
set -euo pipefail
cd "$1/src"

order=(support abi cuda registry interpose plan exec api)

rank() {
    local i
    for i in "${!order[@]}"; do
        if [[ "${order[$i]}" == "$1" ]]; then
            echo "$i"
            return
        fi
    done
    echo "include_directions: src/$1 is not in the order; add it here and to docs/architecture.md" >&2
    exit 1
}

failed=0
checked=0
while IFS=: read -r file line; do
    used="${line#*\"}"
    used="${used%%/*}"
    checked=$((checked + 1))
    folder="$(rank "${file%%/*}")"
    included="$(rank "$used")"
    if ((included > folder)); then
        echo "include_directions: src/$file has $line, but ${file%%/*} may use ${order[*]:0:folder} only" >&2
        failed=1
    fi
done < <(grep --include='*.h' --include='*.cpp' -r '^#include ".*/' .  | sed 's/^\.\///')
if ((checked < 50)); then
    echo "include_directions: found $checked includes, expected all of src/" >&2
    failed=1
fi
exit "$failed"
