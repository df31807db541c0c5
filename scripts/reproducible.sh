#!/usr/bin/env bash
# Builds all that is published twice, in two copies of the committed tree at different places, and compares every file's bytes.
#   scripts/reproducible.sh [MAVEN_ARGUMENT...]      such as -pl MODULES, for a part, or -Dcuda.architectures=all
# Where there is nvcc, its part is built for one architecture, since all of them take many times as long.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup.sh || exit 1

work="$PWD/target/reproducible"
commit="$(git rev-parse HEAD)"
arguments=("$@")
if [[ " $* " != *" -pl "* ]]; then
    arguments+=(-pl '!examples,!benchmarks')
fi
rm -rf "$work"
mkdir -p "$work"

# The second place has a longer path: one that leaks into a file changes its length too.
places=("$work/a" "$work/another/place")
for place in "${places[@]}"; do
    echo "reproducible: building in $place" >&2
    git clone -q . "$place"
    git -C "$place" checkout -q "$commit"
    # What was fetched is checked by its hash, so it need not be fetched anew.
    mkdir -p "$place/native/stock-ggml/target"
    cp native/stock-ggml/target/*.tgz "$place/native/stock-ggml/target/" 2>/dev/null || true
    (cd "$place" && mvn -B -ntp -q deploy -Prelease -DskipTests -Dmaven.test.skip=true -Dnative.tests=OFF \
        -Dmaven.install.skip=true -Dcuda.architectures=90a "${arguments[@]}" -DaltDeploymentRepository="staging::file:$place/staged") \
        >"$place.log" 2>&1 || { tail -n 20 "$place.log" >&2; exit 1; }
    # A snapshot's file name carries the time of its deployment, metadata as well; the name without it says the same.
    (cd "$place/staged" && find . -type f ! -name 'maven-metadata*' ! -name '*.md5' ! -name '*.sha*' -exec sha256sum {} + |
        sed -E 's/-[0-9]{8}\.[0-9]{6}-[0-9]+/-SNAPSHOT/' | sort -k 2) >"$place.sums"
done

if ! diff "${places[0]}.sums" "${places[1]}.sums"; then
    echo "reproducible: the two builds differ; see the files above" >&2
    exit 1
fi
echo "reproducible: $(wc -l <"${places[0]}.sums") files have the same bytes in both builds"
