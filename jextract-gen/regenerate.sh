#!/bin/sh
# Writes src/main/generated anew from ggml's headers and ggml-ext.h: the same input gives the same bytes.
#
#   regenerate.sh [HEADER_DIR]     HEADER_DIR holds ggml 0.27's headers; without it headers.sh finds them
#   JEXTRACT=/path/to/jextract     the jextract to use (default: the one on PATH); it must sit on libclang 14
set -eu

here=$(cd "$(dirname "$0")" && pwd)
jextract=${JEXTRACT:-jextract}
headers=${1:-$("$here/headers.sh")}
headers=$(cd "$headers" && pwd)
ext_headers=$here/../native/include
package=org.ggmlext.bindings
out=$here/src/main/generated

# The order is ggml's own: a header follows those that it includes.
ggml_headers="ggml.h ggml-alloc.h ggml-backend.h ggml-cpu.h gguf.h"

command -v "$jextract" > /dev/null || {
  echo "regenerate.sh: no jextract at '$jextract'; set JEXTRACT to a build of openjdk/jextract" >&2
  exit 1
}
# Other major versions of clang lay out the comments differently.
"$jextract" --version 2>&1 | grep -q 'clang version 14\.' || {
  echo "regenerate.sh: $jextract does not run on libclang 14, which the committed bindings come from" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# jextract hands the lines of this file in its working directory to clang. The fake libc headers, and
# nothing of the host, make the output the same wherever it is produced.
cat > "$work/compile_flags.txt" << FLAGS
--target=x86_64-unknown-linux-gnu
-nostdinc
-ffreestanding
-I$here/libc
-I$headers
FLAGS

sed 's/[ ]*#.*//; /^$/d' "$here/excluded.txt" > "$work/excluded"

run_jextract() {
  (cd "$work" && "$jextract" "$@") > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

# bind HEADER LOOKUP: binds what this header itself declares as class <header>_h, whose functions are
# found through GgmlLookup.<LOOKUP>.
bind() {
  class=$(basename "$1" .h | tr - _)_h
  echo "regenerate.sh: $(basename "$1") -> $class" >&2
  # The dump keeps one kind of declaration a name; a struct and its typedef often share one.
  awk -v header="$1" '
    NR == FNR { excluded[$1]; next }
    $3 != "#" || $5 != header || $2 in excluded { next }
    $1 ~ /struct|union|typedef/ {
      print "--include-struct", $2; print "--include-union", $2; print "--include-typedef", $2; next
    }
    { print $1, $2 }' "$work/excluded" "$work/dump" > "$work/$class.args"
  run_jextract "@$class.args" --output "$work/src" --target-package "$package" \
    --header-class-name "$class" --symbols-class-name ggml_shared "$1"
  # Post-step: our lookup in place of the process-wide ones.
  sed -i -e '/SYMBOL_LOOKUP = SymbolLookup\.loaderLookup()$/{
    N
    s/SymbolLookup\.loaderLookup()\n.*/GgmlLookup.'"$2"';/
  }' "$work/src"/org/ggmlext/bindings/${class}*.java
  grep -q "SYMBOL_LOOKUP = GgmlLookup\.$2;" "$work/src"/org/ggmlext/bindings/${class}*.java || {
    echo "regenerate.sh: this jextract writes its SYMBOL_LOOKUP differently; mend the post-step" >&2
    exit 1
  }
}

paths=
for header in $ggml_headers; do
  [ -f "$headers/$header" ] || { echo "regenerate.sh: no $header in $headers" >&2; exit 1; }
  paths="$paths $headers/$header"
done
ext_header=$(cd "$ext_headers" && pwd)/ggml-ext.h

# Which header declares what.
run_jextract --dump-includes dump --header-class-name all $paths "$ext_header"
for path in $paths; do
  bind "$path" GGML
done
bind "$ext_header" GGML_EXT

# Post-step: C_LONG is the one constant that differs between Linux and Windows; nothing bound uses it.
sed -i '/ C_LONG = /d' "$work/src/org/ggmlext/bindings/ggml_shared.java"
if grep -rlw C_LONG "$work/src"; then
  echo "regenerate.sh: the files above use the type 'long', which has no portable size" >&2
  exit 1
fi

rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -r "$work/src" "$out"
echo "regenerate.sh: $(find "$out" -name '*.java' | wc -l) files in $out" >&2
