#!/bin/sh
# Prints the bytes of code and constants in object files, and fails if they exceed a limit:
#   check_objects_size.sh SIZE LIMIT OBJECT…
set -eu
size=$1
limit=$2
shift 2
"$size" --format=berkeley "$@" | awk -v limit="$limit" -v files=$# '
  NR > 1 { sum += $1 + $2; ++count }
  END { printf "%d files: %d bytes, at most %d\n", count, sum, limit; exit !(count == files && sum <= limit) }'
