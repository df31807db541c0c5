#!/usr/bin/env bash
# Counts the instructions of a graph, from its building to its result, with the layer attached and nothing registered against a ggml
# that nothing was done to. Counts do not depend on what else the machine does; needs valgrind.
#   GGML_EXT_TEST_GGML_DIR=<folder of stock ggml> idle_instructions.sh <folder of idle-bench>
set -euo pipefail

bench="$1/idle-bench"
few=2 many=6

# instructions of a whole process
count() {
    local report
    report="$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$@" 2>&1)" || { echo "$report" >&2; exit 1; }
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$report"
}

# of one graph: start and end of the process, and first allocations, are the same in both processes
of_one_graph() {
    local first second
    first="$(count "$1" "$2" "$few")"
    second="$(count "$1" "$2" "$many")"
    echo $(((second - first) / (many - few)))
}

echo "| graph | stock ggml | attached, nothing registered | ratio |"
echo "|---|--:|--:|--:|"
for graph in tiny encoder; do
    stock="$(of_one_graph stock "$graph")"
    attached="$(of_one_graph attached "$graph")"
    awk -v graph="$graph" -v stock="$stock" -v attached="$attached" \
        'BEGIN { printf "| %s | %d | %d | %.5f |\n", graph, stock, attached, attached / stock }'
done
