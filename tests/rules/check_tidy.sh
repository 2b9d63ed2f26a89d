#!/bin/sh
# Runs clang-tidy over the project's sources that a build compiles, with the checks in .clang-tidy. Prints the findings
# and fails if there are any. Versions find different things, so only Debian 12's counts.
#   tests/rules/check_tidy.sh BUILD_FOLDER [FILE_PATTERN]      all sources, or those that match grep's pattern
#   tests/rules/check_tidy.sh BUILD_FOLDER --changed           up to 12 of those that changed, see
#                                                              tests/support/changed_files.sh; then, for headers that
#                                                              changed, one source that includes each
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
root=$(pwd)

tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [ -z "$tidy" ] || ! "$tidy" --version | grep -q 'version 14\.'; then
  echo "skipped: clang-tidy 14 is absent (Debian: clang-tidy)"
  exit 0
fi

commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
# Clang refuses options of GCC's that it does not know, so clang-tidy reads the commands without them.
python3 -B tests/support/build_commands.py "$build" | sed 's/ -mmemset-strategy=[^ "]*//g; s/ -fno-ipa-sra//g; s/ --param=[^ "]*//g' \
  >"$commands/compile_commands.json"
# Leaves out sources with one CPU's intrinsics: the walkers of vm/host/targets (generated), and bench/bitmasks.cpp,
# which includes their headers.
all=$(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$commands/compile_commands.json" | sort -u |
  grep -E "^$root/(frontend|scheduler|vm|kernels|bindings|cli|tests|bench)/.*\.cpp$" | grep -v '/bench/bitmasks\.cpp$') || {
  echo "no source in $build/compile_commands.json: nothing was checked"
  exit 1
}

if [ "${2:-}" = --changed ]; then
  changed=$(tests/support/changed_files.sh) || {
    echo "skipped: no history here says what changed: clang-tidy over all files is a nightly test"
    exit 0
  }
  files=$(for file in $changed; do
    case $file in *.cpp) printf '%s\n' "$all" | grep -Fx "$root/$file" || true ;; esac
  done
  for file in $changed; do
    case $file in
      *.hpp | *.h | *.def)
        printf '%s\n' "$all" | tr '\n' '\0' | xargs -0 grep -lE "include [\"<](.*/)?$(basename "$file")[\">]" | head -n 1 ;;
    esac
  done)
  files=$(printf '%s\n' "$files" | awk '!seen[$0]++')
  count=$(printf '%s\n' "$files" | wc -l)
  if [ "$count" -gt 12 ]; then  # each takes about 10 seconds
    echo "clang-tidy: 12 of $count files; ./dev nightly checks all"
    files=$(printf '%s\n' "$files" | head -n 12)
  fi
else
  files=$(printf '%s\n' "$all" | grep -e "${2:-.}") || {
    echo "no source in $build/compile_commands.json matches $2: nothing was checked"
    exit 1
  }
fi
if [ -z "$files" ]; then
  echo "no source changed"
  exit 0
fi
echo "clang-tidy: $(echo "$files" | wc -l) files"
# Prints a file's findings together, because two runs are under way at once.
if ! echo "$files" | tr '\n' '\0' | xargs -0 -n 1 -P 2 sh -c '
  out=$("$0" --quiet -p "$1" "$2" 2>&1) || { printf "%s\n" "$out" | grep -v " warnings.* generated"; exit 1; }
' "$tidy" "$commands"; then
  echo "clang-tidy has findings: mend them, or, where a check is wrong, say why in .clang-tidy or at a NOLINT(check)"
  exit 1
fi
echo "no findings"
