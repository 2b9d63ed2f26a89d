#!/bin/sh
# check_registers.sh REPORTS: prints as a table what the compilers report about the kernels (compile_kernel.cmake keeps
# it). Fails if a thread takes more registers than a full block has, or if registers are spilled to memory. The column
# "stack" is memory for the program's range registers, which instructions address by number.
set -eu
reports=$1
[ -d "$reports" ] || { echo "skipped: no kernels were compiled here (no nvcc, no hipcc)"; exit 0; }

printf '%-10s %-9s %10s %7s %7s\n' kernel for registers stack spilled
for report in "$reports"/cuda/*.txt "$reports"/hip/*/*.txt; do
  [ -f "$report" ] || continue  # the vendor's compiler is not installed
  kernel=$(basename "$report" .txt)
  case $report in
    */cuda/*)
      awk -v kernel="$kernel" '
        /Compiling entry function/ { match($0, /sm_[0-9]+/); gpu = substr($0, RSTART, RLENGTH); entry = 0 }
        /Function properties for/ { entry = /forestvm_phase/ }
        /bytes spill stores/ { spilled[gpu] += $5 + $9; if (entry) stack[gpu] = $1 }
        /Used [0-9]+ registers/ {
          match($0, /Used [0-9]+/); registers[gpu] = substr($0, RSTART + 5, RLENGTH - 5) }
        END { for (gpu in registers) print kernel, gpu, registers[gpu], stack[gpu], spilled[gpu], kernel == "Kinds" ? 128 : 64 }' "$report" ;;
    */hip/*)
      awk -v kernel="$kernel" -v gpu="$(basename "$(dirname "$report")")" '
        function value() { match($0, /: +[0-9]+ \[/); return substr($0, RSTART + 2, RLENGTH - 4) + 0 }
        /Function Name:/ { entry = /forestvm_phase/ }
        !entry { next }
        / [VA]GPRs: / { registers += value() }
        /ScratchSize/ { stack = value() }
        /VGPRs Spill/ { spilled = value() }
        END { print kernel, gpu, registers, stack, spilled, 128 }' "$report" ;;
  esac
done | sort | awk '
  { printf "%-10s %-9s %10d %7d %7d\n", $1, $2, $3, $4, $5; if ($3 > $6 || $3 == 0 || $5 > 0 || $4 > 1024) { bad++ } rows++ }
  END { if (bad) print bad " of them exceed their bounds: 64 registers (AMD and Kinds: 128), 1024 bytes of stack, nothing spilled"
        if (!rows) print "no reports in the folder"
        exit bad || !rows }'
