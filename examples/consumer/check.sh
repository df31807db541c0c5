#!/usr/bin/env bash
# Builds and runs this project as its README says, with nothing of ggml-ext but what was staged into a folder.
#   check.sh STAGED_REPOSITORY LOCAL_REPOSITORY     the second is Maven's own, kept for the next time
set -euo pipefail
staged="$(realpath "$1")" local="$(realpath -m "$2")"
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../../scripts/setup.sh || exit 1

rm -rf "$local/org/ggmlext" target
mvn -B -ntp test -Dmaven.repo.local="$local" -Dggml-ext.repository="file://$staged"

# The program prints the same figures and kernels on both paths.
expect() {
    local output
    output="$("$JAVA25_HOME/bin/java" --illegal-native-access=deny "$@")"
    local part
    for part in "example.bias_snake (fused)" "example.snake.c" "[1.5173"; do
        if [[ "$output" != *"$part"* ]]; then
            printf 'consumer: expected "%s" in the output of java %s:\n%s\n' "$part" "$*" "$output" >&2
            exit 1
        fi
    done
}

expect --enable-native-access=org.ggmlext,org.ggmlext.bindings -p target/classes:target/lib \
    -m org.example.snake/org.example.snake.Main
expect --enable-native-access=ALL-UNNAMED -cp 'target/classes:target/lib/*' org.example.snake.Main
echo "consumer: tests and program ran on the module path and on the class path"
