#!/bin/sh
# Objects compiled for a CPU target must define no symbol that the linker could share with the rest: if such an object
# has a copy of a function that is inline elsewhere, the linker may keep this copy for the whole program, which then
# crashes on CPUs without the target. Shared symbols must have the target's own namespace, or its type, in their name.
#   tests/rules/check_target_symbols.sh NM NAMESPACE OBJECT…      e.g. nm target_Avx512 avx512.cpp.o
set -u
nm=$1
namespace=$2
shift 2

if ! command -v "$nm" >/dev/null; then
  echo "nm is absent ('$nm'): nothing was checked"
  exit 1
fi
if [ $# -eq 0 ]; then
  echo "no objects of $namespace: nothing was checked"
  exit 1
fi
symbols=$("$nm" --defined-only --format=posix "$@") || {
  echo "$nm cannot read the objects of $namespace: nothing was checked"
  exit 1
}
# Upper-case types are visible to other objects, and w is weak. V, v and u are data of which the linker keeps one copy:
# constants hold no instructions, so that any copy serves every CPU.
shared=$(printf '%s\n' "$symbols" | awk 'NF >= 2 && $2 ~ /^[A-UW-Zw]$/ { print $1 }' | sort -u)
own="[0-9]$namespace"  # as C++ mangles it: a name follows its length
if ! printf '%s\n' "$shared" | grep -q "$own"; then
  echo "$# objects, and none defines anything of $namespace: nothing was checked"
  exit 1
fi
leaks=$(printf '%s\n' "$shared" | grep -v "$own")
if [ -n "$leaks" ]; then
  echo "objects of $namespace define for the whole program, compiled for their CPU:"
  printf '%s\n' "$leaks" | { c++filt 2>/dev/null || printf '%s\n' "$leaks"; } | sed 's/^/  /'
  echo "make these FVM_INLINE, static, or a template of the target's type"
  exit 1
fi
echo "$(printf '%s\n' "$shared" | wc -l) symbols, all of $namespace"
