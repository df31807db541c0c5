#!/bin/sh
# Prints the directory of ggml 0.27's headers: GGML_HEADERS if it is set, the system's own if they have the
# right version, else those of Debian's package libggml-dev, downloaded (not installed) into target/.
set -eu

version=0.27
here=$(cd "$(dirname "$0")" && pwd)
unpacked=$here/target/ggml-headers

fail() {
  echo "headers.sh: $*" >&2
  echo "headers.sh: set GGML_HEADERS to a directory with the headers of ggml $version" >&2
  exit 1
}

if [ -n "${GGML_HEADERS:-}" ]; then
  [ -f "$GGML_HEADERS/ggml.h" ] || fail "GGML_HEADERS is $GGML_HEADERS, which has no ggml.h"
  echo "$GGML_HEADERS"
  exit
fi

case $(pkg-config --modversion ggml 2> /dev/null || true) in
  "$version".*)
    pkg-config --variable=includedir ggml
    exit
    ;;
esac

if [ -f "$unpacked/usr/include/ggml.h" ]; then
  echo "$unpacked/usr/include"
  exit
fi

command -v apt-get > /dev/null || fail "no ggml $version here, and no apt-get to download it with"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# The machine's own mirror of Debian: where its release comes from.
mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI)' \
  'Created-By: Packages' 'Component: main' "Release: $codename" | head -n 1)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -n "$mirror" ] && [ -f "$keyring" ] || fail "no ggml $version here, and apt is not set up for Debian"

mkdir -p "$here/target"
work=$(mktemp -d "$here/target/apt.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/download"
echo "deb [signed-by=$keyring] $mirror trixie-backports main" > "$work/sources.list"
# Everything that is not named here, a proxy for one, is as the machine has it.
cat > "$work/apt.conf" << CONF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "$work/lists";
Dir::State::Status "/dev/null";
Dir::Cache "$work/cache";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
export APT_CONFIG="$work/apt.conf"
apt-get -qq update > "$work/log" 2>&1 || fail "apt-get update: $(cat "$work/log")"
(cd "$work/download" && apt-get -qq download "libggml-dev=$version.*") > "$work/log" 2>&1 ||
  fail "apt-get download libggml-dev=$version.*: $(cat "$work/log")"
dpkg-deb -x "$work/download"/libggml-dev_*.deb "$work/unpacked"
# Another run may have been faster: its copy is the same.
mv -T "$work/unpacked" "$unpacked" 2> /dev/null || [ -f "$unpacked/usr/include/ggml.h" ]
echo "$unpacked/usr/include"
