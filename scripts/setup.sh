#!/usr/bin/env bash
# Makes sure that what the build needs is on this machine. On Debian and Ubuntu, as root, missing packages are
# installed; elsewhere the message says what to install. Says nothing when all is there.
# Sourced by ./demo and ./check; leaves the home of a JDK 25 in JAVA25_HOME.

packages_missing() {
    command -v g++ >/dev/null || echo g++
    command -v make >/dev/null || echo make
    command -v cmake >/dev/null || echo cmake
    command -v strip >/dev/null || echo binutils
    command -v npm >/dev/null || echo npm
    command -v mvn >/dev/null || echo maven
    [[ -f /usr/include/doctest/doctest.h || -f /usr/local/include/doctest/doctest.h ]] || echo doctest-dev
    [[ -n "$(find_jdk25)" ]] || echo openjdk-25-jdk-headless
}

# The places where maven-toolchains-plugin looks as well.
find_jdk25() {
    local home
    for home in "${JAVA_HOME:-}" "${JAVA25_HOME:-}" "${JAVA_HOME_25_X64:-}" /usr/lib/jvm/* \
        "$HOME"/.sdkman/candidates/java/* "$HOME"/.jdks/* /opt/java/*; do
        if [[ -x "$home/bin/javac" ]] && grep -q '^JAVA_VERSION="25[."]' "$home/release" 2>/dev/null; then
            echo "$home"
            return
        fi
    done
}

can_install() {
    command -v apt-get >/dev/null && [[ "$(id -u)" == 0 ]]
}

setup() {
    local missing
    mapfile -t missing < <(packages_missing)
    if ((${#missing[@]} > 0)) && can_install; then
        echo "setup: installing ${missing[*]}" >&2
        local log
        log="$(mktemp)"
        if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
            >"$log" 2>&1; then
            tail -n 5 "$log" >&2
        fi
        rm -f "$log"
        mapfile -t missing < <(packages_missing)
    fi
    if ((${#missing[@]} > 0)); then
        echo "setup: please install these Debian packages or their like: ${missing[*]}" >&2
        if [[ -z "$(find_jdk25)" ]]; then
            echo "setup: any JDK 25 will do; set JAVA25_HOME where it is in an unusual place" >&2
        fi
        return 1
    fi
    JAVA25_HOME="$(find_jdk25)"
    # Maven may run on an older Java; this is how its toolchain search finds a JDK in an unusual place.
    export JAVA25_HOME
}

setup
