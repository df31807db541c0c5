#!/usr/bin/env bash
# Formats the Java sources of the given modules, or of all.
#   scripts/format.sh [MODULE_DIR...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh || exit 1

version="$(sed -n 's:.*<googleJavaFormat.version>\(.*\)</.*:\1:p' pom.xml)"
tool=target/tools/google-java-format-all-deps.jar
if [[ ! -f "$tool" ]]; then
    mvn -q -N dependency:copy -Dartifact="com.google.googlejavaformat:google-java-format:$version:jar:all-deps" \
        -DoutputDirectory=target/tools -Dmdep.stripVersion=true
fi

modules=("$@")
if ((${#modules[@]} == 0)); then
    modules=(jextract-gen ggml-ext-java ggml-ext-vector examples benchmarks)
fi
for module in "${modules[@]}"; do
    [[ -d "$module/src" ]] || continue
    scripts/format-sources.sh "$module" target/format-sources
    "$JAVA25_HOME/bin/java" -jar "$tool" --replace @target/format-sources
done
