#!/bin/sh
# Compiles headers alone: the target headers_alone has a source for each header, which includes only that header.
#   tests/rules/check_headers.sh BUILD_FOLDER             all
#   tests/rules/check_headers.sh BUILD_FOLDER --changed   those that changed, see tests/support/changed_files.sh
set -eu
build=$1
targets=headers_alone
if [ "${2:-}" = --changed ]; then
  changed=$("$(dirname "$0")/../support/changed_files.sh") || {
    echo "skipped: no history here says what changed: all headers are a nightly test"
    exit 0
  }
  targets=
  for file in $changed; do
    [ ! -e "$build/tests/rules/alone/$file.cpp" ] ||
      targets="$targets tests/rules/CMakeFiles/headers_alone.dir/alone/$file.cpp.o"
  done
  if [ -z "$targets" ]; then
    echo "no header changed"
    exit 0
  fi
fi
# Only one run builds at a time: two would write the same objects.
exec flock "$build/tests/rules/alone" cmake --build "$build" --target $targets
