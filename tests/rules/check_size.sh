#!/bin/sh
# Prints the bytes of files without their symbols, and fails if one exceeds its limit:
#   check_size.sh STRIP FILE LIMIT [FILE LIMIT]…
set -eu
strip=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
while [ $# -gt 0 ]; do
  "$strip" -o "$folder/stripped" "$1"
  size=$(wc -c < "$folder/stripped")
  echo "$1: $size bytes, at most $2"
  [ "$size" -le "$2" ] || failed=1
  shift 2
done
exit "$failed"
