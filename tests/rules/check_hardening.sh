#!/bin/sh
# Checks the hardening of a release build in its files: check_hardening.sh READELF PROCESSOR ARCHIVE FILE…
# ARCHIVE: a static library with walkers and other code; FILE…: programs and shared libraries.
set -eu
readelf=$1 processor=$2 archive=$3
shift 3

failed=0
# FILE WHAT PATTERN TEXT: checks that the text has a line that matches the pattern.
expect() {
  printf '%s\n' "$4" | grep -Eq -- "$3" && return
  echo "$1: no $2"
  failed=1
}

for file in "$@"; do
  headers=$("$readelf" -lW "$file")
  dynamic=$("$readelf" -dW "$file")
  symbols=$("$readelf" --dyn-syms -W "$file")
  expect "$file" "position-independent code" 'file type is DYN' "$headers"
  expect "$file" "tables made read-only (RELRO)" '^ *GNU_RELRO ' "$headers"
  expect "$file" "symbols bound when it is loaded (BIND_NOW)" 'FLAGS.*NOW' "$dynamic"
  expect "$file" "stack that is not executable" '^ *GNU_STACK .* RW  ' "$headers"
  expect "$file" "checks of the stack" '__stack_chk_fail' "$symbols"
  expect "$file" "checks of copies (_FORTIFY_SOURCE)" '__[a-z]+_chk@' "$symbols"
done

# Checks objects: a linked file has a property only if all its objects have it, including the C library's.
case $processor in
  x86_64 | AMD64 | amd64) pads='x86 feature: IBT, SHSTK' ;;
  aarch64) pads='AArch64 feature: BTI, PAC' ;;
  *) pads= ;;
esac
if [ -n "$pads" ]; then
  objects=$("$readelf" -hW "$archive" | grep -c '^  Class:')
  protected=$("$readelf" -nW "$archive" | grep -c "$pads") || true
  if [ "$objects" -eq 0 ] || [ "$protected" -ne "$objects" ]; then
    echo "$archive: $protected of $objects objects have landing pads ($pads)"
    failed=1
  fi
fi
[ "$failed" -eq 0 ] && echo "hardened: $*"
exit "$failed"
