#!/usr/bin/env bash
# Runs the CUDA layer's tests and figures on a machine with a GPU.
#   cuda-tests.sh pack BUILD_DIR GGML_DIR FOLDER    here: puts programs and libraries of a cuda-kernels build, a ggml with its CUDA
#                                                   backend, a Java runtime with the compiled JUnit tests tagged "cuda", and this
#                                                   script into FOLDER, to be brought to the GPU
#   cuda-tests.sh run FOLDER                        there: all tests, each in a process of its own, then figures, then the memory
#                                                   and race checkers where they are installed
#   cuda-tests.sh bench FOLDER                      there: all figures, those of the kernels without ggml included
# Needs on the GPU machine: the driver, libcudart and libcublas of the CUDA major version that ggml was built with. Cases with
# CUDA source text need libnvrtc too, and are skipped without it.
set -uo pipefail

pack() {
    local build="$1" ggml="$2" folder="$3" root
    root="$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")"
    mkdir -p "$folder/bin" "$folder/ggml"
    cp "$build"/lib/cuda-ggml-tests "$build"/lib/cuda-ggml-bench "$build"/lib/libggml-ext.so "$build"/lib/libggml-ext-cuda.so \
        "$build"/tests/cuda-kernel-tests "$build"/bench/cuda-kernel-bench "$folder/bin/" || exit 1
    # the documentation's kernel library with CUDA source text in it, for the figures
    "${CC:-cc}" -std=c11 -O2 -shared -fPIC -I "$root/native/include" "$root/examples/src/test/c/swish_cuda.c" -o "$folder/bin/libswish-cuda.so" \
        "$folder/bin/libggml-ext.so" || exit 1
    strip --strip-unneeded "$folder"/bin/*
    cp -L "$ggml"/lib*.so* "$folder/ggml/" || exit 1
    cp "${BASH_SOURCE[0]}" "$folder/"
    pack_java "$folder"
    du -sh "$folder"
}

# What the Java tests need where there is no Java: a runtime, the classes (mvn test-compile made them), their libraries.
pack_java() (
    folder="$(realpath "$1")"
    cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
    source scripts/setup.sh || exit 1
    rm -rf "$folder/jre" "$folder/java"
    mkdir -p "$folder/java/lib"
    "$JAVA25_HOME/bin/jlink" --output "$folder/jre" --strip-debug --no-header-files --no-man-pages --compress zip-0 \
        --add-modules java.base,java.logging,java.management,java.xml,jdk.incubator.vector,jdk.unsupported || exit 1
    cp -r jextract-gen/target/classes "$folder/java/bindings"
    cp -r ggml-ext-java/target/classes "$folder/java/classes"
    cp -r ggml-ext-java/target/test-classes "$folder/java/tests"
    mvn -q -pl jextract-gen,ggml-ext-java dependency:copy-dependencies -DexcludeGroupIds=org.ggmlext -DoutputDirectory="$folder/java/lib" || exit 1

    mvn -q -N dependency:copy -Dartifact=org.junit.platform:junit-platform-console-standalone:1.14.4 -DoutputDirectory="$folder/java/lib" || exit 1
    tar -C "$folder" -cJf "$folder/jre.tar.xz" jre && rm -rf "$folder/jre"
)

failed=0

# NAME SECONDS COMMAND...: one line for a pass, the end of the output for a failure
check() {
    local name="$1" seconds="$2" output status
    shift 2
    output="$(timeout "$seconds" "$@" 2>&1)"
    status=$?
    if ((status == 0)); then
        echo "passed   $name"
    elif ((status == 77)); then
        echo "skipped  $name: $output"
    else
        failed=1
        echo "FAILED   $name (exit status $status)"
        tail -n 40 <<<"$output" | sed 's/^/         /'
    fi
}

enter() {
    cd "$1" || exit 1
    [[ -d jre ]] || tar -xJf jre.tar.xz || exit 1
    export GGML_EXT_TEST_GGML_DIR="$PWD/ggml" GGML_NO_BACKTRACE=1 LD_LIBRARY_PATH="$PWD/ggml:${LD_LIBRARY_PATH:-}"
    nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
}

run_java() {
    GGML_HOME="$PWD/ggml" GGML_EXT_LIBRARY="$PWD/bin/libggml-ext.so" timeout 120 \
        jre/bin/java --enable-native-access=ALL-UNNAMED -cp "java/bindings:java/classes:java/tests:java/lib/*" \
        org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=tree --fail-if-no-tests \
        --scan-classpath=java/tests --include-tag=cuda --disable-ansi-colors || failed=1
}

# figures of the layer, and of kernels described in Java
figures() {
    timeout 90 bin/cuda-ggml-bench
    GGML_HOME="$PWD/ggml" GGML_EXT_LIBRARY="$PWD/bin/libggml-ext.so" timeout 120 \
        jre/bin/java --enable-native-access=ALL-UNNAMED -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp "java/bindings:java/classes:java/tests:java/lib/*" org.ggmlext.ext.CudaReplayBench bin/libswish-cuda.so
}

run() {
    enter "$1"
    check "kernels without ggml" 120 bin/cuda-kernel-tests
    local cases name
    mapfile -t cases < <(bin/cuda-ggml-tests --list-test-cases | sed -n '/^===/,/^===/p' | grep -v '^===')
    for name in "${cases[@]}"; do
        check "$name" 60 bin/cuda-ggml-tests --test-case="${name//,/*}"
    done
    for name in "${cases[@]}"; do
        [[ "$name" == CAP* || "$name" == AOT* ]] && GGML_CUDA_DISABLE_GRAPHS=1 check "no graphs: $name" 60 bin/cuda-ggml-tests --test-case="${name//,/*}"
    done
    run_java
    figures
    if command -v compute-sanitizer >/dev/null; then
        check "memcheck" 70 compute-sanitizer --tool memcheck --error-exitcode 9 bin/cuda-ggml-tests --test-case="ROPE-1*,ROPE-3*,I8-2*,ROT*"
        check "racecheck" 60 compute-sanitizer --tool racecheck --error-exitcode 9 bin/cuda-ggml-tests --test-case="ROPE-3*,ROT*"
    fi
    exit "$failed"
}

bench() {
    enter "$1"
    bin/cuda-kernel-bench
    figures
}

case "${1:-}" in
    pack) shift && pack "$@" ;;
    run) shift && run "$@" ;;
    bench) shift && bench "$@" ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
